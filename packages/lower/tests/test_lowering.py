"""What lowering does to loops: order, splits, tails, accumulators, staging."""

from __future__ import annotations

import random
from dataclasses import replace

import asts
import numpy as np
import pytest
from schedules import TARGET, agree, cut, draw, order

from loopwright_core.errors import LoweringError, OptError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import TRUE, Extent, UOp, Variable, const, extent_uop
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.schedule import Stage
from loopwright_core.oracle.program import run_program
from loopwright_lower.dims import DimState, Entered
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower

UPCAST, UNROLL, VECTOR, THREAD = (
    AxisKind.UPCAST,
    AxisKind.UNROLL,
    AxisKind.VECTOR,
    AxisKind.THREAD,
)


def square_minus_sum(m: int, n: int) -> UOp:
    """e - sum(e) with e = (x - max(x))**2 along rows: three loops over one axis."""
    x = asts.buffer(0, m, n)
    centred = asts.op(Op.SUB, x, asts.keep(x, "max", 1))
    e = asts.op(Op.MUL, centred, centred)
    return asts.sink((asts.buffer(1, m, n), asts.op(Op.SUB, e, asts.keep(e, "add", 1))))


def minus_column_sum(m: int, n: int) -> UOp:
    x = asts.buffer(0, m, n)
    return asts.sink((asts.buffer(1, m, n), asts.op(Op.SUB, x, asts.keep(x, "add", 0))))


def sum_of_maxima(m: int, n: int, k: int) -> UOp:
    """A reduce of a reduce."""
    inner = asts.reduce(asts.buffer(0, m, n, k), "max", 2)
    return asts.sink((asts.buffer(1, m), asts.reduce(asts.op(Op.MUL, inner, inner), "add", 1)))


def column_scan(m: int, n: int, exclusive: bool, reverse: bool) -> UOp:
    x = asts.buffer(0, m, n)
    return asts.sink((asts.buffer(1, m, n), asts.scan(x, "add", 0, exclusive, reverse)))


KERNELS = {
    "matmul": asts.matmul(5, 7, 9),
    "three loops": square_minus_sum(5, 11),
    "column sum used inside": minus_column_sum(5, 11),
    "reduce of reduce": sum_of_maxima(3, 7, 5),
    "conv": asts.conv(),
    "argmax": asts.argmax(4, 13),
    "scan": asts.cumsum(3, 7),
    "exclusive scan": asts.cumsum(3, 7, exclusive=True),
    "reverse scan": asts.cumsum(3, 7, reverse=True),
    "scan of columns": column_scan(5, 7, True, False),
    "reverse scan of columns": column_scan(5, 7, False, True),
    "gather": asts.take(6, 11, 5),
    "elementwise": asts.sink(
        (asts.buffer(2, 37), asts.op(Op.ADD, asts.buffer(0, 37), asts.buffer(1, 37)))
    ),
    "flip": asts.sink((asts.buffer(1, 5, 7), asts.flip(asts.buffer(0, 5, 7), 0, 1))),
    "transpose": asts.sink((asts.buffer(1, 7, 5), asts.permute(asts.buffer(0, 5, 7), 1, 0))),
}


@pytest.mark.parametrize("name", KERNELS)
def test_unscheduled(name: str) -> None:
    """A kernel never scheduled lowers to a program that computes what its body says."""
    program = agree(KERNELS[name])
    verify_program(program, TARGET)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("seed", range(20))
def test_random_schedules(name: str, seed: int) -> None:
    """Splits of every kind and loop orders never change a result (exact data, bit for bit)."""
    kernel = index(KERNELS[name])
    rnd = random.Random(f"{name} {seed}")
    schedule = draw(kernel, rnd, rnd.randint(1, 7))
    try:
        program = agree(KERNELS[name], schedule)
    except OptError as e:
        assert "wait for each other" in str(e)  # an order nothing can run in
        return
    verify_program(program, TARGET)


