"""Predicted seconds of a schedule from accesses, axes and target: integers, no graph walks.

What depends on the body alone is found once; a schedule is then priced by a walk over its few
axes. Only the order of predictions matters: the search times what ranks well.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_opt.facts import Facts, facts_of
from loopwright_opt.strategies.structure import accesses_of, statement_ops

# A core at 3 GHz: two vector operations and two memory accesses a cycle.
_HERTZ = 3e9
_LATENCY = 4  # cycles from one step of a sum to the next
_LOOP = 2  # cycles of a loop's own work
_LINE = 64
_LAUNCH_S = 5e-6  # waking the threads
# Bytes a cycle that come from L2, from L3 and from memory.
_BANDWIDTH = (32.0, 10.0, 4.0)
_GATHER = 3  # cycles a lane of an access that is not along unit stride


@dataclass(frozen=True)
class _Touch:
    """An access as the model sees it. `strides` in elements; `hidden`: dims in another form."""

    name: str
    itemsize: int
    strides: dict[str, int]
    hidden: frozenset[str]
    is_store: bool
    n_valid: int


@dataclass(frozen=True)
class _Work:
    """One statement: its dims, its own ops and accesses."""

    free: frozenset[str]
    bound: frozenset[str]
    n_ops: int
    touches: tuple[_Touch, ...]


# By body: what is kept holds no node of it.
_work: WeakKeyDictionary[UOp, tuple[_Work, ...]] = WeakKeyDictionary()


def predict(kernel: Kernel, target: Target) -> float:
    """Predicted seconds of one launch."""
    axes = kernel.schedule.axes
    cycles = sum(_price(work, kernel, target) for work in _works(kernel))
    threads = [a for a in axes if a.kind is AxisKind.THREAD]
    if threads:
        return cycles / min(_size(threads[0]), max(target.threads, 1)) / _HERTZ + _LAUNCH_S
    return cycles / _HERTZ


def _works(kernel: Kernel) -> tuple[_Work, ...]:
    found = _work.get(kernel.body)
    if found is None:
        facts = facts_of(kernel)
        found = _work[kernel.body] = tuple(
            [_work_of(facts, place) for place in range(len(facts.statements))]
        )
    return found


def _work_of(facts: Facts, place: int) -> _Work:
    statement = facts.statements[place]
    touches = [
        _Touch(a.name, a.dtype.itemsize, a.strides, a.opaque, a.is_store, len(a.valid))
        for a in accesses_of(facts, place)
    ]
    n_ops = max(1, statement_ops(facts, place))
    return _Work(statement.free, statement.bound, n_ops, tuple(touches))


def _price(work: _Work, kernel: Kernel, target: Target) -> float:
    """Cycles of one statement: arithmetic, its latency, accesses, loops, and cache traffic."""
    dims = work.free | work.bound
    axes = [a for a in kernel.schedule.axes if a.dim in dims]
    loops = [a for a in axes if not a.kind.is_expanded]
    copies = [a for a in axes if a.kind in (AxisKind.UPCAST, AxisKind.UNROLL)]
    lanes = {a.dim: _size(a) for a in axes if a.kind is AxisKind.VECTOR}
    width = max(lanes.values(), default=1)
    itemsize = max((t.itemsize for t in work.touches), default=4)
    registers = max(1, -(-width * itemsize // max(target.vector_bytes, default=itemsize)))
    n_leaf = prod(map(_size, loops))
    n_copies = prod(map(_size, copies)) * registers

    arithmetic = n_leaf * n_copies * work.n_ops / 2
    if work.bound:
        chains = registers * prod(
            _size(a) for a in copies if a.dim in work.free or a.kind is AxisKind.UPCAST
        )
        steps = n_leaf * prod(
            _size(a) for a in copies if a.dim in work.bound and a.kind is AxisKind.UNROLL
        )
        arithmetic = max(arithmetic, steps * _LATENCY)
        over = chains - max(target.registers - 4, 4)
        if over > 0:  # sums that do not fit are kept in memory
            arithmetic += n_leaf * over * 2
    memory = 0.0
    for touch in work.touches:
        memory += _issue(touch, loops, copies, lanes, registers, kernel)
    overhead = _LOOP * n_leaf + sum(
        _LOOP * prod(map(_size, loops[: depth + 1])) for depth in range(len(loops) - 1)
    )
    # code that does not fit the decoder's cache
    overhead += n_leaf * max(0, n_copies * work.n_ops - 1500)
    return max(arithmetic, memory) + overhead + _traffic(work, axes, loops, kernel, target)


def _issue(
    touch: _Touch,
    loops: list[Axis],
    copies: list[Axis],
    lanes: dict[str, int],
    registers: int,
    kernel: Kernel,
) -> float:
    """Cycles to issue an access: what does not move inside a loop is read outside of it."""
    moving = touch.strides.keys() | touch.hidden
    depth = max((n for n, a in enumerate(loops, 1) if a.dim in moving), default=0)
    times = prod(map(_size, loops[:depth])) * prod(_size(a) for a in copies if a.dim in moving)
    cost = 0.5 + 0.25 * touch.n_valid
    for dim, n in lanes.items():
        stride = touch.strides.get(dim, 0)
        staged = any(s.access == touch.name for s in kernel.schedule.stages)
        if dim in touch.hidden or (stride not in (0, 1) and not staged):
            cost = _GATHER * n / registers
        if dim in moving:
            cost *= registers
    return times * cost


def _traffic(
    work: _Work, axes: list[Axis], loops: list[Axis], kernel: Kernel, target: Target
) -> float:
    """Cycles for lines that come from beyond each cache."""
    staged = {s.access: s.at for s in kernel.schedule.stages}
    # extent of each dim inside the loops from depth d on; d = len(loops): the leaf alone
    leaf: dict[str, int] = {}
    for a in axes:
        if a.kind.is_expanded:
            leaf[a.dim] = leaf.get(a.dim, 1) * _size(a)
    levels = [leaf]
    for a in reversed(loops):
        inner = dict(levels[-1])
        inner[a.dim] = inner.get(a.dim, 1) * _size(a)
        levels.append(inner)
    levels.reverse()
    lines = [[_lines(t, extents, t.name in staged) for t in work.touches] for extents in levels]
    cycles = 0.0
    for level, size in enumerate(target.caches):
        if not size:
            continue
        depth = next(
            (d for d, row in enumerate(lines) if sum(row) * _LINE <= size * 3 // 4), len(loops)
        )
        if depth == 0:
            # what is in this cache after one launch may be there at the next
            continue
        moved = 0
        outside = prod(map(_size, loops[:depth]))
        for touch, n in zip(work.touches, lines[depth], strict=True):
            moving = touch.strides.keys() | touch.hidden
            repeat = outside
            # an access at rest in the loops next to those that fit stays in the cache
            for a in reversed(loops[:depth]):
                if a.dim in moving:
                    break
                repeat //= _size(a)
            moved += repeat * n
        cycles += moved * _LINE / _BANDWIDTH[level]
    for name, at in staged.items():
        for touch in work.touches:
            if touch.name == name:  # the copy itself
                depth = next((d for d, a in enumerate(loops, 1) if a.name == at), 0)
                n = _elements(touch, levels[depth])
                cycles += prod(map(_size, loops[:depth])) * n * touch.itemsize / 16
    return cycles


def _elements(touch: _Touch, extents: dict[str, int]) -> int:
    return prod(
        [extents.get(d, 1) for d in touch.strides]
        + [extents.get(d, 1) for d in touch.hidden if d not in touch.strides]
    )


def _lines(touch: _Touch, extents: dict[str, int], is_packed: bool) -> int:
    """Cache lines that an access touches while each dim walks so many steps."""
    n = _elements(touch, extents)
    if is_packed:
        return -(-n * touch.itemsize // _LINE)
    run = 1
    for dim, stride in sorted(touch.strides.items(), key=lambda d: abs(d[1])):
        if abs(stride) > run:
            break
        run = max(run, abs(stride) * extents.get(dim, 1))
    run = min(run, n)
    return -(-n // run) * max(1, -(-run * touch.itemsize // _LINE))


def _size(axis: Axis) -> int:
    return axis.size.hi if isinstance(axis.size, Variable) else axis.size
