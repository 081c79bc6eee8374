"""Casts and storage-only floats after decomposition against the interpreter, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ulp import CPU, NO_DOUBLE, extremes, run

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import const
from loopwright_core.oracle import alu

# Widening a signalling NaN raises the invalid flag in NumPy.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SMALL = (dt.float16, dt.bfloat16, dt.float8_e4m3fn, dt.float8_e5m2)


def every(dtype: DType) -> Any:
    """All bit patterns of a storage float."""
    return np.arange(1 << dtype.bits, dtype=dt.unsigned(dtype.bits).numpy).view(dtype.numpy)


def near_small(dtype: DType, wide: Any) -> Any:
    """Values of the wide NumPy float at and around every number and every tie of a small one."""
    values = every(dtype)[:: 1 if dtype.bits == 8 else 7].astype(np.float64)
    values = np.sort(values[np.isfinite(values)])
    ties = (values[1:] + values[:-1]) / 2
    points = np.concatenate([values, ties, [values[-1] * 1.05, values[-1] * 1.1]])
    with np.errstate(all="ignore"):
        points = points.astype(wide)
    eps = np.finfo(wide).eps
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e-30], wide)
    tiny = np.finfo(wide).smallest_subnormal
    return np.concatenate(
        [points, points * (1 + eps), points * (1 - eps), points + tiny, points - tiny, special]
    )


def edges(dtype: DType) -> Any:
    """Test values of any dtype."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        x = extremes(dtype)
        if dtype.bits < 32:
            return x
        k = np.arange(8, dtype.bits - 1)
        powers = np.concatenate([(1 << (k + 0)) + d for d in (-1, 0, 1)]).astype(dtype.numpy)
        # Ties of 8 and 11 digit formats, one off them in the last bit.
        k = k[k > 14]
        ties = [(1 << k) + (1 << (k - n)) + d for n in (4, 8, 11) for d in (-1, 0, 1)]
        digits = [n for n in (4, 8, 11) for _ in range(3)]
        odd = [t + (1 << (k - n + 1)) for t, n in zip(ties, digits, strict=True)]
        more = np.concatenate([*ties, *odd]).astype(dtype.numpy)
        both = np.concatenate([x, powers, more])
        return np.concatenate([both, 0 - both]) if dtype.kind == "int" else both
    if dtype in SMALL:
        return every(dtype)
    wide = dtype.numpy
    limits = [float(f(d)) for d in dt.INTS for f in (lambda d: d.min, lambda d: d.max)]
    points = np.array([*limits, 0.0, 0.5, 0.99, 1.5, 2.5, 1e-40, 1e10, 1e20], wide)
    points = np.concatenate([points, -points, np.nextafter(points, np.inf, dtype=wide)])
    points = np.concatenate([points, np.nextafter(points, -np.inf, dtype=wide), points - 1])
    return np.concatenate([points, np.array([np.inf, -np.inf, np.nan, -0.0], wide)])


def assert_same(expected: Any, got: Any, dtype: DType, why: str = "") -> None:
    """Equal bits, but any NaN equals any NaN."""
    got = np.broadcast_to(got, expected.shape)
    if dtype.is_float:
        both_nan = np.isnan(expected.astype(np.float64)) & np.isnan(got.astype(np.float64))
        raw = dt.unsigned(dtype.bits).numpy
        expected = np.where(both_nan, 0, np.ascontiguousarray(expected).view(raw))
        got = np.where(both_nan, 0, np.ascontiguousarray(got).view(raw))
    np.testing.assert_array_equal(expected, got, why)


