"""Predicted seconds of a schedule on a GPU, by counting: instructions, sectors, shared memory.

The counts are of a warp: what its lanes ask for together decides how many sectors of global memory
and how many turns of shared memory an access takes. Few workgroups, small ones and those that need
many registers or much shared memory leave the device idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Stage
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import inside
from loopwright_opt.legality.workgroups import shared_bytes
from loopwright_opt.traffic import Walk, foot
from loopwright_opt.work import Touch, Work, placed, size_of, works_of

# A device in round numbers: its units, and what one does in a cycle for all of its warps.
_UNITS = 64
_HERTZ = 1.4e9
_ISSUED, _SHARED, _L1_SECTORS, _L2_SECTORS = 4.0, 1.0, 4.0, 1.0
_SECTOR = 32
# A request keeps the first cache as busy as so many sectors at least.
_REQUEST = 8
_BANKS, _BANK_BYTES = 32, 4
# Threads and registers of a unit, and the warps it needs to hide its latencies.
_RESIDENT, _REGISTERS, _ENOUGH = 2048, 64 << 10, 16
_OWN_REGISTERS = 24
# Multiply-adds of a tensor core in the time of one instruction of a warp.
_CORE_STEPS = 256
_LAUNCH_S = 3e-6
_THREADS = (AxisKind.LOCAL, AxisKind.GROUP)
_APART = (AxisKind.GLOBAL, *_THREADS)


@dataclass
class _Count:
    """Of one workgroup: instructions of its warps, turns of shared memory, sectors asked for, those
    that are different ones."""

    instructions: float = 0.0
    shared: float = 0.0
    sectors: float = 0.0
    distinct: float = 0.0


def seconds(kernel: Kernel, target: Target) -> float:
    """Predicted seconds of one launch."""
    found = _LAUNCH_S
    used = shared_bytes(kernel, kernel.schedule)
    for work in works_of(kernel):
        found += _statement(work, kernel, target, used)
    return found


def _statement(work: Work, kernel: Kernel, target: Target, used: int) -> float:
    axes = [a for a in kernel.schedule.axes if a.dim in work.dims]
    core = [a for a in axes if a.kind is AxisKind.TENSOR]
    loops = [a for a in axes if not a.kind.is_expanded and a.kind not in (*_APART, AxisKind.TENSOR)]
    threads = [a for a in axes if a.kind in _THREADS]
    n_groups = prod([size_of(a) for a in axes if a.kind is AxisKind.GLOBAL])
    n_threads = prod(map(size_of, threads))
    if not threads and n_groups:  # one item an id: the runtime makes workgroups of a warp or more
        n_threads = min(n_groups, target.subgroup)
        n_groups = -(-n_groups // n_threads)
    if core:  # a subgroup together for each item
        n_threads *= target.subgroup if threads else 1
    warps = -(-n_threads // target.subgroup)
    count = _Count()
    for dims, weight in work.ops:
        lanes = max(1.0, _tile(dims, core) / target.subgroup)
        count.instructions += weight * _times(dims, loops) * _copies(dims, axes) * warps * lanes
    steps = _times(work.dims, loops) * _copies(work.dims, axes) * warps
    count.instructions += work.merge * steps * max(1.0, _tile(work.dims, core) / _CORE_STEPS)
    count.instructions += (
        3.0 * warps * sum([prod(map(size_of, loops[: depth + 1])) for depth in range(len(loops))])
    )
    staged = {s.access: s for s in kernel.schedule.stages}
    for touch in work.touches:
        stage = staged.get(touch.name)
        _access(touch, stage, kernel, axes, loops, warps, target, count)
        if stage is not None:
            _copy(touch, stage, kernel, loops, n_threads, target, count)
    grouped = prod([size_of(a) for a in threads if a.kind is AxisKind.GROUP])
    if grouped > 1:
        sums = _copies(work.free, axes)
        count.shared += warps * sums * (1 + grouped)
        count.instructions += warps * sums * grouped * (1 + work.merge)
    sums = _copies(work.free, axes) if work.merge else 1
    sums *= max(1, _tile(work.free, core) // target.subgroup)
    return _time(count, n_groups, n_threads, sums, used, target)


def _time(
    count: _Count, n_groups: int, n_threads: int, sums: int, used: int, target: Target
) -> float:
    """Seconds of so many workgroups with these counts each."""
    registers = min(_OWN_REGISTERS + sums, target.registers)
    spilled = max(0, _OWN_REGISTERS + sums - target.registers)
    whole = -(-n_threads // target.subgroup) * target.subgroup
    resident = min(_RESIDENT, _REGISTERS // registers) // whole
    if used:
        resident = min(resident, max(target.shared_bytes // used, 1))
    resident = max(1, min(resident, -(-n_groups // _UNITS)))
    busy = min(1.0, resident * whole / target.subgroup / _ENOUGH)
    cycles = max(
        count.instructions * (1 + spilled / 16) / _ISSUED,
        count.shared / _SHARED,
        count.sectors / _L1_SECTORS,
        count.distinct / _L2_SECTORS,
    )
    turns = max(1.0, n_groups / _UNITS)
    return cycles * turns / busy / _HERTZ


def _times(dims: frozenset[str], loops: list[Axis]) -> int:
    depth = max((n for n, a in enumerate(loops, 1) if a.dim in dims), default=0)
    return prod([size_of(a) for a in loops[:depth]])


def _copies(dims: frozenset[str], axes: list[Axis]) -> int:
    """Everything written out: lanes are for memory alone."""
    return prod([size_of(a) for a in axes if a.kind.is_expanded and a.dim in dims])


def _tile(dims: frozenset[str], core: list[Axis]) -> int:
    """Elements that a tensor core's step has of what changes with these dims."""
    return prod([size_of(a) for a in core if a.dim in dims])


