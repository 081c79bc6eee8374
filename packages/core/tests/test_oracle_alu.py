"""Elementwise ops of the interpreter against exact integers, fractions and direct NumPy."""

from __future__ import annotations

import ctypes
import math
import operator
import warnings
from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import BINARY, COMPARE, UNARY, Op
from loopwright_core.oracle.alu import apply, undefined

NAN, INF = math.nan, math.inf
SMALL = (dt.float8_e4m3fn, dt.float8_e5m2, dt.float16, dt.bfloat16)
FLOAT_POINTS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 7.0, -7.25, 100.0, 1e-3, 448.0),
    *(65504.0, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 1e30, 1e308, 5e-324, INF, -INF, NAN),
]


def points(dtype: DType) -> np.ndarray[Any, Any]:
    """Extreme and ordinary values of a dtype."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return np.array(FLOAT_POINTS).astype(dtype.numpy)
    low, high = int(dtype.min), int(dtype.max)
    values = {low, low + 1, 0, 1, 2, 3, 7, 8, 31, 32, 63, 64, high // 2, high - 1, high}
    values |= {-1, -2, -7, -8} if dtype.is_signed else set()
    return np.array(sorted(v for v in values if low <= v <= high), dtype.numpy)


def pairs(dtype: DType) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Every pair of the points."""
    x = points(dtype)
    return np.repeat(x, len(x)), np.tile(x, len(x))


