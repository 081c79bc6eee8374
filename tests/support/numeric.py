"""Values that are hard to get right, and comparisons that say how far off a result is."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType

Host = np.ndarray[Any, Any]


def array(x: Any, dtype: DType | None = None) -> lw.Array:
    """Data as an array on the CPU device."""
    host = np.asarray(x) if dtype is None else np.asarray(x, dtype.numpy)
    return lw.asarray(host, device="cpu")


def edges(dtype: DType) -> list[Any]:
    """The values at which a dtype's arithmetic changes its ways."""
    if dtype.is_bool:
        return [True, False]
    if dtype.is_int:
        low, high = int(dtype.min), int(dtype.max)
        return [0, 1, high, low, high - 1, low + 1, high // 2 + 1, 3]
    info: Any = lw.finfo(dtype)
    tiny, big = float(info.smallest_normal), float(info.max)
    return [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, big, -big, tiny, tiny / 2, 2.5]


def samples(dtype: DType, shape: Any, seed: int) -> Host:
    """Edge values in random places among random ones over the whole range."""
    rng = np.random.default_rng([seed, dtype.bits, dtype.is_float])
    size = math.prod(shape)
    if dtype.is_bool:
        out = rng.integers(0, 2, size).astype(bool)
    elif dtype.is_int:
        out = rng.integers(int(dtype.min), int(dtype.max), size, dtype.numpy, endpoint=True)
    else:
        out = rng.normal(size=size) * 4
    special = np.array(edges(dtype), out.dtype)
    at = rng.random(size) < 0.4
    out = np.where(at, special[rng.integers(0, len(special), size)], out)
    with np.errstate(all="ignore"):
        return out.astype(dtype.numpy).reshape(shape)


def finite(dtype: DType, shape: Any, seed: int) -> Host:
    """Random values of moderate size."""
    rng = np.random.default_rng([seed, 1])
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_int:
        return samples(dtype, shape, seed)
    return (rng.normal(size=shape) * 2).astype(dtype.numpy)


def whole(dtype: DType, shape: Any, seed: int, most: int = 3) -> Host:
    """Small whole numbers: their sums and products of pairs are exact in any order."""
    rng = np.random.default_rng([seed, 2])
    low = 0 if dtype.kind in ("bool", "uint") else -most
    return rng.integers(low, 1 if dtype.is_bool else most, shape, endpoint=True).astype(dtype.numpy)


@cache
def _table(dtype: DType) -> tuple[list[float], float]:
    """The finite values from 0 up of a float of 8 or 16 bits, then what would come next."""
    bits = np.arange(2 ** (dtype.bits - 1), dtype=f"u{dtype.itemsize}")
    values = bits.view(dtype.numpy).astype(np.float64)
    found = values[np.isfinite(values)].tolist()
    return [*found, 2 * found[-1] - found[-2]], math.nan if dtype is dt.float8_e4m3fn else math.inf


def _nearest_one(x: Any, dtype: DType) -> float:
    if x != x:
        return math.nan
    table, beyond = _table(dtype)
    size = abs(x)
    sign = -1.0 if x < 0 or (x == 0 and math.copysign(1, x) < 0) else 1.0
    if size >= table[-1]:
        return sign * beyond
    at = bisect_left(table, size)
    if table[at] != size:
        exact = Fraction(size)
        below, above = exact - Fraction(table[at - 1]), Fraction(table[at]) - exact
        at -= below < above or (below == above and at % 2)
    return sign * (beyond if at == len(table) - 1 else table[at])


def rounded(x: Any, dtype: DType) -> Host:
    """Numbers of any dtype rounded once, to nearest even, to a float dtype."""
    with np.errstate(all="ignore"):
        if dtype.bits >= 32:
            return np.asarray(x).astype(dtype.numpy)
        host = np.asarray(x)
        if host.dtype.kind not in "iub":
            host = host.astype(np.float64)
        flat = [_nearest_one(v, dtype) for v in host.ravel().tolist()]
        return np.array(flat, np.float64).reshape(host.shape).astype(dtype.numpy)


def cast(x: Host, dtype: DType) -> Host:
    """What a cast gives: wraps integers, saturates floats, rounds once."""
    source: Any = dt.from_numpy(x.dtype)
    with np.errstate(all="ignore"):
        if dtype.is_bool:
            return x.astype(np.float64) != 0 if source.is_float else x != 0
        if dtype.is_float:
            return rounded(x, dtype)
        if not source.is_float:
            return x.astype(dtype.numpy)
        low, high = int(dtype.min), int(dtype.max)
        flat = [
            0 if v != v else max(low, min(high, int(max(-1e30, min(1e30, v)))))
            for v in x.astype(np.float64).ravel().tolist()
        ]
        return np.array(flat, dtype.numpy).reshape(x.shape)


def _wide(x: Host) -> Host:
    return x.astype(np.float64) if x.dtype.kind not in "iub" else x


def exact(name: str, got: Any, want: Any, zeros: bool = True) -> None:
    """Equal shape, dtype and values; NaN is NaN, and unless told otherwise -0.0 is not 0.0."""
    a, b = np.asarray(got), np.asarray(want)
    assert (a.shape, a.dtype) == (b.shape, b.dtype), (
        f"{name}: {a.shape} {a.dtype}, not {b.shape} {b.dtype}"
    )
    x, y = _wide(a), _wide(b)
    same = x == y
    if x.dtype.kind == "f":
        same = (same & ((np.signbit(x) == np.signbit(y)) | (not zeros))) | ((x != x) & (y != y))
    _report(name, same, a, b)


def near(name: str, got: Any, want: Any, size: Any, n: int, ulps: float = 0.5) -> None:
    """A float result of n roundings in the accumulator, then one to its own dtype.

    `want` in float64 or wider; `size`: the sum of the magnitudes that were added.
    """
    a = np.asarray(got)
    dtype: Any = dt.from_numpy(a.dtype)
    y = np.asarray(want, np.longdouble)
    assert a.shape == y.shape, f"{name}: shape {a.shape}, not {y.shape}"
    with np.errstate(all="ignore"):
        final = rounded(y, dtype)
        x = a.astype(np.longdouble)
        eps = 2.0**-53 if dtype.bits == 64 else 2.0**-24
        allowed = np.asarray(size, np.longdouble) * (n * eps) + ulps * 1.01 * unit(final, dtype)
        close = np.abs(x - y) <= allowed
        close |= _wide(a) == final.astype(np.float64)
        close |= (x != x) & (final.astype(np.float64) != final.astype(np.float64))
    _report(name, close, a, final)


def unit(x: Host, dtype: DType) -> Host:
    """The distance to the next number of the dtype, upwards."""
    with np.errstate(all="ignore"):
        if dtype.bits >= 32:
            return np.spacing(np.abs(x)).astype(np.longdouble)
        info: Any = lw.finfo(dtype)
        size = np.maximum(np.abs(x.astype(np.float64)), float(info.smallest_normal))
        size = np.where(np.isfinite(size), size, 1.0)
        return np.asarray(np.exp2(np.floor(np.log2(size))) * float(info.eps), np.longdouble)


def _report(name: str, good: Host, got: Host, want: Host) -> None:
    if not np.all(good):
        at = tuple(np.argwhere(~np.asarray(good))[0].tolist())
        n = int(np.sum(~np.asarray(good)))
        raise AssertionError(
            f"{name}: {n} of {good.size} wrong; at {at}: "
            f"{got[at]!r}, not {want[at]!r} ({got.dtype})"
        )


def all_exact(items: Iterable[tuple[str, lw.Array, Any]], zeros: bool = True) -> None:
    """Evaluate together what becomes few kernels; each is exactly what stands beside it."""
    found = list(items)
    lw.evaluate(*[x for _, x, _ in found])
    for name, got, want in found:
        exact(name, got, want, zeros)