@pytest.mark.parametrize("to", dt.ARRAY_DTYPES, ids=repr)
@pytest.mark.parametrize("source", dt.ARRAY_DTYPES, ids=repr)
def test_cast_equals_the_interpreter(source: DType, to: DType) -> None:
    """Every pair of dtypes converts as the interpreter does: one rounding, saturation, NaN to 0."""
    x = edges(source)
    if source in (dt.float32, dt.float64) and to in SMALL:
        x = np.concatenate([x, near_small(to, source.numpy)])
    with np.errstate(all="ignore"):
        expected = alu.apply(Op.CAST, to, (source,), (x,))
    assert_same(expected, run(Op.CAST, to, (x,), (source,)), to)
    if dt.float64 not in (source, to):
        assert_same(expected, run(Op.CAST, to, (x,), (source,), NO_DOUBLE), to)


@pytest.mark.parametrize("dtype", SMALL, ids=repr)
def test_storage_float_arithmetic_equals_the_interpreter(dtype: DType) -> None:
    """+ - * / max min < == sqrt neg trunc rint round once to the storage dtype."""
    x = every(dtype)
    if dtype.bits == 8:
        a, b = (g.ravel() for g in np.meshgrid(x, x))
    else:
        rng = np.random.default_rng(3)
        a = np.concatenate([x, rng.permutation(x)])
        b = np.concatenate([rng.permutation(x), np.roll(a[len(x) :], 1)])
    for op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAX, Op.MIN):
        expected = alu.apply(op, dtype, (dtype, dtype), (a, b))
        got = run(op, dtype, (a, b), (dtype, dtype), checked=False)
        if op in (Op.MAX, Op.MIN):  # of two zeros either
            zero = (a.astype(np.float32) == 0) & (b.astype(np.float32) == 0)
            expected, got = np.where(zero, a, expected), np.where(zero, a, got)
        assert_same(expected, got, dtype, repr(op))
    for op in (Op.CMPLT, Op.CMPEQ, Op.CMPNE):
        expected = alu.apply(op, dt.bool_, (dtype, dtype), (a, b))
        got = run(op, dt.bool_, (a, b), (dtype, dtype), checked=False)
        np.testing.assert_array_equal(expected, got, repr(op))
    for op in (Op.NEG, Op.SQRT, Op.TRUNC, Op.RINT):
        expected = alu.apply(op, dtype, (dtype,), (x,))
        assert_same(expected, run(op, dtype, (x,), (dtype,)), dtype, repr(op))


@pytest.mark.parametrize("dtype", SMALL, ids=repr)
def test_bitcast_of_storage_floats(dtype: DType) -> None:
    """BITCAST to and from integers of the same width keeps every bit."""
    x = every(dtype)
    for to in (dt.signed(dtype.bits), dt.unsigned(dtype.bits)):
        got = run(Op.BITCAST, to, (x,), (dtype,))
        np.testing.assert_array_equal(x.view(to.numpy), got)
        back = run(Op.BITCAST, dtype, (got,), (to,))
        np.testing.assert_array_equal(x.view(to.numpy), back.view(to.numpy))


def test_bitcast_of_bool() -> None:
    """A bool is its byte."""
    x = np.array([False, True])
    np.testing.assert_array_equal([0, 1], run(Op.BITCAST, dt.uint8, (x,), (dt.bool_,)))
    np.testing.assert_array_equal(x, run(Op.BITCAST, dt.bool_, (x.view(np.int8),), (dt.int8,)))


@pytest.mark.parametrize("dtype", (*SMALL, dt.float32, dt.float64), ids=repr)
def test_maximum_of_a_float_and_a_constant(dtype: DType) -> None:
    """NaN wins against a constant on either side, with one comparison."""
    x = edges(dtype)
    for op in (Op.MAX, Op.MIN):
        for value in (0.0, 1.5, float("nan")):
            fill = np.full(x.shape, value).astype(dtype.numpy)
            zero = (x.astype(np.float64) == 0) & (value == 0)
            expected = np.where(zero, fill, alu.apply(op, dtype, (dtype, dtype), (x, fill)))
            for order in ((x, const(value, dtype)), (const(value, dtype), x)):
                got = run(op, dtype, order, (dtype, dtype), CPU)
                assert_same(expected, np.where(zero, fill, got), dtype, f"{op} {value}")
