"""Conversions between dtypes."""

from __future__ import annotations

import numpy as np

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import UnsupportedError, dtype_of, is_float

_LARGEST = {lw.float8_e4m3fn: 448.0, lw.float8_e5m2: 57344.0}


def convert(x: lw.Array, dtype, saturate: int = 1) -> lw.Array:
    """A cast; to 8-bit floats what is too large becomes the largest, not NaN or infinite."""
    if dtype in _LARGEST and saturate and is_float(x):
        largest = _LARGEST[dtype]
        x = lw.clip(lw.astype(x, lw.float32), -largest, largest)
    return lw.astype(x, dtype)


@operator("Cast")
def cast(x: lw.Array, *, to: int, saturate: int = 1, round_mode: str = "up") -> lw.Array:
    """`round_mode` is about a dtype that Loopwright has not."""
    return convert(x, dtype_of(to), saturate)


@operator("CastLike")
def cast_like(x: lw.Array, like: lw.Array, *, saturate: int = 1) -> lw.Array:
    return convert(x, like.dtype, saturate)


@operator("BitCast")
def bit_cast(x: lw.Array, *, to: int) -> lw.Array:
    """The same bytes: a view of the values in memory."""
    dtype = dtype_of(to)
    if dtype.itemsize != x.dtype.itemsize:
        raise UnsupportedError("a bit cast to another size")
    like = np.asarray(lw.zeros((), dtype=dtype)).dtype
    return lw.asarray(np.asarray(x).view(like))
