"""Cache lines and pages that a nest of loops moves between the levels of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

LINE = 64
PAGE = 4096
_WAYS = 8
# Translations that a core holds at once, nearby and further away.
_PAGES = (64, 2048)
# Streams that the hardware follows at once.
_STREAMS = 16
# How much of a cache one nest can count on.
_SHARE = 0.75
# Cycles for a line from L2, L3 and memory, read in a row and read here and there; for a page that
# must be looked up, nearby and in tables; for a write past the caches of less than a line.
STREAM_CYCLES = (0.1, 2.8, 7.0)
STRIDED_CYCLES = (3.3, 10.0, 30.0)
PAGE_CYCLES = (2.2, 11.0)
PART_CYCLES = 48.0
# Bytes between two reads of one loop that the hardware still foresees.
_FORESEEN = 1536


@dataclass(frozen=True, slots=True)
class Walk:
    """An access in its nest. Units: bytes.

    loops: how far one step of each loop moves it, outermost first; leaf: (steps, distance) of the
    axes written out. `writes`: how often a line goes back for each time it comes, 0 for loads.
    around: it is written past the caches. twin_depth: how many loops an earlier reader of the same
    bytes shares, -1 for none.
    """

    slot: int
    itemsize: int
    total: int
    loops: tuple[int, ...]
    leaf: tuple[tuple[int, int], ...]
    writes: float = 0.0
    around: bool = False
    twin_depth: int = -1


class Foot(NamedTuple):
    """What a walk touches in one run of its inner loops. `gap`: bytes between runs, 0 for one."""

    lines: int
    pages: int
    run: int
    gap: int
    n_runs: int


def traffic(
    walks: Sequence[Walk], sizes: Sequence[int], trips: Sequence[float], caches: Sequence[int]
) -> float:
    """Cycles that a nest waits for lines and pages. `sizes`: whole steps of each loop; `trips`:
    steps taken on average."""
    n = len(sizes)
    feet = [[foot(w, sizes, n) for w in walks]]
    for depth in range(n - 1, -1, -1):
        last = feet[-1]
        feet.append(
            [
                foot(w, sizes, depth) if w.loops[depth] else f
                for w, f in zip(walks, last, strict=True)
            ]
        )
    feet.reverse()
    outside = [1.0]
    for trip in trips:
        outside.append(outside[-1] * trip)
    cycles = 0.0
    furthest = max((at for at, size in enumerate(caches) if size), default=0)
    for n_cache, size in enumerate(caches):
        if not size:
            continue
        level = 2 if n_cache == furthest else n_cache  # beyond the last one is memory
        depth = _depth(feet, size * _SHARE / LINE, size)
        # what is in this cache after one launch is there at the next
        if depth:
            for at, walk in enumerate(walks):
                if not walk.around:
                    cycles += _moved(walk, at, feet, depth, outside, level)
    for held, cost in zip(_PAGES, PAGE_CYCLES, strict=True):
        depth = next((d for d in range(n + 1) if sum([f.pages for f in feet[d]]) <= held), n)
        for at, walk in enumerate(walks):
            if m := _moving(walk, depth):
                cycles += feet[m - 1][at].pages * outside[m - 1] * cost
    for at, walk in enumerate(walks):
        if walk.around:
            cycles += _written(walk, feet[0][at], feet[n][at].run)
    return cycles


def foot(walk: Walk, sizes: Sequence[int], depth: int) -> Foot:
    """What the loops from `depth` on touch together."""
    steps: dict[int, int] = {}
    for size, stride in walk.leaf:
        if stride:
            steps[stride] = steps.get(stride, 1) + size - 1
    for size, stride in zip(sizes[depth:], walk.loops[depth:], strict=True):
        if stride:
            steps[stride] = steps.get(stride, 1) + size - 1
    run, n_runs, gap = walk.itemsize, 1, 0
    for stride in sorted(steps):
        size = steps[stride]
        if size < 2:
            continue
        if n_runs == 1 and stride <= max(run, LINE):
            run += stride * (size - 1)
        else:
            gap = gap or stride
            n_runs *= size
    run = min(run, walk.total)
    lines = min(n_runs * -(-run // LINE), walk.total // LINE + 1)
    pages = min(n_runs * -(-run // PAGE), walk.total // PAGE + 1)
    return Foot(lines, pages, run, gap, n_runs)


def _depth(feet: Sequence[Sequence[Foot]], lines: float, size: int) -> int:
    """The outermost loop whose inside fits a cache of so many lines."""
    for depth, row in enumerate(feet):
        if sum([_held(f, size) for f in row]) <= lines:
            return depth
    return len(feet) - 1


def _held(f: Foot, size: int) -> float:
    """Lines that a footprint takes up in a cache, those counted that its strides leave unused."""
    way = size // _WAYS
    if f.n_runs <= _WAYS or f.gap < LINE:
        return f.lines
    places = max(1, way // gcd(f.gap, way))  # where in a way the runs may begin
    per_run = -(-f.run // LINE)
    usable = min(way // LINE, places * per_run) * _WAYS
    return f.lines if f.lines <= usable else f.lines * (size / LINE) / usable


def _moving(walk: Walk, depth: int) -> int:
    """The depth of the innermost loop outside that moves a walk, 0 where none does."""
    while depth and not walk.loops[depth - 1]:
        depth -= 1
    return depth


def _moved(
    walk: Walk,
    at: int,
    feet: Sequence[Sequence[Foot]],
    depth: int,
    outside: Sequence[float],
    level: int,
) -> float:
    """Cycles for the lines of one walk that come from beyond a cache.

    Loops around what fits move new lines, as far as they move at all; where such a loop goes on in
    a line that is there already, the line counts once.
    """
    if depth <= walk.twin_depth:
        return 0.0
    m = _moving(walk, depth)
    lines = feet[m - 1][at].lines * outside[m - 1] if m else float(feet[0][at].lines)
    inner = feet[m][at]
    runs_on = inner.run >= _FORESEEN or (m > 0 and abs(walk.loops[m - 1]) <= _FORESEEN)
    cost = (STREAM_CYCLES if runs_on and inner.n_runs <= _STREAMS else STRIDED_CYCLES)[level]
    return lines * cost * (1 + walk.writes)


def _written(walk: Walk, whole: Foot, run: int) -> float:
    """Cycles of writes past the caches: lines that are filled at once, or parts of lines."""
    inner = next((s for s in reversed(walk.loops) if s), 0)
    if run >= LINE or inner <= run:
        return whole.lines * STREAM_CYCLES[2]
    return whole.lines * (LINE / run) * PART_CYCLES
