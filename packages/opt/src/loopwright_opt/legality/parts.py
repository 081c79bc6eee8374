"""Rules of reduces that are split: over workgroups, threads or loops, joined in a second launch."""

from __future__ import annotations

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import split_axes
from loopwright_core.kernel.schedule import Opt, Schedule, Stage
from loopwright_core.kernel.statements import splits
from loopwright_opt.axes import is_outermost, refuse
from loopwright_opt.facts import Statement, facts_of


def parts_are_whole(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """Parts are dealt out as they are, one a thread, and not cut again."""
    if axis.kind is AxisKind.REDUCE or not kernel.dim(axis.dim).is_reduce:
        return
    dealt = opt.op == "THREAD" and opt.amount in (0, axis.size)
    if splits(axis) and not dealt:
        refuse(kernel, opt, f"the reduce is split in {axis.size} parts already", axis.name)


def split_is_outermost(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """A part is one piece of the dim: the axis cut is its outermost, and cut once."""
    if not is_outermost(kernel.schedule, axis):
        refuse(kernel, opt, f"other axes of {axis.dim} lie outside this one", axis.name)


def reduce_is_at_the_root(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """Parts are joined once: their reduce does not run again for each step of another."""
    for statement in _split_by(kernel, axis):
        around = [d.name for d in kernel.dims if d.is_reduce and d.name in statement.free]
        if around:
            reason = f"{statement.label} runs inside a reduce over {', '.join(around)}"
            refuse(kernel, opt, reason, axis.name)


def reduce_reads_no_other(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """The first launch reduces parts and nothing else."""
    for statement in _split_by(kernel, axis):
        if statement.waits:
            refuse(kernel, opt, f"{statement.label} waits for another reduce or scan", axis.name)


def _split_by(kernel: Kernel, axis: Axis) -> list[Statement]:
    return [s for s in facts_of(kernel).statements if axis.dim in s.bound]


def split_stays_outside(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """The axis over parts stands before the other loops of its dim."""
    for axis in split_axes(kernel, schedule):
        first = next(a for a in schedule.axes if a.dim == axis.dim)
        if first is not axis:
            refuse(kernel, opt, f"a part's own loops stand around {axis.name}", axis.name)


def threads_share_all_splits(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """Where threads take parts of a reduce, no other reduce is split beside it."""
    split = split_axes(kernel, schedule)
    threads = [a for a in split if a.kind is AxisKind.THREAD]
    for statement in facts_of(kernel).statements if threads else ():
        others = [a for a in split if a.dim in statement.bound]
        if others and threads[0].dim not in statement.bound:
            refuse(kernel, opt, f"{statement.label} is split over no threads", threads[0].name)


def kept_in_one_form(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """Instances of a kept value are alike, so none reads a reduce whose parts are joined."""
    split = {a.dim for a in split_axes(kernel, schedule)}
    instances = kernel.shared[int(made.access[1:])]
    for other in instances[1:] if split else ():
        for a, b in (facts_of(kernel).renamed(instances[0], other) or {}).items():
            if a in split or b in split:
                reduce = a if a in split else b
                refuse(
                    kernel, opt, f"{made.access} reads the joined parts of a reduce over {reduce}"
                )


def held_in_one_launch(kernel: Kernel, opt: Opt, schedule: Schedule, made: Stage) -> None:
    """A copy or a kept value serves one launch."""
    split = split_axes(kernel, schedule)
    if not split:
        return
    facts = facts_of(kernel)
    kept = made.mode == "keep"
    nodes = kernel.shared[int(made.access[1:])] if kept else (facts.accesses[made.access].node,)
    users = {place for u in nodes for place in facts.within.get(u, ())}
    first = {p for p in users if any(a.dim in facts.statements[p].bound for a in split)}
    if first and first != users:
        refuse(kernel, opt, f"{made.access} is read in two launches")