@pytest.mark.parametrize(("m", "n", "k"), [(12, 32, 16), (13, 29, 17), (7, 40, 9), (1, 1, 1)])
def test_staged_matmul(m: int, n: int, k: int) -> None:
    """Cache blocks, a packed panel and a register tile, at sizes that divide and that do not."""
    schedule = index(asts.matmul(m, n, k)).schedule
    if n > 1:
        schedule = cut(
            schedule,
            ("j/1", 16, None),
            ("k/1", 8, None),
            ("i/1", 3, UPCAST),
            ("j/1", 8, None),
            ("j/1", 4, VECTOR),
            ("j/4", 0, UPCAST),
        )
        schedule = order(schedule, "j/16", "k/8", "i/3", "j/8", "k/1")
        panel = Stage(
            "B", "k/8", "panel", ("j/8", "k/1", "j/4", "j/1"), ("k/1", "j/8", "j/4", "j/1")
        )
        schedule = replace(schedule, stages=(panel,))
    program = agree(asts.matmul(m, n, k), schedule)
    if n > 1:
        locals_ = [u for u in program.phases[0].uops if u.op is Op.DEFINE_LOCAL]
        assert [u.arg.size for u in locals_] == [8 * 16]


@pytest.mark.parametrize(("m", "n", "k"), [(4, 16, 8), (5, 11, 9)])
def test_copies_of_converted_elements(m: int, n: int, k: int) -> None:
    """A copy converts each element once; what reads it takes it as it is."""
    a, b = (
        asts.cast(asts.buffer(s, *shape, dtype=dt.int8), dt.int32)
        for s, shape in enumerate(((m, k), (k, n)))
    )
    ast = asts.sink((asts.buffer(2, m, n, dtype=dt.int32), asts.product(a, b)))
    schedule = cut(index(ast).schedule, ("j/1", 8, VECTOR), ("i/1", 2, UPCAST))
    schedule = order(schedule, "j/8", "i/2", "k/1")
    held = Stage("B", "j/8", dtype=dt.int32), Stage("A", "i/2", dtype=dt.int32)
    program = agree(ast, replace(schedule, stages=held))
    locals_ = [u for u in program.phases[0].uops if u.op is Op.DEFINE_LOCAL]
    assert sorted(u.arg.size for u in locals_) == [2 * k, 8 * k]
    assert {u.dtype for u in locals_} == {dt.int32}


def test_partial_sums_live_in_the_output() -> None:
    """A reduce cut outside a free loop keeps its partial results where they will end up."""
    schedule = cut(index(asts.matmul(4, 6, 9)).schedule, ("k/1", 4, None))
    program = agree(asts.matmul(4, 6, 9), order(schedule, "k/4", "i/1", "j/1", "k/1"))
    assert all(u.op is not Op.DEFINE_LOCAL for u in program.phases[0].uops)


@pytest.mark.parametrize("lanes", [0, 4])
def test_epilogue_of_partial_sums(lanes: int) -> None:
    """What follows a reduce is applied to the whole sum, once, on the last visit of its output."""
    x = asts.buffer(0, 9, 6)
    total = asts.op(Op.MUL, asts.reduce(x, "add", 0), const(0.5, dt.float32))
    squared = asts.op(Op.ADD, asts.op(Op.MUL, total, total), total)
    ast = asts.sink((asts.buffer(1, 6), squared))
    (reduced,) = [d.name for d in index(ast).dims if d.is_reduce]
    steps = [(f"{reduced}/1", 4, None)]
    if lanes:
        steps += [("i/1", lanes, VECTOR)]
    schedule = cut(index(ast).schedule, *steps)
    inner = f"i/{lanes}" if lanes else "i/1"
    program = agree(ast, order(schedule, f"{reduced}/4", inner, f"{reduced}/1"))
    assert all(u.op is not Op.DEFINE_LOCAL for u in program.phases[0].uops)


@pytest.mark.parametrize("at", ["", "i/1"])
@pytest.mark.parametrize("lanes", [0, 4])
def test_kept_value(at: str, lanes: int) -> None:
    """A value that two loops need is computed by the first and read by the second."""
    kernel = index(square_minus_sum(5, 11))
    assert len(kernel.shared) == 1
    schedule = kernel.schedule
    if lanes:
        schedule = cut(schedule, ("j/1", lanes, VECTOR), ("j.1/1", lanes, VECTOR))
    kept = agree(
        square_minus_sum(5, 11), replace(schedule, stages=(Stage("v0", at, "keep"),))
    ).phases[0]
    plain = agree(square_minus_sum(5, 11), schedule).phases[0]

    def differences(uops: tuple[UOp, ...]) -> int:
        return sum(u.op is Op.SUB and u.dtype.scalar is dt.float32 for u in uops)

    assert differences(kept.uops) < differences(plain.uops)


