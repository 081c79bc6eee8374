"""An opt maps a schedule to a schedule: axes are split, moved, renamed in kind; nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from loopwright_core.ir.uop import Extent
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.kernel.tails import POLICIES
from loopwright_core.plugin.target import Target
from loopwright_opt import stage_opts, tensor_core, workgroup_opts
from loopwright_opt.axes import is_whole, refuse, resolve, spread
from loopwright_opt.legality import loops, parts, splits, streams
from loopwright_opt.legality.whole import check
from loopwright_opt.text import AMOUNT_OPS


def apply(kernel: Kernel, opt: Opt, target: Target) -> Kernel:
    """The kernel after one step, its list of opts one longer.

    Raises OptError with kernel, axis and the broken rule; the kernel given stays as it is.
    """
    kernel = with_grid(kernel, target)
    opts = (*kernel.schedule.opts, opt)
    for step in spread(kernel, opt):
        make = _STEPS.get(step.op)
        if make is None:
            refuse(kernel, step, f"{step.op} is no scheduling step")
        schedule = make(kernel, step, target)
        if step.arg and step.op in AMOUNT_OPS:
            if step.arg[0] not in POLICIES:
                refuse(kernel, step, f"what is ragged ends by one of {', '.join(POLICIES)}")
            schedule = schedule.with_tail(step.axis.partition("/")[0], step.arg[0])
        check(kernel, step, schedule, target)
        kernel = kernel.with_schedule(schedule.with_opts(opts))
    return kernel


def apply_all(kernel: Kernel, opts: Iterable[Opt], target: Target) -> Kernel:
    """The kernel after all steps in order. Raises OptError at the first illegal one."""
    for opt in opts:
        kernel = apply(kernel, opt, target)
    return kernel


def _expand(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """UPCAST, UNROLL, VECTOR: the inner part of an axis is written out at the leaf."""
    axis = resolve(kernel, opt, opt.axis)
    size = splits.axis_is_fixed(kernel, opt, axis)
    amount = splits.amount_is_real(kernel, opt, axis)
    splits.kind_fits(kernel, opt, axis)
    parts.parts_are_whole(kernel, opt, axis)
    copies = amount or size
    if opt.op == "UPCAST":
        splits.upcast_is_small(kernel, opt, axis, copies, target)
    elif opt.op == "UNROLL":
        splits.unroll_is_small(kernel, opt, axis, copies)
    else:
        splits.lanes_exist(kernel, opt, axis, copies, target)
        loops.not_along_a_scan(kernel, opt, axis)
    kind = AxisKind[opt.op]
    schedule = kernel.schedule
    if not amount or is_whole(schedule, axis, amount):
        return schedule.with_axes((*_without(schedule, axis), _as(axis, size, kind)))
    splits.split_divides(kernel, opt, axis, size, amount)
    outer, inner = _split(axis, size, amount, kind)
    return schedule.with_axes((*_exchange(schedule, axis, (outer,)).axes, inner))


def _tile(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """TILE: a loop over tiles and the loop in a tile, side by side."""
    axis, size, amount = _cut(kernel, opt)
    if is_whole(kernel.schedule, axis, amount):
        return kernel.schedule
    splits.split_divides(kernel, opt, axis, size, amount)
    return _exchange(kernel.schedule, axis, _split(axis, size, amount, axis.kind))


def _thread(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """THREAD: the outer part of an axis, one slice per worker thread, outermost in the nest."""
    axis, size, amount = _cut(kernel, opt, splits.slices_have_steps)
    loops.not_along_a_scan(kernel, opt, axis)
    loops.thread_is_free(kernel, opt, axis, amount, target)
    _split_reduce(kernel, opt, axis)
    splits.split_divides(kernel, opt, axis, size, amount)
    if axis.kind is AxisKind.REDUCE and size == 1:
        return kernel.schedule
    return _outer(kernel.schedule, axis, size, amount, AxisKind.THREAD)


def _split_k(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """SPLITK: the outer part of a reduce axis, each step a part that a second launch joins."""
    axis, size, amount = _cut(kernel, opt)
    _split_reduce(kernel, opt, axis)
    if size == 1:
        return kernel.schedule
    kind = AxisKind.GLOBAL if target.has_local else AxisKind.LOOP
    return _outer(kernel.schedule, axis, size, amount, kind)


def _stream(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """STREAM: a loop over groups of pages, one over a page, the pages of a group at once."""
    axis, size, amount = _cut(kernel, opt)
    streams.few_pages(kernel, opt, axis, amount)
    loops.not_along_a_scan(kernel, opt, axis)
    walked = streams.walks_an_array(kernel, opt, axis)
    streams.array_is_large(kernel, opt, axis, walked, target)
    page = streams.pages_divide(kernel, opt, axis, size, amount, walked)
    inner = _as(axis, page, axis.kind)
    pages = Axis(axis.dim, axis.stride * page, amount, AxisKind.UPCAST)
    n_groups = -(-size // (page * amount))
    groups = Axis(axis.dim, axis.stride * page * amount, n_groups, axis.kind)
    # A page of one step is its group's copies alone: a loop over it would have their name.
    walk = tuple([a for a, n in ((groups, groups.size), (inner, page)) if n != 1])
    return kernel.schedule.with_axes((*_exchange(kernel.schedule, axis, walk).axes, pages))


def _split_reduce(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """The rules of an axis whose steps become parts of a reduce."""
    if axis.kind is AxisKind.REDUCE:
        parts.split_is_outermost(kernel, opt, axis)
        parts.reduce_is_at_the_root(kernel, opt, axis)
        parts.reduce_reads_no_other(kernel, opt, axis)


def _outer(schedule: Schedule, axis: Axis, size: int, amount: int, kind: AxisKind) -> Schedule:
    """The axis cut in `amount` pieces, the steps over pieces outermost in the nest (but for
    threads)."""
    piece = -(-size // amount)
    if piece == 1:
        outer, axes = _as(axis, size, kind), _without(schedule, axis)
    else:
        outer, inner = _split(axis, size, piece, axis.kind)
        outer, axes = _as(outer, outer.size, kind), _exchange(schedule, axis, (inner,)).axes
    at = sum(a.kind is AxisKind.THREAD for a in axes)
    return schedule.with_axes((*axes[:at], outer, *axes[at:]))


def _cut(
    kernel: Kernel,
    opt: Opt,
    sized: Callable[[Kernel, Opt, Axis], int] = splits.axis_is_fixed,
) -> tuple[Axis, int, int]:
    """The axis that a step cuts, its size, the amount in numbers."""
    axis = resolve(kernel, opt, opt.axis)
    size = sized(kernel, opt, axis)
    amount = splits.amount_is_real(kernel, opt, axis) or size
    splits.kind_fits(kernel, opt, axis)
    parts.parts_are_whole(kernel, opt, axis)
    return axis, size, amount


def _order(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """ORDER: these axes, in this order, into the places they hold."""
    axes = [resolve(kernel, opt, word) for word in opt.arg]
    loops.order_is_of_loops(kernel, opt, axes)
    return _permuted(kernel.schedule, axes)


def _swap(kernel: Kernel, opt: Opt, target: Target) -> Schedule:
    """SWAP: two axes exchange their places."""
    axes = [resolve(kernel, opt, word) for word in opt.arg]
    loops.order_is_of_loops(kernel, opt, axes)
    first, second = [a for a in kernel.schedule.axes if a is axes[0] or a is axes[1]]
    return _permuted(kernel.schedule, [second, first])


def _permuted(schedule: Schedule, axes: list[Axis]) -> Schedule:
    following = iter(axes)
    moved = [id(a) for a in axes]  # comparing takes longer
    order = [next(following) if id(a) in moved else a for a in schedule.axes]
    return schedule.with_axes(tuple(order))


def _split(axis: Axis, size: int, amount: int, kind: AxisKind) -> tuple[Axis, Axis]:
    """(outer, inner) of an axis cut into pieces of `amount`; the last piece may be ragged."""
    outer = Axis(axis.dim, axis.stride * amount, -(-size // amount), axis.kind)
    return outer, _as(axis, amount, kind)


def _as(axis: Axis, size: Extent, kind: AxisKind) -> Axis:
    return Axis(axis.dim, axis.stride, size, kind)


def _without(schedule: Schedule, axis: Axis) -> tuple[Axis, ...]:
    return tuple([a for a in schedule.axes if a is not axis])


def _exchange(schedule: Schedule, axis: Axis, parts: tuple[Axis, ...]) -> Schedule:
    at = schedule.axes.index(axis)
    return schedule.with_axes((*schedule.axes[:at], *parts, *schedule.axes[at + 1 :]))


_STEPS: dict[str, Callable[[Kernel, Opt, Target], Schedule]] = {
    "UPCAST": _expand,
    "UNROLL": _expand,
    "VECTOR": _expand,
    "TILE": _tile,
    "THREAD": _thread,
    "SPLITK": _split_k,
    "STREAM": _stream,
    "ORDER": _order,
    "SWAP": _swap,
    "STAGE": stage_opts.stage,
    "KEEP": stage_opts.keep,
    "PREFETCH": stage_opts.prefetch,
    "NTSTORE": stage_opts.nt_store,
    "LOCAL": workgroup_opts.local,
    "GROUP": workgroup_opts.group,
    "GROUPTOP": workgroup_opts.group,
    "NOLOCALS": workgroup_opts.no_locals,
    "TC": tensor_core.bind,
    "PADTO": tensor_core.pad,
}
