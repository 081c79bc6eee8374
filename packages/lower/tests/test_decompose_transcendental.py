"""EXP LOG SIN COS TANH POW after decomposition: ULP bounds, special values, NumPy's own tables."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ulp import CPU, NO_DOUBLE, NO_FMA, distance, float32_sweep, run

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import const
from loopwright_core.plugin.target import Target

FUNCTIONS: dict[Op, Callable[[Any], Any]] = {
    Op.EXP: np.exp,
    Op.LOG: np.log,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TANH: np.tanh,
}
SMALL = (dt.float16, dt.bfloat16, dt.float8_e4m3fn, dt.float8_e5m2)
needs_long_double = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than double here"
)


def same_bits(a: Any, b: Any) -> Any:
    """Equal values with equal signs; NaN equals NaN."""
    return (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))


def check(op: Op, dtype: DType, x: Any, target: Target, bound: float) -> None:
    """Within `bound` of the function, and equal to NumPy where the result is special."""
    with np.errstate(all="ignore"):
        exact = FUNCTIONS[op](x.astype(np.longdouble))
        special = FUNCTIONS[op](x.astype(np.float64)).astype(dtype.numpy)
    got = run(op, dtype, (x,), (dtype,), target, checked=False)
    off = distance(got, exact, dtype)
    worst = int(np.argmax(off))
    assert off[worst] <= bound, f"{op} {x[worst]!r}: {got[worst]!r}, off by {off[worst]} ULP"
    ends = np.isnan(special) | np.isinf(special) | (special == 0)
    finite_limit = np.abs(exact) > np.finfo(dtype.numpy).max  # infinity or the largest: off <= 1
    odd = ends & ~same_bits(got, special) & ~(finite_limit & ~np.isinf(x))
    tiny = (np.abs(exact) < np.finfo(dtype.numpy).smallest_subnormal) & (exact != 0)
    assert not np.any(odd & ~tiny), x[odd & ~tiny][:5]


@pytest.mark.parametrize("target", [CPU, NO_FMA], ids=lambda t: t.name)
@pytest.mark.parametrize("op", FUNCTIONS, ids=repr)
def test_float32_within_one_and_a_half_ulp(op: Op, target: Target) -> None:
    """Over float32 bit patterns of every sign, exponent and kind the error is at most 1.5 ULP."""
    step = 19937 if target is CPU else 99991
    check(op, dt.float32, float32_sweep(step), target, 1.5)


def dense_points(dtype: DType) -> Any:
    """Arguments where the formulas change: near 0, 1, the bounds, and multiples of pi/2."""
    rng = np.random.default_rng(5)
    n = 4000
    parts = [
        rng.uniform(-1, 1, n),
        rng.uniform(0.5, 2, n),
        1 + rng.uniform(-1e-3, 1e-3, n),
        rng.uniform(-30, 30, n),
        np.arange(-n, n) * (np.pi / 2),
        np.exp2(rng.uniform(10, 35, n)),
        rng.uniform(-105, 90, n) if dtype is dt.float32 else rng.uniform(-746, 710, n),
    ]
    x = np.concatenate(parts).astype(dtype.numpy)
    return np.concatenate([x, np.nextafter(x, np.inf, dtype=dtype.numpy)])


@pytest.mark.parametrize("op", FUNCTIONS, ids=repr)
def test_float32_at_the_hard_points(op: Op) -> None:
    """Near zeros, bounds and multiples of pi/2 float32 stays within 1.5 ULP on every target."""
    for target in (CPU, NO_DOUBLE, NO_FMA):
        check(op, dt.float32, dense_points(dt.float32), target, 1.5)


@needs_long_double
@pytest.mark.parametrize("target", [CPU, NO_FMA], ids=lambda t: t.name)
@pytest.mark.parametrize("op", FUNCTIONS, ids=repr)
def test_float64_within_two_ulp(op: Op, target: Target) -> None:
    """Random and hard float64 arguments give at most 2 ULP, special values exactly."""
    rng = np.random.default_rng(11)
    bits = rng.integers(0, 2**64, 20000, dtype=np.uint64).view(np.float64)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324, 2.2250738585072014e-308]
    edges += [1.7976931348623157e308, 709.782712893384, 709.7827128933841, -745.1332191019411]
    edges += [-745.1332191019412, -708.4, 2.0**30, 6381956970095103 * 2.0**797, 1e22, 1.0]
    x = np.concatenate([np.array(edges), bits, dense_points(dt.float64)[:: 1 + (target is NO_FMA)]])
    check(op, dt.float64, x, target, 2.0)


def all_patterns(dtype: DType) -> Any:
    return np.arange(1 << dtype.bits, dtype=dt.unsigned(dtype.bits).numpy).view(dtype.numpy)


@pytest.mark.parametrize("dtype", SMALL, ids=repr)
def test_storage_floats_are_as_good_as_float32_rounded(dtype: DType) -> None:
    """Over all bit patterns a storage float's function is the float32 one, rounded: 1 step off."""
    x = all_patterns(dtype)
    ordered = np.sort(x[np.isfinite(x.astype(np.float32))].astype(np.float64))
    for op, f in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            exact = f(x.astype(np.float64)).astype(np.float32).astype(dtype.numpy)
        got = run(op, dtype, (x,), (dtype,), checked=False)
        a, b = exact.astype(np.float64), got.astype(np.float64)
        differ = ~same_bits(a, b)
        assert differ.mean() < 1e-3, op
        steps = np.searchsorted(ordered, a[differ]) - np.searchsorted(ordered, b[differ])
        assert np.all(np.abs(steps) <= 1), op


