"""The statistical and utility functions of the array API standard."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import LoopwrightError

INTEGERS = [lw.int8, lw.int16, lw.int32, lw.int64, lw.uint8, lw.uint16, lw.uint32, lw.uint64]
REAL = [lw.float32, lw.float64]
REDUCTIONS = ["max", "mean", "min", "prod", "std", "sum", "var"]
ALL_REDUCTIONS = [*REDUCTIONS, "all", "any", "count_nonzero"]
X = np.random.default_rng(1).integers(-4, 5, (3, 4, 2)).astype(np.float64) / 4


def plain(name: str, values: list[float]) -> float:
    """One reduction of a list, from the standard's definitions."""
    if name in ("max", "min"):
        return max(values) if name == "max" else min(values)
    if name in ("sum", "prod"):
        return math.fsum(values) if name == "sum" else math.prod(values)
    if name in ("all", "any"):
        return all(values) if name == "all" else any(values)
    if name == "count_nonzero":
        return sum(v != 0 for v in values)
    mean = math.fsum(values) / len(values)
    if name == "mean":
        return mean
    variance = math.fsum((v - mean) ** 2 for v in values) / len(values)
    return variance if name == "var" else math.sqrt(variance)


def reduced(name: str, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The reduction by loops over the other axes."""
    kept = [a for a in range(x.ndim) if a not in axes]
    moved = np.transpose(x, (*kept, *axes)).reshape(*(x.shape[a] for a in kept), -1)
    out = np.array([plain(name, row.tolist()) for row in moved.reshape(-1, moved.shape[-1])])
    shape = [1 if a in axes else n for a, n in enumerate(x.shape) if keepdims or a not in axes]
    return out.reshape(shape)


@pytest.mark.parametrize("name", ALL_REDUCTIONS)
def test_axes_of_reductions(name: str) -> None:
    """None, one axis, several, counted from either end; keepdims leaves extents of one."""
    arrays, wanted = [], []
    for axis in (None, 0, -1, (0, 2), (-1, 1), (0, 1, 2), ()):
        for keepdims in (False, True):
            axes = tuple(range(3)) if axis is None else axis
            axes = tuple(a % 3 for a in (axes if isinstance(axes, tuple) else (axes,)))
            arrays.append(getattr(lw, name)(lw.asarray(X), axis=axis, keepdims=keepdims))
            wanted.append(reduced(name, X, axes, keepdims))
    lw.evaluate(*arrays)
    for got, want in zip(arrays, wanted):
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy().astype(float), want, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", [*ALL_REDUCTIONS, "argmax", "argmin"])
def test_axes_that_are_not_there(name: str) -> None:
    """An axis beyond the rank is an error that names it, and so is one given twice."""
    x = lw.asarray(X)
    for axis in (3, -4):
        with pytest.raises(LoopwrightError, match=str(axis)) as caught:
            getattr(lw, name)(x, axis=axis)
        assert isinstance(caught.value, (ValueError, IndexError))
    if not name.startswith("arg"):
        with pytest.raises(LoopwrightError, match=r"twice|once"):
            getattr(lw, name)(x, axis=(1, -2))


@pytest.mark.parametrize("name", ["sum", "prod", "cumulative_sum", "cumulative_prod"])
def test_dtypes_of_sums_and_products(name: str) -> None:
    """Small integers become the default integer or its unsigned twin; dtype= decides else."""
    function = getattr(lw, name)
    for dtype in INTEGERS:
        unsigned = dtype.name.startswith("u")
        got = function(lw.ones((3,), dtype=dtype)).dtype
        assert got == (lw.uint64 if unsigned else lw.int64), dtype
    for dtype in REAL:
        assert function(lw.ones((3,), dtype=dtype)).dtype == dtype
    for dtype in (lw.int16, lw.float32, lw.float64):
        assert function(lw.ones((3,), dtype=lw.int8), dtype=dtype).dtype == dtype


@pytest.mark.parametrize("name", ["sum", "prod"])
def test_the_dtype_is_taken_before_the_sum(name: str) -> None:
    """dtype= widens every element before it is summed, so nothing overflows on the way."""
    x = lw.asarray(np.full(4, 100, np.int8))
    want = 400 if name == "sum" else 100**4
    assert int(getattr(lw, name)(x, dtype=lw.int64)) == want
    assert int(getattr(lw, name)(x)) == want


@pytest.mark.parametrize("name", ["max", "min", "mean", "var", "std"])
def test_dtypes_of_the_other_reductions(name: str) -> None:
    """Floats keep their dtype, and so do the extremes of integers."""
    for dtype in REAL:
        assert getattr(lw, name)(lw.ones((3,), dtype=dtype)).dtype == dtype
    if name in ("max", "min"):
        for dtype in INTEGERS:
            assert getattr(lw, name)(lw.ones((3,), dtype=dtype)).dtype == dtype


@pytest.mark.parametrize("name", ["all", "any"])
def test_dtypes_of_all_and_any(name: str) -> None:
    """The answer is a bool for numbers of every dtype; NaN and infinities count as true."""
    for dtype in (*INTEGERS, *REAL, lw.bool):
        assert getattr(lw, name)(lw.ones((3,), dtype=dtype)).dtype == lw.bool
    for value in (math.nan, math.inf, -math.inf, -1.0):
        assert bool(getattr(lw, name)(lw.asarray(np.array([value]))))
    assert not bool(getattr(lw, name)(lw.asarray(np.array([0.0, -0.0]))))


def test_count_nonzero_counts_nan_and_gives_the_index_dtype() -> None:
    """Everything but zeros of both signs and False counts."""
    x = lw.asarray(np.array([0.0, -0.0, math.nan, 1.0, -math.inf]))
    got = lw.count_nonzero(x)
    assert int(got) == 3 and got.dtype == lw.int64
    assert int(lw.count_nonzero(lw.asarray(np.array([True, False, True])))) == 2
    assert lw.count_nonzero(lw.zeros((2, 0)), axis=1).numpy().tolist() == [0, 0]


@pytest.mark.parametrize("name", ["max", "min", "sum", "prod", "mean", "var", "std"])
def test_nan_wins(name: str) -> None:
    """One NaN in a row makes its result NaN, and no other row's."""
    x = np.array([[1.0, math.nan, 3.0], [1.0, 2.0, 3.0]], np.float32)
    got = getattr(lw, name)(lw.asarray(x), axis=1).numpy()
    assert np.isnan(got).tolist() == [True, False]


def test_reductions_of_nothing() -> None:
    """Sums are 0, products 1, all True, any False; means are NaN; extremes do not exist."""
    x = lw.zeros((2, 0), dtype=lw.float32)
    for name, want in (("sum", 0), ("prod", 1), ("all", True), ("any", False)):
        got = getattr(lw, name)(x, axis=1)
        assert got.shape == (2,) and got.numpy().tolist() == [want, want], name
        assert getattr(lw, name)(x).numpy().tolist() == want
        assert getattr(lw, name)(x, axis=0).shape == (0,)
    for name in ("mean", "var", "std"):
        assert np.isnan(getattr(lw, name)(x, axis=1).numpy()).all()
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(LoopwrightError) as caught:
            getattr(lw, name)(x, axis=1)
        assert isinstance(caught.value, ValueError)
        assert getattr(lw, name)(x, axis=0).shape == (0,)


@pytest.mark.parametrize("name", ALL_REDUCTIONS)
def test_reductions_of_one_number(name: str) -> None:
    """An array without axes reduces to itself."""
    got = getattr(lw, name)(lw.asarray(np.float64(2.5)))
    assert got.shape == ()
    assert float(got.numpy()) == plain(name, [2.5])


@pytest.mark.parametrize("name", ["var", "std"])
def test_correction(name: str) -> None:
    """The divisor is N minus the correction, which need not be whole."""
    values = [1.0, 2.0, 4.0, 9.0]
    x = lw.asarray(np.array(values))
    spread = sum((v - 4.0) ** 2 for v in values)
    for correction in (0, 1, 1.5, 2.0):
        want = spread / (4 - correction)
        got = float(getattr(lw, name)(x, correction=correction))
        assert got == pytest.approx(want if name == "var" else math.sqrt(want), rel=1e-14)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_sums_and_products(name: str) -> None:
    """Along each axis, with and without the initial value in front."""
    identity = 0.0 if name == "cumulative_sum" else 1.0
    step = (lambda a, b: a + b) if name == "cumulative_sum" else (lambda a, b: a * b)
    for axis, initial in itertools.product((0, 1, -1, -3), (False, True)):
        rows = np.moveaxis(X, axis, -1)
        want = np.empty((*rows.shape[:-1], rows.shape[-1] + initial))
        for at in np.ndindex(rows.shape[:-1]):
            run = list(itertools.accumulate(rows[at].tolist(), step))
            want[at] = [identity, *run] if initial else run
        got = getattr(lw, name)(lw.asarray(X), axis=axis, include_initial=initial)
        want = np.moveaxis(want, -1, axis)
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-13)


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
def test_running_sums_of_vectors_of_nothing_and_of_bad_axes(name: str) -> None:
    """The axis may be left out for vectors only, and must be there."""
    function = getattr(lw, name)
    assert function(lw.ones((3,))).shape == (3,)
    with pytest.raises(LoopwrightError, match="axis") as caught:
        function(lw.ones((3, 2)))
    assert isinstance(caught.value, ValueError)
    for axis in (2, -3):
        with pytest.raises(LoopwrightError, match=str(axis)):
            function(lw.ones((3, 2)), axis=axis)
    assert function(lw.ones((0,))).numpy().shape == (0,)
    identity = 0.0 if name == "cumulative_sum" else 1.0
    assert function(lw.ones((0,)), include_initial=True).numpy().tolist() == [identity]
    assert (
        function(lw.ones((2, 0)), axis=1, include_initial=True).numpy().tolist() == [[identity]] * 2
    )