def test_a_kept_product_is_added_up() -> None:
    """A sum reads the product that was kept for it, where a multiply-add could have done both."""
    x = asts.buffer(0, 9)
    square = asts.op(Op.MUL, x, x)
    ast = asts.sink((asts.buffer(1, 9), square), (asts.buffer(2), asts.reduce(square, "add", 0)))
    schedule = replace(index(ast).schedule, stages=(Stage("v0", "", "keep"),))
    uops = agree(ast, schedule).phases[0].uops
    assert sum(u.op in (Op.MUL, Op.FMA) and u.dtype is dt.float32 for u in uops) == 1


@pytest.mark.parametrize(("rows", "columns"), [(2, 4), (3, 3), (2, 5)])
def test_halo(rows: int, columns: int) -> None:
    """A tile of a padded input is as large as the taps need, its border filled."""
    ast = asts.conv()
    schedule = cut(index(ast).schedule, ("m/1", columns, None), ("j/1", rows, None))
    outer = [f"j/{rows}", f"m/{columns}"]
    rest = [a.name for a in schedule.axes if a.name not in (*outer, "i/1")]
    schedule = order(schedule, "i/1", *outer, *rest)
    program = agree(ast, replace(schedule, stages=(Stage("A", outer[1], "halo"),)))
    (tile,) = [u for u in program.phases[0].uops if u.op is Op.DEFINE_LOCAL]
    assert tile.arg.size == 2 * (rows + 2) * (columns + 2)


def test_halo_of_a_part() -> None:
    """Where only part of a row is read, the tile holds the fill in the rest of it too."""
    part = asts.shrink(asts.buffer(0, 6, 9), (0, 6, 1), (0, 7, 1))
    x = asts.pad(part, (0, 0), (1, 1), fill=3)
    ast = asts.sink((asts.buffer(1, 6, 9), asts.op(Op.MUL, x, x)))
    schedule = cut(index(ast).schedule, ("j/1", 4, None))
    agree(ast, replace(schedule, stages=(Stage("A", "j/4", "halo"),)))


@pytest.mark.parametrize("n", [1, 7, 24])
def test_halo_of_symbolic_rows(n: int) -> None:
    """A tile within a row of an array whose number of rows is known at launch."""
    rows = Variable("n", 1, 24)
    x = asts.buffer(0, rows, 5)
    ast = asts.sink((asts.buffer(1, rows, 5), asts.op(Op.MUL, x, x)))
    agree(ast, replace(index(ast).schedule, stages=(Stage("A", "i/1", "halo"),)), n=n)


def test_prime_extent_is_two_bodies() -> None:
    """A vector axis over a prime extent gives one whole body and one masked tail, not a mask in
    every iteration."""
    ast = KERNELS["elementwise"]
    program = agree(ast, cut(index(ast).schedule, ("i/1", 8, VECTOR)))
    stores = [u for u in program.phases[0].uops if u.op is Op.STORE]
    assert [len(u.src[0].src) for u in stores] == [2, 3]


@pytest.mark.parametrize(
    ("policy", "stores", "masked", "loops"),
    [("", 5, 0, 3), ("peel", 5, 0, 3), ("guard", 4, 3, 2), ("pad", 4, 4, 0)],
)
def test_ragged_ends(policy: str, stores: int, masked: int, loops: int) -> None:
    """A tail is a body of its own, or a mask at each position; loops end early with either, but
    where the blocks are padded to whole ones all loops run as often as can be said beforehand."""
    rows, columns = 11, 37
    x = asts.buffer(0, rows, columns)
    square = asts.op(Op.MUL, x, x)
    columns_first = asts.permute(square, 1, 0)
    ast = asts.sink((asts.buffer(1, columns, rows), columns_first))
    name = next(d.name for d in index(ast).dims if d.size == columns)
    other = next(d.name for d in index(ast).dims if d.size == rows)
    cuts = ((f"{name}/1", 4, UPCAST), (f"{name}/4", 4, None), (f"{other}/1", 4, None))
    schedule = cut(index(ast).schedule, *cuts)
    for dim in (name, other) if policy else ():
        schedule = schedule.with_tail(dim, policy)
    program = agree(ast, schedule)
    (phase,) = program.phases
    indices = [u.src[0] for u in phase.uops if u.op is Op.STORE]
    assert (len(indices), sum(len(n.src) == 3 for n in indices)) == (stores, masked)
    opened = [u.src[0] for u in phase.uops if u.op is Op.RANGE]
    assert sum(n.op is not Op.CONST for n in opened) == loops