def same(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Equal bits, any NaN as good as another."""
    assert actual.dtype == expected.dtype
    wide = np.asarray(actual).astype(np.float64) if actual.dtype.kind not in "iub" else actual
    other = expected.astype(np.float64) if expected.dtype.kind not in "iub" else expected
    np.testing.assert_array_equal(wide, other)
    if actual.dtype.kind not in "iub":
        zero = wide == 0
        np.testing.assert_array_equal(np.signbit(wide[zero]), np.signbit(other[zero]))


def wrap(value: int, dtype: DType) -> int:
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value >> (dtype.bits - 1) else value


def _amount(y: int, dtype: DType) -> int:
    return y & ((1 << dtype.bits) - 1)


INTEGER: dict[Op, Callable[[int, int, DType], int]] = {
    Op.ADD: lambda x, y, d: x + y,
    Op.SUB: lambda x, y, d: x - y,
    Op.MUL: lambda x, y, d: x * y,
    Op.FLOORDIV: lambda x, y, d: x // y if y else 0,
    Op.MOD: lambda x, y, d: x % y if y else 0,
    Op.MAX: lambda x, y, d: max(x, y),
    Op.MIN: lambda x, y, d: min(x, y),
    Op.AND: lambda x, y, d: x & y,
    Op.OR: lambda x, y, d: x | y,
    Op.XOR: lambda x, y, d: x ^ y,
    Op.SHL: lambda x, y, d: x << _amount(y, d) if _amount(y, d) < d.bits else 0,
    Op.SHR: lambda x, y, d: x >> min(_amount(y, d), d.bits),
}


@pytest.mark.parametrize("dtype", (*dt.INTS, dt.index), ids=str)
@pytest.mark.parametrize("op", INTEGER, ids=str)
def test_integers_are_exact_and_wrap(op: Op, dtype: DType) -> None:
    """Every pair of extreme integers gives the exact result, wrapped to the dtype's width."""
    x, y = pairs(dtype)
    exact = [wrap(INTEGER[op](int(a), int(b), dtype), dtype) for a, b in zip(x, y, strict=True)]
    same(apply(op, dtype, (dtype, dtype), (x, y)), np.array(exact, dtype.numpy))


@pytest.mark.parametrize("dtype", dt.INTS, ids=str)
def test_c_division_rounds_to_zero(dtype: DType) -> None:
    """CDIV and CMOD are C's where those are defined, and `undefined` says where they are not."""
    x, y = pairs(dtype)
    for op, exact in (
        (Op.CDIV, lambda a, b: int(Fraction(a, b))),
        (Op.CMOD, lambda a, b: a - b * int(Fraction(a, b))),
    ):
        fine = y != 0
        if dtype.is_signed:
            fine &= (x != dtype.min) | (y != -1)
        rows = zip(x[fine].tolist(), y[fine].tolist(), strict=True)
        expected = np.array([exact(a, b) for a, b in rows], dtype.numpy)
        same(apply(op, dtype, (dtype, dtype), (x[fine], y[fine])), expected)
        assert undefined(op, dtype, (x[fine], y[fine])) is None
        for a, b in zip(x[~fine], y[~fine], strict=True):
            assert undefined(op, dtype, (a, b)) is not None


def test_undefined_shifts_and_conversions() -> None:
    """Amounts outside the width and floats outside the range are told."""
    one = np.int32(1)
    assert undefined(Op.CSHL, dt.int32, (one, np.int32(31))) is None
    assert "amount" in str(undefined(Op.CSHR, dt.int32, (one, np.int32(32))))
    assert "amount" in str(undefined(Op.CSHL, dt.int32, (one, np.int32(-1))))
    assert undefined(Op.FTOI, dt.int8, (np.float32(-128.9),)) is None
    for value in (128.0, -129.0, NAN, INF):
        assert "outside" in str(undefined(Op.FTOI, dt.int8, (np.float32(value),)))


def test_bool_arithmetic() -> None:
    """ADD is or, MUL is and; what bool lacks is refused."""
    x, y = pairs(dt.bool_)
    two = (dt.bool_, dt.bool_)
    for op in (Op.ADD, Op.OR, Op.MAX):
        same(apply(op, dt.bool_, two, (x, y)), x | y)
    for op in (Op.MUL, Op.AND, Op.MIN):
        same(apply(op, dt.bool_, two, (x, y)), x & y)
    same(apply(Op.XOR, dt.bool_, two, (x, y)), x ^ y)
    for op in (Op.SUB, Op.DIV, Op.FLOORDIV, Op.SHL):
        with pytest.raises(VerifyError, match="no meaning in dtype bool"):
            apply(op, dt.bool_, two, (x, y))


@cache
def table(dtype: DType) -> tuple[list[float], list[int]]:
    """Every finite value of a small float from 0 up, and its bits."""
    bits = np.arange(2 ** (dtype.bits - 1), dtype=np.uint32).astype(dt.unsigned(dtype.bits).numpy)
    with np.errstate(all="ignore"):
        values = bits.view(dtype.numpy).astype(np.float64)
    keep = np.isfinite(values)
    return values[keep].tolist(), bits[keep].tolist()


def nearest(exact: Fraction, dtype: DType) -> float:
    """The value of a small float nearest to a number, ties to even, by search."""
    values, bits = table(dtype)
    size = abs(exact)
    k = bisect_left(values, size)
    sign = -1.0 if exact < 0 else 1.0
    if k == len(values):
        step = Fraction(values[-1]) - Fraction(values[-2])
        edge = Fraction(values[-1]) + step / 2
        is_last_even = bits[-1] % 2 == 0
        if size < edge or (size == edge and is_last_even):
            return sign * values[-1]
        return NAN if dtype is dt.float8_e4m3fn else sign * INF
    if values[k] == size or k == 0:
        return sign * values[k]
    below, above = size - Fraction(values[k - 1]), Fraction(values[k]) - size
    if below == above:
        k = k if bits[k] % 2 == 0 else k - 1
    else:
        k = k if above < below else k - 1
    return sign * values[k]


ARITHMETIC: dict[Op, Callable[[Any, Any], Any]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.DIV: operator.truediv,
}


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("op", ARITHMETIC, ids=str)
def test_small_floats_round_once(op: Op, dtype: DType) -> None:
    """+ - * / of half, bfloat16 and the 8-bit floats give the representable value nearest."""
    rng = np.random.default_rng(11)
    kind = dt.unsigned(dtype.bits).numpy
    drawn = rng.integers(0, 2**dtype.bits, (2, 600)).astype(kind).view(dtype.numpy)
    x, y = (np.concatenate(p) for p in zip(pairs(dtype), drawn, strict=True))
    actual = apply(op, dtype, (dtype, dtype), (x, y)).astype(np.float64)
    with np.errstate(all="ignore"):
        xs, ys = x.astype(np.float64), y.astype(np.float64)
    for k in range(len(x)):
        a, b = float(xs[k]), float(ys[k])
        if not (math.isfinite(a) and math.isfinite(b)) or (op is Op.DIV and b == 0):
            continue
        exact = ARITHMETIC[op](Fraction(a), Fraction(b))
        expected = nearest(exact, dtype)
        assert actual[k] == expected or (math.isnan(expected) and math.isnan(actual[k])), (a, b)


FLOAT: dict[Op, Any] = {
    **ARITHMETIC,
    Op.FLOORDIV: np.floor_divide,
    Op.MOD: np.remainder,
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.NEG: np.negative,
    Op.SQRT: np.sqrt,
    Op.TRUNC: np.trunc,
    Op.RINT: np.rint,
    Op.CMPLT: np.less,
    Op.CMPEQ: np.equal,
    Op.CMPNE: np.not_equal,
}


@pytest.mark.parametrize("dtype", (dt.float32, dt.float64), ids=str)
@pytest.mark.parametrize("op", FLOAT, ids=str)
def test_floats_are_numpys(op: Op, dtype: DType) -> None:
    """Native floats give NumPy's bits at every pair of extremes."""
    args = pairs(dtype) if op in BINARY else (points(dtype),)
    with np.errstate(all="ignore"):
        expected = FLOAT[op](*args)
    out = dt.bool_ if op in COMPARE else dtype
    actual = apply(op, out, (dtype,) * len(args), args)
    if op in (Op.MAX, Op.MIN):  # of two zeros either
        np.testing.assert_array_equal(actual, expected)
    else:
        same(actual, expected)


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("op", [o for o in FLOAT if o not in ARITHMETIC], ids=str)
def test_small_floats_through_float32(op: Op, dtype: DType) -> None:
    """Other ops of small floats equal the float32 op, rounded once."""
    args = pairs(dtype) if op in BINARY else (points(dtype),)
    with np.errstate(all="ignore"):
        expected = FLOAT[op](*[a.astype(np.float32) for a in args])
        expected = expected if op in COMPARE else expected.astype(dtype.numpy)
    out = dt.bool_ if op in COMPARE else dtype
    actual = apply(op, out, (dtype,) * len(args), args)
    if op in (Op.MAX, Op.MIN):
        np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))
    else:
        same(actual, expected)


