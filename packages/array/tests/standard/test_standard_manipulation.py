"""The manipulation and indexing functions of the array API standard."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.errors import LoopwrightError

X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
SHAPES = st.lists(st.integers(0, 3), max_size=4).map(tuple)


def equal(got: Any, want: Any) -> None:
    """Shape, dtype and elements."""
    want = np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.numpy == want.dtype
    assert got.numpy().tolist() == want.tolist()


def refused(kind: Any, function: Any, *args: Any, **how: Any) -> None:
    """The call is a LoopwrightError that is also NumPy's error."""
    with pytest.raises(LoopwrightError) as caught:
        function(*args, **how)
    assert isinstance(caught.value, kind), type(caught.value).__mro__


@given(st.lists(SHAPES, min_size=1, max_size=3))
def test_broadcast_shapes_and_arrays(shapes: list[tuple[int, ...]]) -> None:
    """The common shape by the standard's algorithm, and every array stretched to it."""
    rank = max(map(len, shapes))
    columns = zip(*[(1,) * (rank - len(s)) + s for s in shapes])
    want = []
    for extents in columns:
        others = {n for n in extents if n != 1}
        want.append(-1 if len(others) > 1 else (others.pop() if others else 1))
    arrays = [lw.zeros(s, dtype=lw.int8) for s in shapes]
    if -1 in want:
        refused(ValueError, lw.broadcast_shapes, *shapes)
        refused(ValueError, lw.broadcast_arrays, *arrays)
    else:
        assert lw.broadcast_shapes(*shapes) == tuple(want)
        found = lw.broadcast_arrays(*arrays)
        assert isinstance(found, (list, tuple))
        assert [(f.shape, f.dtype) for f in found] == [(tuple(want), lw.int8)] * len(shapes)


def test_broadcast_to() -> None:
    """Axes of one stretch and new ones come in front; nothing shrinks."""
    x = lw.asarray(np.array([[1], [2]], np.float32))
    equal(lw.broadcast_to(x, (3, 2, 2)), np.float32([[[1, 1], [2, 2]]] * 3))
    equal(lw.broadcast_to(x, (2, 0)), np.zeros((2, 0), np.float32))
    equal(lw.broadcast_to(lw.asarray(np.int8(5)), (2,)), np.int8([5, 5]))
    for shape in ((2,), (3, 1), (2, 3, 1), (), (-1, 2, 2)):
        refused(ValueError, lw.broadcast_to, x, shape)
    refused(ValueError, lw.broadcast_shapes, (-1,), (1,))


def test_concat() -> None:
    """Along any axis or flattened, the dtype promoted, other extents equal."""
    parts = [X, X[:, :1], X[:, :0]]
    arrays = [lw.asarray(p) for p in parts]
    for axis in (1, -2):
        equal(lw.concat(arrays, axis=axis), np.array([[*a, a[0]] for a in X.tolist()], np.int32))
    flat = [v for p in parts for v in p.ravel().tolist()]
    equal(lw.concat(arrays, axis=None), np.array(flat, np.int32))
    equal(lw.concat([arrays[0]]), X)
    assert lw.concat([lw.zeros((2,), dtype=lw.int8), lw.zeros((2,), dtype=lw.int16)]).dtype == (
        lw.int16
    )
    refused(ValueError, lw.concat, arrays, axis=0)
    refused(ValueError, lw.concat, [])
    refused((ValueError, IndexError), lw.concat, arrays, axis=3)
    refused((ValueError, IndexError), lw.concat, arrays, axis=-4)
    refused(ValueError, lw.concat, [lw.asarray(np.int8(1))] * 2)


