"""x[key] and x[key] = v against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_oracle import oracle, same
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import loopwright as lw
from loopwright_core.errors import ArgumentError, ConstantRangeError, OutOfBoundsError, ShapeError

X = np.arange(24).reshape(2, 3, 4).astype(np.float32)

_BASIC: list[Any] = [
    0,
    -1,
    (0, 1),
    (slice(None), 1),
    (..., 2),
    slice(None, None, -1),
    (slice(1, None), slice(None, None, 2), slice(None, None, -2)),
    None,
    (None, 0, None),
    (0, ..., None),
    slice(5, 9),
    (slice(2, 0, -1), slice(2, None, -2)),
    (slice(-100, 100, 3), slice(None, None, -100)),
    (1, 2, 3),
    np.int64(1),
    ...,
    (),
]
_ARRAYS: list[Any] = [
    [0, 1, 1],
    (slice(None), [0, 2]),
    ([0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [0, -1], [3, -4]),
    (0, slice(None), [1, 3]),
    np.array([[0, 1], [1, 0]]),
    (np.array([[0], [1]]), np.array([0, 2])),
    (..., [1, 2]),
    (None, [0, 1]),
    ([0, 1], None, [1, 2]),
    (slice(None), 2, [0, 1]),
    ([0, 1], [1, 2], [0, 3]),
    [],
]


@pytest.mark.parametrize("key", [*_BASIC, *_ARRAYS], ids=str)
def test_reading(key: Any) -> None:
    """Every form of key gives NumPy's part."""
    same(lw.asarray(X)[key], X[key])


@given(key=hnp.basic_indices((2, 3, 4), allow_newaxis=True, allow_ellipsis=True))
@settings(max_examples=100, deadline=None)
def test_reading_and_writing_any_basic_key(key: Any) -> None:
    """Ints, slices of any step, ellipses and new axes, read and replaced."""
    same(lw.asarray(X)[key], X[key])
    value = np.arange(X[key].size, dtype=np.float32).reshape(X[key].shape) + 100
    mine, theirs = lw.asarray(X) + 0, X + 0
    mine[key] = value
    theirs[key] = value
    same(mine, theirs)


@pytest.mark.parametrize("key", _BASIC, ids=str)
@pytest.mark.parametrize("value", [7, 2.5, np.float64(1.5), "row"])
def test_writing(key: Any, value: Any) -> None:
    """Numbers and broadcast rows are cast to the array's dtype."""
    if value == "row":
        value = np.ones(X[key].shape[-1:], np.int16) * 3
    mine, theirs = lw.asarray(X), X.copy()
    mine[key] = value
    theirs[key] = value
    same(mine, theirs)


def test_arrays_are_values() -> None:
    """Views and expressions made before an assignment keep the old value; memory is not written."""
    memory = np.arange(6, dtype=np.float32)
    x = lw.asarray(memory)
    view, later = x[1:3], x + 10
    x[1:3] = 0
    same(view, memory[1:3])
    same(later, memory + 10)
    same(x, np.array([0, 0, 0, 3, 4, 5], np.float32))
    np.testing.assert_array_equal(memory, np.arange(6))


def test_overlapping_shifts() -> None:
    """x[1:] = x[:-1] reads everything before it writes anything."""
    x = lw.asarray(np.arange(9, dtype=np.int32).reshape(3, 3))
    x[:, 1:] = x[:, :-1]
    same(x, np.array([[0, 0, 1], [3, 3, 4], [6, 6, 7]], np.int32))
    x[::-1] = x
    same(x, np.array([[6, 6, 7], [3, 3, 4], [0, 0, 1]], np.int32))


def test_masks() -> None:
    """x[mask] = v is a where, for masks of all or of the first axes."""
    for value in (0, np.float32(5), np.arange(4, dtype=np.float32)):
        mine, theirs = lw.asarray(X), X.copy()
        mine[np.array([True, False])] = value
        theirs[np.array([True, False])] = value
        same(mine, theirs)
    mine, theirs = lw.asarray(X), X.copy()
    mine[mine > 7] = -1
    theirs[theirs > 7] = -1
    same(mine, theirs)


def test_gathers() -> None:
    """take and take_along_axis count negative indices from the end; computed ones may read 0."""
    x = lw.asarray(X)
    index = np.array([[[0, 2, 3], [1, 1, 0], [0, -1, 3]]])
    same(lw.take_along_axis(x, index, axis=2), np.take_along_axis(X, index, axis=2))
    computed = lw.asarray(np.array([0, 9, -9])) + 0
    got = oracle(lw.take(x, computed, axis=2))
    np.testing.assert_array_equal(got[..., 0], X[..., 0])
    assert not got[..., 1:].any()


@pytest.mark.parametrize("key", [2, (0, 3), (0, 0, 0, 0), [7], (slice(None), [0, -4])], ids=str)
def test_out_of_bounds_is_raised_where_it_is_written(key: Any) -> None:
    """Known indices outside the array raise IndexError at once, reading or writing."""
    x = lw.asarray(X)
    with pytest.raises(OutOfBoundsError):
        x[key]
    with pytest.raises(OutOfBoundsError):
        x[key] = 0


def test_wrong_values() -> None:
    """A value that does not fit the part or the dtype is refused."""
    x = lw.asarray(np.zeros((2, 3), np.uint8))
    with pytest.raises(ShapeError, match=r"\(5,\)"):
        x[0] = np.zeros(5)
    with pytest.raises(ConstantRangeError):
        x[0] = 300
    with pytest.raises(IndexError):
        x["a"]
    with pytest.raises(ArgumentError, match="step 0"):
        x[::0]


@given(st.integers(1, 9), st.integers(-4, 4).filter(bool), st.data())
@settings(max_examples=60, deadline=None)
def test_slices_of_a_line(n: int, step: int, data: st.DataObject) -> None:
    """Any start, stop and step of a slice."""
    ends = st.one_of(st.none(), st.integers(-12, 12))
    key = slice(data.draw(ends), data.draw(ends), step)
    line = np.arange(n, dtype=np.int16)
    same(lw.asarray(line)[key], line[key])
