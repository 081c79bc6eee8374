"""Running sums and products: across every block's end, both axes, every dtype."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, near, rounded, samples, whole


@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9, 31, 33, 255, 256, 257, 1025, 4099])
def test_lengths(n: int) -> None:
    """A running sum of ones counts, past every length at which a block could end."""
    ones = array(np.ones(n, np.int32))
    all_exact(
        [("sum", lw.cumulative_sum(ones, dtype=lw.int32), np.arange(1, n + 1, dtype=np.int32))]
    )
    initial = lw.cumulative_sum(ones, include_initial=True)
    all_exact([("with 0", initial, np.arange(n + 1))])


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_axes(dtype: DType) -> None:
    """Rows and columns; integers wrap, floats of whole numbers are exact."""
    for shape in ((5, 67), (67, 5), (3, 18)):
        ints = not dtype.is_float
        x = samples(dtype, shape, 1) if ints else whole(dtype, shape, 1, 1)
        for axis in (0, 1):
            if ints:
                total, product = np.cumsum(x, axis=axis), np.cumprod(x, axis=axis)
            else:
                total = rounded(np.cumsum(x.astype(np.float64), axis=axis), dtype)
                product = rounded(np.cumprod(x.astype(np.float64), axis=axis), dtype)
            all_exact([("sum", lw.cumulative_sum(array(x), axis=axis), total)], zeros=False)
            all_exact([("product", lw.cumulative_prod(array(x), axis=axis), product)], zeros=False)


def test_infinity_and_nan() -> None:
    """An infinity stays, its opposite makes NaN, and NaN stays."""
    v = np.array([1, -1, np.inf, 2, -np.inf, 3], np.float32)
    with np.errstate(invalid="ignore"):
        want = np.cumsum(v)
    all_exact([("sum", lw.cumulative_sum(array(v)), want)])


def test_inside_kernels() -> None:
    """Of an expression, of a reversed view, of a scan, and under a reduction."""
    x = np.arange(60, dtype=np.int64).reshape(4, 15) % 7
    a = array(x)
    all_exact(
        [
            ("of a product", lw.cumulative_sum(a * a, axis=1), np.cumsum(x * x, axis=1)),
            ("backwards", lw.cumulative_sum(a[:, ::-1], axis=1), np.cumsum(x[:, ::-1], axis=1)),
            (
                "twice",
                lw.cumulative_sum(lw.cumulative_sum(a, axis=0), axis=1),
                x.cumsum(0).cumsum(1),
            ),
            ("its maximum", lw.max(lw.cumulative_sum(a, axis=1), axis=1), x.cumsum(1).max(1)),
            ("of sums", lw.cumulative_sum(lw.sum(a, axis=1)), x.sum(1).cumsum()),
            ("minus", a - lw.cumulative_sum(a, axis=1), x - x.cumsum(1)),
        ]
    )


def test_long_float_scans() -> None:
    """The error over a million additions stays a small part of the sum."""
    n = 1_000_000
    x = np.full(n, 0.1, np.float32)
    got = lw.cumulative_sum(array(x)).numpy()
    want = np.cumsum(x.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=1e-6)
    y = np.random.default_rng(0).standard_normal(5000).astype(np.float32)
    size = np.cumsum(np.abs(y.astype(np.float64)))
    near("normal", lw.cumulative_sum(array(y)), np.cumsum(y.astype(np.float64)), size, 5000)
