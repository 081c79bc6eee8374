"""What a schedule's STAGE and KEEP steps hold: how much, and how often it is filled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.kernel.access import Access, access, accesses, dims_below
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.renaming import renaming
from loopwright_core.kernel.schedule import Schedule, Stage
from loopwright_core.kernel.statements import Statement

_OF_WORKGROUP = (AxisKind.LOCAL, AxisKind.GROUP)


@dataclass(frozen=True)
class Copy:
    """`extents`: of the local array, by axis (panel) or by buffer dimension (halo, keep).

    `n_fills`: how often it is filled; `per`: " in each workgroup", " by each thread" or "".
    `is_shared`: threads of a workgroup have one together.
    """

    stage: Stage
    extents: tuple[int, ...]
    n_bytes: int
    n_fills: int
    per: str
    is_store: bool
    is_shared: bool


def is_own(schedule: Schedule, at: str, dims: Iterable[str]) -> bool:
    """Whether a value over these dims that is kept inside axis `at` is each thread's own: no axis
    over a workgroup's threads lies further in."""
    wanted = frozenset(dims)
    names = [a.name for a in schedule.axes]
    behind = schedule.axes[names.index(at) + 1 if at else 0 :]
    return not any(a.kind in _OF_WORKGROUP and a.size != 1 and a.dim in wanted for a in behind)


def conversions(kernel: Kernel, name: str) -> tuple[UOp, ...]:
    """The CASTs of an access's loads, all to one dtype; () where somebody reads it otherwise.

    Found once per body.
    """
    known = _conversions.get(kernel.body)
    if known is None:
        known = _conversions[kernel.body] = _find_conversions(kernel)
    return known.get(name, ())


def _find_conversions(kernel: Kernel) -> dict[str, tuple[UOp, ...]]:
    names = {a.node: a.name for a in accesses(kernel)}
    users: dict[str, dict[UOp, None]] = {}
    for node in toposort((kernel.body,)):
        for source in node.src:
            if source.op is Op.LOAD:
                users.setdefault(names[source.src[0]], {})[node] = None
    return {
        name: tuple(found)
        for name, found in users.items()
        if all(u.op is Op.CAST for u in found) and len({u.dtype for u in found}) == 1
    }


def copies(kernel: Kernel, statements: Sequence[Statement]) -> list[Copy]:
    """One for each stage of the kernel's schedule, in its order."""
    return [_copy(kernel, stage, statements) for stage in kernel.schedule.stages]


def _copy(kernel: Kernel, stage: Stage, statements: Sequence[Statement]) -> Copy:
    schedule = kernel.schedule
    found = None if stage.mode == "keep" else access(kernel, stage.access)
    shared = any(a.kind in _OF_WORKGROUP and a.size != 1 for a in schedule.axes)
    if found is None:
        instances = kernel.shared[int(stage.access[1:])]
        extents, own = _rooms(kernel, stage.at, instances)
        shared = shared and not own
        itemsize, users = instances[0].dtype.itemsize, statements
    else:
        axes = _inside(schedule, stage.at, found.dims)
        extents = _extents(found, axes, stage)
        itemsize = (stage.dtype or found.dtype).itemsize
        users = [s for s in statements if found.node in _indices(s)]
    path = _path(users, stage.at)
    kinds = [a.kind for a in path]
    per = " in each workgroup" if AxisKind.GLOBAL in kinds else ""
    per = " by each thread" if AxisKind.THREAD in kinds else per
    return Copy(
        stage,
        extents,
        prod(extents) * itemsize,
        prod(
            a.size
            for a in path
            if isinstance(a.size, int) and a.kind in (AxisKind.LOOP, AxisKind.REDUCE)
        ),
        per,
        found is not None and found.is_store,
        shared,
    )


def _rooms(kernel: Kernel, at: str, instances: Sequence[UOp]) -> tuple[tuple[int, ...], bool]:
    """How far a kept value reaches along each of its dims, in the instance that goes farthest, and
    whether it is each thread's own."""
    first = instances[0]
    free = dims_below((first,)) - _bound(first)
    renamed = [renaming(first, other) or {} for other in instances]
    everywhere = [names.get(name, name) for names in renamed for name in free]
    own = is_own(kernel.schedule, at, everywhere)
    found = []
    for name in [d.name for d in kernel.dims if d.name in free]:
        here = [names.get(name, name) for names in renamed]
        axes = _inside(kernel.schedule, at, here, own)
        found.append(max(1 + _reach(axes, ((dim, 1),)) for dim in here))
    return tuple(found), own


def _extents(found: Access, axes: Sequence[Axis], stage: Stage) -> tuple[int, ...]:
    if stage.mode != "halo":
        by_name = {a.name: a for a in axes}
        order = [by_name[n] for n in stage.layout if n in by_name] or axes
        return tuple([a.size for a in order if isinstance(a.size, int)])
    terms = [[(a.arg.name, k) for a, k in form.terms if a.op is Op.DIM] for form in found.form]
    return tuple([1 + _reach(axes, t) for t in terms])


def _reach(axes: Sequence[Axis], terms: Iterable[tuple[str, int]]) -> int:
    """How far an affine index moves over these axes."""
    return sum(
        abs(k) * a.stride * (a.size - 1)
        for dim, k in terms
        for a in axes
        if a.dim == dim and isinstance(a.size, int)
    )


def _inside(schedule: Schedule, at: str, dims: Iterable[str], own: bool = False) -> list[Axis]:
    """The axes of some dims within an axis: loops behind it, what is expanded, and (but for what
    is each thread's `own`) what a workgroup's threads share."""
    wanted, found, is_open = frozenset(dims), [], not at
    for axis in schedule.axes:
        shared = axis.kind in _OF_WORKGROUP and not own
        if axis.dim in wanted and (is_open or axis.kind.is_expanded or shared):
            found.append(axis)
        is_open = is_open or axis.name == at
    return found


def _path(users: Sequence[Statement], at: str) -> list[Axis]:
    """The loops around a copy, from the outermost to `at`."""
    for s in users:
        names = [step.axis.name for step in s.path]
        if at in names:
            return [step.axis for step in s.path[: names.index(at) + 1]]
    return []


def _indices(s: Statement) -> set[UOp]:
    return {n.src[0] for n in s.order if n.op is Op.LOAD} | {s.node.src[0]}


def _bound(value: UOp) -> set[str]:
    """Dims that reduces below a value bind."""
    reduces = [n for n in toposort((value,)) if n.op is Op.REDUCE]
    return {s.arg.name for n in reduces for s in n.src if s.op is Op.DIM}


_conversions: WeakKeyDictionary[UOp, dict[str, tuple[UOp, ...]]] = WeakKeyDictionary()
