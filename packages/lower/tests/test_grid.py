"""Kernels on a grid of workgroups: launches, guards, groups, barriers, shared tiles."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import asts
import pytest
from grids import GPU, agree, as_kind, count, draw, scheduled
from schedules import cut, order

from loopwright_core.errors import LoweringError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, const
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.schedule import Schedule, Stage
from loopwright_lower.indexing import index

GLOBAL, LOCAL, GROUP = AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP
UPCAST, UNROLL = AxisKind.UPCAST, AxisKind.UNROLL


def square_minus_sum(m: int, n: int) -> UOp:
    """e - sum(e) with e = (x - max(x))**2 along rows: softmax's loops, exact in whole numbers."""
    x = asts.buffer(0, m, n)
    centred = asts.op(Op.SUB, x, asts.keep(x, "max", 1))
    e = asts.op(Op.MUL, centred, centred)
    return asts.sink((asts.buffer(1, m, n), asts.op(Op.SUB, e, asts.keep(e, "add", 1))))


def minus_column_sum(m: int, n: int) -> UOp:
    x = asts.buffer(0, m, n)
    return asts.sink((asts.buffer(1, m, n), asts.op(Op.SUB, x, asts.keep(x, "add", 0))))


def sum_of_maxima(m: int, n: int, k: int) -> UOp:
    inner = asts.reduce(asts.buffer(0, m, n, k), "max", 2)
    return asts.sink((asts.buffer(1, m), asts.reduce(asts.op(Op.MUL, inner, inner), "add", 1)))


def row_sum_shifted(m: int, n: int) -> UOp:
    """The sum of x + 100: a masked position must not count as 100."""
    x = asts.op(Op.ADD, asts.buffer(0, m, n), const(100.0, asts.F))
    return asts.sink((asts.buffer(1, m), asts.reduce(x, "add", 1)))


def doubled(*shape: int) -> UOp:
    x = asts.buffer(0, *shape)
    return asts.sink((asts.buffer(1, *shape), asts.op(Op.ADD, x, x)))


def two_widths(m: int, a: int, b: int) -> UOp:
    """Two stores of one kernel over rows of different length."""
    x, y = asts.buffer(0, m, a), asts.buffer(1, m, b)
    first = (asts.buffer(2, m, a), asts.op(Op.NEG, x))
    return asts.sink(first, (asts.buffer(3, m, b), asts.op(Op.NEG, y)))


KERNELS = {
    "matmul": asts.matmul(5, 7, 9),
    "softmax's loops": square_minus_sum(5, 11),
    "column sum used inside": minus_column_sum(5, 11),
    "reduce of reduce": sum_of_maxima(3, 7, 5),
    "conv": asts.conv(),
    "argmax": asts.argmax(4, 13),
    "scan": asts.cumsum(3, 7),
    "reverse scan": asts.cumsum(3, 7, reverse=True),
    "gather": asts.take(6, 11, 5),
    "row sum of x + 100": row_sum_shifted(5, 13),
    "elementwise": doubled(37),
    "two widths": two_widths(4, 3, 9),
    "transpose": asts.sink((asts.buffer(1, 7, 5), asts.permute(asts.buffer(0, 5, 7), 1, 0))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_unscheduled(name: str) -> None:
    """A kernel never scheduled runs on the grid and computes what its body says."""
    program = agree(KERNELS[name])
    assert program.phases[0].global_size is not None


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(24))
def test_random_schedules(name: str, seed: int) -> None:
    """Workgroups, groups, tiles and copies never change a result (exact data, bit for bit)."""
    kernel = scheduled(KERNELS[name])
    rnd = random.Random(f"{name} {seed}")
    agree(KERNELS[name], draw(kernel, rnd, rnd.randint(1, 7)))


def test_every_thread_keeps_what_one_stores() -> None:
    """A kept value whose writer is a store that one workgroup does alone is there in all others."""
    x, y = asts.buffer(0, 9), asts.buffer(2, 6)
    doubled = asts.op(Op.ADD, x, x)
    ast = asts.sink(
        (asts.buffer(1, 9), doubled),
        (asts.buffer(3, 6), asts.op(Op.ADD, y, y)),
        (asts.buffer(4), asts.reduce(doubled, "add", 0)),
    )
    kernel = index(ast)
    (wide,) = [d.name for d in kernel.dims if d.size == 6]
    schedule = as_kind(kernel.schedule, f"{wide}/1", GLOBAL)
    agree(ast, replace(schedule, stages=(Stage("v0", "", "keep"),)))


def tiled(m: int, n: int, k: int, tile: int = 4, depth: int = 8) -> tuple[UOp, Schedule]:
    """A product whose workgroups copy tiles of both operands into shared memory."""
    ast = asts.matmul(m, n, k)
    schedule = cut(
        scheduled(ast).schedule,
        ("i/1", tile, LOCAL),
        ("j/1", tile, LOCAL),
        ("k/1", depth, None),
    )
    schedule = order(schedule, f"i/{tile}", f"j/{tile}", "i/1", "j/1")
    stages = Stage("A", f"k/{depth}"), Stage("B", f"k/{depth}")
    return ast, replace(schedule, stages=stages)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 12, 16), (9, 7, 19), (20, 17, 25)])
