"""LOCAL: which output axes run on a workgroup's threads, those first that share lines."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic

# Threads along one axis; the largest along the first axis alone.
LARGEST = 32
AMOUNTS = (16, 8, 4, 3, 2)
MOST_AXES = 3


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    if not draft.target.has_local:
        return False
    if draft.options.no_locals:
        return draft.do("NOLOCALS")
    axes = list(enumerate(draft.outputs()))
    axes.sort(key=lambda x: (not _is_first(draft, x[1].dim), -x[0]))
    chosen: dict[int, int] = {}
    threads = 1
    for place, axis in axes:
        for amount in (*(LARGEST,) * (place == 0), *AMOUNTS):
            fits = isinstance(axis.size, int) and axis.size % amount == 0
            if fits and threads * amount <= p["threads"]:
                chosen[place] = amount
                threads *= amount
                break
    placed = dict(axes)
    kept = sorted(list(chosen.items())[:MOST_AXES])
    done = [(placed[n], size) for n, size in kept if draft.do(f"LOCAL {placed[n].name} {size}")]
    if done:
        draft.note("workgroups of " + " by ".join(f"{size} {a.dim}" for a, size in done))
    return bool(done)


def _is_first(draft: Draft, dim: str) -> bool:
    """Whether threads along a dim share a load, or write side by side."""
    return any(
        dim not in a.dims or (a.is_store and a.stride(dim) == 1)
        for a in draft.facts.accesses.values()
    )


LOCALS = Heuristic("locals", (Parameter("threads", 128, (64, 128, 256, 512)),), _run)
