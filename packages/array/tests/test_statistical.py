"""Reductions, positions and running sums against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_oracle import oracle, same

import loopwright as lw
from loopwright_core.errors import ArgumentError, AxisError, ShapeError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op


def samples(dtype: dt.DType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Small whole numbers, so that every order of summation is exact."""
    rng = np.random.default_rng(7)
    low = 0 if dtype.kind == "uint" or dtype.is_bool else -3
    return rng.integers(low, 2 if dtype.is_bool else 4, shape).astype(dtype.numpy)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=repr)
def test_exact_reductions(name: str, dtype: dt.DType) -> None:
    """Over no, one and all axes, kept or not: values and default dtypes are NumPy's."""
    for shape in [(3, 4, 5), (1,), (0, 3), ()]:
        for axis in (None, 0, -1, (0, 1)):
            for keepdims in (False, True):
                x = samples(dtype, shape)
                kw: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
                wide = x.astype(np.float32) if dtype.is_float and dtype.bits < 32 else x
                try:
                    want = np.asarray(getattr(np, name)(wide, **kw))
                except ValueError:
                    with pytest.raises(ValueError):
                        getattr(lw, name)(lw.asarray(x), **kw)
                    continue
                if dtype.is_float and name not in ("any", "all"):
                    want = want.astype(dtype.numpy)
                got = getattr(lw, name)(lw.asarray(x), **kw)
                assert got.dtype.numpy == want.dtype and got.shape == want.shape
                np.testing.assert_array_equal(oracle(got), want)


@pytest.mark.parametrize("name", ["mean", "var", "std"])
@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=repr)
def test_moments(name: str, dtype: dt.DType) -> None:
    """In the accumulator, rounded once; integers in float64."""
    x = samples(dtype, (3, 4, 5))
    wide = x.astype(np.float64)
    for axis in (None, 1, (0, 2)):
        got = getattr(lw, name)(lw.asarray(x), axis=axis)
        assert got.dtype is (dtype if dtype.is_float else lw.float64)
        want = getattr(np, name)(wide, axis=axis)
        rtol = {8: 0.13, 16: 0.005, 32: 1e-6}.get(dtype.bits if dtype.is_float else 64, 1e-14)
        np.testing.assert_allclose(oracle(got).astype(np.float64), want, rtol=rtol, atol=1e-7)


def test_correction() -> None:
    """The divisor of var and std is n - correction, never below 0."""
    x = np.array([1.0, 2.0, 4.0])
    np.testing.assert_allclose(oracle(lw.var(x, correction=1)), np.var(x, ddof=1), rtol=1e-15)
    assert np.isinf(oracle(lw.var(x, correction=3)))


def test_of_nothing() -> None:
    """sum 0, prod 1, mean NaN, any False, all True as constants; max and min refuse."""
    x = lw.zeros((2, 0, 3), dtype=lw.float32)
    same(lw.sum(x, axis=1), np.zeros((2, 3), np.float32))
    same(lw.prod(x, axis=1), np.ones((2, 3), np.float32))
    same(lw.mean(x, axis=1), np.full((2, 3), np.nan, np.float32))
    same(lw.any(x, axis=1), np.zeros((2, 3), bool))
    same(lw.all(x, axis=1), np.ones((2, 3), bool))
    for name in ("max", "min", "argmax", "argmin"):
        with pytest.raises(ShapeError, match=name):
            getattr(lw, name)(x, axis=1)
        assert getattr(lw, name)(x, axis=0).shape == (0, 3)


@pytest.mark.parametrize(("n", "dtype"), [(2**31 - 1, dt.int32), (2**31, dt.int64)])
def test_positions_are_as_wide_as_they_must_be(n: int, dtype: dt.DType) -> None:
    """A reduce carries 32-bit positions where they suffice; the result is int64 in any case."""
    found = lw.argmax(lw.broadcast_to(lw.zeros(1, dtype=lw.int8), (n,)))
    reduces = [u for u in found._uop.toposort() if u.op is Op.REDUCE]
    assert [u.src[1].dtype for u in reduces] == [dtype]
    assert found.dtype is lw.int64


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=repr)
def test_positions(name: str, dtype: dt.DType) -> None:
    """The first extreme wins; int64; along an axis or flattened."""
    x = samples(dtype, (5, 7))
    wide = x.astype(np.float32) if dtype.is_float else x
    for axis in (None, 0, 1):
        for keepdims in (False, True):
            want = np.asarray(getattr(np, name)(wide, axis=axis, keepdims=keepdims))
            same(getattr(lw, name)(lw.asarray(x), axis=axis, keepdims=keepdims), want)


def test_nan_wins() -> None:
    """max, min and positions answer with the first NaN."""
    x = np.array([1, np.nan, 3, np.nan, -np.inf], np.float32)
    same(lw.max(lw.asarray(x)), np.float32(np.nan))
    same(lw.min(lw.asarray(x)), np.float32(np.nan))
    same(lw.argmax(lw.asarray(x)), np.int64(1))
    same(lw.argmin(lw.asarray(x)), np.int64(1))


def test_small_floats_are_summed_in_float32() -> None:
    """4096 ones in float16 are 4096, and intermediate sums do not overflow."""
    same(lw.sum(lw.ones(4096, dtype=lw.float16)), np.float16(4096))
    big = np.array([32000] * 4 + [-32000] * 4, np.float16)
    same(lw.sum(lw.asarray(big)), np.float16(0))
    same(lw.mean(lw.full(4096, 100, dtype=lw.float16)), np.float16(100))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float16, np.float32])
def test_running_sums_and_products(dtype: type) -> None:
    """Along each axis, with and without the initial element, in NumPy's default dtypes."""
    x = samples(dt.from_numpy(dtype) or lw.float32, (2, 3, 4))
    for axis in (0, 1, -1):
        for initial in (False, True):
            for name in ("cumulative_sum", "cumulative_prod"):
                kw: dict[str, Any] = {"axis": axis, "include_initial": initial}
                same(getattr(lw, name)(lw.asarray(x), **kw), getattr(np, name)(x, **kw))
    same(lw.cumulative_sum(lw.zeros((0,))), np.zeros(0))
    same(lw.cumulative_sum(x, axis=0, dtype=lw.float64), np.cumulative_sum(x, axis=0, dtype=float))


def test_counts() -> None:
    """count_nonzero counts in int64."""
    x = np.array([[0, 1, 2], [0, 0, 3]], np.int8)
    same(lw.count_nonzero(x, axis=1), np.array([2, 1]))
    same(lw.count_nonzero(x), np.asarray(3))


def test_axis_errors() -> None:
    """An axis that is not there, or named twice, is refused at the call."""
    x = lw.zeros((2, 3))
    with pytest.raises(AxisError, match="axis 2 is out of bounds"):
        lw.sum(x, axis=2)
    with pytest.raises(ArgumentError, match="twice"):
        lw.sum(x, axis=(0, -2))
    with pytest.raises(ArgumentError, match="needs an axis"):
        lw.cumulative_sum(x)


def test_running_sums_do_not_drift() -> None:
    """A float32 running sum is as good at its end as at its start."""
    x = np.full(20_000, 0.1, np.float32)
    got = oracle(lw.cumulative_sum(lw.asarray(x)))
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.cumsum(x.astype(np.float64)), rtol=1e-7)
