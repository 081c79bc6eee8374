"""Exponentials, logarithms and special functions against NumPy's published accuracy tables.

LOOPWRIGHT_FUZZ_EXAMPLES sets how many inputs a sweep draws.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from array_oracle import oracle, same, ulps

import loopwright as lw

_TABLES = Path(np.__file__).parent / "_core" / "tests" / "data"


def _table(name: str, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and correctly rounded outputs of one function, from the numpy wheel."""
    rows = [
        line.split(",")
        for line in (_TABLES / f"umath-validation-set-{name}.csv").read_text().splitlines()
        if line.startswith(f"np.{dtype.__name__},")
    ]
    bits = np.uint32 if dtype is np.float32 else np.uint64
    inputs = np.array([int(r[1], 16) for r in rows], bits).view(dtype)
    return inputs, np.array([int(r[2], 16) for r in rows], bits).view(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("name", "bound"),
    [
        *[(name, 1.5) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "cbrt")],
        *[("log10", 2), ("log1p", 2), ("expm1", 2), ("tan", 3)],
    ],
)
def test_numpy_accuracy_tables(name: str, bound: float, dtype: type) -> None:
    """Every row of the table, special values included, is met within the bound in ULP."""
    inputs, outputs = _table(name, dtype)
    got = oracle(getattr(lw, name)(lw.asarray(inputs)))
    assert got.dtype == dtype
    bound += 0.5  # the table's outputs are rounded themselves
    assert ulps(got, outputs, dtype) <= (bound if dtype is np.float32 else max(bound, 2.5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf(dtype: type) -> None:
    """erf is odd, within 2.2 ULP of math.erf, and exact at the ends."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-6, 6, 800), 10.0 ** rng.uniform(-30, 0, 100)]).astype(dtype)
    got = oracle(lw.erf(lw.asarray(x)))
    assert ulps(got, [math.erf(v) for v in x.astype(float)], dtype) <= (
        2.2 if dtype is np.float32 else 2.7
    )
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 40.0], dtype)
    same(lw.erf(lw.asarray(ends)), np.array([0.0, -0.0, 1, -1, np.nan, 1], dtype))


def test_whole_powers_of_two_are_exact() -> None:
    """exp2 of whole numbers and log2 of powers of two lose nothing, subnormals included."""
    n = np.arange(-149, 128).astype(np.float32)
    powers = np.ldexp(np.float32(1), n.astype(np.int32)).astype(np.float32)
    same(lw.exp2(lw.asarray(n)), powers)
    same(lw.log2(lw.asarray(powers)), n)


def test_sigmoid_and_gelu_at_both_ends() -> None:
    """Neither overflows, loses the small side, nor turns infinity into NaN."""
    x = np.array([-100.0, -20.0, 0.0, 20.0, 100.0, np.inf, -np.inf, np.nan], np.float32)
    got = oracle(lw.sigmoid(lw.asarray(x))).astype(np.float64)
    want = [1 / (1 + math.exp(-v)) if math.isfinite(v) else float(v > 0) for v in x[:7]]
    np.testing.assert_allclose(got[:7], want, rtol=3e-7, atol=1.5e-45)
    assert np.isnan(got[7])
    near = np.linspace(-9, 9, 200).astype(np.float32)
    want = [v * math.erfc(-v / math.sqrt(2)) / 2 for v in near.astype(float)]
    np.testing.assert_allclose(oracle(lw.gelu(lw.asarray(near))), want, rtol=8e-6)
    ends = oracle(lw.gelu(lw.asarray(x)))
    assert ends[5] == np.inf and ends[6] == 0 and np.isnan(ends[7])
    tanh = oracle(lw.gelu(lw.asarray(near), approximate="tanh"))
    np.testing.assert_allclose(tanh, want, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.float16, np.bool_])
def test_result_dtypes(dtype: type) -> None:
    """Integers become the float that NumPy's functions give; small floats round once."""
    x = np.array([0, 1, 1], dtype)
    for name in ("exp", "log1p", "sqrt", "tanh", "exp2"):
        got, want = oracle(getattr(lw, name)(lw.asarray(x))), getattr(np, name)(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=2e-3 if want.dtype == np.float16 else 1e-6)


def test_hypot_and_logaddexp() -> None:
    """Both stay finite where the plain formula overflows, and keep NumPy's special values."""
    a = np.array([3e300, 1e-300, 0.0, np.inf, np.nan, -3.0])
    b = np.array([4e300, 1e-300, 0.0, np.nan, 1.0, 4.0])
    np.testing.assert_allclose(oracle(lw.hypot(a, b)), np.hypot(a, b), rtol=1e-15)
    c = np.array([1000.0, -np.inf, -np.inf, np.inf, 0.0])
    d = np.array([1000.0, -np.inf, 3.0, np.inf, 1.0])
    np.testing.assert_allclose(oracle(lw.logaddexp(c, d)), np.logaddexp(c, d), rtol=1e-15)


_N = int(os.environ.get("LOOPWRIGHT_FUZZ_EXAMPLES", "4000"))


def _exact_ulps(got: np.ndarray, exact: np.ndarray) -> float:
    """The largest distance from long double values in ULP of the result's dtype."""
    unit = np.spacing(np.abs(exact.astype(got.dtype))).astype(np.longdouble)
    return float(np.max(np.abs(got.astype(np.longdouble) - exact) / unit))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweep(dtype: type) -> None:
    """Random inputs of every magnitude: 2 ULP at most."""
    rng = np.random.default_rng(5)
    wide, unit = 10 ** rng.uniform(-30, 30, _N), rng.uniform(-1, 1, _N)
    draws = {
        "cbrt": wide,
        "exp2": rng.uniform(-125, 127, _N),
        "expm1": np.concatenate([rng.uniform(-40, 88, _N), unit]),
        "log10": np.concatenate([wide, 1 + unit / 2]),
        "log1p": np.concatenate([wide, unit, unit * 1e-6]),
        "log2": np.concatenate([wide, 1 + unit / 2]),
        "tan": rng.uniform(-100, 100, _N),
    }
    for name, drawn in draws.items():
        x = drawn.astype(dtype)
        exact = getattr(np, name)(x.astype(np.longdouble))
        assert _exact_ulps(oracle(getattr(lw, name)(lw.asarray(x))), exact) <= 2, name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sweep_of_two_operands(dtype: type) -> None:
    """hypot of any ratio and size within 2 ULP, logaddexp too where it does not cancel."""
    rng = np.random.default_rng(6)
    a = 10 ** rng.uniform(-34, 34, _N)
    b = (a * 10 ** rng.uniform(-3, 3, _N)).astype(dtype)
    a = a.astype(dtype)
    exact = np.hypot(a.astype(np.longdouble), b.astype(np.longdouble))
    assert _exact_ulps(oracle(lw.hypot(lw.asarray(a), lw.asarray(b))), exact) <= 2
    c = rng.uniform(1, 80, _N).astype(dtype)
    d = (c + rng.normal(0, 5, _N)).astype(dtype)
    exact = np.logaddexp(c.astype(np.longdouble), d.astype(np.longdouble))
    assert _exact_ulps(oracle(lw.logaddexp(lw.asarray(c), lw.asarray(d))), exact) <= 2
