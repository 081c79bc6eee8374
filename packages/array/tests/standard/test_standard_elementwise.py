"""The elementwise functions of the array API standard: special cases, dtypes, shapes, errors."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standard_special_cases import BINARY, DEVIATIONS, UNARY
from standard_text import cases, check

import loopwright as lw
from loopwright_core.errors import LoopwrightError

FLOATS = [np.float32, np.float64]
INTEGERS = [lw.int8, lw.int16, lw.int32, lw.int64, lw.uint8, lw.uint16, lw.uint32, lw.uint64]
REAL = [lw.float32, lw.float64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_special_cases_of_one_operand(name: str, dtype: type) -> None:
    """Every special case that the standard lists, signs of zeros included."""
    (x,), results = cases(UNARY[name], dtype)
    check(getattr(lw, name)(lw.asarray(x)).numpy(), results)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_special_cases_of_two_operands(name: str, dtype: type) -> None:
    """Every special case that the standard lists, both operands varied over their domains."""
    (x, y), results = cases([*BINARY[name], *DEVIATIONS.get(name, [])], dtype)
    check(getattr(lw, name)(lw.asarray(x), lw.asarray(y)).numpy(), results)


def test_sign_bits_of_nans() -> None:
    """signbit and copysign read the sign bit of a NaN, which no comparison shows."""
    x = np.array([np.nan, -np.nan], np.float32)
    assert lw.signbit(lw.asarray(x)).numpy().tolist() == [False, True]
    y = lw.copysign(lw.asarray(np.array([2.0, 2.0], np.float32)), lw.asarray(x))
    assert y.numpy().tolist() == [2.0, -2.0]


def test_ties_round_to_even() -> None:
    """round sends halves to the even neighbour, and keeps zeros' signs."""
    x = lw.asarray(np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4999999]))
    got = lw.round(x).numpy()
    assert got.tolist() == [0, 2, 2, 0, -2, -2, 2]
    assert np.signbit(got[3])