@pytest.mark.parametrize("dtype", dt.FLOATS, ids=str)
@pytest.mark.parametrize(
    ("op", "name"),
    [(Op.EXP, "exp"), (Op.LOG, "log"), (Op.SIN, "sin"), (Op.COS, "cos"), (Op.TANH, "tanh")],
    ids=str,
)
def test_transcendentals(op: Op, name: str, dtype: DType) -> None:
    """Each is within an ULP of NumPy's in a wider float, NaN and infinities where it has them."""
    x = points(dtype)
    with np.errstate(all="ignore"):
        wide = getattr(np, name)(x.astype(np.longdouble))
        actual = apply(op, dtype, (dtype,), (x,))
        if dtype is dt.float64:
            np.testing.assert_array_max_ulp(actual[wide == wide], wide[wide == wide].astype(float))
        elif dtype is dt.float32:
            same(actual, wide.astype(np.float64).astype(np.float32))
        else:
            close = actual.astype(np.float64), wide.astype(dtype.numpy).astype(np.float64)
            np.testing.assert_allclose(*close, rtol=2.0 ** -(4 if dtype.bits > 8 else 1))
    np.testing.assert_array_equal(np.isnan(actual.astype(np.float64)), _nan(wide, dtype))


def _nan(wide: Any, dtype: DType) -> Any:
    overflow = np.abs(wide) > 464 if dtype is dt.float8_e4m3fn else False
    return np.isnan(wide) | overflow


def test_pow_is_numpys() -> None:
    """POW of float32 is the double's, rounded; its special cases are IEEE's."""
    x, y = pairs(dt.float32)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    same(apply(Op.POW, dt.float32, (dt.float32,) * 2, (x, y)), expected)


@pytest.mark.parametrize("to", dt.INTS, ids=str)
@pytest.mark.parametrize("src", dt.FLOATS, ids=str)
def test_float_to_integer_saturates(to: DType, src: DType) -> None:
    """Truncation, saturation beyond the range, 0 for NaN."""
    edges = [float(to.min), float(to.max), float(to.max) + 1, float(to.min) - 1, -0.99]
    with np.errstate(all="ignore"):
        x = np.concatenate([points(src), np.array(edges).astype(src.numpy)])

    def exact(v: float) -> int:
        if math.isnan(v):
            return 0
        if math.isinf(v):
            return int(to.max) if v > 0 else int(to.min)
        return min(max(math.trunc(v), int(to.min)), int(to.max))

    expected = np.array([exact(v) for v in x.astype(np.float64).tolist()], to.numpy)
    same(apply(Op.CAST, to, (src,), (x,)), expected)


@pytest.mark.parametrize("to", dt.INTS, ids=str)
@pytest.mark.parametrize("src", (*dt.INTS, dt.bool_), ids=str)
def test_integer_to_integer_wraps(to: DType, src: DType) -> None:
    """Integers keep the low bits."""
    x = points(src)
    expected = np.array([wrap(int(v), to) for v in x], to.numpy)
    same(apply(Op.CAST, to, (src,), (x,)), expected)


@pytest.mark.parametrize("src", dt.ARRAY_DTYPES, ids=str)
def test_cast_to_bool_is_not_zero(src: DType) -> None:
    """Everything but zero is True, NaN too."""
    x = points(src)
    expected = x.astype(np.float64) != 0
    same(apply(Op.CAST, dt.bool_, (src,), (x,)), expected)


