"""What all threads along some axis of a workgroup read in a reduce, once for all of them."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.kernel.access import Access
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import accesses_of

# Threads that read the same element, below which a copy costs more than it saves.
FEWEST = 8


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    facts, loops = draft.facts, draft.reduces()
    bound = [n for n, s in enumerate(facts.statements) if s.bound]
    if len(bound) != 1 or not loops or not isinstance(loops[0].size, int):
        return False
    found = [a for a in accesses_of(facts, bound[0]) if _is_shared(draft, a, loops[0].dim)]
    if not found:
        return False
    depth = p["depth"]
    where = loops[0].name
    if loops[0].size > depth:
        draft.do(f"TILE {loops[0].name} {depth}")
        where = f"{loops[0].dim}/{loops[0].stride * depth}"
    done = [a.name for a in found if draft.do(f"STAGE {a.name} @{where}")]
    if done:
        draft.note(f"{', '.join(done)} in shared memory for {depth} steps of {loops[0].dim}")
    return bool(done)


def _is_shared(draft: Draft, access: Access, dim: str) -> bool:
    """A plain load that moves along the reduce and stands still along many threads."""
    if access.is_store or access.opaque or access.valid or dim not in access.dims:
        return False
    threads = 1
    for a in draft.kernel.schedule.axes:
        if a.kind is AxisKind.LOCAL and a.dim not in access.dims and isinstance(a.size, int):
            threads *= a.size
    return threads >= FEWEST


SHARED_LOADS = Heuristic("shared_loads", (Parameter("depth", 8, (4, 8, 16)),), _run)