# name: the same in Python's own arithmetic, and where to sample it.
ORDINARY: dict[str, tuple[Callable[[float], float], float, float]] = {
    "acos": (math.acos, -1, 1),
    "acosh": (math.acosh, 1, 50),
    "asin": (math.asin, -1, 1),
    "asinh": (math.asinh, -50, 50),
    "atan": (math.atan, -50, 50),
    "atanh": (math.atanh, -0.99, 0.99),
    "ceil": (math.ceil, -9, 9),
    "cos": (math.cos, -50, 50),
    "cosh": (math.cosh, -20, 20),
    "exp": (math.exp, -20, 20),
    "expm1": (math.expm1, -5, 5),
    "floor": (math.floor, -9, 9),
    "log": (math.log, 1e-6, 50),
    "log1p": (math.log1p, -0.9, 50),
    "log2": (math.log2, 1e-6, 50),
    "log10": (math.log10, 1e-6, 50),
    "reciprocal": (lambda v: 1 / v, 0.1, 50),
    "round": (round, -9, 9),
    "sin": (math.sin, -50, 50),
    "sinh": (math.sinh, -20, 20),
    "sqrt": (math.sqrt, 0, 50),
    "square": (lambda v: v * v, -9, 9),
    "tan": (math.tan, -1.5, 1.5),
    "tanh": (math.tanh, -5, 5),
    "trunc": (math.trunc, -9, 9),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_arguments(name: str) -> None:
    """float64 results are within two units in the last place of Python's own."""
    function, low, high = ORDINARY[name]
    x = np.random.default_rng(len(name)).uniform(low, high, 200)
    want = np.array([function(v) for v in x.tolist()], np.float64)
    got = getattr(lw, name)(lw.asarray(x)).numpy()
    assert np.all(np.abs(got - want) <= 3 * np.spacing(np.abs(want)))


ARITHMETIC = [
    "add",
    "subtract",
    "multiply",
    "floor_divide",
    "remainder",
    "pow",
    "maximum",
    "minimum",
]
FLOATING = ["divide", "atan2", "copysign", "hypot", "logaddexp", "nextafter"]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
LOGICAL = ["logical_and", "logical_or", "logical_xor"]
BITWISE = ["bitwise_and", "bitwise_or", "bitwise_xor"]
SHIFTS = ["bitwise_left_shift", "bitwise_right_shift"]

# The standard's promotion tables: signed and unsigned integers, then floats.
_SIGNED, _UNSIGNED = INTEGERS[:4], INTEGERS[4:]


def promoted(a: Any, b: Any) -> Any:
    """The dtype of a pair by the standard's tables; None where they say nothing."""
    for group in (_SIGNED, _UNSIGNED, REAL, [lw.bool]):
        if a in group and b in group:
            return group[max(group.index(a), group.index(b))]
    if a in INTEGERS and b in INTEGERS:
        signed, unsigned = (a, b) if a in _SIGNED else (b, a)
        width = max(_SIGNED.index(signed), _UNSIGNED.index(unsigned) + 1)
        return _SIGNED[width] if width < 4 else None
    return None


@pytest.mark.parametrize(
    "name", [*ARITHMETIC, *COMPARISONS, *LOGICAL, *BITWISE, *SHIFTS, *FLOATING]
)
def test_promotion_of_two_operands(name: str) -> None:
    """The dtype is the table's, a bool for comparisons and logic, in either order."""
    kinds = [*INTEGERS, *REAL] if name in (*ARITHMETIC, *COMPARISONS) else INTEGERS
    if name in FLOATING:
        kinds = REAL
    if name in LOGICAL or name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        kinds = [*kinds, lw.bool]
    for a in kinds:
        for b in kinds:
            want = promoted(a, b)
            if want is None:
                continue
            if name in COMPARISONS or name in LOGICAL:
                want = lw.bool
            z = getattr(lw, name)(lw.ones((2,), dtype=a), lw.ones((2,), dtype=b))
            assert z.dtype == want, (a, b)


@pytest.mark.parametrize("name", UNARY)
def test_dtype_of_one_operand(name: str) -> None:
    """Floats keep their dtype, integers too where whole numbers stay whole; questions are bool."""
    question = name.startswith("is") or name in ("signbit", "logical_not")
    for dtype in REAL:
        z = getattr(lw, name)(lw.ones((2,), dtype=dtype))
        assert z.dtype == (lw.bool if question else dtype)
    if name in ("abs", "ceil", "floor", "negative", "positive", "round", "sign", "square", "trunc"):
        for dtype in INTEGERS:
            assert getattr(lw, name)(lw.ones((2,), dtype=dtype)).dtype == dtype


def test_integers_of_functions_that_keep_them() -> None:
    """ceil, floor, round and trunc of integers are the integers; the rest wrap."""
    x = np.array([-128, -3, 0, 5, 127], np.int8)
    y = lw.asarray(x)
    for name in ("ceil", "floor", "round", "trunc", "positive"):
        assert getattr(lw, name)(y).numpy().tolist() == x.tolist(), name
    assert lw.abs(y).numpy().tolist() == [-128, 3, 0, 5, 127]
    assert lw.sign(y).numpy().tolist() == [-1, -1, 0, 1, 1]
    assert lw.negative(y).numpy().tolist() == [-128, 3, 0, -5, -127]
    assert lw.square(y).numpy().tolist() == [0, 9, 0, 25, 1]
    for name, want in (("isfinite", True), ("isnan", False), ("isinf", False)):
        assert getattr(lw, name)(y).numpy().tolist() == [want] * 5


def test_bitwise_functions() -> None:
    """Bits of integers by Python's operators at the dtype's width, of bools by logic."""
    a, b = np.array([-8, -1, 0, 5, 100], np.int8), np.array([3, 7, 1, 2, 6], np.int8)
    x, y = lw.asarray(a), lw.asarray(b)
    pairs = list(zip(a.tolist(), b.tolist()))
    want = {
        "bitwise_and": operator.and_,
        "bitwise_or": operator.or_,
        "bitwise_xor": operator.xor,
        "bitwise_right_shift": operator.rshift,
        "bitwise_left_shift": lambda i, j: (((i << j) + 128) & 255) - 128,
    }
    for name, op in want.items():
        assert getattr(lw, name)(x, y).numpy().tolist() == [op(i, j) for i, j in pairs], name
    assert lw.bitwise_invert(x).numpy().tolist() == [~i for i in a.tolist()]
    t, f = lw.asarray(np.array([True, True, False])), lw.asarray(np.array([True, False, False]))
    assert lw.bitwise_and(t, f).numpy().tolist() == [True, False, False]
    assert lw.bitwise_or(t, f).numpy().tolist() == [True, True, False]
    assert lw.bitwise_xor(t, f).numpy().tolist() == [False, True, False]
    assert lw.bitwise_invert(t).numpy().tolist() == [False, False, True]


@pytest.mark.parametrize("name", [*BITWISE, *SHIFTS, "bitwise_invert"])
def test_bitwise_functions_refuse_floats(name: str) -> None:
    """There are no bits of floating-point numbers to work on."""
    x = lw.ones((3,), dtype=lw.float32)
    with pytest.raises(LoopwrightError) as caught:
        getattr(lw, name)(*([x] if name == "bitwise_invert" else [x, x]))
    assert isinstance(caught.value, TypeError)


def test_floor_division_and_remainder_of_integers() -> None:
    """Quotients round towards minus infinity and remainders have the divisor's sign."""
    a, b = np.array([7, -7, 7, -7, 6, 0], np.int32), np.array([3, 3, -3, -3, -3, 5], np.int32)
    pairs = list(zip(a.tolist(), b.tolist()))
    x, y = lw.asarray(a), lw.asarray(b)
    assert lw.floor_divide(x, y).numpy().tolist() == [i // j for i, j in pairs]
    assert lw.remainder(x, y).numpy().tolist() == [i % j for i, j in pairs]


def test_clip() -> None:
    """Bounds are numbers, arrays that broadcast, or absent; NaN stays; the dtype is x's."""
    x = np.array([-5.0, -0.5, 0.0, 2.0, np.nan, np.inf], np.float32)
    y = lw.asarray(x)
    with_both = lw.clip(y, -1, 1)
    assert with_both.dtype == lw.float32
    np.testing.assert_array_equal(with_both.numpy(), np.float32([-1, -0.5, 0, 1, np.nan, 1]))
    np.testing.assert_array_equal(lw.clip(y, 0).numpy(), np.float32([0, 0, 0, 2, np.nan, np.inf]))
    np.testing.assert_array_equal(
        lw.clip(y, max=0).numpy(), np.float32([-5, -0.5, 0, 0, np.nan, 0])
    )
    np.testing.assert_array_equal(lw.clip(y).numpy(), x)
    low = lw.asarray(np.array([[0.0], [1.0]], np.float32))
    assert lw.clip(y, low, 3).shape == (2, 6)
    np.testing.assert_array_equal(
        lw.clip(y, low, 3).numpy()[1], np.float32([1, 1, 1, 2, np.nan, 3])
    )
    empty = lw.clip(lw.zeros((0, 3)), 0, 1)
    assert empty.shape == (0, 3)


TWO = [*ARITHMETIC, *FLOATING, *COMPARISONS, *LOGICAL]


@given(st.data())
def test_broadcasting(data: st.DataObject) -> None:
    """Shapes align at their ends, an extent of one stretches, and others must agree."""
    name = data.draw(st.sampled_from(TWO))
    shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)
    a, b = data.draw(shapes), data.draw(shapes)
    rank = max(len(a), len(b))
    pairs = list(zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b))
    x, y = lw.zeros(a), lw.zeros(b)
    if all(m == n or 1 in (m, n) for m, n in pairs):
        assert getattr(lw, name)(x, y).shape == tuple(n if m == 1 else m for m, n in pairs)
    else:
        with pytest.raises(LoopwrightError, match=name.split("_")[-1]) as caught:
            getattr(lw, name)(x, y)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", [*UNARY, *TWO])
