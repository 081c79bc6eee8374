"""Reduces across rows on workgroups: threads side by side along a row, and several rows at once."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import (
    accesses_of,
    power_above,
    power_below,
    reads_once,
    wide_lanes,
)

# Steps of a reduce from which on a group shares it.
LONG = 32


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    facts = draft.facts
    bound = [n for n, s in enumerate(facts.statements) if s.bound]
    if len(bound) != 1 or facts.scanned or len(facts.statements) != 2:
        return False
    statement = facts.statements[bound[0]]
    loads = [a for a in accesses_of(facts, bound[0]) if not a.is_store]
    found = [
        (d.name, a)
        for d in draft.kernel.dims
        for a in loads
        if d.name in facts.common and a.stride(d.name) == 1 and reads_once(a, statement)
    ]
    if not found:
        return False
    v, _ = found[-1]
    k = max(statement.bound, key=lambda d: (draft.size(d), d))
    lanes = max(wide_lanes(draft, v), 1)
    threads = min(p["threads"], power_above(-(-draft.size(v) // lanes)))
    rows = power_below(draft.size(k) // 2, p["rows"])
    if draft.size(k) < LONG or draft.size(v) < 2:
        return False
    steps = [f"VECTOR {v} {lanes}"] if lanes > 1 else []
    steps += [f"LOCAL {v}/{lanes} {threads}"] if threads > 1 else []
    if not draft.do(*steps, f"GROUP {k} {rows}"):
        return False
    draft.note(f"reduce across rows: {threads} threads along {v}, {rows} rows of {k} at a time")
    return True


GROUP_COLUMNS = Heuristic(
    "group_columns",
    (Parameter("threads", 16, (8, 16, 32)), Parameter("rows", 16, (4, 8, 16, 32))),
    _run,
)
