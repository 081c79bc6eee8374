"""Split reduces: parts in scratch buffers, joined by a second launch, on processors and grids."""

from __future__ import annotations

from dataclasses import replace

import asts
import grids
import numpy as np
import pytest
from schedules import TARGET, agree, cut

from loopwright_core.errors import VerifyError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import phases
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.oracle.program import run_program
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index

LOOP, THREAD, GLOBAL = AxisKind.LOOP, AxisKind.THREAD, AxisKind.GLOBAL


def centred_by_max(m: int, n: int) -> UOp:
    """x - max(x) along rows: the epilogue reads x and the joined value."""
    x = asts.buffer(0, m, n)
    return asts.sink((asts.buffer(1, m, n), asts.op(Op.SUB, x, asts.keep(x, "max", 1))))


def sum_and_max(m: int, n: int) -> UOp:
    """Two reduces of one array, each an output."""
    x = asts.buffer(0, m, n)
    total = (asts.buffer(1, m), asts.reduce(x, "add", 1))
    return asts.sink(total, (asts.buffer(2, m), asts.reduce(x, "max", 1)))


ASTS = {
    "matmul": asts.matmul(5, 7, 19),
    "argmax": asts.argmax(4, 29),
    "sum of all": asts.sink((asts.buffer(1), asts.reduce(asts.buffer(0, 1050), "add", 0))),
    "epilogue": centred_by_max(5, 23),
    "two reduces": sum_and_max(5, 23),
    "convolution": asts.conv(5, 7, 9, 2, 3, 2),
}


def split(kernel: Kernel, piece: int, kind: AxisKind) -> Schedule:
    """The first reduce dim of at least two pieces, its pieces apart, outermost in the nest."""
    dim = next(d for d in kernel.dims if d.is_reduce and d.max_size > piece)
    made = cut(kernel.schedule, (f"{dim.name}/1", piece, None))
    outer = next(a for a in made.axes if a.dim == dim.name and a.stride == piece)
    rest = [a for a in made.axes if a is not outer]
    return made.with_axes((replace(outer, kind=kind), *rest))


@pytest.mark.parametrize("name", ASTS)
@pytest.mark.parametrize("kind", [LOOP, THREAD])
@pytest.mark.parametrize("inner", [None, AxisKind.UNROLL, AxisKind.UPCAST, AxisKind.VECTOR])
def test_processors(name: str, kind: AxisKind, inner: AxisKind | None) -> None:
    """Parts of any length, ragged ones too, add up to the whole, bit for bit."""
    kernel = index(ASTS[name])
    dim = next(d for d in kernel.dims if d.is_reduce)
    is_long = dim.max_size > 8
    piece = -(-dim.max_size // 16) * 8 if is_long else -(-dim.max_size // 2)
    schedule = split(kernel, piece, kind)
    if inner is not None and is_long:
        schedule = cut(schedule, (f"{dim.name}/1", 4, inner))
    program = agree(ASTS[name], schedule)
    verify_program(program, TARGET)
    assert [p.threads for p in program.phases] == [2 if kind is THREAD else 1, 1]


@pytest.mark.parametrize("name", ASTS)
@pytest.mark.parametrize("piece", [2, 3])
def test_grids(name: str, piece: int) -> None:
    """Workgroups that share nothing leave their parts in memory for the second launch."""
    kernel = grids.scheduled(ASTS[name])
    program = grids.agree(ASTS[name], split(kernel, piece, GLOBAL))
    assert len(program.phases) == 2 and program.scratch


@pytest.mark.parametrize(("m", "n"), [(12, 9), (9, 12), (6, 11)])
def test_unequal_numbers_of_parts(m: int, n: int) -> None:
    """Where two reduces have parts of their own, the one with fewer leaves the other's ids out."""
    x = asts.buffer(0, m, n)
    rows = (asts.buffer(1, m), asts.reduce(x, "add", 1))
    ast = asts.sink(rows, (asts.buffer(2, n), asts.reduce(x, "add", 0)))
    schedule = grids.scheduled(ast).schedule
    for dim in [d.name for d in index(ast).dims if d.is_reduce]:
        schedule = cut(schedule, (f"{dim}/1", 2, None))
    split_, rest = [], []
    for a in schedule.axes:
        is_split = a.stride == 2
        (split_ if is_split else rest).append(replace(a, kind=GLOBAL) if is_split else a)
    grids.agree(ast, schedule.with_axes((*split_, *rest)))


def test_parts_inside_other_loops() -> None:
    """Each part has values of its own, also where a whole part and a shorter one are two bodies."""
    ast = asts.argmax(5, 3)
    (dim,) = [d.name for d in index(ast).dims if d.is_reduce]
    schedule = cut(index(ast).schedule, (f"{dim}/1", 2, AxisKind.VECTOR))
    axes = [replace(a, kind=LOOP) if a.name == f"{dim}/2" else a for a in schedule.axes]
    agree(ast, schedule.with_axes(tuple(axes)))


def test_parts_lie_on_lines_of_their_own() -> None:
    """Threads write no line together, and nobody reads what none wrote."""
    program = agree(ASTS["sum of all"], split(index(ASTS["sum of all"]), 525, THREAD))
    (scratch,) = program.scratch
    assert scratch.shape == (2, 64 // scratch.dtype.itemsize)
    swapped = replace(program, phases=program.phases[::-1])
    with pytest.raises(VerifyError, match="before anything wrote it"):
        run_program(swapped, {0: np.ones(1050, np.float32), 1: np.zeros(1, np.float32)})


def test_several_values() -> None:
    """An argmax leaves its values and their places, each in an array of its dtype."""
    program = agree(ASTS["argmax"], split(index(ASTS["argmax"]), 8, LOOP))
    assert [p.dtype.name for p in program.scratch] == ["float32", "int64"]
    assert [p.slot for p in program.arrays] == [0, 1, 2, 3]


def test_symbolic_outputs() -> None:
    """Parts of a symbolic output lie where they would at its largest."""
    rows = Variable("n", 1, 9)
    ast = asts.sink((asts.buffer(1, rows), asts.reduce(asts.buffer(0, rows, 20), "add", 1)))
    agree(ast, split(index(ast), 6, LOOP), n=5)


def test_a_split_of_one_part_is_none() -> None:
    """An axis of one step splits nothing: one launch, no scratch."""
    kernel = index(ASTS["argmax"])
    (outer, inner) = kernel.schedule.axes
    whole = replace(inner, stride=29, size=1, kind=LOOP)
    schedule = kernel.schedule.with_axes((outer, whole, inner))
    program: Program = agree(ASTS["argmax"], schedule)
    assert len(program.phases) == 1 and not program.scratch


def test_estimates_count_parts() -> None:
    """Parts are stored, loaded and joined: that is traffic and work on top."""
    kernel = index(ASTS["matmul"])
    made = kernel.with_schedule(split(kernel, 10, LOOP))
    (scratch,) = phases(made).scratch
    n = scratch.arg.shape[0] * scratch.arg.shape[1]
    assert estimate(made).flops - estimate(kernel).flops == n
    assert estimate(made).bytes - estimate(kernel).bytes == 2 * 4 * n
