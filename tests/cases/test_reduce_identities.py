"""What a reduction starts from, and what the unused lanes of its last vector hold."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array

# less than a vector, a few with a rest, several copies of vectors
LENGTHS = (1, 3, 18, 67, 130)


def extremes(dtype: DType) -> list[Any]:
    if dtype.is_bool:
        return [False, True]
    if dtype.is_int:
        return [int(dtype.min), int(dtype.max), 1, int(dtype.max) // 2]
    big = float(lw.finfo(dtype).max)
    return [-big, big, 1.0, -1.0, *([] if dtype is dt.float8_e4m3fn else [math.inf, -math.inf])]


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_constant_rows(dtype: DType) -> None:
    """A row of one value over and over has that maximum and minimum, at place 0."""
    values = np.array(extremes(dtype)).astype(dtype.numpy)
    for n in LENGTHS:
        host = np.repeat(values[:, None], n, axis=1)
        items: list[tuple[str, lw.Array, Any]] = []
        for axis, x in ((1, array(host)), (0, array(np.ascontiguousarray(host.T)))):
            zeros = np.zeros(len(values), np.int64)
            items += [(f"max {n} {axis}", lw.max(x, axis=axis), values)]
            items += [(f"min {n} {axis}", lw.min(x, axis=axis), values)]
            items += [(f"argmax {n} {axis}", lw.argmax(x, axis=axis), zeros)]
            items += [(f"argmin {n} {axis}", lw.argmin(x, axis=axis), zeros)]
            items += [(f"any {n} {axis}", lw.any(x, axis=axis), values != 0)]
            items += [(f"all {n} {axis}", lw.all(x, axis=axis), values != 0)]
        all_exact(items)


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_one_extreme_anywhere(dtype: DType) -> None:
    """Wherever in a partial vector the extreme stands, it and its place are found."""
    if dtype.is_bool:
        low, middle, high = False, False, True
    else:
        low, middle, high = (
            (int(dtype.min), 5, int(dtype.max)) if dtype.is_int else (-4.0, 2.0, 16.0)
        )
    for n in (18, 67):
        up = np.full((n, n), middle, dtype.numpy)
        np.fill_diagonal(up, high)
        down = np.full((n, n), high, dtype.numpy)
        np.fill_diagonal(down, low)
        place = np.arange(n)
        all_exact(
            [
                (f"max {n}", lw.max(array(up), axis=1), np.diag(up)),
                (f"argmax {n}", lw.argmax(array(up), axis=1), place),
                (f"argmax columns {n}", lw.argmax(array(up), axis=0), place),
                (f"min {n}", lw.min(array(down), axis=1), np.diag(down)),
                (f"argmin {n}", lw.argmin(array(down), axis=1), place),
                (f"min columns {n}", lw.min(array(down), axis=0), np.diag(down)),
            ]
        )


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_first_of_ties(dtype: DType) -> None:
    """Among equal extremes the first wins, over lanes, partial results and rows."""
    a = (np.arange(20 * 67) * 7919 % 5).reshape(20, 67) > 2 if dtype.is_bool else None
    host = (
        a if a is not None else (np.arange(20 * 67) * 7919 % 23).reshape(20, 67).astype(dtype.numpy)
    )
    plain = host.astype(np.float64)
    x = array(host)
    all_exact(
        [(f"{name} {axis}", getattr(lw, name)(x, axis=axis), getattr(plain, name)(axis=axis))
         for name in ("argmax", "argmin") for axis in (0, 1)]
    )  # fmt: skip
    for n in (1000, 4099):
        same = array(np.ones(n).astype(dtype.numpy))
        zero = np.asarray(0)
        all_exact([("all equal", lw.argmax(same), zero), ("least", lw.argmin(same), zero)])


@pytest.mark.parametrize(
    "dtype", [d for d in dt.ARRAY_DTYPES if d.is_float and d.bits < 32], ids=str
)
def test_small_floats_are_summed_wide(dtype: DType) -> None:
    """Thousands of ones, values whose partial sums overflow, and means are right once rounded."""
    # bfloat16 reaches as far as float32, where its sums are made
    big = 1e37 if dtype is dt.bfloat16 else float(lw.finfo(dtype).max) / 2
    with np.errstate(all="ignore"):
        ones = np.ones((2, 4096), dtype.numpy)
        want = np.full(2, 4096.0).astype(np.float32).astype(dtype.numpy)
        half = np.array([big] * 4 + [-big] * 4, dtype.numpy)
        six = np.full((3, 2000), 60, np.float32).astype(dtype.numpy)
    if dtype is dt.float8_e4m3fn:
        want = np.full(2, np.nan).astype(dtype.numpy)  # 4096 lies beyond its range
    all_exact(
        [
            ("sum", lw.sum(array(ones), axis=1), want),
            ("mean", lw.mean(array(ones), axis=1), np.ones(2, dtype.numpy)),
            ("cancel", lw.sum(array(half)), np.zeros((), dtype.numpy)),
            ("mean of 60", lw.mean(array(six), axis=1), six[:, 0]),
            (
                "dot",
                lw.matmul(array(ones[:1]), array(np.ascontiguousarray(ones[:1].T))),
                want[:1, None],
            ),
        ]
    )
