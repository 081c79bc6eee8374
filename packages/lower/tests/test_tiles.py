"""STAGE of a store: results wait in a tile, then whole rows are written."""

from __future__ import annotations

from dataclasses import replace

import asts
import grids
import pytest
from schedules import TARGET, agree, cut, order

from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.schedule import Schedule, Stage
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index

LOCAL, UPCAST, VECTOR = AxisKind.LOCAL, AxisKind.UPCAST, AxisKind.VECTOR


def transpose(m: int, n: int) -> UOp:
    return asts.sink((asts.buffer(1, n, m), asts.permute(asts.buffer(0, m, n), 1, 0)))


def stores_to_memory(program: Program) -> list[UOp]:
    uops = program.phases[0].uops
    return [n for n in uops if n.op is Op.STORE and _base(n).op is Op.BUFFER]


def _base(store: UOp) -> UOp:
    node = store.src[0].src[0]
    while node.op is Op.AFTER:
        node = node.src[0]
    return node


def rows_apart(m: int, n: int) -> tuple[UOp, Schedule]:
    """Tiles of 4 x 8 of a transpose, computed down columns."""
    ast = transpose(m, n)
    schedule = cut(index(ast).schedule, ("i/1", 4, None), ("j/1", 8, None))
    return ast, order(schedule, "i/4", "j/8", "j/1", "i/1")


@pytest.mark.parametrize(("m", "n"), [(16, 8), (13, 9), (5, 3)])
@pytest.mark.parametrize("rows", [("i/1", "j/1"), ("j/1", "i/1"), ()])
def test_processors(m: int, n: int, rows: tuple[str, ...]) -> None:
    """The tile is written once, in the order asked for, and nothing behind the end of a row."""
    ast, schedule = rows_apart(m, n)
    stage = Stage("B", "j/8", "panel", ("i/1", "j/1"), rows)
    program = agree(ast, replace(schedule, stages=(stage,)))
    verify_program(program, TARGET)
    assert len(stores_to_memory(program)) == 1


def test_whole_lines() -> None:
    """Results computed element by element leave as vectors where the row has a VECTOR axis."""
    ast = transpose(32, 16)
    schedule = cut(index(ast).schedule, ("i/1", 4, None), ("j/1", 8, VECTOR))
    program = agree(ast, replace(schedule, stages=(Stage("B", "i/4"),)))
    assert {n.src[1].dtype.lanes for n in stores_to_memory(program)} == {8}


def test_sums_are_not_kept_in_the_output() -> None:
    """Partial sums that would live in the output live in an array: the output is written once."""
    ast = asts.matmul(8, 8, 12)
    schedule = cut(index(ast).schedule, ("k/1", 4, None))
    schedule = order(schedule, "k/4", "i/1", "j/1", "k/1")
    plain = agree(ast, schedule)
    assert len(stores_to_memory(plain)) > 1
    staged = agree(ast, replace(schedule, stages=(Stage("C", "i/1"),)))
    assert len(stores_to_memory(staged)) == 1


@pytest.mark.parametrize(("m", "n"), [(16, 8), (13, 9), (5, 3)])
def test_workgroups(m: int, n: int) -> None:
    """Threads fill a tile in shared memory and write it together, neighbours by neighbours."""
    ast = transpose(m, n)
    schedule = cut(grids.scheduled(ast).schedule, ("i/1", 4, LOCAL), ("j/1", 8, LOCAL))
    schedule = order(schedule, "i/4", "j/8", "i/1", "j/1")
    program = grids.agree(ast, replace(schedule, stages=(Stage("B", "j/8"),)))
    assert grids.count(program, Op.BARRIER) == 1
    assert len(stores_to_memory(program)) == 1


def test_one_workgroup_writes() -> None:
    """Workgroups that repeat another's work, where a wider store needs more, write no tile."""
    x, y = asts.buffer(0, 6, 4), asts.buffer(2, 6, 9)
    narrow = (asts.buffer(1, 6, 4), asts.op(Op.NEG, x))
    ast = asts.sink(narrow, (asts.buffer(3, 6, 9), asts.op(Op.NEG, y)))
    schedule = cut(grids.scheduled(ast).schedule, ("m/1", 2, LOCAL), ("m/2", 0, AxisKind.LOOP))
    schedule = order(schedule, "i/1", "j/1", "m/1", "m/2")
    program = grids.agree(ast, replace(schedule, stages=(Stage("B", "i/1"),)))
    (writes,) = [n for n in stores_to_memory(program) if _base(n).arg.slot == 1]
    assert writes.src[1].dtype is asts.F
