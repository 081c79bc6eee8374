"""Schedules written as axis splits, by hand or at random, and a check against the oracle."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.kernel.statements import Analysis, make_statements
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower

ARITH = frozenset({dt.bool_, *dt.INTS, dt.float32, dt.float64})
PRIMITIVE = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.AND, Op.OR, Op.XOR, Op.CMPLT, Op.CMPEQ, Op.CMPNE}
    | {Op.WHERE, Op.NEG, Op.SQRT, Op.TRUNC, Op.RINT, Op.CAST, Op.BITCAST}
    | {Op.CDIV, Op.CMOD, Op.CSHL, Op.CSHR, Op.FTOI, Op.FMA}
)
TARGET = Target(
    "cpu",
    "test",
    ARITH,
    frozenset(dt.ARRAY_DTYPES) - ARITH,
    PRIMITIVE,
    vector_bytes=(16, 32),
    threads=2,
)


def split(
    schedule: Schedule, name: str, amount: int, kind: AxisKind | None = None
) -> Schedule | None:
    """An inner split of the axis called `name`, or None where it would not be legal."""
    axis = next(a for a in schedule.axes if a.name == name)
    size = int(axis.size)  # type: ignore[arg-type]
    outermost = all(a.stride <= axis.stride for a in schedule.axes if a.dim == axis.dim)
    if size < 2 or amount < 2 or (size % amount and not outermost):
        return None
    if size == amount and not outermost:  # the outer part would have the next axis' name
        return None
    outer = replace(axis, stride=axis.stride * amount, size=-(-size // amount))
    inner = Axis(axis.dim, axis.stride, amount, kind or axis.kind)
    at = schedule.axes.index(axis)
    return schedule.with_axes((*schedule.axes[:at], outer, inner, *schedule.axes[at + 1 :]))


def cut(schedule: Schedule, *steps: tuple[str, int, AxisKind | None]) -> Schedule:
    """Splits in turn, each legal; amount 0 turns the whole axis into the kind."""
    for name, amount, kind in steps:
        if amount:
            new = split(schedule, name, amount, kind)
        else:
            axes = [replace(a, kind=kind) if a.name == name else a for a in schedule.axes]
            new = schedule.with_axes(tuple(axes))
        assert new is not None, f"{name} {amount} is not legal"
        schedule = new
    return schedule


def order(schedule: Schedule, *names: str) -> Schedule:
    """These axes, in this order, into the places they hold."""
    chosen = {a.name: a for a in schedule.axes}
    places = iter([chosen[n] for n in names])
    return replace(
        schedule, axes=tuple(next(places) if a.name in names else a for a in schedule.axes)
    )


def _innermost_loop(schedule: Schedule, dim: str) -> Axis | None:
    loops = [
        a
        for a in schedule.axes
        if a.dim == dim and not a.kind.is_expanded and a.kind is not AxisKind.THREAD
    ]
    return min(loops, key=lambda a: a.stride) if loops else None


def _may_vectorize(kernel: Kernel, dims: set[str]) -> bool:
    facts = Analysis((kernel.body,), kernel.dims)
    statements = make_statements(kernel.body, kernel.schedule, facts)
    return all(sum(d in dims for d in s.dims) <= 1 for s in statements)


def draw(kernel: Kernel, rnd: random.Random, steps: int) -> Schedule:
    """A random schedule of splits and orders."""
    schedule = kernel.schedule
    scans = {s.arg.name for n in kernel.nodes if n.op is Op.SCAN for s in n.src if s.op is Op.DIM}
    vectors: set[str] = set()
    for _ in range(steps):
        dim = rnd.choice(kernel.dims)
        axis = _innermost_loop(schedule, dim.name)
        what = rnd.choice(["upcast", "unroll", "vector", "tile", "order"])
        new = None
        if what == "order" and not scans:
            loops = [a for a in schedule.axes if not a.kind.is_expanded]
            rnd.shuffle(loops)
            new = replace(schedule, axes=(*loops, *(a for a in schedule.axes if a not in loops)))
        elif axis is None:
            continue
        elif what == "upcast":
            new = split(schedule, axis.name, rnd.choice([2, 3, 4]), AxisKind.UPCAST)
        elif what == "unroll" and dim.is_reduce:
            new = split(schedule, axis.name, rnd.choice([2, 3, 4]), AxisKind.UNROLL)
        elif what == "tile":
            new = split(schedule, axis.name, rnd.choice([2, 3, 4, 8]))
        elif what == "vector" and dim.name not in scans | vectors:
            if _may_vectorize(kernel, vectors | {dim.name}):
                new = split(schedule, axis.name, rnd.choice([4, 8]), AxisKind.VECTOR)
                if new is not None:
                    vectors.add(dim.name)
        schedule = new or schedule
    return schedule


def fill(kernel: Kernel, variables: dict[str, int] | None = None) -> dict[int, np.ndarray]:
    """Small whole numbers in every buffer: each order of summation is exact."""
    rng = np.random.default_rng(7)
    buffers = {}
    for b in kernel.buffers:
        shape = [n if isinstance(n, int) else (variables or {})[n.name] for n in b.arg.shape]
        numbers = rng.integers(-4, 5, int(np.prod(shape)))
        buffers[b.arg.slot] = numbers.astype(b.dtype.numpy)
    return buffers


def agree(ast: UOp, schedule: Schedule | None = None, **variables: int) -> Program:
    """Lower under a schedule and compare with the level-2 oracle, bit for bit."""
    kernel = index(ast)
    expected, actual = fill(kernel, variables), fill(kernel, variables)
    run_kernel(kernel, expected, variables)
    if schedule is not None:
        kernel = kernel.with_schedule(schedule)
    program = lower(kernel, TARGET)
    run_program(program, actual, variables)
    for slot, values in expected.items():
        np.testing.assert_array_equal(values, actual[slot])
    return program
