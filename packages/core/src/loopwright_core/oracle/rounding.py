"""Conversions between scalar types that round once, and multiply-add that rounds once."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType

Fn = Callable[..., Any]


def is_small(dtype: DType) -> bool:
    """A float that NumPy computes through float32: half, bfloat16, the 8-bit formats."""
    return dtype.is_float and dtype.bits < 32


def odd_float32(x: Any) -> Any:
    """float64 to float32, rounded to odd: rounding it again to 22 bits or fewer rounds x once.

    Source: Boldo and Melquiond, "When double rounding is odd", 2005.
    """
    x = np.asarray(x, np.float64)
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.int32) - (np.abs(back) > np.abs(x))  # now rounded to zero
    inexact = (back != x) & (x == x)
    return np.where(inexact, bits | 1, near.view(np.int32)).astype(np.int32).view(np.float32)


def narrow(x: Any, dtype: DType) -> Any:
    """float64 to any float dtype, rounded once to nearest even."""
    if is_small(dtype):
        return odd_float32(x).astype(dtype.numpy)
    return x.astype(dtype.numpy)


def _sticky(x: Any) -> Any:
    """A 64-bit integer that float64 holds exactly and that rounds to fewer bits as x does."""
    x = np.asarray(x)
    low = x & x.dtype.type(0x7FF)
    large = np.abs(x.astype(np.float64)) >= 2.0**53
    odd = (x - low) | np.where(low != 0, x.dtype.type(0x800), x.dtype.type(0))
    return np.where(large, odd, x).astype(np.float64)


def _float_to_int(x: Any, dtype: DType) -> Any:
    """Truncates; saturates beyond the range; NaN is 0."""
    whole = np.trunc(np.asarray(x).astype(np.float64))
    low, high = int(dtype.min), int(dtype.max)
    above = whole >= float(high + 1)
    below = whole < float(low)
    inside = np.where(above | below | (whole != whole), 0.0, whole).astype(dtype.numpy)
    return np.where(above, dtype.numpy.type(high), np.where(below, dtype.numpy.type(low), inside))


@cache
def cast(dtype: DType, src: DType) -> Fn:
    """CAST from one scalar dtype to another."""
    to = dtype.numpy
    if dtype is src:
        return lambda x: x
    if dtype.is_bool:
        return (lambda x: x.astype(np.float32) != 0) if is_small(src) else (lambda x: x != 0)
    if dtype.is_int:
        if src.is_float:
            return lambda x: _float_to_int(x, dtype)
        return lambda x: x.astype(to)
    if src is dt.float64:
        return lambda x: narrow(x, dtype)
    if src.is_int and is_small(dtype) and src.bits >= 32:
        if src.bits == 64:
            return lambda x: odd_float32(_sticky(x)).astype(to)
        return lambda x: odd_float32(x).astype(to)
    if is_small(dtype):
        return lambda x: x.astype(np.float32).astype(to)
    return lambda x: x.astype(to)


def _odd_sum(a: Any, b: Any) -> Any:
    """a + b in float64, rounded to odd."""
    total = np.asarray(a + b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    toward = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    even = (total.view(np.int64) & 1) == 0
    adjust = even & (error != 0) & (error == error)
    return np.where(adjust, toward, total)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b and its rounding error; Dekker 1971."""
    product = a * b

    def halves(x: Any) -> tuple[Any, Any]:
        scaled = x * 134217729.0  # 2**27 + 1
        high = scaled - (scaled - x)
        return high, x - high

    (ah, al), (bh, bl) = halves(a), halves(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _exact_fma(a: float, b: float, c: float) -> float:
    """One finite a * b + c through rational numbers."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _fma64(a: Any, b: Any, c: Any) -> Any:
    """float64 multiply-add, rounded once.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008; extreme
    exponents, where its partial results could overflow or underflow, go through fractions.
    """
    a, b, c = np.broadcast_arrays(np.asarray(a), np.asarray(b), np.asarray(c))
    high, low = _two_product(a, b)
    total = c + low
    part = total - c
    rest = (c - (total - part)) + (low - part)
    first = high + total
    part = first - high
    second = (high - (first - part)) + (total - part)
    result = np.array(first + _odd_sum(second, rest), ndmin=a.ndim)
    size_a, size_b, size_c = np.abs(a), np.abs(b), np.abs(c)
    safe = (size_a > 2.0**-400) & (size_a < 2.0**400) & (size_b > 2.0**-400)
    safe &= (size_b < 2.0**400) & (size_c < 2.0**900) & ((size_c > 2.0**-800) | (c == 0))
    safe &= result != 0  # the sign of a zero sum is the plain sum's
    plain = (a == 0) | (b == 0) | ~np.isfinite(a) | ~np.isfinite(b) | ~np.isfinite(c)
    result = np.where(plain, a * b + c, result)
    result = np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, result)
    hard = np.nonzero(~(safe | plain))
    if hard[0].size:
        triples = zip(a[hard].tolist(), b[hard].tolist(), c[hard].tolist(), strict=True)
        result[hard] = [_exact_fma(x, y, z) for x, y, z in triples]
    return result


def fma(dtype: DType) -> Fn:
    """a * b + c, rounded once to the dtype."""
    if dtype is dt.float64:
        return lambda a, b, c: _fma64(*np.atleast_1d(a, b, c)).reshape(
            np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
        )

    def small(a: Any, b: Any, c: Any) -> Any:
        wide = [x.astype(np.float64) for x in (a, b, c)]
        product = wide[0] * wide[1]  # exact: twice 24 bits fit 53
        plain = product + wide[2]
        total = np.where(plain == 0, plain, _odd_sum(product, wide[2]))
        return narrow(total, dtype)

    return small
