"""Pads are masks over other loads: their fill must reach views, and never a neighbour's result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, whole

# around one vector of any dtype, and a few of them with a rest
LENGTHS = (1, 3, 7, 18, 37, 61)


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_fill_is_seen_through_views(dtype: DType) -> None:
    """Single elements, flips, steps and pads of a pad show the fill where NumPy does."""
    x = whole(dtype, (5,), 3)
    one, two = dtype.numpy.type(1), dtype.numpy.type(0)
    p = np.pad(np.pad(x, (2, 3), constant_values=one), (1, 0), constant_values=two)
    a = lw.pad(lw.pad(array(x), ((2, 3),), constant_values=one), ((1, 0),), constant_values=two)
    items: list[tuple[str, lw.Array, Any]] = [(f"[{i}]", a[i], p[i]) for i in range(len(p))]
    items += [("flip", lw.flip(a), p[::-1]), ("steps", a[::3], p[::3]), ("back", a[::-2], p[::-2])]
    items += [
        ("twice", a == a[::-1], p == p[::-1]),
        ("square", a[1:].reshape(2, 5).T, p[1:].reshape(2, 5).T),
    ]
    all_exact([(n, g, np.ascontiguousarray(w).reshape(np.shape(w))) for n, g, w in items])


@pytest.mark.parametrize("n", LENGTHS)
def test_no_lane_beyond_the_end_joins(n: int) -> None:
    """Functions that are not 0 at 0 stay out of the sum where a loop's tail is padded."""
    half = array(np.full((2, n), 0.5, np.float32))
    f = np.float32
    all_exact(
        [
            ("sum 1/x", lw.sum(1.0 / half, axis=1), np.full(2, 2.0 * n, f)),
            ("sum log 2x", lw.sum(lw.log(half + half), axis=1), np.zeros(2, f)),
            ("max of -x", lw.max(-half, axis=1), np.full(2, -0.5, f)),
            ("min", lw.min(half, axis=1), np.full(2, 0.5, f)),
            ("prod", lw.prod(half + half, axis=1), np.ones(2, f)),
            ("prod of 2x", lw.prod(half * 2, axis=1), np.ones(2, f)),
            ("all", lw.all(half > 0, axis=1), np.ones(2, bool)),
            ("any", lw.any(half == 0, axis=1), np.zeros(2, bool)),
            ("sum exp", lw.sum(lw.exp(half - 0.5), axis=1), np.full(2, n, f)),
            ("sum cos", lw.sum(lw.cos(half - 0.5), axis=1), np.full(2, n, f)),
            ("columns", lw.sum(1.0 / half, axis=0), np.full(n, 4, f)),
            ("argmax of -1/x", lw.argmax(-1.0 / half, axis=1), np.zeros(2, np.int64)),
        ]
    )


@given(st.data())
@settings(max_examples=10)
def test_reductions_of_pads(data: st.DataObject) -> None:
    """Any widths and fill on two axes, then a function, then a reduction: NumPy's bits."""
    n, m = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 20))
    width = st.tuples(st.integers(0, 4), st.integers(0, 4))
    widths, fill = (data.draw(width), data.draw(width)), data.draw(st.integers(-3, 3))
    x = np.random.default_rng(n * m).integers(-9, 9, (n, m)).astype(np.int32)
    p, a = np.pad(x, widths, constant_values=fill), lw.pad(array(x), widths, constant_values=fill)
    all_exact(
        [
            ("sum", lw.sum(a * a + 1, axis=1), np.sum(p * p + 1, axis=1)),
            ("max", lw.max(-a, axis=0), np.max(-p, axis=0)),
            ("min", lw.min(a, axis=1), np.min(p, axis=1)),
            ("argmin", lw.argmin(a, axis=1), np.argmin(p, axis=1)),
            ("all", lw.all(a, axis=1), np.all(p, axis=1)),
        ]
    )
