"""NaN and infinity: what propagates, what must not leak, and no flag that assumes them away."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, near

FLOATS = [d for d in dt.ARRAY_DTYPES if d.is_float]
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_wins_in_extremes(dtype: DType) -> None:
    """One NaN at any place of any row is its maximum and minimum, and the first is its position."""
    for n in (3, 18, 67):
        host = np.tile(np.arange(n, dtype=np.float32) % 7, (n, 1))
        np.fill_diagonal(host, NAN)
        host[: n // 2, n - 1] = NAN  # a second one
        x = array(host.astype(dtype.numpy))
        nans, place = np.full(n, NAN).astype(dtype.numpy), np.arange(n)
        items: list[tuple[str, lw.Array, Any]] = []
        for name in ("max", "min"):
            items.append((f"{name} {n}", getattr(lw, name)(x, axis=1), nans))
            items.append((f"{name} columns {n}", getattr(lw, name)(x, axis=0), nans))
            items.append((f"arg{name} {n}", getattr(lw, f"arg{name}")(x, axis=1), place))
        all_exact(items)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan_wins_elementwise(dtype: DType) -> None:
    """maximum, minimum, clip and relu give NaN wherever an operand is NaN, on either side."""
    x = np.resize(np.array([-3, NAN, 1, 0, NAN]), 37).astype(dtype.numpy)
    y = np.resize(np.array([0, 0, NAN, 2, NAN]), 37).astype(dtype.numpy)
    a, b, zero = array(x), array(y), dtype.numpy.type(0)
    bound = np.maximum(x, zero)
    all_exact(
        [
            ("maximum", lw.maximum(a, b), np.maximum(x, y)),
            ("minimum", lw.minimum(a, b), np.minimum(x, y)),
            ("swapped", lw.maximum(b, a), np.maximum(x, y)),
            ("relu", lw.maximum(a, 0), bound),
            ("relu, swapped", lw.maximum(0, a), bound),
            ("lw.relu", lw.relu(a), bound),
            ("clip", lw.clip(a, 0, 1), np.minimum(bound, dtype.numpy.type(1))),
        ],
        zeros=False,
    )


def test_nan_made_in_the_same_kernel() -> None:
    """argmax sees the NaN that a fused logarithm makes."""
    all_exact(
        [
            ("log1p", lw.argmax(lw.log1p(array(np.array([-2, 100], np.float32)))), np.asarray(0)),
            (
                "0/0",
                lw.argmin(array(np.array([1.0, 0.0, 2.0])) / array(np.array([1.0, 0.0, 2.0]))),
                np.asarray(1),
            ),
            ("sqrt", lw.argmax(lw.sqrt(array(np.array([4.0, -1.0, 9.0])))), np.asarray(1)),
        ]
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nothing_is_assumed_away(dtype: DType) -> None:
    """0/0, 1/0, inf - inf, 0 * inf, tests for NaN and infinity: IEEE 754 in every dtype."""
    x = np.resize(np.array([0.0, 1.0, -1.0, INF, -INF, NAN]), 37).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        q, d, p = x / (x * dtype.numpy.type(0)), x - x, x * dtype.numpy.type(0)
        zero = x - x == 0
    a = array(x)
    all_exact(
        [
            ("x / 0x", a / (a * 0), q),
            ("x - x", a - a, d),
            ("x * 0", a * 0, p),
            ("x != x", a != a, x != x),
            ("not (x == x)", ~(a == a), ~(x == x)),
            ("x - x == 0", a - a == 0, zero),
            ("isnan", lw.isnan(a / (a * 0)), np.isnan(q)),
            ("isinf", lw.isinf(a / (a * 0)), np.isinf(q)),
            ("isfinite", lw.isfinite(a), np.isfinite(x)),
            ("not <", ~(a < 1), ~(x < dtype.numpy.type(1))),
            (">=", a >= 1, x >= dtype.numpy.type(1)),
        ]
    )


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_functions_at_infinity(dtype: DType) -> None:
    """exp, log, sqrt, tanh and their kin at overflow, 0, negative numbers and infinity."""
    x = np.resize(np.array([1000.0, -1000.0, INF, -INF, NAN, 0.0, -0.0, -1.0]), 37).astype(
        dtype.numpy
    )
    a = array(x)
    names = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "tanh")
    items = []
    with np.errstate(all="ignore"):
        for name in names:
            want = getattr(np, name)(x)
            keep = ~np.isfinite(want) | (want == 0) | (np.abs(want) == 1)
            got = lw.where(array(keep), getattr(lw, name)(a), 7)
            items.append((name, got, np.where(keep, want, dtype.numpy.type(7))))
        items.append(
            ("sin", lw.sin(a) + lw.cos(a), np.where(np.isfinite(x), np.sin(x) + np.cos(x), np.nan))
        )
    all_exact(items[:-1])
    name, got, want = items[-1]
    near(name, got, want, 2, 0, 3)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_where_does_not_leak(dtype: DType) -> None:
    """The branch not taken may be NaN or infinite; gathers copy and do not multiply by a mask."""
    x = np.resize(np.array([-1.0, 0.0, 1.0, NAN, INF]), 37).astype(dtype.numpy)
    a = array(x)
    positive = x > dtype.numpy.type(0)
    with np.errstate(all="ignore"):
        one_over = dtype.numpy.type(1) / x
    table = np.array([[INF, INF], [NAN, NAN], [3, 4], [5, 6]]).astype(dtype.numpy)
    rows = np.array([2, 3, 0, 2])
    flags = np.array([True, False])
    first, second = np.array([NAN, 1], dtype.numpy), np.array([2, NAN], dtype.numpy)
    all_exact(
        [
            ("log", lw.where(a > 1, lw.log(a), 0) * 0 == 0, ~np.isinf(x)),
            ("1/x", lw.where(a > 0, 1 / a, a), np.where(positive, one_over, x)),
            ("take", lw.take(array(table), array(rows), axis=0), table[rows]),
            ("slice", array(table)[2:] * 1, table[2:]),
            (
                "both",
                lw.where(array(flags), array(first), array(second)),
                np.array([NAN, NAN], dtype.numpy),
            ),
        ]
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 31, 33, 130])
def test_log_softmax_of_rows_with_minus_infinity(n: int) -> None:
    """Narrow rows, and rows half of -inf, are finite where the data is; -inf stays."""
    host = np.zeros((3, n), np.float32)
    host[1, : n // 2] = -INF
    host[2, n - 1] = 50
    x = array(host)
    m = lw.max(x, axis=1, keepdims=True)
    by_hand = (x - m) - lw.log(lw.sum(lw.exp(x - m), axis=1, keepdims=True))
    wide = host.astype(np.float64) - host.max(axis=1, keepdims=True)
    want = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
    for name, got in (("by hand", by_hand), ("lw", lw.log_softmax(x, axis=1))):
        near(name, got, want, np.where(np.isfinite(want), 60, 0), n + 10)
    near("softmax", lw.softmax(x, axis=1), np.exp(want), np.exp(want), n + 20)
