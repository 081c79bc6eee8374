"""What is asked of the whole schedule after every step: a later one may break an earlier one."""

from __future__ import annotations

from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import split_axes
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.plugin.target import Target
from loopwright_opt.legality import cores, hints, keeps, loops, parts, splits, stages, workgroups

# Steps after which every axis is what it was, in another place.
_MOVES = ("ORDER", "SWAP")
# Steps that leave the axes as they are.
_HOLDS = ("STAGE", "KEEP", "PREFETCH", "NTSTORE")
# Steps that may leave no loop of an axis, so that others come to stand side by side.
_EXPANDS = ("UPCAST", "UNROLL", "VECTOR")


def check(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """Raises OptError where the schedule after a step is none that can be lowered."""
    if opt.op not in _MOVES:
        splits.one_vector_a_statement(kernel, opt, schedule)
        splits.leaf_is_small(kernel, opt, schedule)
        if schedule.tails:
            splits.tails_can_be_peeled(kernel, opt, schedule)
    loops.scans_run_in_order(kernel, opt, schedule)
    cores.check_core(kernel, opt, schedule)
    if opt.op not in _HOLDS:
        _check_held(kernel, opt, schedule, target)
    if split_axes(kernel, schedule):
        parts.split_stays_outside(kernel, opt, schedule)
        parts.threads_share_all_splits(kernel, opt, schedule)
    if target.has_local:
        _check_workgroup(kernel, opt, schedule, target)
    if (
        opt.op in (*_MOVES, "KEEP", "SPLITK", "THREAD")
        or any(s.mode == "keep" for s in schedule.stages)
        or (opt.op in _EXPANDS and _n_loops(schedule) < _n_loops(kernel.schedule))
    ):
        loops.nest_exists(kernel, opt, schedule)


def _n_loops(schedule: Schedule) -> int:
    return sum([not a.kind.is_expanded for a in schedule.axes])


def _check_held(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """Stages, kept values and lines after a step that moved or split axes."""
    for made in schedule.stages:
        if made.mode == "keep":
            keeps.check_keep(kernel, opt, schedule, made)
        else:
            stages.check_placed(kernel, opt, schedule, made)
    for name in schedule.nt_stores:
        hints.lines_are_whole(kernel, opt, schedule, name, target)


def _check_workgroup(kernel: Kernel, opt: Opt, schedule: Schedule, target: Target) -> None:
    """The rules about threads that any step may break."""
    # The last piece of an axis may be longer than what is left; parts are workgroups of their own.
    if opt.op in ("TILE", "SPLITK"):
        workgroups.grid_has_room(kernel, opt, schedule, target)
    if not [a for a in schedule.axes if a.kind in workgroups.THREADS or a.kind is AxisKind.TENSOR]:
        if opt.op in (*_MOVES, "TILE"):  # TILE makes an axis of size 1 one of several steps
            workgroups.values_stay_in_their_workgroup(kernel, opt, schedule)
        return
    if opt.op not in _MOVES and opt.op not in _HOLDS:
        workgroups.workgroup_is_small(kernel, opt, schedule, target)
    workgroups.shared_memory_is_enough(kernel, opt, schedule, target)
    if opt.op not in _HOLDS:
        workgroups.groups_lie_with_their_reduce(kernel, opt, schedule)
    if opt.op in ("ORDER", "SWAP", "TILE", "LOCAL", "GROUP", "GROUPTOP"):
        workgroups.values_stay_in_their_workgroup(kernel, opt, schedule)