def test_stack_and_unstack() -> None:
    """A new axis at any place, taken apart again."""
    parts = [np.int16([[1, 2, 3]]), np.int16([[4, 5, 6]])]
    arrays = [lw.asarray(p) for p in parts]
    for axis in range(-3, 3):
        got = lw.stack(arrays, axis=axis)
        shape = [1, 3]
        shape.insert(axis % 3, 2)
        assert got.shape == tuple(shape)
        again = lw.unstack(got, axis=axis)
        assert isinstance(again, tuple) and len(again) == 2
        for g, p in zip(again, parts):
            equal(g, p)
    assert lw.unstack(lw.zeros((0, 3))) == ()
    assert lw.stack([lw.zeros((2,), dtype=lw.uint8), lw.zeros((2,), dtype=lw.int8)]).dtype == (
        lw.int16
    )
    for axis in (3, -4):
        refused((ValueError, IndexError), lw.stack, arrays, axis=axis)
    refused(ValueError, lw.stack, [lw.zeros((2,)), lw.zeros((3,))])
    refused((ValueError, IndexError), lw.unstack, arrays[0], axis=2)
    refused(ValueError, lw.unstack, lw.asarray(np.float32(1)))


def test_expand_dims_and_squeeze() -> None:
    """An axis of one at any place; several; only axes of one go away, none twice."""
    x = lw.asarray(X)
    for axis in range(-4, 4):
        shape = [2, 3, 4]
        shape.insert(axis % 4, 1)
        wide = lw.expand_dims(x, axis)
        assert wide.shape == tuple(shape)
        equal(lw.squeeze(wide, axis), X)
    for axis in (4, -5):
        refused((IndexError, ValueError), lw.expand_dims, x, axis=axis)
    y = lw.zeros((1, 2, 1, 0))
    assert lw.squeeze(y, (0, 2)).shape == (2, 0) and lw.squeeze(y, -4).shape == (2, 1, 0)
    assert lw.squeeze(y, ()).shape == y.shape
    refused(ValueError, lw.squeeze, y, 1)
    refused((ValueError, IndexError), lw.squeeze, y, 4)


def test_flip() -> None:
    """All axes, one, or several, in either counting."""
    x = lw.asarray(X)
    equal(lw.flip(x), X[::-1, ::-1, ::-1])
    equal(lw.flip(x, axis=1), X[:, ::-1])
    equal(lw.flip(x, axis=(-1, 0)), X[::-1, :, ::-1])
    equal(lw.flip(lw.zeros((0, 2), dtype=lw.int8)), np.zeros((0, 2), np.int8))
    equal(lw.flip(lw.asarray(np.int8(3))), np.int8(3))
    for axis in (3, -4):
        refused((ValueError, IndexError), lw.flip, x, axis=axis)


def test_permute_dims_and_moveaxis() -> None:
    """Every order of the axes, in either counting; each axis once."""
    x = lw.asarray(X)
    for axes in itertools.permutations(range(3)):
        want = np.empty([X.shape[a] for a in axes], np.int32)
        for at in np.ndindex(X.shape):
            want[tuple(at[a] for a in axes)] = X[at]
        equal(lw.permute_dims(x, axes), want)
        equal(lw.permute_dims(x, tuple(a - 3 for a in axes)), want)
        equal(lw.moveaxis(x, axes, (0, 1, 2)), want)
    assert lw.moveaxis(x, 0, -1).shape == (3, 4, 2)
    assert lw.moveaxis(x, -1, 0).shape == (4, 2, 3)
    assert lw.moveaxis(x, (0, 2), (1, 0)).shape == (4, 2, 3)
    assert lw.permute_dims(lw.asarray(np.int8(3)), ()).shape == ()
    for axes in ((0, 1), (0, 0, 1), (0, 1, 3), (0, 1, 2, 0)):
        refused((ValueError, IndexError), lw.permute_dims, x, axes)
    refused((ValueError, IndexError), lw.moveaxis, x, 3, 0)
    refused(ValueError, lw.moveaxis, x, (0, 1), (0,))
    refused(ValueError, lw.moveaxis, x, (0, 0), (0, 1))


