"""Transposes: square tiles through a small copy, so that reads and writes both use whole lines."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.kernel.access import Access
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.around import is_far
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import lanes_along, stores
from loopwright_opt.strategies.threads import thread_one_of

SMALLEST = 16


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    facts = draft.facts
    out = stores(facts)
    if len(facts.statements) != 1 or len(out) != 1:
        return False
    across = next((d for d in out[0].dims if out[0].stride(d) == 1), "")
    lanes = lanes_along(draft, across) if across else 0
    turned = [a for a in facts.accesses.values() if _is_turned(a, across)]
    if not lanes or not turned or draft.size(across) < SMALLEST:
        return False
    along = next((d for d in turned[0].dims if turned[0].stride(d) == 1), "")
    if draft.size(along) < SMALLEST:
        return False
    # Rows that are written past the caches are longer: each is a run of its own in memory.
    run_bytes = 512 if is_far(draft) else 256
    t = p["tile"] or min(128, max(32, run_bytes // turned[0].dtype.itemsize))
    rest = [d.name for d in draft.kernel.dims if d.name not in (along, across)]
    loops = [*rest, f"{across}/{t}", f"{along}/{t}", f"{along}/1", f"{across}/{lanes}"]
    steps = [f"TILE {along} {t}", f"TILE {across} {t}", f"VECTOR {across} {lanes}"]
    if not draft.do(*steps, "ORDER " + " ".join(loops)):
        return False
    staged = [a.name for a in turned if a.stride(along) == 1 and _stage(draft, a, loops)]
    if not staged:
        return False
    draft.note(f"transpose: tiles of {t} by {t}, {', '.join(staged)} read along {along}")
    thread_one_of(draft, (*rest, f"{across}/{t}", f"{along}/{t}"))
    return True


def _is_turned(access: Access, across: str) -> bool:
    """A load that walks another dim than the store by one element."""
    if access.is_store or across in access.opaque or access.opaque:
        return False
    return access.stride(across) not in (0, 1) and 1 in access.strides.values()


def _stage(draft: Draft, access: Access, loops: list[str]) -> bool:
    along, across = loops[-2], loops[-1]
    order = f"{across},{across.partition('/')[0]}/1,{along}"
    return draft.do(f"STAGE {access.name} @{loops[-3]} order {order}")


TRANSPOSES = Heuristic("transposes", (Parameter("tile", 0, (0, 16, 32, 64, 128)),), _run)
