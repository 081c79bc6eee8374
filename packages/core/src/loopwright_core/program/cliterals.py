"""Literals of C-family text that give back exactly the value they stand for."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from loopwright_core.ir.dtype import DType


@lru_cache(maxsize=4096)
def _decimal(value: float, name: str) -> str:
    kind: type[np.floating[Any]] = np.float32 if name == "float32" else np.float64
    with np.errstate(over="ignore"):
        number = kind(value)
    if number == 0 or 1e-4 <= abs(float(number)) < 1e16:
        return np.format_float_positional(number, unique=True, trim="0")
    return np.format_float_scientific(number, unique=True, trim="0", exp_digits=1)


def decimal(value: float, dtype: DType) -> str:
    """The shortest decimal that reads back as that finite float32 or float64, without a suffix.

    >>> from loopwright_core.ir.dtype import float32
    >>> decimal(0.1, float32), decimal(-1e-45, float32), decimal(3, float32)
    ('0.1', '-1.0e-45', '3.0')
    """
    # The cache must tell 0.0 from -0.0, which compare equal.
    if value == 0.0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    return _decimal(value, dtype.name)


def is_finite(value: float, dtype: DType) -> bool:
    """Whether the value is still finite when rounded to that dtype."""
    if -1e38 < value < 1e38:
        return True
    with np.errstate(over="ignore"):
        return bool(np.isfinite(dtype.numpy.type(value)))


def storage_bits(value: float, dtype: DType) -> int:
    """The bits of a float as the unsigned integer of its width: for storage-only dtypes."""
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.array(value).astype(dtype.numpy)
    return int(array.view(f"u{dtype.itemsize}"))
