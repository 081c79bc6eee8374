"""Predicted cycles of a schedule on a processor: what its ports, registers and caches allow.

Each value of a leaf is computed as often as the loops down to the innermost one that changes it
run, once for each copy that differs; loads and stores likewise. The busiest port, the chain of
sums that wait for each other and the lines that must come decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import log2, prod

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Stage
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import inside
from loopwright_opt.traffic import Walk, traffic
from loopwright_opt.work import Touch, Work, placed, size_of, works_of

# What one cycle can do.
_ARITHMETIC = 2.0
_LOADS = 2.0
_STORES = 1.0
_ISSUED = 3.2
# Instructions in flight: shorter chains of sums overlap with the next ones.
_WINDOW = 590.0
# Cycles of a loop that ends, guessed wrong or right.
_LEFT, _LEFT_SHORT, _SHORT = 3.0, 0.4, 12
# Instructions of one lane of a gather besides its load, of a condition.
_LANE, _CONDITION = 0.4, 0.35
# Memory and arithmetic hide behind each other for the most part.
_HIDDEN = 0.7
# Instructions in the text of one leaf that the decoder still holds.
_TEXT = 1500.0
# Elements in a row of a tensor core's tile; its multiply-adds in the time of one instruction.
_ROW, _CORE = 16, 256
# A stride for what cannot be foreseen.
_ANYWHERE = 4160


@dataclass
class _Level:
    """Instructions at one depth of a nest, for one step of its innermost loop."""

    arithmetic: float = 0.0
    loads: float = 0.0
    stores: float = 0.0
    other: float = 0.0

    @property
    def issued(self) -> float:
        return self.arithmetic + self.loads + self.stores + self.other

    @property
    def cycles(self) -> float:
        return max(
            self.arithmetic / _ARITHMETIC,
            self.loads / _LOADS,
            self.stores / _STORES,
            self.issued / _ISSUED,
        )


@dataclass
class _Nest:
    """The loops of one statement. `trips`: steps on average, of a ragged loop no whole number.

    `copies`: per dim, of UPCAST and UNROLL; `lanes`: (dim, count) or ("", 1); `pieces`: registers
    of one value with lanes.
    """

    axes: list[Axis]
    loops: list[Axis]
    trips: list[float]
    sizes: list[int]
    copies: dict[str, int]
    lanes: tuple[str, int]
    pieces: int
    levels: list[_Level] = field(default_factory=list)

    def depth(self, dims: frozenset[str]) -> int:
        """How many loops are open around what changes with these dims."""
        return max((n for n, a in enumerate(self.loops, 1) if a.dim in dims), default=0)

    def tile(self, dims: frozenset[str]) -> int:
        """Elements that one step of a tensor core has of what changes with these dims."""
        return prod([size_of(a) for a in self.axes if a.kind is AxisKind.TENSOR and a.dim in dims])

    def count(self, dims: frozenset[str]) -> int:
        """Instructions for one value that changes with these dims, of a tile those for its rows."""
        n = prod([c for d, c in self.copies.items() if d in dims]) * -(-self.tile(dims) // _ROW)
        return n * self.pieces if self.lanes[0] in dims else n

    def times(self, depth: int) -> float:
        return prod(self.trips[:depth])


def cycles(kernel: Kernel, target: Target) -> float:
    """Predicted cycles of one launch, of the thread with the most to do."""
    found = 0.0
    earlier: list[tuple[list[str], list[Walk]]] = []
    for work in works_of(kernel):
        found += _statement(work, kernel, target, earlier)
    for stage in kernel.schedule.stages:
        if stage.mode != "keep":
            found += _copy(stage, kernel, target)
    return found


def _statement(
    work: Work, kernel: Kernel, target: Target, earlier: list[tuple[list[str], list[Walk]]]
) -> float:
    itemsize = max([work.itemsize, *[min(t.itemsize, 8) for t in work.touches]])
    nest = _nest(kernel, target, work.dims, itemsize)
    leaf = nest.levels[-1]
    for dims, weight in work.ops:
        nest.levels[nest.depth(dims)].arithmetic += nest.count(dims) * weight
    staged = {s.access: s for s in kernel.schedule.stages}
    fetched = {name for name, _ in kernel.schedule.prefetch}
    leaf.loads += sum(t.name in fetched for t in work.touches if not t.is_store)
    walks = []
    names = [a.name for a in nest.loops]
    for touch in work.touches:
        made, strides = placed(touch, staged.get(touch.name), kernel)
        _issue(made, strides, nest)
        walk = _walk(made, strides, nest, kernel)
        walks.append(replace(walk, twin_depth=_twin(walk, names, earlier)))
    if work.merge:
        _reduce(work, nest, target, walks, kernel)
    core = 0.0
    for depth, level in enumerate(nest.levels):
        core += nest.times(depth) * level.cycles
    core += nest.times(len(nest.loops)) * _wait(work, nest, leaf)
    core += nest.times(len(nest.loops)) * max(0.0, leaf.issued - _TEXT) / 2
    for depth, trip in enumerate(nest.trips):
        core += nest.times(depth) * (_LEFT if trip > _SHORT else _LEFT_SHORT)
    earlier.append((names, walks))
    memory = traffic(walks, nest.sizes, nest.trips, target.caches)
    return max(core, memory) + (1 - _HIDDEN) * min(core, memory)


def _nest(kernel: Kernel, target: Target, dims: frozenset[str], itemsize: int) -> _Nest:
    axes = [a for a in kernel.schedule.axes if a.dim in dims]
    loops = [a for a in axes if not a.kind.is_expanded and a.kind is not AxisKind.TENSOR]
    copies: dict[str, int] = {}
    lanes = ("", 1)
    for a in axes:
        if a.kind is AxisKind.VECTOR:
            lanes = a.dim, size_of(a)
        elif a.kind.is_expanded:
            copies[a.dim] = copies.get(a.dim, 1) * size_of(a)
    widest = max(target.vector_bytes, default=itemsize)
    pieces = max(1, -(-lanes[1] * itemsize // widest))
    found = _Nest(axes, loops, [], [], copies, lanes, pieces)
    for a in loops:
        trip, size = _trip(a, kernel, lanes)
        found.trips.append(trip)
        found.sizes.append(size)
    found.levels = [_Level() for _ in range(len(loops) + 1)]
    for level in found.levels[1:]:
        level.other += 2.0
    return found


def _trip(axis: Axis, kernel: Kernel, lanes: tuple[str, int]) -> tuple[float, int]:
    """(steps on average, steps at most) of a loop in one thread."""
    size = size_of(axis)
    if axis.kind is AxisKind.THREAD:
        return 1.0, 1
    extent = kernel.dim(axis.dim).max_size
    if axis.dim == lanes[0]:
        extent = -(-extent // lanes[1]) * lanes[1]
    # only a dim's outermost axis is ragged
    outer = [a for a in kernel.schedule.axes if a.dim == axis.dim and a.stride > axis.stride]
    if outer:
        threads = next((a for a in outer if a.kind is AxisKind.THREAD), None)
        if threads is None or len(outer) > 1:
            return float(size), size
        return min(float(size), max(1.0, extent / axis.stride)), size
    return min(float(size), max(1.0, extent / axis.stride)), size


def _issue(touch: Touch, strides: dict[str, int], nest: _Nest) -> None:
    """Instructions of an access: one a copy, one a lane where lanes do not lie side by side."""
    level = nest.levels[nest.depth(touch.dims)]
    n = nest.count(touch.dims)
    dim, lanes = nest.lanes
    instructions = float(n)
    if dim in touch.dims:
        step = next((strides.get(a.name, 0) for a in nest.axes if a.kind is AxisKind.VECTOR), 0)
        n //= nest.pieces
        if dim in touch.hidden or abs(step) > 1:
            instructions = float(n * lanes)
            level.arithmetic += n * lanes * _LANE
        elif step == 0:
            instructions = float(n)
        elif step < 0:
            level.arithmetic += n
    if touch.is_store:
        level.stores += instructions
    else:
        level.loads += instructions
    level.other += 0.5
    for dims in touch.conditions:
        asked = nest.levels[nest.depth(dims)]
        asked.arithmetic += nest.count(dims) * _CONDITION


def _walk(touch: Touch, strides: dict[str, int], nest: _Nest, kernel: Kernel) -> Walk:
    def step(a: Axis) -> int:
        if a.dim in touch.hidden:
            return _ANYWHERE
        return abs(strides.get(a.name, 0)) * touch.itemsize

    around = touch.is_store and touch.name.partition(".")[0] in kernel.schedule.nt_stores
    return Walk(
        touch.slot,
        touch.itemsize,
        touch.total_bytes,
        tuple([step(a) for a in nest.loops]),
        tuple([(size_of(a), step(a)) for a in nest.axes if a not in nest.loops]),
        1.0 if touch.is_store else 0.0,
        around,
    )


def _twin(walk: Walk, names: list[str], earlier: list[tuple[list[str], list[Walk]]]) -> int:
    """How many loops an earlier statement that touches the same bytes shares with this one."""
    found = -1
    for others, walks in earlier:
        same = 0
        while same < min(len(names), len(others)) and names[same] == others[same]:
            same += 1
        if any(w.slot == walk.slot and w.loops[:same] == walk.loops[:same] for w in walks):
            found = max(found, same)
    return found


def _reduce(work: Work, nest: _Nest, target: Target, walks: list[Walk], kernel: Kernel) -> None:
    """Merging, and the accumulators: opened, joined, kept in registers or not."""
    leaf = nest.levels[-1]
    steps = nest.tile(work.dims)
    leaf.arithmetic += nest.count(work.dims) * work.merge / -(-steps // _ROW) * -(-steps // _CORE)
    partial = prod(
        [size_of(a) for a in nest.axes if a.kind is AxisKind.UPCAST and a.dim in work.bound]
    )
    sums = nest.count(work.free) * partial
    across = nest.lanes[0] in work.bound
    if across:
        sums *= nest.pieces
    depth = len(nest.loops)
    while depth and nest.loops[depth - 1].dim in work.bound:
        depth -= 1
    opened = nest.levels[depth]
    joins = sums - nest.count(work.free)
    opened.arithmetic += sums + joins * work.merge
    if across:
        opened.arithmetic += nest.count(work.free) * 3 * log2(nest.lanes[1]) * work.merge
    spilled = any(a.dim in work.bound for a in nest.loops[:depth])
    if spilled:
        opened.loads += sums
        opened.stores += sums
        if work.output is not None:
            made, strides = placed(work.output, None, kernel)
            walks.append(_walk(made, strides, nest, kernel))
    # What a step reads for all sums: the fewer of two operands wait in registers.
    loads = sorted(nest.count(t.dims) for t in work.touches if not t.is_store)
    waiting = (loads[0] if len(loads) > 1 else 0) + 1
    if depth < len(nest.loops):
        over = sums + waiting - target.registers
        if over > 0:
            leaf.loads += over
            leaf.stores += over
            leaf.other += over


def _wait(work: Work, nest: _Nest, leaf: _Level) -> float:
    """Cycles that a leaf waits for its own last step beyond what it has to do anyway."""
    if not work.merge or not nest.loops or nest.loops[-1].dim not in work.chained:
        return 0.0
    chain = work.wait_cycles * prod(
        [size_of(a) for a in nest.axes if a.kind is AxisKind.UNROLL and a.dim in work.bound]
    )
    steps = 1.0
    for trip, a in zip(reversed(nest.trips), reversed(nest.loops), strict=True):
        if a.dim not in work.chained:
            break
        steps *= trip
    overlapped = min(1.0, steps * max(leaf.issued, 1.0) / _WINDOW)
    return max(0.0, chain * overlapped - leaf.cycles)


def _copy(stage: Stage, kernel: Kernel, target: Target) -> float:
    """Filling a staged copy: elements or vectors read and written, lines that come for it."""
    touch, users = _staged(stage, kernel)
    if touch is None:
        return 0.0
    schedule = kernel.schedule
    within = inside(schedule, stage.at, touch.dims)
    names = stage.order or tuple([a.name for a in within])
    by_name = {a.name: a for a in within}
    outer: list[Axis] = []
    for a in schedule.axes:
        if a.kind.is_expanded or not stage.at:
            break
        if a.dim in users:
            outer.append(a)
        if a.name == stage.at:
            break
    packed, held = placed(touch, stage, kernel)
    own = touch.strides()
    inner = [by_name[n] for n in names]
    if stage.mode == "halo":
        return _halo(touch, packed, outer, kernel, target)
    last = inner[-1] if inner else None
    lanes = 1
    if last is not None and own.get(last.dim, 0) * last.stride == 1 == held.get(last.name):
        lanes = min(size_of(last), max(target.vector_bytes, default=4) // touch.itemsize)
    loops = [*outer, *inner]
    trips = [_trip(a, kernel, ("", 1))[0] for a in loops]
    sizes = [_trip(a, kernel, ("", 1))[1] for a in loops]

    def steps(a: Axis) -> int:
        return abs(own.get(a.dim, 0)) * a.stride * touch.itemsize

    walks = [
        Walk(touch.slot, touch.itemsize, touch.total_bytes, tuple(map(steps, loops)), ()),
        Walk(
            packed.slot,
            packed.itemsize,
            packed.total_bytes,
            (*[0] * len(outer), *[held.get(a.name, 0) * packed.itemsize for a in inner]),
            (),
            1.0,
        ),
    ]
    n = prod(trips) / max(lanes, 1)
    if inner and all(a.kind.is_expanded for a in inner):  # values that stay in registers
        return traffic(walks[:1], sizes, trips, target.caches)
    looped = [t for t, a in zip(trips, loops, strict=True) if not a.kind.is_expanded]
    core = n * (1.5 if lanes > 1 else 1.2) + prod(looped[:-1]) * _LEFT_SHORT
    memory = traffic(walks, sizes, trips, target.caches)
    return max(core, memory) + (1 - _HIDDEN) * min(core, memory)


def _halo(
    touch: Touch, packed: Touch, outer: Sequence[Axis], kernel: Kernel, target: Target
) -> float:
    """A box with its rim: rows of the buffer in a row, each element asked whether it is inside."""
    outside = prod([_trip(a, kernel, ("", 1))[0] for a in outer])
    elements = packed.total_bytes / touch.itemsize
    own = touch.strides()
    loops = tuple([abs(own.get(a.dim, 0)) * a.stride * touch.itemsize for a in outer])
    walk = Walk(touch.slot, touch.itemsize, touch.total_bytes, (*loops, touch.itemsize), ())
    sizes = [size_of(a) for a in outer]
    trips = [_trip(a, kernel, ("", 1))[0] for a in outer]
    lines = traffic([walk], [*sizes, int(elements)], [*trips, elements], target.caches)
    return outside * elements * 1.0 + lines


def _staged(stage: Stage, kernel: Kernel) -> tuple[Touch | None, frozenset[str]]:
    """(the access that a copy serves, the dims of the statements that use it)."""
    found: Touch | None = None
    dims: frozenset[str] = frozenset()
    for work in works_of(kernel):
        for touch in work.touches:
            if touch.name == stage.access:
                found, dims = touch, dims | work.dims
    return found, dims
