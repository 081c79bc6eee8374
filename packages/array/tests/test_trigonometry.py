"""Inverse trigonometry and hyperbolic functions: tables, sweeps and the standard's special cases.

LOOPWRIGHT_FUZZ_EXAMPLES sets how many inputs a sweep draws.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from array_oracle import oracle, same, ulps

import loopwright as lw
from loopwright_core.errors import DTypeError

_TABLES = Path(np.__file__).parent / "_core" / "tests" / "data"
_N = int(os.environ.get("LOOPWRIGHT_FUZZ_EXAMPLES", "4000"))
_INF, _NAN, _PI = np.inf, np.nan, np.pi

# NumPy's name, and the bound of the sweep in ULP of float32 and float64.
FUNCTIONS = {
    "acos": ("arccos", 1.5),
    "acosh": ("arccosh", 3.0),
    "asin": ("arcsin", 1.5),
    "asinh": ("arcsinh", 2.0),
    "atan": ("arctan", 2.5),
    "atanh": ("arctanh", 2.0),
    "cosh": ("cosh", 2.5),
    "sinh": ("sinh", 2.5),
}

# From the standard's text: input -> output, the same in every float dtype.
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "acos": [(_NAN, _NAN), (1.5, _NAN), (-1.5, _NAN), (1.0, 0.0), (_INF, _NAN), (-1.0, _PI)],
    "acosh": [(_NAN, _NAN), (0.5, _NAN), (-3.0, _NAN), (1.0, 0.0), (_INF, _INF), (-_INF, _NAN)],
    "asin": [(_NAN, _NAN), (1.5, _NAN), (-1.5, _NAN), (0.0, 0.0), (-0.0, -0.0), (1.0, _PI / 2)],
    "asinh": [(_NAN, _NAN), (0.0, 0.0), (-0.0, -0.0), (_INF, _INF), (-_INF, -_INF)],
    "atan": [(_NAN, _NAN), (0.0, 0.0), (-0.0, -0.0), (_INF, _PI / 2), (-_INF, -_PI / 2)],
    "atanh": [
        *[(_NAN, _NAN), (1.5, _NAN), (-1.5, _NAN), (_INF, _NAN), (-_INF, _NAN)],
        *[(1.0, _INF), (-1.0, -_INF), (0.0, 0.0), (-0.0, -0.0)],
    ],
    "cosh": [(_NAN, _NAN), (0.0, 1.0), (-0.0, 1.0), (_INF, _INF), (-_INF, _INF)],
    "sinh": [(_NAN, _NAN), (0.0, 0.0), (-0.0, -0.0), (_INF, _INF), (-_INF, -_INF)],
}

# From the standard's text: (x1, x2) -> atan2(x1, x2).
ATAN2 = [
    *[(_NAN, 1.0, _NAN), (1.0, _NAN, _NAN), (_NAN, _NAN, _NAN)],
    *[(2.0, 0.0, _PI / 2), (2.0, -0.0, _PI / 2), (0.0, 2.0, 0.0), (0.0, 0.0, 0.0)],
    *[(0.0, -0.0, _PI), (0.0, -2.0, _PI), (-0.0, 2.0, -0.0), (-0.0, 0.0, -0.0)],
    *[(-0.0, -0.0, -_PI), (-0.0, -2.0, -_PI), (-2.0, 0.0, -_PI / 2), (-2.0, -0.0, -_PI / 2)],
    *[(2.0, _INF, 0.0), (2.0, -_INF, _PI), (-2.0, _INF, -0.0), (-2.0, -_INF, -_PI)],
    *[(_INF, 2.0, _PI / 2), (-_INF, 2.0, -_PI / 2), (_INF, _INF, _PI / 4)],
    *[(_INF, -_INF, 3 * _PI / 4), (-_INF, _INF, -_PI / 4), (-_INF, -_INF, -3 * _PI / 4)],
]


def _both(name: str, *operands: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """A function's values, interpreted and from a kernel: the two have their own exp and log."""
    value = getattr(lw, name)(*[lw.asarray(x, device="cpu") for x in operands])
    return [oracle(value), value.numpy()]