def test_shared_tiles(m: int, n: int, k: int) -> None:
    """A tile is copied by all threads, between one barrier before and one after it in its loop,
    however many tiles there are; ragged edges are zero."""
    program = agree(*tiled(m, n, k))
    (phase,) = program.phases
    ops = [n.op for n in phase.uops if n.op in (Op.RANGE, Op.BARRIER, Op.END)]
    outer = ops.index(Op.RANGE)
    assert count(program, Op.BARRIER) == 2
    assert ops[outer + 1] is Op.BARRIER
    assert sum(n.op is Op.DEFINE_LOCAL and n.arg.shared for n in phase.uops) == 2
    assert phase.local_size == (4, 4)


def test_tile_in_no_loop() -> None:
    """A tile that is copied once needs no barrier before it."""
    ast, schedule = tiled(8, 12, 8)
    assert count(agree(ast, schedule), Op.BARRIER) == 1
    once = replace(schedule, stages=(Stage("A", "j/4"), Stage("B", "j/4")))
    assert count(agree(ast, once), Op.BARRIER) == 1


def test_tile_layout_and_order() -> None:
    """The local array's layout and the order threads copy in are free."""
    ast, schedule = tiled(9, 7, 19)
    panel = Stage("B", "k/8", "panel", ("j/1", "k/1"), ("j/1", "k/1"))
    agree(ast, replace(schedule, stages=(panel,)))


def grouped(m: int, n: int, threads: int = 8, local: int = 0) -> tuple[UOp, Schedule]:
    """Both reduces of a softmax over a workgroup, its row too."""
    schedule = scheduled(square_minus_sum(m, n)).schedule
    for dim in ("j.0", "j.1"):
        schedule = cut(schedule, (f"{dim}/1", threads, GROUP))
        schedule = order(schedule, f"{dim}/1", f"{dim}/{threads}")
    if local:
        schedule = cut(schedule, ("j/1", local, LOCAL))
        schedule = order(schedule, "j/1", f"j/{local}")
    return square_minus_sum(m, n), schedule


@pytest.mark.parametrize("n", [40, 37, 5])
@pytest.mark.parametrize("local", [0, 8, 4, 16])
def test_softmax_under_group(n: int, local: int) -> None:
    """Each grouped reduce is joined behind one barrier and read back by every thread, whether the
    row's own threads are as many, fewer or more."""
    program = agree(*grouped(4, n, local=local))
    assert count(program, Op.BARRIER) == 2
    assert program.phases[0].local_size == (max(8, local),)


def test_group_in_a_loop() -> None:
    """Rows in a loop of one workgroup: the barriers of two arrays protect each other, one array
    alone needs another before it is rewritten."""
    ast, schedule = grouped(6, 20, local=8)
    schedule = cut(schedule, ("i/1", 3, AxisKind.LOOP))
    assert count(agree(ast, schedule), Op.BARRIER) == 2
    rows = row_sum_shifted(6, 20)
    schedule = cut(scheduled(rows).schedule, ("i/1", 3, AxisKind.LOOP), ("k/1", 4, GROUP))
    schedule = order(schedule, "k/1", "k/4")
    assert count(agree(rows, schedule), Op.BARRIER) == 2


def test_only_the_first_thread_stores() -> None:
    """A grouped sum is stored once, under one IF."""
    ast = row_sum_shifted(4, 20)
    schedule = cut(scheduled(ast).schedule, ("k/1", 8, GROUP))
    program = agree(ast, order(schedule, "k/1", "k/8"))
    assert count(program, Op.IF) == 1 and count(program, Op.BARRIER) == 1


@pytest.mark.parametrize("n", [3, 5, 7, 13, 16])
def test_group_of_masked_positions(n: int) -> None:
    """A ragged grouped reduce counts no position that does not exist, as f(0) != 0 would show."""
    ast = row_sum_shifted(3, n)
    schedule = cut(scheduled(ast).schedule, ("k/1", 8, GROUP))
    agree(ast, order(schedule, "k/1", "k/8"))
    agree(ast, as_kind(cut(scheduled(ast).schedule, ("k/1", 2, None)), "k/2", GROUP))


