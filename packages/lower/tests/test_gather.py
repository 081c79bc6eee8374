"""Gathers by indices that the same kernel computes."""

from __future__ import annotations

import asts
import numpy as np
import pytest
from schedules import TARGET, agree, cut

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.gathered import index_limits
from loopwright_core.oracle.program import run_program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower


def cast(x: UOp, dtype: DType) -> UOp:
    return UOp(Op.CAST, dtype, (x,))


def gathered(at: UOp, *shape: int) -> UOp:
    return asts.sink((asts.buffer(1, *shape), asts.gather(asts.buffer(0, 5, 3), at)))


def test_how_many_positions_there_are() -> None:
    """A buffer of positions is known by its slot, with the length of what it points into."""
    assert index_limits(index(asts.take(6, 4, 5))) == {1: 6}
    assert index_limits(index(asts.matmul(3, 4, 5))) == {}


@pytest.mark.parametrize("vector", [False, True])
def test_indices_that_are_bool_values(vector: bool) -> None:
    """A bool that is loaded and cast is a value that the index reads, no condition on loops."""
    at = cast(asts.buffer(2, 8, dtype=dt.bool_), dt.int64)
    ast = gathered(at, 8, 3)
    agree(ast, cut(index(ast).schedule, ("i/1", 4, AxisKind.VECTOR)) if vector else None)


@pytest.mark.parametrize("combine", ["add", "max"])
def test_indices_that_are_reduced_in_the_same_kernel(combine: str) -> None:
    """The index is the value of a reduce, in lanes or not; negative ones count from the end."""
    at = asts.reduce(asts.buffer(2, 8, 2, dtype=dt.int32), combine, 1)
    ast = gathered(at, 8, 3)
    agree(ast)
    agree(ast, cut(index(ast).schedule, ("i/1", 4, AxisKind.VECTOR)))


def test_unsigned_indices_that_no_int64_holds() -> None:
    """They are out of range, and read 0: they never come out negative."""
    numbers = np.array([2**64 - 1, 2**63, 2**32 + 1, 2], np.uint64)
    ast = gathered(asts.buffer(2, 4, dtype=dt.uint64), 4, 3)
    memory = {0: np.arange(15, dtype=np.float32), 1: np.full(12, 7, np.float32), 2: numbers}
    run_program(lower(index(ast), TARGET), memory, {})
    np.testing.assert_array_equal(memory[1], [0] * 9 + [6, 7, 8])
