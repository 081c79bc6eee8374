"""Narrow integers wrap at their own width at every step; wide ones are not cut to 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, samples

INTS = [d for d in dt.ARRAY_DTYPES if d.is_int]


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_wraps_before_the_next_use(dtype: DType) -> None:
    """Sums, products and negations wrap before a shift, division, comparison or cast reads them."""
    x, y = samples(dtype, (67,), 1), samples(dtype, (67,), 2)
    y = np.where(y == 0, 3, y).astype(dtype.numpy)
    a, b, t = array(x), array(y), dtype.numpy.type
    wide = dt.int64 if dtype.bits < 64 else dt.float64
    with np.errstate(all="ignore"):
        items: list[tuple[str, lw.Array, Any]] = [
            ("x + x, wider", lw.astype(a + a, wide), (x + x).astype(wide.numpy)),
            ("x * y, wider", lw.astype(a * b, wide), (x * y).astype(wide.numpy)),
            ("x - y, wider", lw.astype(a - b, wide), (x - y).astype(wide.numpy)),
            ("-x, wider", lw.astype(-a, wide), (-x).astype(wide.numpy)),
            ("(x + y) >> 1", (a + b) >> 1, (x + y) >> t(1)),
            ("(x << 1) >> 1", (a << 1) >> 1, (x << t(1)) >> t(1)),
            ("x * y // 2", a * b // 2, (x * y) // t(2)),
            ("x * x % y", a * a % b, (x * x) % y),
            ("(x + y) // y", (a + b) // b, (x + y) // y),
            ("x - y > 100", a - b > 100, (x - y) > t(100)),
            ("-x < 4", -a < 4, -x < t(4)),
            ("x + y < x", a + b < a, (x + y) < x),
            ("x + 1 == y + 1", a + 1 == b + 1, (x + t(1)) == (y + t(1))),
            ("max(x + x, y)", lw.maximum(a + a, b), np.maximum(x + x, y)),
            ("~x + y", ~a + b, ~x + y),
            ("abs", lw.abs(a - b), np.abs(x - y)),
            ("sign", lw.sign(a - b), np.sign(x - y)),
            ("square", lw.square(a), np.square(x)),
            ("as float", lw.astype(a + b, lw.float64), (x + y).astype(np.float64)),
            ("sum of x + x", lw.sum(a + a), np.sum(x + x)),
            ("max of x + y", lw.max(a + b), np.max(x + y)),
        ]
    all_exact([(n, g, np.asarray(w)) for n, g, w in items])


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_factored_equals_expanded(dtype: DType) -> None:
    """c (x + y) and c x + c y are one value, also where a wider type reads them."""
    c, x, y = (samples(dtype, (67,), s) for s in (1, 2, 3))
    p, q, r = array(c), array(x), array(y)
    with np.errstate(all="ignore"):
        want = c * (x + y)
    wide = dt.int64
    zero = np.zeros(67, np.int64)
    factored, expanded = p * (q + r), p * q + p * r
    all_exact(
        [
            ("factored", factored, want),
            ("expanded", expanded, want),
            ("difference", lw.astype(expanded, wide) - lw.astype(factored, wide), zero),
            ("halves", (q + q) // 2 == q, (x + x) // dtype.numpy.type(2) == x),
            ("3 x", q * 3 == q + q + q, np.ones(67, bool)),
        ]
    )


def test_generated_indices_are_64_bit() -> None:
    """arange in int64 times large numbers, and sums of squares, do not wrap at 2**31."""
    i, k = lw.arange(11, dtype=lw.int64, device="cpu"), np.arange(11)
    j, n = lw.arange(70000, dtype=lw.int64, device="cpu"), np.arange(70000)
    all_exact(
        [
            ("1e9", i * 10**9, k * 10**9),
            ("data", i * array(np.array([1_500_000_000])), k * 1_500_000_000),
            ("2**31", i * 2**31 + i, k * 2**31 + k),
            ("shift", (i + 1) << 40, (k + 1) << 40),
        ]
    )
    all_exact([("squares", lw.sum(j * j), np.sum(n * n)), ("max", lw.max(j * j), np.max(n * n))])
    many = lw.broadcast_to(array(np.array([1], np.uint8)), (2**20, 2**5))
    all_exact([("ones", lw.sum(many * 100, dtype=lw.int64), np.asarray(100 * 2**25))])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_powers_are_exact(seed: int) -> None:
    """x ** n of integers is the product, wrapped, in every dtype."""
    rng = np.random.default_rng(seed)
    items: list[tuple[str, lw.Array, Any]] = []
    for dtype in INTS:
        x = samples(dtype, (37,), seed % 1000)
        n = rng.integers(0, 100, 37).astype(dtype.numpy)
        want = [pow(int(v), int(e), 1 << dtype.bits) for v, e in zip(x, n, strict=True)]
        items.append(
            (str(dtype), lw.pow(array(x), array(n)), np.array(want, np.uint64).astype(dtype.numpy))
        )
    all_exact(items)
