"""A target with workgroups, and random schedules of GLOBAL, LOCAL and GROUP axes for it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
from schedules import ARITH, PRIMITIVE, fill, split

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.kernel.statements import Analysis, make_statements
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower

GPU = Target(
    "gpu",
    "test",
    ARITH,
    frozenset(dt.ARRAY_DTYPES) - ARITH,
    PRIMITIVE,
    vector_bytes=(4, 8, 16),
    computes_in_vectors=False,
    has_local=True,
    has_shared=True,
    shared_bytes=48 << 10,
    max_threads=1024,
    local_max=(1024, 1024, 64),
    global_max=(2**31 - 1, 65535, 65535),
    subgroup=32,
)


def scheduled(ast: UOp) -> Kernel:
    """The kernel with its outputs over the grid."""
    return with_grid(index(ast), GPU)


def agree(
    ast: UOp, schedule: Schedule | None = None, target: Target = GPU, **variables: int
) -> Program:
    """Lower for the grid, verify, and compare with the level-2 oracle, bit for bit."""
    kernel = index(ast)
    expected = fill(kernel, variables)
    run_kernel(kernel, expected, variables)
    if schedule is not None:
        kernel = kernel.with_schedule(schedule)
    program = lower(kernel, target)
    verify_program(program, target)
    compare(program, kernel, expected, variables)
    return program


def compare(
    program: Program, kernel: Kernel, expected: dict[int, np.ndarray], variables: dict[str, int]
) -> None:
    """Run the program and compare every buffer."""
    actual = fill(kernel, variables)
    run_program(program, actual, variables)
    for slot, values in expected.items():
        np.testing.assert_array_equal(values, actual[slot])


def count(program: Program, *ops: Op) -> int:
    """How many nodes of these ops the program has."""
    return sum(n.op in ops for phase in program.phases for n in phase.uops)


def as_kind(schedule: Schedule, name: str, kind: AxisKind) -> Schedule:
    """The axis of that name as another kind, at the place where axes of the kind go."""
    axis = next(a for a in schedule.axes if a.name == name)
    return place(schedule, axis, replace(axis, kind=kind))


def place(schedule: Schedule, old: Axis, new: Axis) -> Schedule:
    """LOCAL axes come behind GLOBAL and LOCAL ones; GROUP before its dim's first loop."""
    rest = [a for a in schedule.axes if a is not old]
    if new.kind is AxisKind.LOCAL:
        at = sum(a.kind in (AxisKind.GLOBAL, AxisKind.LOCAL) for a in rest)
    elif new.kind is AxisKind.GROUP:
        loops = [n for n, a in enumerate(schedule.axes) if a.dim == new.dim]
        at = min(loops)
    else:
        return schedule.with_axes(tuple(new if a is old else a for a in schedule.axes))
    return schedule.with_axes((*rest[:at], new, *rest[at:]))


def _loops(schedule: Schedule, dim: str) -> list[Axis]:
    kinds = (AxisKind.GLOBAL, AxisKind.LOOP, AxisKind.REDUCE)
    return [a for a in schedule.axes if a.dim == dim and a.kind in kinds]


def draw(kernel: Kernel, rnd: random.Random, steps: int) -> Schedule:
    """A random schedule of workgroups, groups, upcasts, unrolls and tiles."""
    schedule = kernel.schedule
    scans = {s.arg.name for n in kernel.nodes if n.op is Op.SCAN for s in n.src if s.op is Op.DIM}
    facts = Analysis((kernel.body,), kernel.dims)
    statements = make_statements(kernel.body, kernel.schedule, facts)
    inner = {
        d
        for s in statements
        if s.kind == "reduce" and any(kernel.dim(f).is_reduce for f in s.free)
        for d in s.dims
    }
    for _ in range(steps):
        dim = rnd.choice(kernel.dims)
        loops = _loops(schedule, dim.name)
        if dim.name in scans or not loops:
            continue
        axis = min(loops, key=lambda a: a.stride)
        what = rnd.choice(["local", "local", "group", "group", "upcast", "unroll", "tile"])
        amount = rnd.choice([2, 3, 4, 8])
        new = None
        if what == "local" and not dim.is_reduce:
            if rnd.random() < 0.2 and axis.size != 1:
                new = as_kind(schedule, axis.name, AxisKind.LOCAL)
            else:
                new = split(schedule, axis.name, amount, AxisKind.LOCAL)
                new = new and _moved(new, dim.name, axis.stride)
        elif what == "group" and dim.is_reduce and dim.name not in inner:
            if rnd.random() < 0.4:  # the outer part
                new = split(schedule, axis.name, amount)
                if new is not None:
                    new = as_kind(new, f"{dim.name}/{axis.stride * amount}", AxisKind.GROUP)
            else:
                new = split(schedule, axis.name, amount, AxisKind.GROUP)
                new = new and _moved(new, dim.name, axis.stride)
        elif what == "upcast":
            new = split(schedule, axis.name, rnd.choice([2, 3, 4]), AxisKind.UPCAST)
        elif what == "unroll" and dim.is_reduce:
            new = split(schedule, axis.name, rnd.choice([2, 3, 4]), AxisKind.UNROLL)
        elif what == "tile":
            new = split(schedule, axis.name, amount)
        schedule = new or schedule
    return schedule


def _moved(schedule: Schedule, dim: str, stride: int) -> Schedule:
    axis = next(a for a in schedule.axes if a.dim == dim and a.stride == stride)
    return place(schedule, axis, axis)