def _midpoints(dtype: DType) -> list[float]:
    """float64 values at, just above and just below the ties of a small float."""
    values = table(dtype)[0]
    step = max(1, len(values) // 150)
    found = [*values[-3:], values[-1] * 1.03125, values[-1] * 1.0357142857142858, 1e300]
    for low, high in zip(values[:-1:step], values[1::step], strict=True):
        middle = (low + high) / 2
        found += [middle, math.nextafter(middle, INF), math.nextafter(middle, 0.0)]
    return [*found, *[-v for v in found]]


@pytest.mark.parametrize("to", SMALL, ids=str)
def test_float64_to_small_rounds_once(to: DType) -> None:
    """A double near a tie of the small format is not rounded twice."""
    x = _midpoints(to)
    actual = apply(Op.CAST, to, (dt.float64,), (np.array(x),)).astype(np.float64)
    expected = [nearest(Fraction(v), to) for v in x]
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("to", SMALL, ids=str)
@pytest.mark.parametrize("src", (dt.int32, dt.uint32, dt.int64, dt.uint64), ids=str)
def test_integer_to_small_rounds_once(to: DType, src: DType) -> None:
    """An integer near a tie of the small format is not rounded twice."""
    high = int(src.max)
    near = {
        v
        for k in range(1, src.bits)
        for tie in (2**k + 2 ** (k - 2), 2**k + 2 ** max(k - 8, 0), 2**k + 2 ** max(k - 9, 0))
        for v in (tie - 1, tie, tie + 1)
        if v <= high
    }
    x = np.array([*sorted(near), high, int(src.min)], src.numpy)
    actual = apply(Op.CAST, to, (src,), (x,)).astype(np.float64)
    np.testing.assert_array_equal(actual, [nearest(Fraction(int(v)), to) for v in x])


def test_bitcast_and_where() -> None:
    """BITCAST keeps bits; the branch not taken never shows."""
    x = points(dt.float32)
    bits = apply(Op.BITCAST, dt.uint32, (dt.float32,), (x,))
    same(bits, x.view(np.uint32))
    half = np.float16([1.5, NAN])
    chosen = apply(
        Op.WHERE, dt.float16, (dt.bool_, dt.float16, dt.float16), ([True, False], half, half[::-1])
    )
    assert chosen.dtype == np.float16
    assert chosen.tolist() == [1.5, 1.5]


def _libm(name: str, kind: Any) -> Callable[[float, float, float], float]:
    try:
        found = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        pytest.skip("no fma in this machine's C library")
    found.argtypes, found.restype = [kind] * 3, kind
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("dtype", "name", "kind"),
    [(dt.float32, "fmaf", ctypes.c_float), (dt.float64, "fma", ctypes.c_double)],
    ids=["float32", "float64"],
)
def test_fma_is_the_c_librarys(dtype: DType, name: str, kind: Any) -> None:
    """FMA rounds once: random bits, near-cancellations and extremes agree with C's fma."""
    reference = _libm(name, kind)
    rng = np.random.default_rng(2)
    ints = dt.unsigned(dtype.bits).numpy
    x, y, z = rng.integers(0, 2**dtype.bits - 1, (3, 1500), dtype=ints).view(dtype.numpy)
    with np.errstate(all="ignore"):
        a, b = rng.normal(size=(2, 1500)).astype(dtype.numpy)
        close = (-(a * b) * (1 + rng.integers(-3, 4, 1500) * 2.0**-30)).astype(dtype.numpy)
        tiny = (a * dtype.numpy.type(1e-30), b * dtype.numpy.type(1e-12), close * 0)
    p, q = pairs(dtype)
    sets = [(x, y, z), (a, b, close), tiny, (p, q, p), (p, q, q[::-1].copy()), (q, q, p)]
    for values in sets:
        actual = apply(Op.FMA, dtype, (dtype,) * 3, values)
        rows = zip(*[v.tolist() for v in values], strict=True)
        same(actual, np.array([reference(*row) for row in rows], dtype.numpy))


def test_no_warning_leaks() -> None:
    """Overflow, division by zero and NaN raise no warning in any op and dtype."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (*dt.INTS, *dt.FLOATS):
            for op in sorted(UNARY | BINARY, key=lambda o: o.name):
                args = pairs(dtype)[: 2 if op in BINARY else 1]
                out = dt.bool_ if op in COMPARE else dtype
                try:
                    apply(op, out, (dtype,) * len(args), args)
                except VerifyError as error:
                    assert "no meaning in dtype" in str(error)


def test_scalars_are_taken_too() -> None:
    """NumPy scalars and 0-d arrays give what arrays give."""
    for dtype in (*dt.INTS, *dt.FLOATS):
        x, y = points(dtype)[:2]
        for op in (Op.ADD, Op.MOD, Op.MAX, Op.CMPLT, Op.FLOORDIV):
            out = dt.bool_ if op in COMPARE else dtype
            one = apply(op, out, (dtype, dtype), (x, y))
            many = apply(op, out, (dtype, dtype), (np.array([x]), np.array([y])))
            same(one.reshape(1), many)