@pytest.mark.parametrize("n", [40, 37, 5])
@pytest.mark.parametrize("local", [0, 8, 16])
def test_kept_for_other_threads(n: int, local: int) -> None:
    """What a grouped reduce keeps is read by the row's threads: written in shared memory, each
    element by one thread, and behind the barrier that joins the reduce. In a loop of rows another
    barrier stands before it."""
    ast, schedule = grouped(4, n, local=local)
    kept = replace(schedule, stages=(Stage("v0", "i/1", "keep"),))
    program = agree(ast, kept)
    assert count(program, Op.BARRIER) == 2
    (phase,) = program.phases
    shared = [u.arg.name for u in phase.uops if u.op is Op.DEFINE_LOCAL and u.arg.shared]
    assert sorted(shared) == ["group", "group", "v0"]
    rows = cut(schedule, ("i/1", 2, AxisKind.LOOP))
    agree(ast, replace(rows, stages=(Stage("v0", "i/1", "keep"),)))


def test_kept_without_a_group() -> None:
    """Threads that write together and read each other's values meet in between."""
    ast = asts.sink(
        (asts.buffer(1, 12, 5), square := asts.op(Op.MUL, x := asts.buffer(0, 12, 5), x)),
        (asts.buffer(2, 12, 5), asts.op(Op.SUB, square, asts.keep(square, "max", 1))),
    )
    schedule = cut(scheduled(ast).schedule, ("j/1", 4, LOCAL))
    kept = replace(schedule, stages=(Stage("v0", "i/1", "keep"),))
    program = agree(ast, order(kept, "j/1", "j/4"))
    assert count(program, Op.BARRIER) == 1


def test_kept_by_each_thread() -> None:
    """A row in one thread keeps its values for itself: no shared memory, no barrier."""
    ast = square_minus_sum(11, 13)
    schedule = cut(scheduled(ast).schedule, ("i/1", 4, LOCAL))
    program = agree(ast, replace(schedule, stages=(Stage("v0", "i/1", "keep"),)))
    assert count(program, Op.BARRIER) == 0
    assert not any(n.arg.shared for n in program.phases[0].uops if n.op is Op.DEFINE_LOCAL)


@pytest.mark.parametrize("size", [(5, 8, 9), (2, 11, 13)])
def test_shared_windows(size: tuple[int, int, int]) -> None:
    """All threads copy the window that their pixels reach, padding as its fill, and read it
    unmasked behind one barrier; in a loop over channels another stands before the copy."""
    channels, high, wide = size
    ast = asts.conv(channels, high, wide, 2, 3)
    kernel = scheduled(ast)
    rows, columns = [d.name for d in kernel.dims if not d.is_reduce and d.size in (high, wide)]
    (deep,) = [d.name for d in kernel.dims if d.is_reduce and d.size == channels]
    schedule = cut(kernel.schedule, (f"{rows}/1", 4, LOCAL), (f"{columns}/1", 4, LOCAL))
    once = replace(schedule, stages=(Stage("A", f"{columns}/4", "halo"),))
    assert count(agree(ast, once), Op.BARRIER) == 1
    looped = replace(schedule, stages=(Stage("A", f"{deep}/1", "halo"),))
    assert count(agree(ast, looped), Op.BARRIER) == 2


def test_group_unrolled_to_nothing() -> None:
    """A GROUP axis whose steps are all written out leaves one thread and no barrier."""
    ast = row_sum_shifted(3, 16)
    schedule = cut(scheduled(ast).schedule, ("k/1", 8, GROUP), ("k/1", 0, UNROLL))
    program = agree(ast, schedule)
    assert count(program, Op.BARRIER) == 0
    assert program.phases[0].local_size == (1,)


def test_group_with_upcast_and_local() -> None:
    """Rows per thread, rows per workgroup and threads per row at once, as a matvec has them."""
    x, v = asts.buffer(0, 22, 19), asts.buffer(1, 19)
    product = asts.op(Op.MUL, x, asts.expand(asts.reshape(v, 1, 19), 22, 19))
    ast = asts.sink((asts.buffer(2, 22), asts.reduce(product, "add", 1)))
    schedule = cut(
        scheduled(ast).schedule, ("k/1", 8, GROUP), ("i/1", 4, UPCAST), ("i/4", 2, LOCAL)
    )
    program = agree(ast, order(schedule, "k/1", "k/8"))
    assert program.phases[0].local_size == (8, 2)
    assert count(program, Op.BARRIER) == 1


def test_workgroup_is_the_largest_nest() -> None:
    """Two stores with 4 and 2 threads: the narrower one leaves threads out."""
    ast = two_widths(5, 12, 6)
    schedule = cut(scheduled(ast).schedule, ("j/1", 4, LOCAL), ("m/1", 2, LOCAL))
    assert agree(ast, schedule).phases[0].local_size == (4,)


