"""Signs of zero, ties, subnormals, division, contraction: each operation rounds once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, edges, near

FLOATS = [d for d in dt.ARRAY_DTYPES if d.is_float]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_signed_zero(dtype: DType) -> None:
    """x + 0 loses the sign of -0.0, x - 0, x * 1 and -x keep or turn it, by data and constants."""
    t = dtype.numpy.type
    x = np.resize(np.array([-0.0, 0.0, 1.0, -1.0]), 37).astype(dtype.numpy)
    zeros = np.zeros_like(x)
    a, z = array(x), array(zeros)
    with np.errstate(all="ignore"):
        all_exact(
            [
                ("x + 0.0", a + 0.0, x + t(0)),
                ("x + -0.0", a + -0.0, x + t(-0.0)),
                ("0.0 + x", 0.0 + a, t(0) + x),
                ("x + zeros", a + z, x + zeros),
                ("x - 0.0", a - 0.0, x - t(0)),
                ("x - -0.0", a - -0.0, x - t(-0.0)),
                ("0.0 - x", 0.0 - a, t(0) - x),
                ("-x", -a, -x),
                ("x * -1", a * -1, x * t(-1)),
                ("x * 0.0", a * 0.0, x * t(0)),
                ("x * -0.0", a * -0.0, x * t(-0.0)),
                ("x / -1", a / -1, x / t(-1)),
                ("1 / x", 1 / a, t(1) / x),
                ("1 / (x + 0)", 1 / (a + 0.0), t(1) / (x + t(0))),
                ("abs", lw.abs(a), np.abs(x)),
                ("signbit", lw.signbit(a), np.signbit(x)),
                ("copysign", lw.copysign(a * 0 + 2, a), np.copysign(x * t(0) + t(2), x)),
                ("sqrt", lw.sqrt(a * 0), np.sqrt(x * t(0))),
                ("where", lw.where(a > 0, a, -0.0), np.where(x > t(0), x, t(-0.0))),
            ]
        )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_whole_numbers_near(dtype: DType) -> None:
    """round goes to even on ties; ceil, floor and trunc keep the sign of what becomes zero."""
    host = np.concatenate(
        [np.arange(-14, 15) * 0.5, np.arange(-8, 9) * 0.1, np.array(edges(dtype))]
    )
    x = host.astype(dtype.numpy)
    a = array(x)
    items = [
        ("round", lw.round(a), np.rint(x)),
        ("fused", lw.round(lw.negative(lw.negative(a))), np.rint(x)),
    ]
    items += [(n, getattr(lw, n)(a), getattr(np, n)(x)) for n in ("floor", "ceil", "trunc")]
    all_exact(items)
    two = lw.full((2,), 2.5, dtype=dtype, device="cpu")
    all_exact([("constant", lw.round(two), np.full(2, 2).astype(dtype.numpy))])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_subnormals_are_kept(dtype: DType) -> None:
    """The smallest numbers survive arithmetic, comparisons and constants."""
    least = float(np.array(1, f"u{dtype.itemsize}").view(dtype.numpy).astype(np.float64))
    x = np.resize(np.array([least, 3 * least, -least, float(lw.finfo(dtype).smallest_normal)]), 37)
    x = x.astype(dtype.numpy)
    a, t = array(x), dtype.numpy.type
    with np.errstate(all="ignore"):
        all_exact(
            [
                ("+ 0", a + array(np.zeros_like(x)), x + np.zeros_like(x)),
                ("* 2", a * 2, x * t(2)),
                ("/ 2", a / 2, x / t(2)),
                ("- itself flipped", a - a[::-1], x - x[::-1]),
                ("!= 0", a != 0, x != t(0)),
                ("> 0", a > 0, x > t(0)),
                ("as float64", lw.astype(a, lw.float64), x.astype(np.float64)),
                ("max", lw.max(-a), np.asarray(t(least))),
                ("constant", lw.where(a == a, least, a), np.full_like(x, t(least))),
            ]
        )
    if dtype.bits >= 32:
        wide = np.abs(x).astype(np.longdouble)
        near("log", lw.log(lw.abs(a)), np.log(wide), 0, 0, 2)
        near("sqrt", lw.sqrt(lw.abs(a)), np.sqrt(wide), 0, 0, 0.5)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_division_is_correctly_rounded(seed: int) -> None:
    """x / y is NumPy's bit for bit, by data and by constants, and floors of quotients follow."""
    rng = np.random.default_rng(seed)
    for dtype in (np.float32, np.float64):
        x = rng.integers(1, 3000, 67).astype(dtype)
        y = rng.integers(1, 60, 67).astype(dtype)
        a, b = array(x), array(y)
        items = [("x / y", a / b, x / y), ("trunc", lw.trunc(a / b), np.trunc(x / y))]
        items += [("just below", lw.trunc(a * b / b), np.trunc(x * y / y))]
        items += [
            (
                "near",
                lw.floor(array(np.nextafter(x * y, 0)) / b),
                np.floor(np.nextafter(x * y, 0) / y),
            )
        ]
        # the same text for every seed, so that it is compiled once
        items += [(f"x / {c}", a / c, x / dtype(c)) for c in (3.0, 7.0, 10.0, 49.0, 0.1)]
        all_exact(items)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_round_before_they_are_added(dtype: DType) -> None:
    """a*x + b*x with b = -a is 0, x*x - y*y with equal x and y is 0: nothing is contracted."""
    rng = np.random.default_rng(5)
    x, y = (rng.uniform(1, 2, 67).astype(dtype.numpy) for _ in range(2))
    a, b, c = array(x), array(y), array(y.copy())
    t = dtype.numpy.type
    zero = np.zeros_like(x)
    all_exact(
        [
            ("ax + -ax", a * b + (-a) * b, zero),
            ("yy - yy", b * b - c * c, zero),
            ("xy + 1", a * b + 1, x * y + t(1)),
            ("xy - y", a * b - b, x * y - y),
            ("1 - xy", 1 - a * b, t(1) - x * y),
            ("(xy + x)y - x", (a * b + a) * b - a, (x * y + x) * y - x),
        ]
    )
