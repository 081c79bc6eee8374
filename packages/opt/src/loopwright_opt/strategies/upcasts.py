"""More elements at once along axes where some buffer stands still: one load serves them all."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.kernel.dims import Axis
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic

# The first that divides, where two cost the same.
AMOUNTS = (3, 4)


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    done: set[str] = set()
    while _n_outputs(draft) >= p["least"]:
        found = _shared(draft, done)
        if found is None and not any(a.kind.is_expanded for a in draft.kernel.schedule.axes):
            found = _independent(draft)
        if found is None or not draft.do(f"UPCAST {found[0].name} {found[1]}"):
            break
        draft.note(f"{found[1]} elements of {found[0].dim} at once")
        done.add(found[0].dim)
    return bool(done)


def _n_outputs(draft: Draft) -> int:
    return prod(a.size for a in draft.outputs() if isinstance(a.size, int))


def _shared(draft: Draft, done: set[str]) -> tuple[Axis, int] | None:
    """Of the axes along which a buffer stands still that moves along all that is written out
    already: the one with the fewest moving buffers, then the smallest sum of their strides."""
    everything = list(draft.facts.accesses.values())
    written = [a.dim for a in draft.kernel.schedule.axes if a.kind.is_expanded]
    found: list[tuple[tuple[int, int, int, int], Axis, int]] = []
    for place, axis in enumerate(draft.outputs()):
        still = [a for a in everything if axis.dim not in a.dims]
        if axis.dim in done or not any(a.dims.issuperset(written) for a in still):
            continue
        strides = sum(abs(a.stride(axis.dim)) for a in everything)
        for amount in AMOUNTS:
            if isinstance(axis.size, int) and axis.size % amount == 0:
                rank = (len(everything) - len(still), strides, place, amount)
                found.append((rank, axis, amount))
    if not found:
        return None
    _, axis, amount = min(found, key=lambda f: f[0])
    return axis, amount


def _independent(draft: Draft) -> tuple[Axis, int] | None:
    """Where no load is shared: the first axis that divides, for elements that do not wait for
    each other."""
    for axis in draft.outputs():
        if isinstance(axis.size, int) and axis.size % AMOUNTS[-1] == 0:
            return axis, AMOUNTS[-1]
    return None


UPCASTS = Heuristic("upcasts", (Parameter("least", 1024, (256, 1024, 4096)),), _run)