@pytest.mark.parametrize("sizes", [(102400,), (65536, 2), (2, 65536), (65537,), (3, 65537)])
def test_grids_beyond_the_limit(sizes: tuple[int, ...]) -> None:
    """A grid larger than its first dimension runs every item once, primes included."""
    small = replace(GPU, global_max=(65535, 65535, 65535))
    program = agree(doubled(*sizes), target=small)
    assert program.phases[0].global_size is not None
    assert max(n.arg for n in program.phases[0].global_size) <= 65535


@pytest.mark.parametrize(
    ("grid", "group"), [((3, 3, 7), (2, 4, 8)), ((5, 2, 100), (3, 5, 7)), ((7, 11), (5, 3))]
)
@pytest.mark.parametrize("name", KERNELS)
def test_small_hardware(name: str, grid: tuple[int, ...], group: tuple[int, ...]) -> None:
    """Whatever the limits, ids are merged, split and padded so that every element is computed
    once; refused is only what exceeds the product of the maxima."""
    target = replace(GPU, global_max=grid, local_max=group, max_threads=200)
    for seed in range(4):
        rnd = random.Random(f"small {name} {seed}")
        schedule = draw(scheduled(KERNELS[name]), rnd, rnd.randint(1, 6))
        try:
            agree(KERNELS[name], schedule, target)
        except LoweringError as error:
            needed = int(str(error).split("needs ")[1].split()[0])
            assert needed > min(math.prod(grid), math.prod(group))


def test_symbolic_rows() -> None:
    """A symbolic axis is a dimension of the grid, sized at launch."""
    n = Variable("n", 1, 50)
    for rows in (1, 7, 50):
        program = agree(asts.row_sums(n, 12), n=rows)
    assert program.phases[0].global_size is not None
    assert program.phases[0].global_size[0].arg is n
    schedule = cut(scheduled(asts.row_sums(n, 12)).schedule, ("k/1", 4, GROUP))
    agree(asts.row_sums(n, 12), order(schedule, "k/1", "k/4"), n=9)


def test_symbolic_threads() -> None:
    """A workgroup's size is known before launch."""
    ast = asts.row_sums(Variable("n", 1, 50), 12)
    with pytest.raises(LoweringError, match="axis i/1 has no size before launch"):
        agree(ast, as_kind(scheduled(ast).schedule, "i/1", LOCAL), n=9)


def test_too_many_threads() -> None:
    """A workgroup beyond the target's is refused by axis and limit."""
    schedule = cut(scheduled(doubled(4096)).schedule, ("i/1", 0, LOCAL))
    with pytest.raises(LoweringError, match=r"4096 threads.*axis i/1.*1024"):
        agree(doubled(4096), schedule)


def test_values_across_workgroups() -> None:
    """What another workgroup reduces cannot be read in the same launch."""
    ast = minus_column_sum(5, 11)
    schedule = order(cut(scheduled(ast).schedule, ("i/1", 0, GLOBAL)), "i/1", "j/1")
    with pytest.raises(LoweringError, match=r"other ids, along j/1"):
        agree(ast, schedule)


def test_values_across_threads() -> None:
    """Column sums of one workgroup's threads are handed over in shared memory."""
    ast = minus_column_sum(6, 8)
    schedule = cut(scheduled(ast).schedule, ("j/1", 0, LOCAL), ("i/1", 0, LOCAL))
    program = agree(ast, order(schedule, "i/1", "j/1"))
    assert count(program, Op.BARRIER) == 1


def test_shared_values_of_a_narrower_nest() -> None:
    """A store with fewer workgroups than another: those that leave it out, too, write the shared
    values that their threads read."""
    x, y = asts.buffer(0, 6, 8, 3), asts.buffer(1, 40)
    centred = asts.op(Op.SUB, x, asts.keep(x, "add", 0))
    ast = asts.sink(
        (asts.buffer(2, 40), asts.op(Op.NEG, y)),
        (asts.buffer(3, 6, 8), asts.reduce(centred, "max", 2)),
    )
    schedule = cut(scheduled(ast).schedule, ("m/1", 0, LOCAL), ("i/1", 0, LOCAL))
    program = agree(ast, order(schedule, "i/1", "m/1"))
    assert program.phases[0].global_size[0].arg == 40
    assert count(program, Op.BARRIER) == 1


def test_group_apart_from_its_reduce() -> None:
    """A GROUP axis outside loops of other dims is refused."""
    ast = row_sum_shifted(6, 20)
    schedule = cut(scheduled(ast).schedule, ("i/1", 3, AxisKind.LOOP), ("k/1", 4, GROUP))
    with pytest.raises(LoweringError, match="other loops stand between"):
        agree(ast, order(schedule, "k/1", "i/1", "k/4"))
