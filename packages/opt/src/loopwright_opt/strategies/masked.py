"""Small output axes that a pad masks are written out whole: their masks become constants."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.ir.ops import Op
from loopwright_core.kernel.access import dims_below
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    masked = _masked(draft)
    chosen: list[str] = []
    for axis in draft.outputs():
        size = draft.size(axis.dim)
        if axis.dim in masked and 1 < size <= p["size"]:
            if prod(draft.size(d) for d in chosen) * size <= p["size"] ** 2:
                chosen.append(axis.dim)
    done = [d for d in reversed(chosen) if draft.do(f"UPCAST {d} 0")]
    if done:
        draft.note(f"all of {', '.join(done)} at once: small, and a pad masks it")
    return bool(done)


def _masked(draft: Draft) -> frozenset[str]:
    """Dims on which the condition of an access depends, or of a choice that looks at no data."""
    conditions = [n.src[0] for n in draft.kernel.nodes if n.op is Op.WHERE]
    conditions += [c for a in draft.facts.accesses.values() for c in a.valid]
    of_places = [c for c in conditions if all(n.op is not Op.LOAD for n in c.toposort())]
    return dims_below(tuple(dict.fromkeys(of_places)))


MASKED = Heuristic("masked", (Parameter("size", 7, (0, 4, 7)),), _run)