def test_threads() -> None:
    """A THREAD axis takes its value from the worker, also where the slices do not divide."""
    ast = asts.matmul(7, 5, 4)
    schedule = cut(index(ast).schedule, ("i/1", 2, UPCAST), ("i/2", 2, None))
    axes = [replace(a, kind=THREAD) if a.name == "i/4" else a for a in schedule.axes]
    program = agree(ast, schedule.with_axes(tuple(axes)))
    assert program.phases[0].threads == 2


def test_thread_around_part_of_the_kernel_is_refused() -> None:
    """Work outside the THREAD loop would run in every thread: it is an error, not a race."""
    ast = minus_column_sum(4, 6)
    kernel = index(ast)
    axes = [replace(a, kind=THREAD) if a.dim == "i" else a for a in kernel.schedule.axes]
    with pytest.raises(LoweringError, match="every thread"):
        lower(kernel.with_schedule(kernel.schedule.with_axes(tuple(axes))), TARGET)


@pytest.mark.parametrize("n", [1, 5, 64])
def test_symbolic_extent(n: int) -> None:
    """One program of a bounded extent serves every value in its range."""
    program = agree(asts.row_sums(Variable("n", 1, 64)), None, n=n)
    assert [v.name for v in program.variables] == ["n"]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 63, 64])
