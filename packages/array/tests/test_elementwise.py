"""Elementwise functions and operators against NumPy, in every dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_oracle import BINARY, oracle, same

import loopwright as lw
from loopwright_core.errors import ConstantRangeError, DTypeError, ShapeError
from loopwright_core.ir import dtype as dt

_BINARY = {**BINARY, "maximum": np.maximum, "minimum": np.minimum}
_UNARY = ("abs", "negative", "sign", "floor", "ceil", "trunc", "isnan", "isinf", "isfinite")
_UNARY += ("bitwise_invert", "logical_not", "sqrt", "reciprocal", "positive", "square")


def samples(dtype: dt.DType, shape: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random values over the whole range of a dtype."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_int:
        low, high = int(dtype.min), int(dtype.max)
        return rng.integers(low, high, shape, dtype=dtype.numpy, endpoint=True)
    return (rng.normal(size=shape) * 4).astype(dtype.numpy)


@pytest.mark.parametrize("name", _BINARY)
def test_binary_in_every_pair_of_dtypes(name: str) -> None:
    """Values, dtype and broadcasting of two arrays are NumPy's, or both refuse."""
    for a in dt.ARRAY_DTYPES:
        for b in dt.ARRAY_DTYPES:
            x, y = samples(a, (3, 1), 1), samples(b, (4,), 2)
            if "shift" in name and not (a.is_float or b.is_float):
                y = (y.astype(np.int64) & 7).astype(b.numpy)
            with np.errstate(all="ignore"):
                try:
                    want = _BINARY[name](x, y)
                except TypeError:
                    with pytest.raises(DTypeError):
                        getattr(lw, name)(lw.asarray(x), lw.asarray(y))
                    continue
            same(getattr(lw, name)(lw.asarray(x), lw.asarray(y)), want)


@pytest.mark.parametrize("name", _UNARY)
def test_unary_in_every_dtype(name: str) -> None:
    """Values and dtype are NumPy's; what only one of the two refuses is refused on purpose."""
    for dtype in dt.ARRAY_DTYPES:
        x = samples(dtype, (9,), 3)
        if name == "reciprocal" and not dtype.is_float:
            with pytest.raises(DTypeError):
                lw.reciprocal(lw.asarray(x))
            continue
        with np.errstate(all="ignore"):
            try:
                want = getattr(np, name)(x)
            except TypeError:
                with pytest.raises(DTypeError):
                    getattr(lw, name)(lw.asarray(x))
                continue
        same(getattr(lw, name)(lw.asarray(x)), want)


_WEAK: dict[str, Callable[[Any], Any]] = {
    "x + 1": lambda x: x + 1,
    "1 - x": lambda x: 1 - x,
    "x / 2": lambda x: x / 2,
    "x // 3": lambda x: x // 3,
    "x % 3": lambda x: x % 3,
    "x * 2.5": lambda x: x * 2.5,
    "x > 1": lambda x: x > 1,
    "x == 300": lambda x: x == 300,
    "x < -200": lambda x: x < -200,
    "x + 300": lambda x: x + 300,
    "x - 2**40": lambda x: x - 2**40,
    "2**70 + x": lambda x: 2**70 + x,
    "True + x": lambda x: True + x,
}


@pytest.mark.parametrize("text", _WEAK)
def test_python_numbers_take_the_arrays_dtype(text: str) -> None:
    """As NumPy: no widening, OverflowError out of range, comparisons exact beyond it."""
    for dtype in dt.ARRAY_DTYPES:
        if dtype.is_float and dtype.bits < 32 and dtype is not dt.float16:
            continue  # NumPy widens these to float32 beside a Python float
        x = samples(dtype, (5,), 4)
        try:
            with np.errstate(all="ignore"):
                want = _WEAK[text](x)
        except TypeError:
            with pytest.raises(DTypeError):
                _WEAK[text](lw.asarray(x))
            continue
        except OverflowError:
            with pytest.raises(ConstantRangeError):
                _WEAK[text](lw.asarray(x))
            continue
        same(_WEAK[text](lw.asarray(x)), want)


def test_small_floats_keep_their_dtype_beside_python_numbers() -> None:
    """bfloat16 * 0.5 is bfloat16."""
    for dtype in (lw.bfloat16, lw.float8_e5m2, lw.float8_e4m3fn):
        assert (lw.ones(3, dtype=dtype) * 0.5).dtype is dtype


def test_numpy_operands_on_either_side() -> None:
    """NumPy arrays and scalars mix with ours in operators; scalars keep their dtype."""
    x = lw.asarray(np.arange(3, dtype=np.float32))
    for f in (operator.add, operator.sub, operator.mul, operator.truediv, operator.lt):
        a, b = np.arange(3, dtype=np.float64) + 1, np.arange(3, dtype=np.float32) + 2
        same(f(a, x + 2), f(a, b))
        same(f(x + 2, a), f(b, a))
    assert (x + np.float64(1)).dtype is lw.float64
    assert (np.float64(1) + x).dtype is lw.float64