def differences(x: list[float], n: int) -> list[float]:
    """The n-th differences of neighbours."""
    for _ in range(n):
        x = [b - a for a, b in itertools.pairwise(x)]
    return x


def test_diff() -> None:
    """The n-th differences along any axis, of what stands before and behind too."""
    values = [1.0, 4.0, 9.0, 16.0, 25.0]
    x = lw.asarray(np.array(values))
    for n in range(7):
        got = lw.diff(x, n=n)
        assert got.numpy().tolist() == differences(values, n)
    ends = lw.diff(x, prepend=lw.asarray(np.zeros(2)), append=lw.asarray(np.ones(1)))
    assert ends.numpy().tolist() == differences([0.0, 0.0, *values, 1.0], 1)
    grid = np.array([[1, 5, 2], [7, 0, 4]], np.int32)
    assert lw.diff(lw.asarray(grid)).numpy().tolist() == [[4, -3], [-7, 4]]
    assert lw.diff(lw.asarray(grid), axis=0).numpy().tolist() == [[6, -5, 2]]
    assert lw.diff(lw.asarray(grid), axis=-2).dtype == lw.int32
    with pytest.raises(LoopwrightError, match="2"):
        lw.diff(lw.asarray(grid), axis=2)
    with pytest.raises(LoopwrightError, match="n") as caught:
        lw.diff(x, n=-1)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LoopwrightError):
        lw.diff(lw.asarray(np.float64(1.0)))