def power_arguments(dtype: DType) -> tuple[Any, Any]:
    """Every pair of special values, random bit patterns, and results over the whole range."""
    numpy = np.dtype(dtype.numpy)
    info, rng, n = np.finfo(numpy), np.random.default_rng(2), 8000
    v = [0.0, 1, 2, 3, 0.5, 1.5, 7, np.inf, info.max, info.tiny, info.smallest_subnormal]
    v += [1 + info.eps, 1 - info.eps / 2, 2.0**24, 2.0**24 + 1, 2.0**53, 2.0**53 - 1, 33.3]
    edge = np.array(v, numpy)
    edge = np.concatenate([edge, -edge, np.array([np.nan], numpy)])
    a, b = (g.ravel() for g in np.meshgrid(edge, edge))
    unsigned = dt.unsigned(dtype.bits).numpy
    bits = rng.integers(0, 2**dtype.bits, (2, n), dtype=np.uint64).astype(unsigned).view(numpy)
    span = 90 if dtype is dt.float32 else 720
    base = np.exp(rng.uniform(-30, 30, n)).astype(numpy)
    up = (rng.uniform(-span, span, n) / np.log(base)).astype(numpy)
    near, far = rng.uniform(0.99, 1.01, n).astype(numpy), rng.uniform(-5000, 5000, n).astype(numpy)
    return np.concatenate([a, bits[0], base, near]), np.concatenate([b, bits[1], up, far])


@needs_long_double
@pytest.mark.parametrize(
    ("dtype", "target"),
    [(dt.float32, CPU), (dt.float32, NO_DOUBLE), (dt.float64, CPU), (dt.float64, NO_FMA)],
    ids=lambda v: getattr(v, "name", ""),
)
def test_power(dtype: DType, target: Target) -> None:
    """POW is within 1.5 ULP (float64: 2) and has C's special cases, signs of zero included."""
    a, b = power_arguments(dtype)
    with np.errstate(all="ignore"):
        numpy = np.power(a, b)
        exact = np.power(a.astype(np.longdouble), b.astype(np.longdouble))
    got = run(Op.POW, dtype, (a, b), (dtype, dtype), target, checked=False)
    off = distance(got, exact, dtype)
    worst = int(np.argmax(off))
    assert off[worst] <= (1.5 if dtype is dt.float32 else 2.0), (a[worst], b[worst], got[worst])
    special = (numpy == 0) | np.isinf(numpy) | np.isnan(numpy) | (numpy == 1)
    wrong = special & ~same_bits(got, numpy) & (off > 0.75)
    assert not wrong.any(), (a[wrong][:3], b[wrong][:3])


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=repr)
@pytest.mark.parametrize("y", [0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.0, 15.0, 2.5])
def test_power_of_a_constant(y: float, dtype: DType) -> None:
    """The short forms of x ** c equal NumPy's power, or are within the bounds of it."""
    x = power_arguments(dtype)[0]
    with np.errstate(all="ignore"):
        expected = np.power(x, np.full_like(x, y))
        exact = np.power(x.astype(np.longdouble), np.longdouble(y))
    got = np.broadcast_to(run(Op.POW, dtype, (x, const(y, dtype)), (dtype, dtype)), x.shape)
    special = (expected == 0) | ~np.isfinite(expected)
    off = distance(got, exact, dtype)
    assert np.all(same_bits(got, expected) | ~special | (off <= 0.75))
    assert np.max(off) <= (1.0 if dtype is dt.float32 else 2.0)


def numpy_tables() -> list[Path]:
    folder = Path(np.__file__).parent / "_core" / "tests" / "data"
    return sorted(folder.glob("umath-validation-set-*.csv"))


@pytest.mark.parametrize("op", FUNCTIONS, ids=repr)
def test_numpy_accuracy_table(op: Op) -> None:
    """Every row of the table that NumPy ships for the function is met, at our own bounds."""
    name = f"umath-validation-set-{op.name.lower()}.csv"
    found = [p for p in numpy_tables() if p.name == name]
    if not found:
        pytest.skip(f"this NumPy ships no {name}")
    rows: dict[DType, list[tuple[int, int]]] = {dt.float32: [], dt.float64: []}
    types = {"np.float32": dt.float32, "np.float64": dt.float64}
    with found[0].open() as file:
        for row in csv.reader(line for line in file if not line.startswith(("#", "dtype"))):
            if row:
                rows[types[row[0]]].append((int(row[1], 16), int(row[2], 16)))
    for dtype, bound in ((dt.float32, 1.5), (dt.float64, 2.0)):
        assert rows[dtype]
        raw = dt.unsigned(dtype.bits).numpy
        x = np.array([r[0] for r in rows[dtype]], raw).view(dtype.numpy)
        expected = np.array([r[1] for r in rows[dtype]], raw).view(dtype.numpy)
        got = run(op, dtype, (x,), (dtype,))
        # The table's results are rounded: half a unit more than against the exact value.
        off = distance(got, expected, dtype)
        worst = int(np.argmax(off))
        assert off[worst] <= bound + 0.5, (x[worst], got[worst], expected[worst])