def _access(
    touch: Touch,
    stage: Stage | None,
    kernel: Kernel,
    axes: list[Axis],
    loops: list[Axis],
    warps: int,
    target: Target,
    count: _Count,
) -> None:
    strides = placed(touch, stage, kernel)[1]
    lanes = 1
    for a in axes:
        if a.kind is AxisKind.VECTOR and strides.get(a.name) == 1:
            lanes = size_of(a)
    times = _times(touch.dims, loops) * _copies(touch.dims, axes) // lanes * warps
    core = [a for a in axes if a.kind is AxisKind.TENSOR]
    per_lane = max(1, _tile(touch.dims, core) // target.subgroup)
    count.instructions += times * (1 + len(touch.conditions)) * per_lane
    fast = _warp(axes, strides, touch, target.subgroup)
    if stage is not None:
        words = [(n, s // _BANK_BYTES) for n, s in fast if s]
        turns = max([-(-n * gcd(max(s, 1), _BANKS) // _BANKS) for n, s in words], default=1)
        count.shared += times * turns
        return
    asked = _sectors(fast, touch.itemsize * lanes)
    count.sectors += times * max(asked, _REQUEST)
    walk = Walk(
        touch.slot,
        touch.itemsize,
        touch.total_bytes,
        (),
        tuple(
            [
                (size_of(a), abs(strides.get(a.name, 0)) * touch.itemsize)
                for a in axes
                if a.kind is not AxisKind.GLOBAL
            ]
        ),
    )
    distinct = foot(walk, (), 0).lines * 2.0
    reused = distinct * _SECTOR <= target.caches[0] * 8
    count.distinct += distinct if reused else times * asked


def _warp(
    axes: list[Axis], strides: dict[str, int], touch: Touch, subgroup: int
) -> list[tuple[int, int]]:
    """(threads, bytes from one to the next) of the lanes of one warp, the fastest id first."""
    ids = [a for a in axes if a.kind in _THREADS] or [a for a in axes if a.kind is AxisKind.GLOBAL]
    core = [a for a in axes if a.kind is AxisKind.TENSOR]
    if core:  # a tile together
        return [(size_of(a), abs(strides.get(a.name, 0)) * touch.itemsize) for a in core]
    found = []
    left = subgroup
    for a in reversed(ids):
        n = min(left, size_of(a))
        hidden = _SECTOR if a.dim in touch.hidden else abs(strides.get(a.name, 0)) * touch.itemsize
        found.append((n, hidden))
        left //= max(n, 1)
        if left < 2:
            break
    return found


def _sectors(lanes: list[tuple[int, int]], itemsize: int) -> int:
    """Sectors that one access of a warp asks for."""
    run, apart = itemsize, 1
    for n, stride in sorted(lanes, key=lambda lane: lane[1]):
        if not stride:
            continue
        if stride <= max(run, _SECTOR) and apart == 1:
            run += stride * (n - 1)
        else:
            apart *= n
    return apart * -(-run // _SECTOR)


def _copy(
    touch: Touch,
    stage: Stage,
    kernel: Kernel,
    loops: list[Axis],
    n_threads: int,
    target: Target,
    count: _Count,
) -> None:
    """All threads of a workgroup copy a tile together, 16 bytes each where they lie in a row."""
    within = inside(kernel.schedule, stage.at, touch.dims)
    elements = prod(map(size_of, within))
    own = touch.strides()
    walk = Walk(
        touch.slot,
        touch.itemsize,
        touch.total_bytes,
        (),
        tuple([(size_of(a), abs(own.get(a.dim, 0)) * a.stride * touch.itemsize) for a in within]),
    )
    depth = next((n for n, a in enumerate(loops, 1) if a.name == stage.at), 0)
    times = prod([size_of(a) for a in loops[:depth]])
    touched = foot(walk, (), 0)
    sectors = max(elements * touch.itemsize / _SECTOR, touched.lines)
    count.sectors += times * sectors
    count.distinct += times * sectors
    steps = -(-elements // max(n_threads, 1)) * -(-n_threads // target.subgroup)
    count.shared += times * steps
    count.instructions += times * steps * 4
