"""Functions over wide ranges within their bounds in units in the last place; long sums."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import array, exact, near

BOUNDED = ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "sqrt")


def spread(dtype: DType, n: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Random bit patterns: every exponent is as likely."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2**dtype.bits, n, np.uint64, endpoint=False) if dtype.bits < 64 else None
    if bits is None:
        bits = rng.integers(0, 2**64 - 1, n, np.uint64, endpoint=True)
    return bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64], ids=str)
def test_functions(dtype: DType, name: str) -> None:
    """float32 within 1.5, float64 within 2, small floats rounded once, at all magnitudes."""
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [spread(dtype, 3000, 1), (rng.standard_normal(3000) * 8).astype(dtype.numpy)]
    )
    if dtype is dt.float64 and name in ("sin", "cos"):
        x = x[~(np.abs(x) > 1e15)]  # long double reduces no further
    bound = 0.5 if name == "sqrt" else {64: 2.0, 32: 1.5}.get(dtype.bits, 0.52)
    with np.errstate(all="ignore"):
        wide = getattr(np, name)(x.astype(np.longdouble if dtype.bits == 64 else np.float64))
        near(name, getattr(lw, name)(array(x)), wide, 0, 0, bound)


@pytest.mark.parametrize("name", ["log2", "log10"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_logarithms_of_other_bases(dtype: DType, name: str) -> None:
    """Within 0.9 units near 1 and far from it: no rounded logarithm is multiplied."""
    rng = np.random.default_rng(4)
    near_one = rng.uniform(0.3, 3, 50000).astype(dtype.numpy)
    x = np.concatenate([np.abs(spread(dtype, 5000, 2)), near_one])
    wide = getattr(np, name)(x.astype(np.longdouble))
    near(name, getattr(lw, name)(array(x)), wide, 0, 0, 0.9)


def test_sine_of_huge_numbers() -> None:
    """Arguments up to 1e30 are reduced exactly."""
    x = np.array([1e3, 1e5, 1e7, 1e9, 1e10, 1e20, 1e30], np.float32)
    sine = [0.8268795405320025, 0.03574879797201651, 0.4205477931907825, 0.5458434494486996]
    sine += [-0.4875060250875107, 0.6565766778545903, -0.7911634385219837]
    cosine = [0.5623790762907029, -0.9993608074382124, -0.9072703861817396, 0.8378871813639024]
    cosine += [0.873119622676856, 0.7542592830701055, -0.6116047854178966]
    near("sin", lw.sin(array(x)), np.array(sine), 0, 0, 1.5)
    near("cos", lw.cos(array(x)), np.array(cosine), 0, 0, 1.5)


def test_flat_ends() -> None:
    """tanh, sigmoid and gelu far out are their limits, and near 0 they keep their digits."""
    x = np.array([50, -50, 1e4, -1e4, np.inf, -np.inf, 45.5], np.float32)
    a = array(x)
    exact("tanh", lw.tanh(a), np.sign(x))
    ends = np.where(x > 0, np.float32(1), np.float32(0))
    for name, got in (("by hand", 1.0 / (1.0 + lw.exp(-a))), ("lw", lw.sigmoid(a))):
        np.testing.assert_allclose(got.numpy(), ends, rtol=0, atol=1e-19, err_msg=name)
    g = np.array([15.5, -15.5, 100, -100], np.float32)
    b = array(g)
    by_hand = 0.5 * b * (1.0 + lw.tanh(0.7978845608028654 * (b + 0.044715 * b * b * b)))
    for got in (by_hand, lw.gelu(b), lw.gelu(b, approximate="tanh")):
        np.testing.assert_allclose(got.numpy(), np.maximum(g, 0), rtol=1e-6, atol=1e-6)
    small = np.array([1e-4, -1e-3, 1e-7, 1e-20, 1e-40], np.float32)
    near("tanh", lw.tanh(array(small)), np.tanh(small.astype(np.float64)), 0, 0, 1.5)
    near("sin", lw.sin(array(small)), np.sin(small.astype(np.float64)), 0, 0, 1.5)


def test_long_sums() -> None:
    """A million and twenty million float32 additions do not stick or drift."""
    n = 1_000_000
    tenth = np.full(n, 0.1, np.float32)
    exact_sum = float(np.float32(0.1)) * n
    for got in (
        lw.sum(array(tenth)),
        lw.sum(array(tenth.reshape(1000, 1000))),
        lw.mean(array(tenth)) * n,
    ):
        assert abs(float(got.numpy()) - exact_sum) <= 1e-5 * exact_sum
    ones = lw.broadcast_to(array(np.ones(1, np.float32)), (20_000_000,))
    assert abs(float(lw.sum(ones).numpy()) - 2e7) <= 200
    assert abs(float(lw.sum(array(np.ones(n, np.float32)) / 255).numpy()) - n / 255) <= 0.05
    columns = lw.mean(array(np.full((2_000_001, 2), 0.1, np.float32)), axis=0).numpy()
    np.testing.assert_allclose(columns, 0.1, rtol=1e-4)


def test_power() -> None:
    """Negative bases, zeros, infinities and NaN as C's pow; fractions within a few last places."""
    x = np.array([-2, -2, -2, -2, 0, 0, np.inf, 1, np.nan, -8, -1, 0], np.float32)
    y = np.array([3, 2, -1, 0.5, 0, 2, 0, np.nan, 0, 1 / 3, np.inf, -1], np.float32)
    with np.errstate(all="ignore"):
        exact("edges", lw.pow(array(x), array(y)), np.power(x, y))
    rng = np.random.default_rng(0)
    base, power = (
        rng.uniform(0.01, 20, 3000).astype(np.float32),
        rng.uniform(-8, 8, 3000).astype(np.float32),
    )
    want = base.astype(np.float64) ** power.astype(np.float64)
    near("fractions", lw.pow(array(base), array(power)), want, 0, 0, 2)
    for n in (2, 3, -1, 0.5, -2.3):
        near(
            f"x**{n}",
            array(base) ** n,
            base.astype(np.float64) ** np.float64(np.float32(n)),
            0,
            0,
            2,
        )
