"""The searching, set and sorting functions of the array API standard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.errors import LoopwrightError

X = np.array([[3, 1, 2, 1], [0, 5, 5, -1], [3, 0, 7, 7]], np.int32)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes(name: str) -> None:
    """The first of equal extremes wins; without an axis it is counted in row-major order."""
    pick = max if name == "argmax" else min
    flat = X.ravel().tolist()
    got = getattr(lw, name)(lw.asarray(X))
    assert got.shape == () and got.dtype == lw.int64
    assert int(got) == flat.index(pick(flat))
    for axis in (0, 1, -1, -2):
        rows = np.moveaxis(X, axis, -1).tolist()
        want = [row.index(pick(row)) for row in rows]
        assert getattr(lw, name)(lw.asarray(X), axis=axis).numpy().tolist() == want
        kept = getattr(lw, name)(lw.asarray(X), axis=axis, keepdims=True)
        assert kept.shape == tuple(1 if a == axis % 2 else n for a, n in enumerate(X.shape))
    assert getattr(lw, name)(lw.asarray(X), keepdims=True).shape == (1, 1)
    assert int(getattr(lw, name)(lw.asarray(np.float32(2)))) == 0


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_nan_is_the_extreme(name: str) -> None:
    """NaN is found as the extreme, as NumPy finds it (the standard leaves it open)."""
    x = lw.asarray(np.array([1.0, math.nan, 3.0, math.nan]))
    assert int(getattr(lw, name)(x)) == 1


def test_nonzero() -> None:
    """One array of indices for each axis, in row-major order; NaN is not zero."""
    got = lw.nonzero(lw.asarray(X))
    want = [at for at in np.ndindex(X.shape) if X[at] != 0]
    assert isinstance(got, tuple) and len(got) == 2
    assert all(g.dtype == lw.int64 for g in got)
    assert list(zip(*(g.numpy().tolist() for g in got))) == want
    (at,) = lw.nonzero(lw.asarray(np.array([0.0, -0.0, math.nan, math.inf])))
    assert at.numpy().tolist() == [2, 3]
    assert [g.shape for g in lw.nonzero(lw.zeros((0, 3)))] == [(0,), (0,)]
    with pytest.raises(LoopwrightError) as caught:
        lw.nonzero(lw.asarray(np.float32(1)))
    assert isinstance(caught.value, ValueError)


@given(st.lists(st.integers(-5, 5), max_size=9), st.lists(st.integers(-6, 6), max_size=9))
def test_searchsorted(values: list[int], sought: list[int]) -> None:
    """left is the first place where the value may go, right the last; a sorter orders x1."""
    x1, x2 = np.array(values, np.int32), lw.asarray(np.array(sought, np.int32))
    order = sorted(range(len(values)), key=values.__getitem__)
    ranked = sorted(values)
    left = [sum(v < s for v in ranked) for s in sought]
    right = [sum(v <= s for v in ranked) for s in sought]
    in_order = lw.asarray(np.array(ranked, np.int32))
    assert lw.searchsorted(in_order, x2).numpy().tolist() == left
    assert lw.searchsorted(in_order, x2, side="right").numpy().tolist() == right
    sorter = lw.asarray(np.array(order, np.int64))
    got = lw.searchsorted(lw.asarray(x1), x2, sorter=sorter)
    assert got.numpy().tolist() == left and got.dtype == lw.int64


def test_searchsorted_keeps_the_shape_of_what_is_sought_and_refuses_the_rest() -> None:
    """x2 has any shape, x1 one axis; a side that is none is named."""
    x1 = lw.asarray(np.arange(5.0))
    assert lw.searchsorted(x1, lw.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert lw.searchsorted(x1, lw.asarray(np.full((2, 3), 2.5))).numpy().tolist() == [[3] * 3] * 2
    with pytest.raises(LoopwrightError, match="middle"):
        lw.searchsorted(x1, x1, side="middle")
    with pytest.raises(LoopwrightError):
        lw.searchsorted(lw.zeros((2, 2)), x1)


def test_where() -> None:
    """All three broadcast, values promote, numbers are weak, and the condition is a bool."""
    condition = lw.asarray(np.array([[True], [False]]))
    a, b = np.array([1, 2, 3], np.int16), np.array([10.0, 20.0, 30.0], np.float32)
    got = lw.where(condition, lw.asarray(b), lw.asarray(b * 2))
    assert got.dtype == lw.float32 and got.numpy().tolist() == [[10, 20, 30], [20, 40, 60]]
    assert lw.where(condition, lw.asarray(a), lw.asarray(a.astype(np.int32))).dtype == lw.int32
    assert lw.where(condition, lw.asarray(b), 0).dtype == lw.float32
    assert lw.where(condition, 1, lw.asarray(a)).dtype == lw.int16
    assert lw.where(condition, lw.zeros((0,)), lw.zeros((0,))).shape == (2, 0)
    assert lw.where(lw.asarray(True), lw.asarray(b), 0.0).numpy().tolist() == b.tolist()
    with pytest.raises(LoopwrightError) as caught:
        lw.where(condition, lw.ones((3,)), lw.ones((4,)))
    assert isinstance(caught.value, ValueError)


def test_what_is_not_chosen_does_not_spread() -> None:
    """NaN and infinity on the side that was not chosen leave no trace."""
    x = lw.asarray(np.array([4.0, -1.0, 0.0]))
    got = lw.where(x > 0, lw.log(x), -7.0).numpy()
    np.testing.assert_allclose(got, [math.log(4.0), -7.0, -7.0])


SORTED_DTYPES = [np.int8, np.uint16, np.int64, np.float32, np.float64]


@pytest.mark.parametrize("dtype", SORTED_DTYPES)
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(dtype: type, descending: bool) -> None:
    """Along any axis, up or down, equal values in the order in which they stood."""
    x = np.random.default_rng(2).integers(0, 5, (4, 6)).astype(dtype)
    for axis in (0, 1, -1, -2):
        rows = np.moveaxis(x, axis, -1).tolist()
        orders = [
            sorted(range(len(r)), key=lambda i, r=r: -r[i] if descending else r[i])  # type: ignore[misc]
            for r in rows
        ]
        at = lw.argsort(lw.asarray(x), axis=axis, descending=descending)
        assert at.dtype == lw.int64
        assert np.moveaxis(at.numpy(), axis, -1).tolist() == orders
        got = lw.sort(lw.asarray(x), axis=axis, descending=descending, stable=False)
        assert got.dtype == lw.asarray(x).dtype
        want = [[r[i] for i in order] for r, order in zip(rows, orders)]
        assert np.moveaxis(got.numpy(), axis, -1).tolist() == want


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_sorting_nothing_and_along_axes_that_are_not_there(name: str) -> None:
    """Empty arrays keep their shape; an axis beyond the rank is an error."""
    assert getattr(lw, name)(lw.zeros((0,))).shape == (0,)
    assert getattr(lw, name)(lw.zeros((2, 0, 3)), axis=0).shape == (2, 0, 3)
    for axis in (2, -3):
        with pytest.raises(LoopwrightError, match=str(axis)) as caught:
            getattr(lw, name)(lw.ones((2, 3)), axis=axis)
        assert isinstance(caught.value, (ValueError, IndexError))


UNIQUE = {
    "unique_all": ["values", "indices", "inverse_indices", "counts"],
    "unique_counts": ["values", "counts"],
    "unique_inverse": ["values", "inverse_indices"],
}


@given(st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5, math.inf, -math.inf]), max_size=12))
def test_unique(values: list[float]) -> None:
    """Distinct values with their first places, counts, and where each element went."""
    x = np.array(values, np.float64)
    shaped = x.reshape(2, -1) if len(values) % 2 == 0 and values else x
    everything = lw.unique_all(lw.asarray(shaped))
    distinct = everything.values.numpy().tolist()
    assert sorted(distinct) == sorted(set(values)) and len(set(distinct)) == len(distinct)
    assert everything.indices.numpy().tolist() == [values.index(v) for v in distinct]
    assert everything.counts.numpy().tolist() == [values.count(v) for v in distinct]
    inverse = everything.inverse_indices.numpy()
    assert inverse.shape == shaped.shape
    assert [distinct[i] for i in inverse.ravel().tolist()] == values
    assert lw.unique_values(lw.asarray(shaped)).numpy().tolist() == distinct
    for name in ("unique_counts", "unique_inverse"):
        result = getattr(lw, name)(lw.asarray(shaped))
        for field in UNIQUE[name]:
            np.testing.assert_array_equal(
                getattr(result, field).numpy(), getattr(everything, field).numpy()
            )


@pytest.mark.parametrize("name", UNIQUE)
def test_fields_of_unique(name: str) -> None:
    """The results are named tuples: values of x's dtype, everything else of the index dtype."""
    result = getattr(lw, name)(lw.asarray(np.array([2, 1, 2], np.uint8)))
    assert list(result._fields) == UNIQUE[name]
    assert [f.dtype for f in result] == [lw.uint8] + [lw.int64] * (len(UNIQUE[name]) - 1)