def _same_within(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], bound: float) -> None:
    """Signs of zeros and special values equal, the rest within so many ULP of the dtype."""
    assert got.dtype == want.dtype and got.shape == want.shape
    assert ulps(got, want.astype(np.float64), want.dtype) <= bound
    zeros = want == 0
    np.testing.assert_array_equal(got[zeros], want[zeros])
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numpy_accuracy_tables(name: str, dtype: Any) -> None:
    """Every row of NumPy's table is met within 2 ULP, its special values exactly."""
    numpy_name, _ = FUNCTIONS[name]
    rows = [
        line.split(",")
        for line in (_TABLES / f"umath-validation-set-{numpy_name}.csv").read_text().splitlines()
        if line.startswith(f"np.{dtype.__name__},")
    ]
    bits = np.uint32 if dtype is np.float32 else np.uint64
    inputs, outputs = [np.array([int(r[i], 16) for r in rows], bits).view(dtype) for i in (1, 2)]
    _same_within(oracle(getattr(lw, name)(lw.asarray(inputs))), outputs, 2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_cases(name: str, dtype: Any) -> None:
    """The special cases of the standard, in each dtype."""
    inputs, outputs = np.array(SPECIAL[name]).T
    for got in _both(name, inputs.astype(dtype)):
        _same_within(got, outputs.astype(dtype), 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_cases_of_atan2(dtype: Any) -> None:
    """The quadrants, signed zeros and infinities of the standard's atan2."""
    y, x, want = np.array(ATAN2).astype(dtype).T
    for got in _both("atan2", y, x):
        _same_within(got, want, 0)


def _exact_ulps(got: np.ndarray[Any, Any], exact: np.ndarray[Any, Any]) -> float:
    """The largest distance from long double values in ULP of the result's dtype."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(got.dtype)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    unit = np.spacing(np.abs(rounded[finite])).astype(np.longdouble)
    return float(np.max(np.abs(got[finite].astype(np.longdouble) - exact[finite]) / unit))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sweep(name: str, dtype: Any) -> None:
    """Random inputs of every magnitude in the domain stay within the bound."""
    numpy_name, bound = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    sign = rng.choice([-1.0, 1.0], _N)
    top = 90.0 if dtype is np.float32 else 711.0
    draws = {
        "acosh": [1 + 10 ** rng.uniform(-7, 1, _N), 10 ** rng.uniform(0, 30, _N)],
        "asinh": [sign * 10 ** rng.uniform(-20, 30, _N), rng.uniform(-3, 3, _N)],
        "atan": [sign * 10 ** rng.uniform(-20, 30, _N), rng.uniform(-3, 3, _N)],
        "cosh": [rng.uniform(-top, top, _N), rng.uniform(-2, 2, _N)],
        "sinh": [rng.uniform(-top, top, _N), sign * 10 ** rng.uniform(-30, 1, _N)],
    }
    unit = [rng.uniform(-1, 1, _N), sign * (1 - 10 ** rng.uniform(-9, 0, _N))]
    x = np.concatenate(draws.get(name, unit)).astype(dtype)
    with np.errstate(over="ignore", divide="ignore"):
        exact = getattr(np, numpy_name)(x.astype(np.longdouble))
    for got in _both(name, x):
        assert _exact_ulps(got, exact) <= bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweep_of_atan2(dtype: Any) -> None:
    """All quadrants and ratios, huge and tiny sides too, stay within 2.5 ULP."""
    rng = np.random.default_rng(8)
    info = np.finfo(dtype)
    y = np.ldexp(rng.uniform(0.5, 1, _N), rng.integers(info.minexp, info.maxexp, _N))
    with np.errstate(over="ignore"):
        x = np.clip(y * 10 ** rng.uniform(-3, 3, _N), 0, float(info.max))
    y, x = [(v * rng.choice([-1.0, 1.0], _N)).astype(dtype) for v in (y, x)]
    exact = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble))
    for got in _both("atan2", y, x):
        assert _exact_ulps(got, exact) <= 2.5
    most = np.array([info.max], dtype)
    want = np.arctan2(most, most * dtype(0.75))
    assert _exact_ulps(oracle(lw.atan2(most, most * dtype(0.75))), want) <= 2.5


@pytest.mark.parametrize("name", [*FUNCTIONS, "atan2", "nextafter"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int32, np.float16])
def test_result_dtypes(name: str, dtype: Any) -> None:
    """Integers become the floats that NumPy's functions give; float16 stays."""
    x = np.array([1, 1, 1], dtype)
    args = (x, x) if name in ("atan2", "nextafter") else (x,)
    numpy_name = {"atan2": "arctan2", "nextafter": name}.get(name) or FUNCTIONS[name][0]
    with np.errstate(divide="ignore"):
        want = getattr(np, numpy_name)(*args)
    got = oracle(getattr(lw, name)(*[lw.asarray(a) for a in args]))
    if (name, dtype) != ("nextafter", np.bool_):
        assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-3 if want.dtype == np.float16 else 1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_floats_round_once(name: str) -> None:
    """bfloat16 is the float32 result rounded; nothing of nothing is nothing."""
    x = lw.asarray(np.linspace(-1, 3, 41).astype(np.float32)).astype(lw.bfloat16)
    f = getattr(lw, name)
    assert f(x).dtype is lw.bfloat16
    same(
        lw.astype(f(x), lw.float32),
        oracle(f(x.astype(lw.float32)).astype(lw.bfloat16).astype(lw.float32)),
    )
    assert f(lw.zeros((0, 3))).shape == (0, 3)
    same(f(lw.zeros((2, 0), dtype=lw.float32)), np.zeros((2, 0), np.float32))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nextafter(dtype: Any) -> None:
    """Every pair of special and ordinary values steps as NumPy's; x2 where they are equal."""
    info = np.finfo(dtype)
    least = float(info.smallest_subnormal)
    ends = [float(info.max), float(info.min), float(info.tiny), least, -least]
    values = np.array([0.0, -0.0, 1.0, -1.0, 3.5, *ends, _INF, -_INF, _NAN], dtype)
    a, b = [m.ravel() for m in np.meshgrid(values, values)]
    with np.errstate(all="ignore"):
        want = np.nextafter(a, b)
    want = np.where(a == b, b, want)  # NumPy's float16 gives x1 there
    same(lw.nextafter(lw.asarray(a), lw.asarray(b)), want)
    assert lw.nextafter(lw.zeros((0, 1)), lw.ones((1, 4))).shape == (0, 4)


def test_nextafter_of_bfloat16() -> None:
    """The step is the dtype's own: 1 + 2**-7."""
    x = lw.nextafter(lw.ones(2, dtype=lw.bfloat16), lw.asarray(9.0).astype(lw.bfloat16))
    same(x.astype(lw.float32), np.full(2, 1 + 2.0**-7, np.float32))


def test_parts_of_real_numbers() -> None:
    """conj and real are the number itself, imag is zero; bool is refused."""
    for dtype in (np.float32, np.int16):
        x = np.array([1, -2, 0], dtype)
        same(lw.conj(lw.asarray(x)), x)
        same(lw.real(lw.asarray(x)), x)
        same(lw.imag(lw.asarray(x)), np.zeros(3, dtype))
    for f in (lw.conj, lw.real, lw.imag):
        with pytest.raises(DTypeError, match="takes numbers, not bool"):
            f(lw.asarray([True]))
