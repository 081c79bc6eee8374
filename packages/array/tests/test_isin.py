"""Membership in a set of values against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_oracle import same

import loopwright as lw
from loopwright_core.errors import ArgumentTypeError


@pytest.mark.parametrize("n", [0, 1, 5, 64, 65, 300])
@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.float16, np.float32, np.bool_])
@pytest.mark.parametrize("invert", [False, True])
def test_as_numpy(n: int, dtype: Any, invert: bool) -> None:
    """Sets that are compared with and sets that are sorted give the same answer."""
    rng = np.random.default_rng(n)
    x, values = rng.integers(0, 100, (3, 4)).astype(dtype), rng.integers(0, 100, n).astype(dtype)
    got = lw.isin(lw.asarray(x), lw.asarray(values), invert=invert)
    same(got, np.isin(x, values, invert=invert))
    assert lw.isin(lw.zeros((0, 2)), values).shape == (0, 2)


def test_numbers_and_shapes() -> None:
    """Python numbers on either side, sets of any shape, and a number out of the dtype's range."""
    x = np.array([1, 2, 3], np.int8)
    same(lw.isin(lw.asarray(x), 2), x == 2)
    same(lw.isin(lw.asarray(x), 300), np.zeros(3, bool))
    same(lw.isin(2, lw.asarray(x)), np.array(True))
    same(lw.isin(lw.asarray(2), [[1, 2], [3, 4]]), np.array(True))
    same(lw.isin(1, 1.0), np.array(True))


@pytest.mark.parametrize("n", [3, 70])
def test_nan_is_in_no_set(n: int) -> None:
    """NaN equals nothing, -0.0 equals 0.0, in small sets and in large ones."""
    values = np.zeros(n, np.float32)
    values[0] = np.nan
    x = np.array([np.nan, -0.0, 1.0], np.float32)
    same(lw.isin(lw.asarray(x), values), np.array([False, True, False]))


def test_bfloat16_in_a_large_set() -> None:
    """The host compares small floats by value."""
    values = lw.arange(100, dtype=lw.float32).astype(lw.bfloat16)
    same(lw.isin(lw.asarray([3.0, 0.5]).astype(lw.bfloat16), values), np.array([True, False]))


def test_invert_is_a_flag() -> None:
    """Anything but True and False is refused."""
    with pytest.raises(ArgumentTypeError, match="invert is True or False"):
        lw.isin(lw.ones(2), 1, invert="yes")  # type: ignore[arg-type]  # on purpose
