"""LOCAL, GROUP, GROUPTOP and NOLOCALS: axes over the threads of a workgroup."""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import is_whole, resolve
from loopwright_opt.legality import loops, parts, splits, workgroups

_FRONT = (AxisKind.GLOBAL, AxisKind.LOCAL)


def local(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """LOCAL: the inner part of an output axis runs on a workgroup's threads."""
    axis, size, amount = _wanted(kernel, opt, target)
    parts.parts_are_whole(kernel, opt, axis)
    loops.not_along_a_scan(kernel, opt, axis)
    splits.split_divides(kernel, opt, axis, size, amount)
    return _placed(
        kernel.schedule, axis, _inner(kernel.schedule, axis, size, amount, AxisKind.LOCAL)
    )


def group(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """GROUP, GROUPTOP: the inner (outer) part of a reduce axis is split over a workgroup."""
    axis, size, amount = _wanted(kernel, opt, target)
    workgroups.group_is_not_nested(kernel, opt, axis)
    if opt.op == "GROUPTOP" and amount < size:
        piece = -(-size // amount)
        splits.split_divides(kernel, opt, axis, size, piece)
        outer = Axis(axis.dim, axis.stride * piece, -(-size // piece), AxisKind.GROUP)
        return _placed(kernel.schedule, axis, (replace(axis, size=piece), outer))
    splits.split_divides(kernel, opt, axis, size, amount)
    return _placed(
        kernel.schedule, axis, _inner(kernel.schedule, axis, size, amount, AxisKind.GROUP)
    )


def no_locals(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """NOLOCALS: one global id an item, the runtime chooses the workgroup."""
    workgroups.has_workgroups(kernel, opt, target)
    workgroups.no_threads_yet(kernel, opt)
    return replace(kernel.schedule, no_locals=True)


def _wanted(kernel: Kernel, opt: Opt, target: Target) -> tuple[Axis, int, int]:
    """The axis to split over threads, its size and how many of its steps they take."""
    axis = resolve(kernel, opt, opt.axis)
    workgroups.has_workgroups(kernel, opt, target)
    workgroups.locals_are_allowed(kernel, opt)
    size = splits.axis_is_fixed(kernel, opt, axis)
    amount = splits.amount_is_real(kernel, opt, axis) or size
    splits.kind_fits(kernel, opt, axis)
    return axis, size, amount


def _inner(
    schedule: Schedule, axis: Axis, size: int, amount: int, kind: AxisKind
) -> tuple[Axis | None, Axis]:
    """What is left of the axis (nothing, where it is used up) and its part on threads."""
    if is_whole(schedule, axis, amount):
        return None, replace(axis, kind=kind)
    outer = Axis(axis.dim, axis.stride * amount, -(-size // amount), axis.kind)
    return outer, Axis(axis.dim, axis.stride, amount, kind)


def _placed(schedule: Schedule, axis: Axis, parts: tuple[Axis | None, Axis]) -> Schedule:
    """LOCAL stands behind GLOBAL and LOCAL axes, GROUP before the first loop of its dim."""
    left, threads = parts
    rest = [a if a is not axis else left for a in schedule.axes]
    axes = [a for a in rest if a is not None]
    if threads.kind is AxisKind.LOCAL:
        at = sum(a.kind in _FRONT for a in axes)
        front = [a for a in axes if a.kind in _FRONT]
        if axes[:at] != front:  # an ORDER moved loops before them: directly behind what is left
            at = max(n for n, a in enumerate(axes) if a.kind in _FRONT) + 1 if front else 0
    else:
        own = [a.dim == axis.dim and a.kind is not AxisKind.GLOBAL for a in schedule.axes]
        at = own.index(True)
    return schedule.with_axes((*axes[:at], threads, *axes[at:]))