@pytest.mark.parametrize("along", ["i", "k"])
def test_threads_of_a_symbolic_extent(along: str, n: int) -> None:
    """Threads share what there is at launch: rows in equal slices, a sum in parts that lie where
    they lie for the largest extent."""
    size = Variable("n", 1, 64)
    ast = asts.row_sums(size)
    if along == "k":
        ast = asts.sink((asts.buffer(1), asts.reduce(asts.buffer(0, size), "add", 0)))
    kernel = index(ast)
    rest = [a for a in kernel.schedule.axes if a.dim != along]
    cut_axis = next(a for a in kernel.schedule.axes if a.dim == along)
    threads = (Axis(along, 16, 4, THREAD), replace(cut_axis, size=16))
    program = agree(ast, kernel.schedule.with_axes((*threads, *rest)), n=n)
    assert program.phases[0].threads == 4
    state = DimState(kernel.dim(along), threads)
    slices = []
    for thread in range(4):
        state.entered = [Entered(threads[0], extent_uop(thread), TRUE, TRUE)]
        total = integer.substitute(state.trips(threads[1], True).total, {state.size: extent_uop(n)})
        slices.append(total.arg)
    assert sum(slices) == n
    assert max(slices) == (-(-n // 4) if along == "i" else min(n, 16))


def test_two_vector_axes_in_one_statement_are_refused() -> None:
    """A value has the lanes of one axis."""
    ast = asts.matmul(8, 8, 8)
    schedule = cut(index(ast).schedule, ("j/1", 4, VECTOR), ("k/1", 4, VECTOR))
    with pytest.raises(LoweringError, match="VECTOR"):
        lower(index(ast).with_schedule(schedule), TARGET)


@pytest.mark.parametrize("n", [513, 1000, 4097, 70001])
def test_long_float_sums_run_in_blocks(n: int) -> None:
    """A long sum of one float32 value stays within a few units of n times the value: no
    accumulator takes more than 512 additions in a row."""
    x = asts.buffer(0, n)
    ast = asts.sink((asts.buffer(1), asts.reduce(x, "add", 0)))
    program = lower(index(ast), TARGET)
    data = {0: np.full(n, 0.1, np.float32), 1: np.zeros(1, np.float32)}
    run_program(program, data, {})
    exact = float(np.float32(0.1)) * n
    assert abs(float(data[1][0]) - exact) <= 1e-5 * exact
    agree(ast)


def test_equal_stores_in_two_bodies() -> None:
    """A panel's fill is the same store in the whole body and in the tail; loads behind each see
    their own."""
    ast = asts.matmul(11, 19, 13)
    schedule = cut(index(ast).schedule, ("k/1", 4, UPCAST), ("i/1", 8, UPCAST))
    verify_program(agree(ast, replace(schedule, stages=(Stage("A", "k/4"),))), TARGET)


def test_one_thread() -> None:
    """A THREAD axis of one slice is no thread."""
    ast = asts.matmul(4, 5, 3)
    schedule = cut(index(ast).schedule, ("i/1", 4, None))
    axes = [replace(a, kind=THREAD) if a.name == "i/4" else a for a in schedule.axes]
    program = agree(ast, schedule.with_axes(tuple(axes)))
    verify_program(program, TARGET)
    assert program.phases[0].threads == 1


@pytest.mark.parametrize("k", [1024, 1030])
def test_blocks_of_long_sums_in_whole_bodies_and_tails(k: int) -> None:
    """Each body joins the blocks of its own accumulators."""
    ast = asts.matmul(5, 3, k)
    verify_program(agree(ast, cut(index(ast).schedule, ("i/1", 3, UPCAST))), TARGET)


def test_prefetch() -> None:
    """The tile a reduce is stored to is touched before its loop, a load in the loop."""
    ast = asts.matmul(5, 16, 7)
    schedule = cut(index(ast).schedule, ("i/1", 2, UPCAST), ("j/1", 8, VECTOR))
    program = agree(ast, replace(schedule, prefetch=(("C", 1), ("B", 3))))
    verify_program(program, TARGET)
    kinds = [u.op for u in program.phases[0].uops if u.op in (Op.RANGE, Op.PREFETCH, Op.DEFINE_REG)]
    tile = [Op.PREFETCH, Op.PREFETCH, Op.DEFINE_REG, Op.DEFINE_REG, Op.RANGE, Op.PREFETCH]
    assert kinds[2:8] == tile


def row_scan_repeated(rows: int, columns: Extent) -> UOp:
    row = asts.reshape(asts.buffer(0, columns), 1, columns)
    value = asts.scan(asts.expand(row, rows, columns), "add", 1)
    return asts.sink((asts.buffer(1, rows, columns), value))


def test_a_scan_outside_the_loop_that_repeats_it() -> None:
    """A scan that does not depend on an outer loop of its reader leaves all its values in an
    array."""
    program = agree(row_scan_repeated(6, 15))
    verify_program(program, TARGET)
    (array,) = [u for u in program.phases[0].uops if u.op is Op.DEFINE_LOCAL]
    assert array.arg.size == 15


def test_a_scan_whose_readers_repeat_a_loop_inside_its_own() -> None:
    """Rows scanned along an axis that repeats them, read under one more axis that does: inside one
    step of the scan its readers run the innermost loop again, and read an array."""
    rows = asts.reshape(asts.buffer(0, 24), 1, 1, 24)
    value = asts.scan(asts.expand(rows, 3, 2, 24), "add", 0)
    ast = asts.sink((asts.buffer(1, 3, 2, 24), value))
    kernel = index(ast)
    assert [(d.name, d.size) for d in kernel.dims] == [("i", 3), ("j", 2), ("m", 24)]
    agree(ast)
    agree(ast, cut(kernel.schedule, ("m/1", 4, VECTOR), ("m/4", 2, UPCAST)))
    agree(ast, cut(kernel.schedule, ("i/1", 2, UPCAST), ("m/1", 8, VECTOR)))


def test_arrays_of_symbolic_loops_have_room_for_the_largest() -> None:
    """Spilled reduces and scans over a bounded extent."""
    n = Variable("n", 1, 12)
    program = agree(row_scan_repeated(6, n), None, n=7)
    x = asts.buffer(0, 5, n)
    less = asts.op(Op.SUB, x, asts.keep(x, "add", 0))
    other = agree(asts.sink((asts.buffer(1, 5, n), less)), None, n=7)
    for p in (program, other):
        (array,) = [u for u in p.phases[0].uops if u.op is Op.DEFINE_LOCAL]
        assert array.arg.size == 12


def test_streamed_stores_end_in_a_fence() -> None:
    """Whole aligned vectors go around the cache, and a fence ends the program; a kernel that
    streams nothing has none."""
    ast = asts.sink((asts.buffer(1, 64), asts.op(Op.NEG, asts.buffer(0, 64))))
    plain = cut(index(ast).schedule, ("i/1", 8, VECTOR))
    program = agree(ast, replace(plain, nt_stores=("B",)))
    uops = program.phases[0].uops
    assert [u.arg for u in uops if u.op is Op.STORE] == ["nt"]
    assert uops[-1].op is Op.FENCE
    verify_program(program, TARGET)
    assert all(u.op is not Op.FENCE for u in agree(ast, plain).phases[0].uops)
