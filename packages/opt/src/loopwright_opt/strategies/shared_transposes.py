"""Transposes on workgroups: square tiles through shared memory, both sides side by side."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import stores, wide_lanes

SMALLEST = 16


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    facts, out = draft.facts, stores(draft.facts)
    if len(facts.statements) != 1 or len(out) != 1:
        return False
    across = next((d for d in out[0].dims if out[0].stride(d) == 1), "")
    loads = [a for a in facts.accesses.values() if not a.is_store and not a.opaque and not a.valid]
    turned = [a for a in loads if a.stride(across) not in (0, 1) and 1 in a.strides.values()]
    if not across or not turned:
        return False
    along = next(d for d in turned[0].dims if turned[0].stride(d) == 1)
    if min(draft.size(along), draft.size(across)) < SMALLEST:
        return False
    size, copies = p["tile"], p["copies"]
    is_wide = wide_lanes(draft, across, tuple(turned)) >= copies
    steps = [f"TILE {along} {size}", f"TILE {across} {size}"]
    steps.append(f"{'VECTOR' if is_wide else 'UPCAST'} {across}/1 {copies}")
    steps += [f"LOCAL {along}/1 {size}", f"LOCAL {across}/{copies} {size // copies}"]
    last = max(along, across, key=[d.name for d in draft.kernel.dims].index)
    if not draft.do(*steps, *[f"STAGE {a.name} @{last}/{size}" for a in turned]):
        return False
    names = ", ".join(a.name for a in turned)
    draft.note(f"transpose: tiles of {size} by {size} of {names} in shared memory")
    return True


SHARED_TRANSPOSES = Heuristic(
    "shared_transposes",
    (Parameter("tile", 32, (16, 32, 64)), Parameter("copies", 4, (2, 4))),
    _run,
)
