"""Elementwise kernels on workgroups: each thread moves several neighbours in one access."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import power_above, wide_lanes
from loopwright_opt.strategies.upcasts import UPCASTS


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    facts = draft.facts
    if facts.scanned or any(s.bound for s in facts.statements):
        return False
    for dim in reversed(draft.kernel.dims):
        lanes = wide_lanes(draft, dim.name) if dim.name in facts.common else 0
        threads = min(p["threads"], power_above(-(-draft.size(dim.name) // max(lanes, 1))))
        if lanes and draft.do(f"VECTOR {dim.name} {lanes}"):
            draft.note(f"{lanes} neighbours along {dim.name} in one access")
            UPCASTS(draft)
            if threads > 1 and draft.do(f"LOCAL {dim.name}/{lanes} {threads}"):
                draft.note(f"workgroups of {threads} {dim.name}")
            return True
    return False


WIDE_STREAMS = Heuristic("wide_streams", (Parameter("threads", 128, (32, 64, 128, 256)),), _run)
