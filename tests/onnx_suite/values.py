"""Python numbers from small arrays, and dtypes by ONNX's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

import loopwright as lw

_DTYPES = {
    onnx.TensorProto.BOOL: lw.bool,
    onnx.TensorProto.INT8: lw.int8,
    onnx.TensorProto.INT16: lw.int16,
    onnx.TensorProto.INT32: lw.int32,
    onnx.TensorProto.INT64: lw.int64,
    onnx.TensorProto.UINT8: lw.uint8,
    onnx.TensorProto.UINT16: lw.uint16,
    onnx.TensorProto.UINT32: lw.uint32,
    onnx.TensorProto.UINT64: lw.uint64,
    onnx.TensorProto.FLOAT16: lw.float16,
    onnx.TensorProto.BFLOAT16: lw.bfloat16,
    onnx.TensorProto.FLOAT: lw.float32,
    onnx.TensorProto.DOUBLE: lw.float64,
    onnx.TensorProto.FLOAT8E4M3FN: lw.float8_e4m3fn,
    onnx.TensorProto.FLOAT8E5M2: lw.float8_e5m2,
}


class UnsupportedError(Exception):
    """The backend has no way to run this node, and says so."""


def dtype_of(number: int) -> Any:
    """The dtype that ONNX gives this number."""
    if number not in _DTYPES:
        name = onnx.TensorProto.DataType.Name(number)
        raise UnsupportedError(f"no dtype {name}")
    return _DTYPES[number]


def ints(x: Any) -> list[int]:
    """The elements as Python ints: what shapes, axes and counts are made of."""
    return [int(v) for v in lw.reshape(x, (-1,)).tolist()]


def number(x: Any) -> Any:
    """The only element as a Python number."""
    return lw.reshape(x, ()).item()


def is_float(x: lw.Array) -> bool:
    return bool(lw.isdtype(x.dtype, "real floating")) or x.dtype in (
        lw.bfloat16,
        lw.float8_e4m3fn,
        lw.float8_e5m2,
    )


def is_unsigned(x: lw.Array) -> bool:
    return bool(lw.isdtype(x.dtype, "unsigned integer"))


def axes_of(axes: Any, n: int) -> tuple[int, ...]:
    """Axes of an attribute or an input, counted from the front; None: all of them."""
    if axes is None:
        return tuple(range(n))
    given = axes if isinstance(axes, (list, tuple)) else ints(axes)
    return tuple([a % n if n else 0 for a in given])


def along(values: lw.Array, axis: int, n: int) -> lw.Array:
    """A vector laid along one axis of n, the others of size 1."""
    return lw.reshape(values, tuple([-1 if a == axis else 1 for a in range(n)]))


def channels(values: lw.Array, n: int) -> lw.Array:
    """A vector laid along axis 1."""
    return along(values, 1, n)


def per_channel(values: lw.Array, axis: int, n: int) -> lw.Array:
    """A scalar as it is, a vector along an axis."""
    return along(values, axis % n, n) if values.size > 1 or values.ndim == 1 else values


def wide(x: lw.Array) -> lw.Array:
    """float16 and narrower as float32: where an operator rounds only once."""
    return lw.astype(x, lw.float32) if x.dtype.itemsize < 4 else x


def product(sizes: Sequence[int]) -> int:
    n = 1
    for size in sizes:
        n *= size
    return n