def test_repeat() -> None:
    """Each element so many times, one number for all or one for each; along an axis or flat."""
    x = lw.asarray(X)
    equal(lw.repeat(x, 2), np.array([v for v in X.ravel().tolist() for _ in range(2)], np.int32))
    equal(lw.repeat(x, 3, axis=1), X[:, [0, 0, 0, 1, 1, 1, 2, 2, 2]])
    counts = lw.asarray(np.array([2, 0, 1]))
    equal(lw.repeat(x, counts, axis=-2), X[:, [0, 0, 2]])
    equal(lw.repeat(x, 0, axis=0), X[:0])
    equal(lw.repeat(lw.zeros((0,), dtype=lw.int8), 4), np.zeros(0, np.int8))
    refused(ValueError, lw.repeat, x, -1)
    refused((ValueError, IndexError), lw.repeat, x, 2, axis=3)
    refused(ValueError, lw.repeat, x, lw.asarray(np.array([1, 2])), axis=1)


@given(SHAPES, st.data())
def test_reshape(shape: tuple[int, ...], data: st.DataObject) -> None:
    """The same elements in row-major order; one extent may be left to be found out."""
    size = math.prod(shape)
    x = lw.asarray(np.arange(size, dtype=np.int16).reshape(shape))
    flat = data.draw(st.booleans())
    wanted = (-1,) if flat and size else (size,)
    equal(lw.reshape(x, wanted), np.arange(size, dtype=np.int16))
    if size:
        assert lw.reshape(x, (1, -1, 1)).shape == (1, size, 1)
    refused(ValueError, lw.reshape, x, (size + 1,))
    refused(ValueError, lw.reshape, x, (-1, -1))


def test_reshape_copies() -> None:
    """copy=True and None work for every layout, and False where there is nothing to move."""
    x = lw.asarray(X)
    for copy in (True, False, None):
        equal(lw.reshape(x, (6, 4), copy=copy), X.reshape(6, 4))
    equal(lw.reshape(lw.permute_dims(x, (2, 1, 0)), (24,), copy=True), X.transpose().ravel())
    refused(ValueError, lw.reshape, x, (5, 5))
    refused(ValueError, lw.reshape, x, (-1, 0))


@given(st.integers(-9, 9), st.integers(-9, 9))
def test_roll(first: int, second: int) -> None:
    """Elements go round, flat or along axes; shifts of one axis add up."""
    x = lw.asarray(X)
    line = X.ravel().tolist()
    equal(
        lw.roll(x, first),
        np.reshape([line[(i - first) % 24] for i in range(24)], X.shape).astype(np.int32),
    )
    at = [(i - first) % 3 for i in range(3)]
    equal(lw.roll(x, first, axis=1), X[:, at])
    both = X[:, at][:, :, [(i - second) % 4 for i in range(4)]]
    equal(lw.roll(x, (first, second), axis=(-2, 2)), both)
    twice = [(i - first - second) % 3 for i in range(3)]
    equal(lw.roll(x, (first, second), axis=(1, 1)), X[:, twice])


def test_roll_of_nothing_and_of_what_is_not_there() -> None:
    """Empty arrays stay; an axis beyond the rank is an error."""
    equal(lw.roll(lw.zeros((0, 2), dtype=lw.int8), 1, axis=0), np.zeros((0, 2), np.int8))
    equal(lw.roll(lw.asarray(np.int8(4)), 3), np.int8(4))
    refused((ValueError, IndexError), lw.roll, lw.asarray(X), 1, axis=3)
    refused(ValueError, lw.roll, lw.asarray(X), (1, 2, 3), axis=(0, 1))


def test_roll_by_several_shifts() -> None:
    """Shifts along one axis, or of the flattened array, add up."""
    x = lw.asarray(X)
    equal(lw.roll(x, (1, 2), axis=2), X[:, :, [1, 2, 3, 0]])
    line = X.ravel()
    equal(lw.roll(x, (1, 2)), np.concatenate([line[-3:], line[:-3]]).reshape(X.shape))


