"""Zeros, infinities, NaN, subnormals and huge numbers in every position, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from support.numeric import Host, array

UNARY = ["exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "cbrt"]
UNARY += ["sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]
UNARY += ["asin", "acos", "atan"]
EXACT_PAIRS = ["copysign", "nextafter", "remainder", "floor_divide"]
PAIRS = ["pow", "hypot", "atan2", "logaddexp"]


def specials(dtype: type) -> Host:
    """Where IEEE 754 and C's Annex F name a result, both signs, and whole and odd numbers."""
    info = np.finfo(dtype)
    tiny, least, big, eps = (
        float(v) for v in (info.smallest_normal, info.smallest_subnormal, info.max, info.eps)
    )
    values = [0.0, least, 3 * least, tiny, eps / 4, eps, 1e-5, 0.5, 1 - eps / 2, 1.0, 1 + eps]
    values += [1.5, 2.0, 3.0, 4.0, 7.25, 88.5, 101.0, 1 / eps - 1, 2 / eps, 1e22, big / 2, big]
    values += [np.inf, np.nan]
    return np.array([*values, *(-v for v in values)], dtype)


def place(x: Host) -> Host:
    """Numbers as integers in their order, neighbours one apart; both zeros are 0."""
    bits = x.view(f"i{x.itemsize}").astype(object)
    return np.where(bits < 0, -(bits + (1 << (8 * x.itemsize - 1))), bits)


def same(name: str, got: Host, want: Host, units: int | Host, shown: tuple[Host, ...]) -> None:
    """NaN and signs (of zeros too) as NumPy has them, numbers within so many units."""
    assert got.dtype == want.dtype
    nan = np.isnan(want)
    bad = np.isnan(got) != nan
    bad |= ~nan & (np.signbit(got) != np.signbit(want))
    bad |= ~nan & (np.isinf(got) != np.isinf(want))
    bad |= ~nan & (np.abs(place(got) - place(want)) > units).astype(bool)
    rows = [
        (*(float(v[i]) for v in shown), float(got[i]), float(want[i])) for i in bad.nonzero()[0]
    ]
    assert not rows, f"{name}: {len(rows)} differ (inputs, ours, NumPy's): {rows[:8]}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name: str, dtype: type) -> None:
    """Functions of one operand, at limits, near 0, and at arguments up to 2**1023."""
    x = specials(dtype)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64)).astype(dtype)
    same(name, np.asarray(getattr(lw, name)(array(x))), want, 3, (x,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [*EXACT_PAIRS, *PAIRS])
def test_two_operands(name: str, dtype: type) -> None:
    """Every special value with every other one, in both positions."""
    x = specials(dtype)
    a, b = (v.ravel() for v in np.meshgrid(x, x, indexing="ij"))
    with np.errstate(all="ignore"):
        want = getattr(np, name)(a, b)
    got = np.asarray(getattr(lw, name)(array(a), array(b)))
    units: int | Host = 0 if name in EXACT_PAIRS else 3
    if name == "logaddexp":
        # The larger operand is what the sum is rounded by, and near 0 much of it cancels.
        with np.errstate(all="ignore"):
            ratio = np.spacing(np.abs(np.maximum(a, b))) / np.spacing(np.abs(want))
        units = 3 * np.maximum(1, np.where(np.isfinite(ratio), ratio, 1))
    same(name, got, want, units, (a, b))