def test_unique_of_nan_and_of_zeros() -> None:
    """Each NaN is distinct from every other; both zeros are one value."""
    x = lw.asarray(np.array([math.nan, 0.0, -0.0, math.nan, 1.0]))
    got: Any = lw.unique_all(x)
    assert np.isnan(got.values.numpy()).sum() == 2
    assert sorted(got.counts.numpy().tolist()) == [1, 1, 1, 2]
    assert lw.unique_values(x).shape == (4,)
    assert lw.unique_counts(x).counts.numpy().sum() == 5
    assert lw.unique_inverse(lw.asarray(np.float32(3))).inverse_indices.shape == ()


def test_isin() -> None:
    """Which elements stand in the other array, or with invert=True do not."""
    x1, x2 = lw.asarray(np.array([[1, 2], [3, 4]])), lw.asarray(np.array([4, 1, 9]))
    assert lw.isin(x1, x2).numpy().tolist() == [[True, False], [False, True]]
    assert lw.isin(x1, x2, invert=True).numpy().tolist() == [[False, True], [True, False]]
    assert lw.isin(x1, x2).dtype == lw.bool
    assert lw.isin(x1, lw.zeros((0,), dtype=lw.int64)).numpy().tolist() == [[False] * 2] * 2
    assert lw.isin(lw.asarray(np.array([math.nan])), lw.asarray(np.array([math.nan]))).numpy() == [
        False
    ]