def test_no_elements_and_no_axes(name: str) -> None:
    """Arrays of no elements and of no axes go through every function."""
    count = 2 if name in TWO else 1
    one = getattr(lw, name)(*[lw.asarray(np.float32(1.0))] * count)
    assert one.shape == () and one.numpy().shape == ()
    line = getattr(lw, name)(*[lw.asarray(np.ones(1, np.float32))] * count)
    np.testing.assert_array_equal(one.numpy(), line.numpy()[0])
    for shape in ((0,), (2, 0, 3)):
        none = getattr(lw, name)(*[lw.zeros(shape, dtype=lw.float32)] * count)
        assert none.shape == shape and none.numpy().shape == shape
        assert none.dtype == one.dtype


@pytest.mark.parametrize("name", [*ARITHMETIC, *FLOATING, *COMPARISONS])
def test_python_numbers_as_operands(name: str) -> None:
    """One operand may be a Python number, which takes the other's dtype."""
    for dtype in REAL:
        x = lw.ones((3,), dtype=dtype)
        for z in (getattr(lw, name)(x, 2.0), getattr(lw, name)(2, x)):
            assert z.dtype == (lw.bool if name in COMPARISONS else dtype)
    if name in ARITHMETIC:
        for dtype in INTEGERS:
            assert getattr(lw, name)(lw.ones((3,), dtype=dtype), 3).dtype == dtype


@pytest.mark.parametrize("name", ["conj", "imag", "real"])
def test_functions_of_complex_numbers(name: str) -> None:
    """Without complex dtypes, conj and real are the number itself and imag is zero."""
    x = lw.asarray(np.array([1.5, -2.0], np.float32))
    want = [0.0, 0.0] if name == "imag" else [1.5, -2.0]
    assert getattr(lw, name)(x).numpy().tolist() == want