@pytest.mark.parametrize("times", [(2,), (1, 2), (2, 1, 3), (2, 1, 1, 2), (0,), ()])
def test_tile(times: tuple[int, ...]) -> None:
    """The array so many times along each axis, ones put in front of the shorter of the two."""
    rank = max(3, len(times))
    whole = (1,) * (rank - len(times)) + times
    shape = (1,) * (rank - 3) + X.shape
    want = np.empty([n * t for n, t in zip(shape, whole)], np.int32)
    source = X.reshape(shape)
    for at in np.ndindex(want.shape):
        want[at] = source[tuple(i % n for i, n in zip(at, shape))]
    equal(lw.tile(lw.asarray(X), times), want)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_take(axis: int) -> None:
    """Positions along one axis, in any order and as often as wished."""
    n = X.shape[axis]
    at = np.array([n - 1, 0, 0, n // 2])
    moved = np.moveaxis(X, axis, 0)
    want = np.moveaxis(np.array([moved[i] for i in at.tolist()]), 0, axis)
    equal(lw.take(lw.asarray(X), lw.asarray(at), axis=axis), want)
    none = lw.take(lw.asarray(X), lw.asarray(at[:0]), axis=axis)
    assert none.shape == tuple(0 if a == axis % 3 else m for a, m in enumerate(X.shape))


def test_take_of_vectors_and_errors() -> None:
    """The axis may be left out for vectors only; positions beyond the end are refused."""
    x = lw.asarray(np.array([10.0, 20.0, 30.0]))
    equal(lw.take(x, lw.asarray(np.array([2, 0]))), np.array([30.0, 10.0]))
    for dtype in (np.int8, np.uint8, np.int32):
        equal(lw.take(x, lw.asarray(np.array([1], dtype))), np.array([20.0]))
    refused(ValueError, lw.take, lw.asarray(X), lw.asarray(np.array([0])))
    refused((ValueError, IndexError), lw.take, lw.asarray(X), lw.asarray(np.array([0])), axis=3)
    refused((TypeError, IndexError), lw.take, x, lw.asarray(np.array([0.5])))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(axis: int) -> None:
    """Each line by its own positions, the other axes broadcast."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 99, (4, 5)).astype(np.int16)
    shape = [4, 5]
    shape[axis] = 3
    at = rng.integers(0, a.shape[axis], shape)
    want = np.empty(shape, np.int16)
    for i, j in np.ndindex(*shape):
        want[i, j] = a[at[i, j], j] if axis == 0 else a[i, at[i, j]]
    equal(lw.take_along_axis(lw.asarray(a), lw.asarray(at), axis=axis), want)
    one = lw.asarray(at[:1] if axis else at[:, :1])
    assert lw.take_along_axis(lw.asarray(a), one, axis=axis).shape == want.shape
    refused((ValueError, IndexError), lw.take_along_axis, lw.asarray(a), one, axis=2)


def test_positions_that_cannot_be() -> None:
    """Bools are no positions, an empty axis has none, and what is known is checked at once."""
    x = lw.asarray(np.arange(3))
    at = lw.asarray(np.array([True, False, True]))
    for function in (lw.take, lw.take_along_axis):
        refused(TypeError, function, x, at)
        for beyond in (np.array([3]), np.array([0, -4])):
            refused(IndexError, function, x, beyond)
        none = lw.zeros((0,))
        refused(IndexError, function, none, lw.asarray(np.array([0])))
        assert function(none, lw.asarray(np.zeros(0, np.int64))).shape == (0,)
    refused(IndexError, lambda: lw.zeros((0, 2))[lw.asarray(np.array([0]))])
    refused(IndexError, lambda: lw.zeros((0, 2))[lw.asarray(np.array([0])), lw.asarray([1])])
    refused(ValueError, lw.take_along_axis, lw.asarray(1), lw.asarray(0))
    refused(ValueError, lw.take_along_axis, lw.zeros((2, 3)), lw.zeros((3, 1), dtype=lw.int8))
    refused(ValueError, lw.take_along_axis, lw.zeros((2, 3)), lw.zeros((2,), dtype=lw.int8))
