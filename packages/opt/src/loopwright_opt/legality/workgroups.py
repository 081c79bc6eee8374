"""Rules of threads that work together: workgroups, groups, shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod

from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.copies import is_own
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import split_axes
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.kernel.statements import splits
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import inside, refuse
from loopwright_opt.facts import Facts, Statement, facts_of
from loopwright_opt.legality.keeps import kept_bytes
from loopwright_opt.legality.stages import staged_bytes
from loopwright_opt.text import WORKGROUP_OPS

# Axes whose steps are threads of one workgroup.
THREADS = (AxisKind.LOCAL, AxisKind.GROUP)
_APART = (AxisKind.GLOBAL, AxisKind.GROUP)
_PARALLEL = (*_APART, AxisKind.LOCAL)


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
    threads = [a for a in schedule.axes if a.kind in THREADS]
    for statement in facts_of(kernel).statements:
        own = _sizes(threads, statement)
        if own != sizes:
            sizes = list(map(max, zip_longest(own, sizes, fillvalue=1)))
    use = schedule.tensor_core
    count = prod(sizes) * (use.core.threads if use is not None else 1)
    if count > target.max_threads:
        reason = f"{count} threads are more than the target's {target.max_threads}"
        refuse(kernel, opt, reason)


def _sizes(threads: list[Axis], statement: Statement) -> list[int]:
    dims = statement.dims
    return [a.size for a in threads if a.dim in dims and isinstance(a.size, int) and a.size != 1]


def grid_has_room(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """A step makes no more workgroups than the target launches."""
    if target.global_max is None:
        return
    most = prod(target.global_max)
    after = _workgroups(kernel, schedule)
    if after > most and after > _workgroups(kernel, kernel.schedule):
        refuse(kernel, opt, f"{after} workgroups are more than the target's {most}")


def _workgroups(kernel: Kernel, schedule: Schedule) -> int:
    """The workgroups of the larger launch: the parts of a split reduce have one of their own."""
    split = {a.dim for a in split_axes(kernel, schedule)}
    statements = facts_of(kernel).statements
    first = [s for s in statements if not split.isdisjoint(s.bound)]
    rest = [s for s in statements if split.isdisjoint(s.bound)]
    return max(_launched(first, schedule), _launched(rest, schedule))


def _launched(statements: Sequence[Statement], schedule: Schedule) -> int:
    """The largest nest's workgroups, position by position."""
    sizes: list[int] = []
    grid = [a for a in schedule.axes if a.kind is AxisKind.GLOBAL and a.size != 1]
    for statement in statements:
        own = [
            a.size.hi if isinstance(a.size, Variable) else a.size
            for a in grid
            if a.dim in statement.dims
        ]
        sizes = list(map(max, zip_longest(own, sizes, fillvalue=1)))
    return prod(sizes)


