"""Small output, large reduce: each reduce is split over the threads of a workgroup."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    outputs = prod(draft.size(a.dim) for a in draft.outputs())
    threads = p["threads"]
    if draft.options.no_locals or not 0 < outputs <= p["most"]:
        return False
    done = False
    for statement in draft.facts.statements:
        for axis in draft.reduces():
            if axis.dim not in statement.bound or draft.size(axis.dim) % threads:
                continue
            if draft.do(f"GROUPTOP {axis.name} {p['threads']}"):
                draft.note(
                    f"{outputs} outputs: {p['threads']} threads share the sum over {axis.dim}"
                )
                done = True
                break
    return done


GROUPS = Heuristic(
    "groups",
    (
        Parameter("most", 2048, (32, 512, 2048, 8192)),
        Parameter("threads", 16, (8, 16, 32, 64, 256)),
    ),
    _run,
)
