"""Orders of elements that NumPy alone does not find."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt

SMALL = ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", SMALL)
def test_small_floats_are_ordered_with_nan_last(dtype: str) -> None:
    """sort, argsort, searchsorted and the unique functions see NaN as the greatest."""
    x = np.array([3, np.nan, 1, 2, np.nan, 1], dt.BY_NAME[dtype].numpy)
    wide = x.astype(np.float32)
    a = lw.asarray(x)
    np.testing.assert_array_equal(lw.argsort(a).numpy(), np.argsort(wide, kind="stable"))
    np.testing.assert_array_equal(lw.sort(a).numpy().astype(np.float32), np.sort(wide))
    line = lw.sort(a)
    want = np.searchsorted(np.sort(wide), wide)
    np.testing.assert_array_equal(lw.searchsorted(line, a).numpy(), want)
    found, known = lw.unique_all(a), np.unique_all(wide)
    assert found.values.dtype == x.dtype
    np.testing.assert_array_equal(found.values.numpy().astype(np.float32), known.values)
    np.testing.assert_array_equal(found.counts.numpy(), known.counts)
    np.testing.assert_array_equal(lw.unique_values(a).numpy().astype(np.float32), known.values)
