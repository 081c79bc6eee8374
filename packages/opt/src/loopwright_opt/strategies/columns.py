"""Reduces across rows: each row is read once along its length, the results wait in L1."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.ir.combine import COMBINES
from loopwright_core.kernel.access import Access
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.facts import Statement
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import lanes_along, reduces, stores
from loopwright_opt.strategies.threads import thread_one_of


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    found = _find(draft)
    if found is None:
        return False
    statement, load, v = found
    lanes, n = lanes_along(draft, v), draft.size(v)
    bound = [d.name for d in draft.kernel.dims if d.name in statement.bound]
    k = max(bound, key=lambda d: (draft.size(d), d))
    n_vectors = -(-n // lanes)
    rest = [d.name for d in draft.kernel.dims if d.name in statement.free and d.name != v]
    if n_vectors <= p["vectors"]:
        return _in_registers(draft, v, k, lanes, n_vectors, rest)
    rows, vectors = p["rows"], p["vectors"]
    if draft.size(k) < 2 * rows:
        return False
    width = lanes * vectors
    itemsize = max(load.dtype.itemsize, 4)
    strip = draft.target.caches[0] // 2 // itemsize // width * width
    steps, order = [], list(rest)
    if n > strip:
        steps.append(f"TILE {v} {strip}")
        order.append(f"{v}/{strip}")
    steps += [f"TILE {k} {rows}", f"UNROLL {k} 0"]
    steps += [f"VECTOR {v} {lanes}", f"UPCAST {v}/{lanes} {vectors}"]
    order += [*[d for d in bound if d != k], f"{k}/{rows}", f"{v}/{width}"]
    if not draft.do(*steps, "ORDER " + " ".join(order)):
        return False
    draft.note(f"reduce across rows: {rows} rows of {k} at a time, {vectors} vectors along {v}")
    thread_one_of(draft, (*rest, f"{v}/{strip}", f"{v}/{width}"))
    return True


def _find(draft: Draft) -> tuple[Statement, Access, str] | None:
    """(reduce, load, dim of unit stride) where the kernel's only reduce feeds one store of its
    dims, and everything the reduce reads moves by one or stands along an output dim."""
    facts, out = draft.facts, stores(draft.facts)
    found = reduces(draft.kernel)
    if len(found) != 1 or len(facts.statements) != 2 or len(out) != 1 or facts.scanned:
        return None
    if COMBINES[found[0].arg[0]].n_values != 1:
        return None
    statement = next(s for s in facts.statements if s.bound)
    if any(s.free != statement.free for s in facts.statements):
        return None
    everything = list(facts.accesses.values())
    for dim in reversed(draft.kernel.dims):
        v = dim.name
        if v not in statement.free or not lanes_along(draft, v):
            continue
        if any(v in a.opaque or a.stride(v) not in (0, 1) for a in everything):
            continue
        loads = [a for a in everything if not a.is_store and a.stride(v) == 1]
        walked = [a for a in loads if a.dims & statement.bound]
        if walked and not any(len(f.terms) > 1 for a in walked for f in a.form):
            return statement, walked[0], v
    return None


def _in_registers(
    draft: Draft, v: str, k: str, lanes: int, n_vectors: int, rest: list[str]
) -> bool:
    """So few columns that all their results stay in registers, several partial ones each."""
    steps = [f"VECTOR {v} {lanes}"]
    if n_vectors > 1:
        steps.append(f"UPCAST {v}/{lanes} {n_vectors}")
    partials = min(8 // n_vectors, draft.size(k) // 2)
    if partials > 1:
        steps.append(f"UPCAST {k} {partials}")
    if not draft.do(*steps):
        return False
    draft.note(f"reduce across rows: all of {v} in registers, {max(partials, 1)} partial results")
    thread_one_of(draft, tuple(rest))
    return True


COLUMNS = Heuristic(
    "columns", (Parameter("rows", 8, (2, 4, 8)), Parameter("vectors", 4, (1, 2, 4))), _run
)
