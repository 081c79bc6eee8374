"""Random array programs give NumPy's results, fused as fusion sees fit."""

from __future__ import annotations

import os

import numpy as np
import pytest

import loopwright as lw
from support.random_programs import inputs, run

N_PROGRAMS = 2000 if os.environ.get("LOOPWRIGHT_LONG") else 60


@pytest.mark.parametrize("seed", range(N_PROGRAMS))
def test_program(seed: int) -> None:
    """Dtypes, shapes and values of everything a program keeps are NumPy's."""
    arrays = inputs(seed)
    with np.errstate(all="ignore"):
        expected = run(seed, np, arrays)
    actual = run(seed, lw, [lw.asarray(a) for a in arrays])
    lw.evaluate(*actual)
    for want, got in zip(expected, (np.asarray(a) for a in actual), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if want.dtype.kind != "f":
            np.testing.assert_array_equal(got, want)
            continue
        tolerance = 2e-2 if want.dtype == np.float16 else 1e-4
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=1e-3
        )
