"""VECTOR on a target that computes in scalars: wide loads and stores where neighbours are sure."""

from __future__ import annotations

import asts
import pytest
from grids import GPU, agree, scheduled
from schedules import TARGET, cut

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower

VECTOR, UPCAST = AxisKind.VECTOR, AxisKind.UPCAST


def doubled(m: int, n: int, dtype: dt.DType = asts.F) -> UOp:
    x = asts.buffer(0, m, n, dtype=dtype)
    return asts.sink((asts.buffer(1, m, n, dtype=dtype), asts.op(Op.ADD, x, x)))


def lanes(program: Program) -> tuple[list[int], list[int]]:
    """The lanes of every load, and of every store."""
    uops = program.phases[0].uops
    loads = [n.dtype.lanes for n in uops if n.op is Op.LOAD]
    return loads, [n.src[1].dtype.lanes for n in uops if n.op is Op.STORE]


def test_neighbours_move_at_once() -> None:
    """Four elements of an aligned row are one load and one store, the sums are scalar."""
    ast = doubled(6, 40)
    program = agree(ast, cut(scheduled(ast).schedule, ("i/1", 4, VECTOR)))
    assert lanes(program) == ([4], [4])
    sums = [n for n in program.phases[0].uops if n.op is Op.ADD and n.dtype.is_float]
    assert [n.dtype.lanes for n in sums] == [1] * 4


def test_at_most_sixteen_bytes() -> None:
    """Longer vectors are several accesses."""
    ast = doubled(6, 40, dt.float64)
    program = agree(ast, cut(scheduled(ast).schedule, ("i/1", 4, VECTOR)))
    assert lanes(program) == ([2, 2], [2, 2])


@pytest.mark.parametrize("width", [39, 38])
def test_rows_that_are_not_aligned(width: int) -> None:
    """Where a row does not start at a multiple of the vector, elements move one by one."""
    x = asts.buffer(0, 6, width)
    wide = asts.expand(asts.reshape(asts.buffer(1, 6), 6, 1), 6, width)
    ast = asts.sink((asts.buffer(2, 6, width), asts.op(Op.MUL, x, wide)))
    schedule = cut(scheduled(ast).schedule, ("j/1", 4, VECTOR))
    loads, stores = lanes(agree(ast, schedule))
    assert set(loads) | set(stores) == {1}


def test_a_tail_of_whole_vectors() -> None:
    """A vector that lies wholly behind the end is left out by one condition."""
    ast = doubled(1, 12)
    schedule = cut(scheduled(ast).schedule, ("i/1", 4, VECTOR), ("i/4", 2, UPCAST))
    assert lanes(agree(ast, schedule)) == ([4, 4], [4, 4])


def test_sums_along_a_row() -> None:
    """Lanes of a reduce are accumulators of their own, joined at the end."""
    ast = asts.sink((asts.buffer(1, 5), asts.reduce(asts.buffer(0, 5, 32), "add", 1)))
    program = agree(ast, cut(scheduled(ast).schedule, ("k/1", 4, VECTOR)))
    assert lanes(program)[0] == [4]
    assert sum(n.op is Op.DEFINE_REG for n in program.phases[0].uops) == 4


def test_transposes_load_one_by_one() -> None:
    """Neighbours of the result that are none of the source are gathered by scalar loads."""
    ast = asts.sink((asts.buffer(1, 8, 12), asts.permute(asts.buffer(0, 12, 8), 1, 0)))
    program = agree(ast, cut(scheduled(ast).schedule, ("j/1", 4, VECTOR)))
    assert lanes(program) == ([1] * 4, [4])


def test_vector_arithmetic_is_refused() -> None:
    """A program that computes in vectors is none for such a target."""
    ast = doubled(6, 40)
    kernel = index(ast)
    kernel = kernel.with_schedule(cut(kernel.schedule, ("i/1", 4, VECTOR)))
    with pytest.raises(VerifyError, match="does not compute in vectors"):
        verify_program(lower(kernel, TARGET), GPU)