def test_edges_of_integer_division_and_shifts() -> None:
    """INT_MIN // -1 wraps, x // 0 and x % 0 are 0, long shifts give 0 or -1."""
    x = np.array([-128, 7, -7, 5], np.int8)
    y = np.array([-1, 0, 2, 0], np.int8)
    same(lw.asarray(x) // y, np.array([-128, 0, -4, 0], np.int8))
    same(lw.asarray(x) % y, np.array([0, 0, 1, 0], np.int8))
    same(lw.asarray(x) >> 100, np.array([-1, 0, -1, 0], np.int8))
    same(lw.asarray(x) << np.int8(8), np.zeros(4, np.int8))


def test_signed_zero_nan_and_infinity() -> None:
    """copysign, signbit, abs, round and sign follow IEEE 754."""
    x = np.array([-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf, -0.5, 2.5], np.float32)
    a = lw.asarray(x)
    for name in ("abs", "floor", "ceil", "trunc", "sign"):
        same(getattr(lw, name)(a), getattr(np, name)(x))
    same(lw.round(a), np.rint(x))
    same(lw.signbit(a), np.signbit(x))
    same(lw.copysign(np.float32(2), a), np.copysign(np.float32(2), x))
    same(lw.clip(a, -1, 1), np.clip(x, -1, 1))


def test_constants_are_kept_exactly() -> None:
    """inf, nan, the smallest subnormal and -0.0 reach the graph as they are."""
    x = lw.asarray(np.zeros(1, np.float32))
    for value in (np.inf, -np.inf, np.nan, 1e-45, -0.0, 3.4028234663852886e38, 0.1):
        same(lw.where(lw.asarray([True]), value, x), np.array([value], np.float32))


def test_where_promotes_and_broadcasts() -> None:
    """Its two values are promoted together, its condition is anything's truth."""
    x = np.arange(6).reshape(2, 3)
    same(lw.where(x % 2, x, 0.5), np.where(x % 2, x, 0.5))
    same(lw.where(lw.asarray(True), np.int8(1), np.uint8(2)), np.asarray(np.int16(1)))


def test_casts_between_all_dtypes() -> None:
    """Integers wrap, floats truncate and saturate, NaN is 0, anything but zero is True."""
    for a in dt.ARRAY_DTYPES:
        for b in dt.ARRAY_DTYPES:
            x = samples(a, (9,), 5)
            got = lw.astype(lw.asarray(x), b)
            if a.is_float and not b.is_float:
                wide = np.nan_to_num(x.astype(np.float64))
                low, high = float(b.min), float(b.max)
                want = np.clip(np.trunc(wide), low, high).astype(b.numpy)
                want = x.astype(np.float64) != 0 if b.is_bool else want
            elif a.is_int and b.is_float and b.bits < 32:
                continue  # ml_dtypes goes through float32, which rounds twice
            else:
                with np.errstate(all="ignore"):
                    want = x.astype(b.numpy)
            same(got, want)


def test_power() -> None:
    """Integers are exact and wrap, small whole exponents of floats are products."""
    same(
        lw.pow(np.array([3, -3, 0], np.int32), np.array([19, 5, 0], np.int32)),
        np.array([3**19, -243, 1], np.int32),
    )
    same(
        lw.asarray(np.array([3], np.uint8)) ** np.array([255], np.uint8),
        np.array([3**255 & 255], np.uint8),
    )
    same(lw.pow(np.array([2, 1, -1, 0]), np.array([-1, -3, -3, -1])), np.array([0, 1, -1, 0]))
    x = np.array([-3.0, 1.5, 0.0, np.inf], np.float32)
    for n in (0, 1, 2, -1, 0.5):
        with np.errstate(all="ignore"):
            same(lw.asarray(x) ** n, x**n)
    with pytest.raises(ValueError, match="negative integer powers"):
        lw.asarray([2]) ** -1


def test_shape_errors_name_the_operation_and_the_shapes() -> None:
    """The error is raised where the expression is written, not at evaluation."""
    with pytest.raises(ShapeError, match=r"add: shapes \(2, 3\), \(4,\)"):
        lw.zeros((2, 3)) + lw.zeros(4)


def test_empty_arrays_make_no_work() -> None:
    """Elementwise results without elements are constants."""
    x = lw.asarray(np.zeros((0, 3), np.float32))
    same(lw.exp(x + 1) * lw.asarray(np.ones(3, np.float32)), np.zeros((0, 3), np.float32))
    assert oracle(x > 0).shape == (0, 3)