def shared_memory_is_enough(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """The parts of all grouped reduces and the tiles of all stages fit shared memory together."""
    used = shared_bytes(kernel, schedule)
    if used > target.shared_bytes:
        reason = f"{used} bytes of shared memory are more than the target's {target.shared_bytes}"
        refuse(kernel, opt, reason)


def shared_bytes(kernel: Kernel, schedule: Schedule) -> int:
    """What grouped reduces, staged accesses and values for other threads take of shared memory."""
    facts, used = facts_of(kernel), 0
    apart = facts.reduces if schedule.stages else facts.unsunk
    local = {a.dim for a in schedule.axes if a.kind is AxisKind.LOCAL} if apart else frozenset()
    for s in apart:
        if not local.isdisjoint(s.free):
            used += _spilled_bytes(kernel, s, schedule)
    grouped = [a for a in schedule.axes if a.kind is AxisKind.GROUP]
    for s in facts.statements if grouped else ():
        groups = [a for a in grouped if a.dim in s.bound]
        if groups:
            held = [
                a
                for a in schedule.axes
                if a.dim in s.free and (a.kind is AxisKind.LOCAL or a.kind.is_expanded)
            ]
            used += s.itemsize * _product([*groups, *held])
    for stage in schedule.stages:
        if stage.mode == "keep":
            instances = kernel.shared[int(stage.access[1:])]
            if not is_own(schedule, stage.at, [d for u in instances for d in facts.free[u]]):
                used += kept_bytes(facts, schedule, stage.at, instances)
            continue
        access = facts.accesses[stage.access]
        used += staged_bytes(stage, access, inside(schedule, stage.at, access.dims))
    return used


def _spilled_bytes(kernel: Kernel, statement: Statement, schedule: Schedule) -> int:
    """What a reduce's value takes that is read outside the loops of the threads it is of."""
    if statement.sinks and not _holds(kernel, statement.readers, schedule):
        return 0
    loops = [a for a in schedule.axes if not a.kind.is_expanded and a.kind is not AxisKind.TENSOR]
    apart = _escapes(facts_of(kernel), statement, loops, {a.dim for a in loops if splits(a)})
    if not any(a.kind is AxisKind.LOCAL and a.size != 1 for a in apart):
        return 0
    use = schedule.tensor_core
    with_core = use is not None and use.core.threads > 1
    around = [
        a
        for a in schedule.axes
        if a.dim in statement.free
        and a not in apart
        and (
            a.kind is AxisKind.LOCAL
            or a.kind.is_expanded
            or (with_core and a.kind is AxisKind.TENSOR)
        )
    ]
    sizes = [a.size.hi if isinstance(a.size, Variable) else a.size for a in (*apart, *around)]
    return statement.itemsize * prod(sizes)


def _holds(kernel: Kernel, places: Sequence[int], schedule: Schedule) -> bool:
    """Whether one of these stores goes to a tile, or holds a value that is kept."""
    facts = facts_of(kernel)
    for stage in schedule.stages:
        if stage.mode == "keep":
            held = list(kernel.shared[int(stage.access[1:])])
        else:
            access = facts.accesses[stage.access]
            held = [access.node] if access.is_store else []
        if any(p in places for node in held for p in facts.within.get(node, ())):
            return True
    return False


def _product(axes: Sequence[Axis]) -> int:
    return prod([a.size for a in axes if isinstance(a.size, int)])


def groups_lie_with_their_reduce(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """No loop over other dims stands between a GROUP axis and the innermost loops of its reduce."""
    grouped = {a.dim for a in schedule.axes if a.kind is AxisKind.GROUP}
    for statement in facts_of(kernel).statements if grouped else ():
        if grouped.isdisjoint(statement.bound):
            continue
        path = [a for a in schedule.axes if a.dim in statement.dims and not a.kind.is_expanded]
        while path and path[-1].dim in statement.bound:
            path.pop()
        for axis in path:
            if axis.kind is AxisKind.GROUP and axis.dim in statement.bound:
                reason = f"other loops stand between the group and {statement.label}"
                refuse(kernel, opt, reason, axis.name)


def values_stay_in_their_workgroup(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """What one workgroup (or one part of a group) reduces is read by no other, a running value by
    no other thread."""
    facts = facts_of(kernel)
    for what, kept, kinds in (
        ("a reduce's", escapes(facts, schedule), _APART),
        ("a running", running_apart(facts, schedule), _PARALLEL),
    ):
        names = [a.name for a in kept if a.kind in kinds and a.size != 1]
        if names:
            reason = f"{what} value would be read at other ids, along {', '.join(names)}"
            refuse(kernel, opt, reason)


def escapes(facts: Facts, schedule: Schedule) -> list[Axis]:
    """Loops of reduces' free dims that do not hold all readers of the value: those behind the
    first loop that the reduce binds, or that it or a reader lacks; of a split reduce in both
    launches."""
    found: list[Axis] = []
    loops = [a for a in schedule.axes if not a.kind.is_expanded]
    split = {a.dim for a in loops if splits(a)}
    for s in facts.reduces:
        if not split.isdisjoint(s.bound):
            own = [a for a in loops if a.dim not in s.bound or not splits(a)]
            found += _behind(own, s.bound, s.free)
        found += _escapes(facts, s, loops, split)
    return found


def _escapes(facts: Facts, s: Statement, loops: list[Axis], split: set[str]) -> list[Axis]:
    """The same of one reduce, in the launch that its value is read in."""
    readers = frozenset().union(*[s.dims ^ facts.statements[r].dims for r in s.readers])
    if split.isdisjoint(s.bound):
        return _behind(loops, s.bound | readers, s.free)
    rest = [a for a in loops if a.dim not in s.bound]
    return _behind(rest, readers - s.bound, s.free)


def _behind(loops: list[Axis], apart: frozenset[str], dims: frozenset[str]) -> list[Axis]:
    """The loops of some dims behind the first one of others."""
    depth = next((n for n, a in enumerate(loops) if a.dim in apart), len(loops))
    return [a for a in loops[depth:] if a.dim in dims]


def running_apart(facts: Facts, schedule: Schedule) -> list[Axis]:
    """Loops of scans that not all readers of the running value share."""
    found: list[Axis] = []
    if not facts.scanned:
        return found
    loops = [a for a in schedule.axes if not a.kind.is_expanded]
    for s in facts.statements:
        if s.readers and not s.bound:
            apart = frozenset().union(*[s.dims ^ facts.statements[r].dims for r in s.readers])
            found += _behind(loops, apart, s.dims)
    return found
