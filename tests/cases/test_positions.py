"""Positions of extremes under every order of the loops: the first one wins, NaN before numbers."""

from __future__ import annotations

import asts
import numpy as np
import pytest
from schedules import TARGET

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.grid import with_grid
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse

N = 23


def rows(dtype: DType) -> np.ndarray:
    """Every row a case: nothing but the worst value, ties, NaNs first and late, random values."""
    rng = np.random.default_rng(5)
    worst = dtype.min
    x = np.full((8, N), worst, dtype.numpy)
    x[1, 7:] = 3
    x[2] = rng.integers(0, 3, N)
    x[3, [5, 6, 20]] = 9, 9, 9
    x[4:] = rng.integers(-4, 4, (4, N))
    if dtype.is_float:
        x[4, 17] = x[4, 19] = np.nan
        x[5, 0] = np.nan
        x[6, :22] = worst
        x[6, 22] = np.nan
    return x


def positions(dtype: DType, size: int = N) -> UOp:
    pair = UOp(
        Op.REDUCE,
        dt.void,
        (asts.buffer(0, 8, size, dtype=dtype), asts.iota(1, 8, size, dtype=dt.int32)),
        ("argmax", (1,)),
    )
    out = asts.cast(asts.item(pair, 1, dt.int32), dt.int64)
    return asts.sink((asts.buffer(1, 8, dtype=dt.int64), out))


ON_CPU = (
    "",
    "UNROLL k 4",
    "VECTOR k 8",
    "VECTOR k 4 · UPCAST k/4 2 · UPCAST i 4",
    "TILE k 4 · UNROLL k/4 3",  # an accumulator meets 0, 4, 8, 1, ...
    "TILE k 4 · SWAP k/4 k/1",
    "TILE k 8 · UPCAST k/8 3",
    "TILE k 4 · ORDER k/4 i k/1",  # rows inside a loop over the reduce: values wait in memory
    "ORDER k i",
)
ON_GPU = ("", "GROUP k 8", "GROUPTOP k 4 · UNROLL k/1 2", "LOCAL i 4 · GROUP k 4 · UPCAST i/4 2")


@pytest.mark.parametrize("dtype", [dt.float32, dt.int16], ids=repr)
@pytest.mark.parametrize(
    ("target", "text"),
    [(TARGET, text) for text in ON_CPU] + [(cuda(), text) for text in ON_GPU],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_first_extremes(target: Target, text: str, dtype: DType) -> None:
    """Every schedule finds the position that the plain kernel and NumPy find."""
    plain = index(positions(dtype))
    kernel = apply_all(with_grid(plain, target), parse(text), target)
    expected = {0: rows(dtype), 1: np.zeros(8, np.int64)}
    actual = {0: rows(dtype), 1: np.full(8, 77, np.int64)}
    run_kernel(plain, expected)
    np.testing.assert_array_equal(expected[1], np.argmax(rows(dtype), axis=1))
    run_program(lower(kernel, target), actual)
    np.testing.assert_array_equal(actual[1], expected[1])
