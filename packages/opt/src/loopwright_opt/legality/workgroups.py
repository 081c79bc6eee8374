"""Rules of threads that work together: workgroups, groups, shared memory."""

from __future__ import annotations

from math import prod

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.kernel.statements import Analysis, make_statements
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import inside, refuse
from loopwright_opt.facts import Facts, Statement, facts_of
from loopwright_opt.text import WORKGROUP_OPS

# Axes whose steps are threads of one workgroup.
THREADS = frozenset({AxisKind.LOCAL, AxisKind.GROUP})
_APART = frozenset({AxisKind.GLOBAL, AxisKind.GROUP})


def has_workgroups(kernel: Kernel, opt: Opt, target: Target) -> None:
    """Threads that work together need a target that has them, and memory where they share."""
    fine = target.has_local and (target.has_shared or opt.op in ("LOCAL", "NOLOCALS"))
    if not fine:
        needed = WORKGROUP_OPS[opt.op]
        refuse(kernel, opt, f"{opt.op} needs {needed}, and {target.name} has none here")


def locals_are_allowed(kernel: Kernel, opt: Opt) -> None:
    """After NOLOCALS no workgroup is chosen."""
    if kernel.schedule.no_locals:
        refuse(kernel, opt, "NOLOCALS leaves the workgroup to the runtime")


def no_threads_yet(kernel: Kernel, opt: Opt) -> None:
    """NOLOCALS comes before any axis over threads, and once."""
    if kernel.schedule.no_locals:
        refuse(kernel, opt, "NOLOCALS holds already")
    for axis in kernel.schedule.axes:
        if axis.kind in THREADS:
            refuse(kernel, opt, f"the axis is {axis.kind.name} already", axis.name)


def group_is_not_nested(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """A group joins its parts once: its reduce does not run again for each step of another."""
    for statement in facts_of(kernel).statements:
        around = [d.name for d in kernel.dims if d.is_reduce and d.name in statement.free]
        if axis.dim in statement.bound and around:
            reason = f"{statement.label} runs inside a reduce over {', '.join(around)}"
            refuse(kernel, opt, reason, axis.name)


def workgroup_is_small(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """The largest nest's threads, position by position, are at most the target's."""
    sizes: list[int] = []
    for statement in facts_of(kernel).statements:
        own = _sizes(schedule, statement)
        sizes = [max(a, b) for a, b in zip(own, sizes)] + own[len(sizes) :] + sizes[len(own) :]
    if prod(sizes) > target.max_threads:
        reason = f"{prod(sizes)} threads are more than the target's {target.max_threads}"
        refuse(kernel, opt, reason)


def _sizes(schedule: Schedule, statement: Statement) -> list[int]:
    axes = [a for a in schedule.axes if a.kind in THREADS and a.dim in statement.dims]
    return [a.size for a in axes if isinstance(a.size, int) and a.size != 1]


def shared_memory_is_enough(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """The parts of all grouped reduces and the tiles of all stages fit shared memory together."""
    used = shared_bytes(facts_of(kernel), schedule)
    if used > target.shared_bytes:
        reason = f"{used} bytes of shared memory are more than the target's {target.shared_bytes}"
        refuse(kernel, opt, reason)


def shared_bytes(facts: Facts, schedule: Schedule) -> int:
    """What grouped reduces and staged loads hold in shared memory."""
    used = 0
    for s in facts.statements:
        groups = [a for a in schedule.axes if a.kind is AxisKind.GROUP and a.dim in s.bound]
        if groups:
            held = [
                a
                for a in schedule.axes
                if a.dim in s.free and (a.kind is AxisKind.LOCAL or a.kind.is_expanded)
            ]
            used += s.itemsize * _product([*groups, *held])
    for stage in schedule.stages:
        access = facts.accesses.get(stage.access)
        if access is not None:
            tile = inside(schedule, stage.at, access.dims)
            used += access.dtype.itemsize * _product(list(tile))
    return used


def _product(axes: list[Axis]) -> int:
    return prod(a.size for a in axes if isinstance(a.size, int))


def groups_lie_with_their_reduce(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """No loop over other dims stands between a GROUP axis and the innermost loops of its reduce."""
    for statement in facts_of(kernel).statements:
        path = [a for a in schedule.axes if a.dim in statement.dims and not a.kind.is_expanded]
        while path and path[-1].dim in statement.bound:
            path.pop()
        for axis in path:
            if axis.kind is AxisKind.GROUP and axis.dim in statement.bound:
                reason = f"other loops stand between the group and {statement.label}"
                refuse(kernel, opt, reason, axis.name)


def threads_keep_no_values(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """KEEP, halo tiles and prefetches are one thread's own."""
    for stage in schedule.stages:
        if stage.mode != "panel":
            what = "KEEP" if stage.mode == "keep" else "a halo tile"
            refuse(kernel, opt, f"{what} is for kernels without LOCAL and GROUP", stage.at)


def values_stay_in_their_workgroup(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """What one workgroup (or one part of a group) reduces is read by no other."""
    if not any(a.kind in _APART for a in schedule.axes):
        return
    facts = Analysis((kernel.body,), kernel.dims)
    for statement in make_statements(kernel.body, schedule, facts):
        if statement.kind != "reduce":
            continue
        across = [a.name for a in statement.escapes() if a.kind in _APART and a.size != 1]
        if across:
            reason = f"a reduce's value would be read at other ids, along {', '.join(across)}"
            refuse(kernel, opt, reason)
