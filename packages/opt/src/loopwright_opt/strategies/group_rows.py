"""Reduces along rows on workgroups: a group of threads a row, neighbours read neighbours.

Sums along rows, matrix times vector, and kernels of several such reduces (softmax, layer_norm).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.facts import Statement
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import (
    accesses_of,
    power_above,
    power_below,
    reads_once,
    wide_lanes,
)

# Threads of one launch that fill a device.
ENOUGH = 1 << 16
MOST_THREADS = 256
# Workgroups that are worth more than sharing between their threads.
FEWEST_GROUPS = 512


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    facts = draft.facts
    along = _rows(draft)
    if not along or facts.scanned:
        return False
    lanes = {d: max(wide_lanes(draft, d), 1) for d in along}
    lengths = [-(-draft.size(d) // lanes[d]) for d in along]
    outputs = prod(draft.size(d) for d in facts.common)
    threads = min(p["threads"], power_above(max(lengths)))
    while outputs * threads < ENOUGH and 4 * threads <= max(lengths) and threads < MOST_THREADS:
        threads *= 2
    copies = p["rows"]
    shared = _shared(draft, along, copies) if outputs >= FEWEST_GROUPS * copies else ""
    steps = [f"VECTOR {d} {n}" for d, n in lanes.items() if n > 1]
    steps += [f"UPCAST {shared} {copies}"] if shared else []
    block = power_below(
        outputs // FEWEST_GROUPS // (copies if shared else 1), p["block"] // threads
    )
    i = max(facts.common, key=lambda d: (draft.size(d), d), default="")
    if block > 1:
        steps.append(f"LOCAL {i}/{copies if i == shared else 1} {block}")
    for d, n in lanes.items():
        op = "GROUP" if draft.kernel.dim(d).is_reduce else "LOCAL"
        steps.append(f"{op} {d}/{n} {threads}")
    if not draft.do(*steps):
        return False
    rows = f", {block} rows of {i} a workgroup" if block > 1 else ""
    draft.note(f"a row of {', '.join(along)} on {threads} threads, side by side in memory{rows}")
    if shared:
        draft.note(f"{copies} rows of {shared} share what does not depend on them")
    return True


def _rows(draft: Draft) -> list[str]:
    """The dim that each statement walks by one element, the same number of threads on each; none
    where some reduce has no such dim that is long."""
    facts = draft.facts
    found: dict[str, None] = {}
    for place, statement in enumerate(facts.statements):
        own = statement.bound or statement.free - facts.common
        if not own:
            continue
        dim = _walked(draft, place, statement, own)
        if not dim:
            return []
        found[dim] = None
    has_reduce = any(draft.kernel.dim(d).is_reduce for d in found)
    return list(found) if has_reduce else []


def _walked(draft: Draft, place: int, statement: Statement, own: frozenset[str]) -> str:
    touched = accesses_of(draft.facts, place)
    for d in reversed(draft.kernel.dims):
        if d.name in own and draft.size(d.name) >= 32:
            walking = [a for a in touched if a.stride(d.name) == 1]
            if any(a.is_store or reads_once(a, statement) for a in walking):
                return d.name
    return ""


def _shared(draft: Draft, along: list[str], copies: int) -> str:
    """An output dim along which a load stands still that moves along the rows, of one reduce."""
    facts = draft.facts
    if sum(1 for s in facts.statements if s.bound) != 1:
        return ""
    loads = [a for a in facts.accesses.values() if not a.is_store]
    for d in reversed(draft.kernel.dims):
        if d.name in facts.common and draft.size(d.name) % copies == 0:
            still = [a for a in loads if d.name not in a.dims and a.dims & set(along)]
            if still and len(still) < len(loads):
                return d.name
    return ""


GROUP_ROWS = Heuristic(
    "group_rows",
    (
        Parameter("threads", 32, (16, 32, 64, 128, 256)),
        Parameter("rows", 4, (2, 4, 8)),
        Parameter("block", 64, (32, 64, 128, 256)),
    ),
    _run,
)
