"""Reading and writing at any key that the array API standard and NumPy know, drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.errors import LoopwrightError

Key = tuple[Any, ...]
N_AT_ONCE = 4


def slices(size: int) -> st.SearchStrategy[slice]:
    """Slices within an axis, at its ends and beyond them, in both directions."""
    ends = st.none() | st.integers(-size - 2, size + 2)
    return st.builds(slice, ends, ends, st.sampled_from([None, 1, 2, -1, -3]))


@st.composite
def keys(draw: st.DrawFn, shape: tuple[int, ...]) -> Key:
    """A legal key: one part per axis, new axes between, the rest left out or an ellipsis.

    Arrays of positions have shapes that broadcast; masks cover one or two axes and pick as many
    elements as those arrays have.
    """
    parts: list[Any] = []
    joint = draw(st.sampled_from([(), (1,), (3,), (2, 3)]))
    axis = 0
    while axis < len(shape) and draw(st.integers(0, 5)):
        size = shape[axis]
        kind = draw(st.sampled_from(["int", "slice", "slice", "array", "mask"]))
        if draw(st.integers(0, 4)) == 0:
            parts.append(None)
        n_covered = 1
        if kind == "int" and size:
            parts.append(draw(st.integers(-size, size - 1)))
        elif kind == "array" and size:
            own = joint[draw(st.integers(0, len(joint))) :]
            count = int(np.prod(own, dtype=int))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            dtype = draw(st.sampled_from([np.int64, np.int8, np.int32]))
            parts.append(np.array(values, dtype).reshape(own))
        elif kind == "mask" and not any(isinstance(p, np.ndarray) for p in parts):
            n_covered = draw(st.integers(1, min(2, len(shape) - axis)))
            covered = shape[axis : axis + n_covered]
            mask = np.zeros(int(np.prod(covered)), bool)
            n_picked = min(mask.size, joint[-1] if joint else 1)
            mask[draw(st.permutations(range(mask.size)))[:n_picked]] = True
            parts.append(mask.reshape(covered))
            joint = (n_picked,)
        else:
            parts.append(draw(slices(size)))
        axis += n_covered
    if draw(st.booleans()):
        parts.append(...)
    return tuple(parts)


def ours(key: Key) -> Key:
    """The key with Loopwright's arrays for NumPy's."""
    return tuple(lw.asarray(p) if isinstance(p, np.ndarray) else p for p in key)


SHAPES = st.lists(st.sampled_from([1, 2, 3, 4, 0]), max_size=4).map(tuple)


def source(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape, dtype=int), dtype=np.int32).reshape(shape)


def legal(host: np.ndarray[Any, Any], drawn: list[Key]) -> list[Key]:
    """The keys that NumPy takes: arrays of positions may not fit a mask's number of elements."""
    found = []
    for key in drawn:
        try:
            host[key]
        except IndexError:
            with pytest.raises(LoopwrightError) as caught:
                lw.asarray(host)[ours(key)]
            assert isinstance(caught.value, IndexError)
        else:
            found.append(key)
    return found


@settings(max_examples=30)
@given(SHAPES, st.data())
def test_reading_at_drawn_keys(shape: tuple[int, ...], data: st.DataObject) -> None:
    """Shape, dtype and elements are NumPy's, whatever stands beside what; so are refusals."""
    host = source(shape)
    drawn = legal(host, [data.draw(keys(shape)) for _ in range(N_AT_ONCE)])
    x = lw.asarray(host)
    results = [x[ours(key)] for key in drawn]
    lw.evaluate(*results)
    for key, got in zip(drawn, results):
        want = host[key]
        assert got.shape == want.shape and got.dtype == lw.int32, key
        assert got.numpy().tolist() == want.tolist(), key


@settings(max_examples=30)
@given(SHAPES, st.data())
def test_writing_at_drawn_keys(shape: tuple[int, ...], data: st.DataObject) -> None:
    """What is written lands where NumPy puts it, cast to the array's dtype; views keep the old."""
    host = source(shape)
    drawn = legal(host, [data.draw(keys(shape)) for _ in range(N_AT_ONCE)])
    results, wanted = [], []
    first = lw.asarray(host, copy=True)
    for key in drawn:
        part = host[key].shape
        value = np.int16(-1) - np.arange(np.prod(part, dtype=int), dtype=np.int16).reshape(part)
        positions = source(shape)[key].reshape(-1)
        if len(set(positions.tolist())) < positions.size or data.draw(st.booleans()):
            value = np.int16(-7)  # which of several values for one place wins is nobody's business
        x, want = first[...], host.copy()
        x[ours(key)] = lw.asarray(value)
        want[key] = value
        results.append(x)
        wanted.append(want)
    lw.evaluate(*results)
    for key, got, want in zip(drawn, results, wanted):
        assert got.dtype == lw.int32 and got.numpy().tolist() == want.tolist(), key
    assert first.numpy().tolist() == host.tolist()


BEYOND: list[Any] = [
    3,
    -4,
    (0, 4),
    (0, -5),
    (..., 4),
    (None, 3),
    (slice(0, 1), 4),
    np.array([0, 3]),
    np.array([-4]),
    [0, 3],
    (slice(None), np.array([[0], [4]])),
    (np.array([0, 1]), np.array([0, 4])),
    (0, 0, 0),
    (np.array([True, False, True]), 0, 0),
    np.array([True, False]),
    np.ones((3, 5), bool),
    (slice(None), np.ones(3, bool)),
    (..., 0, ...),
    1.0,
    np.array([1.0]),
]


@pytest.mark.parametrize("key", BEYOND, ids=str)
def test_keys_beyond_the_ends(key: Any) -> None:
    """An IndexError in reading and in writing, where it is written, and nothing has changed."""
    host = source((3, 4))
    x = lw.asarray(host)
    for refused in (lambda: x[key], lambda: x.__setitem__(key, 0)):
        with pytest.raises(LoopwrightError) as caught:
            refused()
        assert isinstance(caught.value, IndexError)
    assert x.numpy().tolist() == host.tolist()


def test_scalars_written_take_the_arrays_dtype() -> None:
    """Python numbers are weak in writing too; one that the dtype cannot hold is refused."""
    for dtype in (lw.int8, lw.uint16, lw.float32, lw.float64):
        x = lw.zeros((2, 2), dtype=dtype)
        x[0, ...] = 3
        x[lw.asarray([[False, False], [True, False]])] = True
        assert x.dtype == dtype and x.numpy().tolist() == [[3, 3], [1, 0]]
    x = lw.zeros((2,), dtype=lw.int8)
    with pytest.raises(OverflowError):
        x[0] = 300
    with pytest.raises(TypeError):
        x[0] = 1j
    with pytest.raises(TypeError):
        x[0] = "a"
    assert x.numpy().tolist() == [0, 0]
