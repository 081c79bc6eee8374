"""Sums by key against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_oracle import oracle

import loopwright as lw
from loopwright.memory import attach, buffer_node, storage
from loopwright_core.errors import (
    ArgumentError,
    ConstantRangeError,
    DTypeError,
    OutOfBoundsError,
    ShapeError,
)
from loopwright_core.ir import dtype as dt

DTYPES = [d.name for d in dt.ARRAY_DTYPES]


def draw(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Small whole numbers: their sums are exact in any order."""
    low = 0 if dt.BY_NAME[dtype].kind in ("bool", "uint") else -2
    return rng.integers(low, 2, shape).astype(dt.BY_NAME[dtype].numpy)


def added(x: Any, at: Any, values: Any, axis: int) -> np.ndarray[Any, Any]:
    """NumPy's sum by key, small floats through float64."""
    wide = x.astype(np.float64) if dt.from_numpy(x.dtype) in dt.FLOATS else x.copy()
    key = (slice(None),) * axis + (at,)
    np.add.at(wide, key, np.broadcast_to(values, wide[key].shape).astype(wide.dtype))
    return wide.astype(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter_add(dtype: str) -> None:
    """Equal indices add up, along every axis, compared in a kernel and added to on the host."""
    rng = np.random.default_rng(1)
    for n, axis in ((1, 0), (5, 1), (64, -1), (65, 0), (200, 1), (70, -1)):
        shape = [2, 3, 2]
        shape[axis] = n
        x = draw(rng, dtype, tuple(shape))
        at = rng.integers(-n, n, (4, 6)).astype(rng.choice(["int8", "int32", "int64"]))
        place = axis % 3
        values = draw(rng, dtype, (*shape[:place], 4, 6, *shape[place + 1 :]))
        found = lw.scatter_add(x, at, values, axis=axis)
        assert found.dtype == x.dtype
        want = added(x, at, values, place)
        np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_scatter_add_leaves_other_slices_as_they_are(dtype: str) -> None:
    """The sign of a zero that no index points at is kept, and that of -0.0 and -0.0 too."""
    for n in (4, 70):
        x = np.full(n, -0.0, dtype)
        found = lw.scatter_add(x, np.array([1, 2, 2]), np.array([-0.0, 3, 4], dtype)).numpy()
        np.testing.assert_array_equal(np.signbit(found), np.arange(n) != 2)


def test_scatter_add_broadcasts() -> None:
    """One value for all, a row for all, one index, no index at all, uint64 indices."""
    x = np.arange(6.0).reshape(3, 2)
    two = np.array([2, 2, 0])
    np.testing.assert_array_equal(oracle(lw.scatter_add(x, two, 1.5)), added(x, two, 1.5, 0))
    np.testing.assert_array_equal(lw.scatter_add(x, two, 1.5).numpy(), added(x, two, 1.5, 0))
    row = np.array([1.0, -1.0])
    np.testing.assert_array_equal(lw.scatter_add(x, two, row).numpy(), added(x, two, row, 0))
    np.testing.assert_array_equal(lw.scatter_add(x, np.int64(-1), row).numpy()[2], x[2] + row)
    np.testing.assert_array_equal(lw.scatter_add(x, np.zeros(0, int), row).numpy(), x)
    unsigned = lw.asarray(np.array([0, 2**64 - 1, 2], np.uint64))
    found = lw.scatter_add(x, lw.astype(unsigned, lw.uint64) + 0, 1.0).numpy()
    np.testing.assert_array_equal(found, x + np.array([[1.0], [0.0], [1.0]]))


def test_scatter_add_out_of_range() -> None:
    """Known indices outside are refused; computed ones are dropped, here and on the host."""
    for n in (4, 100):
        x = np.zeros(n)
        for wrong in (n, -n - 1):
            with pytest.raises(OutOfBoundsError):
                lw.scatter_add(x, np.array([0, wrong]), 1.0)
        at = lw.asarray(np.array([0, n - 1, n // 2, 0])) * 2 - n // 2
        want = x.copy()
        for i in at.numpy().tolist():
            if -n <= i < n:
                want[i] += 1
        np.testing.assert_array_equal(lw.scatter_add(x, at, 1.0).numpy(), want)


def test_scatter_add_of_what_is_not_known_yet() -> None:
    """Without memory, as while a function is compiled, it is an expression for any length."""
    node = buffer_node(dt.int64, (50,))
    at = np.random.default_rng(3).integers(0, 300, 50)
    found = lw.scatter_add(np.ones(300), lw.Array(node, "cpu"), 2.0)
    attach(node, storage(lw.asarray(at, device="cpu")._uop))
    np.testing.assert_array_equal(found.numpy(), added(np.ones(300), at, 2.0, 0))


def test_scatter_add_in_a_jitted_function() -> None:
    """Compiled once, with the indices of each call; also for axes that go to the host else."""
    added_to = lw.jit(lambda x, at, values: lw.scatter_add(x, at, values))
    for seed in range(2):
        at = np.random.default_rng(seed).integers(-100, 100, 40)
        found = added_to(np.zeros(100), at, np.ones(40))
        np.testing.assert_array_equal(found, added(np.zeros(100), at, 1.0, 0))


def test_scatter_add_keeps_small_floats_exact() -> None:
    """Thousands of float16 ones add up to thousands: the sum is kept in float32."""
    for n in (3, 70):
        found = lw.scatter_add(np.zeros(n, np.float16), np.ones(5000, int), np.float16(1))
        assert found.numpy()[1] == 5000


def test_scatter_add_refuses() -> None:
    """Values that do not fit, masks, floats as indices."""
    x = np.zeros((3, 2))
    with pytest.raises(ShapeError, match="broadcast"):
        lw.scatter_add(x, np.array([0, 1]), np.zeros((3, 2)))
    with pytest.raises(DTypeError, match="bool"):
        lw.scatter_add(x, np.array([True, False, True]), 1.0)
    with pytest.raises(OutOfBoundsError):
        lw.scatter_add(x, np.array([0.5]), 1.0)
    with pytest.raises(ConstantRangeError):
        lw.scatter_add(np.zeros(3, np.int8), np.array([0]), 300)


def test_bincount() -> None:
    """Counts and weighted sums as NumPy's, with a least length."""
    rng = np.random.default_rng(2)
    for dtype in ("uint8", "int32", "int64", "uint64"):
        x = rng.integers(0, 20, 300).astype(dtype)
        w = rng.normal(size=300)
        np.testing.assert_array_equal(
            lw.bincount(lw.asarray(x)).numpy(), np.bincount(x.astype(int))
        )
        got = lw.bincount(x, weights=w, minlength=30).numpy()
        np.testing.assert_array_equal(got, np.bincount(x.astype(int), w, 30))
    assert lw.bincount(np.zeros(0, int), minlength=3).tolist() == [0, 0, 0]
    for wrong in (np.zeros((2, 2), int), np.zeros(3), np.array([-1, 2])):
        with pytest.raises(ArgumentError, match="bincount"):
            lw.bincount(wrong)
    with pytest.raises(ShapeError):
        lw.bincount(np.zeros(3, int), np.zeros(4))
    with pytest.raises(ShapeError, match="too big"):
        lw.bincount(np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize("dtype", ["int16", "float16", "float32", "float64", "bfloat16"])
def test_histogram(dtype: str) -> None:
    """Counts, weights and densities over bins of one width and over given edges."""
    rng = np.random.default_rng(4)
    x = (rng.normal(size=500) * 10).astype(dt.BY_NAME[dtype].numpy)
    host = x.astype(np.float32) if dtype in ("float16", "bfloat16") else x
    w = rng.random(500)
    for settings in (
        {},
        {"bins": 7},
        {"bins": 5, "range": (-3, 4)},
        {"bins": np.array([-5.0, 0.0, 1.0, 20.0]), "weights": w},
        {"bins": 4, "density": True},
    ):
        got, want = lw.histogram(lw.asarray(x), **settings), np.histogram(host, **settings)
        np.testing.assert_array_equal(got.hist.numpy(), want[0])
        np.testing.assert_array_equal(got.bin_edges.numpy(), want[1])
        assert got[0].dtype == want[0].dtype
    with pytest.raises(ArgumentError, match="histogram"):
        lw.histogram(x, bins=np.array([3.0, 1.0]))
