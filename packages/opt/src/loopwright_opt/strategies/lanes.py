"""Lanes along what lies side by side, in every statement; several vectors at once where it helps.

Elementwise kernels, reduces along rows, and kernels of several reduces (softmax, layer_norm).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.kernel.access import Access
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.facts import Statement
from loopwright_opt.strategies.masked import MASKED
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import (
    COSTLY_OPS,
    accesses_of,
    inner_first,
    is_costly,
    lanes_along,
    statement_ops,
    stores,
    vectors,
)

# Ops at a leaf, all copies together, beyond which more copies only make text.
MOST_OPS = 160
# Loads whose lanes lie at most so many elements apart share their lines.
NEAR = 8
# Loops of so few steps are written out.
SHORT = 8


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    _lanes(draft)
    if not vectors(draft.kernel):
        _without_lanes(draft, p)
        return True
    _rows(draft, p)
    _reuse(draft, p)
    _partials(draft, p)
    _side_by_side(draft, p)
    _keep(draft)
    return True


def _lanes(draft: Draft) -> None:
    """VECTOR: in each statement one dim along which every access stands still or steps by one, or
    by few elements where the values are worth the gathers."""
    facts = draft.facts
    everything = list(facts.accesses.values())
    taken: set[str] = set()
    for place in reversed(range(len(facts.statements))):
        statement = facts.statements[place]
        if statement.dims & taken or not accesses_of(facts, place):
            continue  # a reduce of reduces touches no memory itself
        for dim in inner_first(draft.kernel, statement):
            steps = {a.stride(dim) for a in everything}
            lanes = lanes_along(draft, dim)
            if any(dim in a.opaque for a in everything) or 1 not in steps or not lanes:
                continue
            if steps - {0, 1} and not _gathers_pay(draft, dim):
                continue
            if dim in statement.bound and _is_short(draft, place, dim, lanes):
                continue
            if draft.do(f"VECTOR {dim} {lanes}"):
                taken.add(dim)
                how = "most accesses step" if steps - {0, 1} else "every access steps"
                draft.note(f"{lanes} lanes along {dim}: {how} by one element")
                break


def _gathers_pay(draft: Draft, dim: str) -> bool:
    """Whether lanes that lie apart are worth it: the store's lie side by side, the loads' near,
    and a reduce or a long sequence of ops stands between them."""
    facts = draft.facts
    if any(a.stride(dim) != 1 for a in stores(facts)):
        return False
    if any(abs(a.stride(dim)) > NEAR for a in facts.accesses.values()):
        return False
    return any(
        dim in s.free and (s.bound or statement_ops(facts, n) >= COSTLY_OPS)
        for n, s in enumerate(facts.statements)
    )


def _is_short(draft: Draft, place: int, dim: str, lanes: int) -> bool:
    """Whether joining the lanes at the end would cost more than they save."""
    statement = draft.facts.statements[place]
    alone = sum(1 for s in draft.facts.statements if s.bound) == 1
    steps = prod(draft.size(d) for d in statement.bound)
    return alone and 0 < steps < 2 * lanes and statement_ops(draft.facts, place) < COSTLY_OPS


def _without_lanes(draft: Draft, p: Mapping[str, int]) -> None:
    """UPCAST what a pad masks, and a row dim of scans and short reduces: several rows do not wait
    for each other."""
    facts = draft.facts
    MASKED(draft)
    bound = [s for s in facts.statements if s.bound]
    if not facts.scanned and len(bound) != 1:
        return
    copies = p["rows"] if facts.scanned else 2 * p["rows"]
    rows = [d.name for d in reversed(draft.kernel.dims) if d.name in facts.common]
    for dim in rows:
        if dim not in facts.scanned and draft.size(dim) >= 2 * copies:
            if draft.do(f"UPCAST {dim} {copies}"):
                draft.note(f"{copies} rows of {dim} at once: they do not wait for each other")
            break
    if not facts.scanned:
        _unroll(draft, facts.statements.index(bound[0]), copies)


def _unroll(draft: Draft, place: int, copies: int) -> None:
    """UNROLL the short loops of a reduce, as far as its text stays small."""
    statement = draft.facts.statements[place]
    ops = max(statement_ops(draft.facts, place), 1) * copies
    for dim in sorted(statement.bound, key=lambda d: (draft.size(d), d)):
        ops *= draft.size(dim)
        if 1 < draft.size(dim) <= SHORT and ops <= MOST_OPS:
            if draft.do(f"UNROLL {dim} 0"):
                draft.note(f"the {draft.size(dim)} steps of {dim} written out")


def _rows(draft: Draft, p: Mapping[str, int]) -> None:
    """UPCAST rows in a kernel of one reduce along lanes: several streams, no waiting."""
    facts = draft.facts
    bound = [s for s in facts.statements if s.bound]
    if len(bound) != 1 or not bound[0].bound & vectors(draft.kernel).keys():
        return
    statement = bound[0]
    place = facts.statements.index(statement)
    copies = p["rows"]
    if statement_ops(facts, place) * copies * 2 > MOST_OPS:
        return
    for dim in reversed(draft.kernel.dims):
        if dim.name not in facts.common or draft.size(dim.name) < 4 * copies:
            continue
        if draft.do(f"UPCAST {dim.name} {copies}"):
            draft.note(f"{copies} rows of {dim.name} at once: several streams from memory")
            return


def _reuse(draft: Draft, p: Mapping[str, int]) -> None:
    """UPCAST in a reduce of vectors: several rows share a load, several vectors a row."""
    facts, found = draft.facts, vectors(draft.kernel)
    for place, statement in enumerate(facts.statements):
        along = next((d for d in sorted(statement.free) if d in found), "")
        if not statement.bound or not along:
            continue
        row = _shared_row(draft, place, statement, along)
        if row and draft.do(f"UPCAST {row} {p['rows']}"):
            draft.note(f"{p['rows']} rows of {row} share a vector of {along}")
        side = 2 if row else p["partials"]
        if draft.size(along) >= found[along] * side * 2:
            draft.do(f"UPCAST {along}/{found[along]} {side}")
        _unroll(draft, place, side * (p["rows"] if row else 1))
        return


def _shared_row(draft: Draft, place: int, statement: Statement, along: str) -> str:
    """An output dim along which a load of vectors stands still while another one moves."""
    touched = [a for a in accesses_of(draft.facts, place) if not a.is_store]
    for dim in inner_first(draft.kernel, statement):
        if dim == along or dim in statement.bound or draft.size(dim) < 4:
            continue
        if _stands(touched, dim, along) and any(dim in a.dims for a in touched):
            return dim
    return ""


def _stands(touched: list[Access], dim: str, along: str) -> bool:
    return any(dim not in a.dims and along in a.dims for a in touched)


def _partials(draft: Draft, p: Mapping[str, int]) -> None:
    """UPCAST: a reduce along lanes keeps several vectors of partial results."""
    facts, found = draft.facts, vectors(draft.kernel)
    rows = prod(
        a.size
        for a in draft.kernel.schedule.axes
        if a.kind is AxisKind.UPCAST and a.dim in facts.common and isinstance(a.size, int)
    )
    for place, statement in enumerate(facts.statements):
        ops = max(statement_ops(facts, place), 1)
        for dim in sorted(statement.bound & found.keys()):
            copies = 2 if rows > 1 else p["partials"]
            while copies > 1 and ops * copies * rows > MOST_OPS:
                copies //= 2
            if copies > 1 and draft.size(dim) >= found[dim] * copies * 2:
                if draft.do(f"UPCAST {dim}/{found[dim]} {copies}"):
                    draft.note(f"{copies} vectors of partial results along {dim}")


def _side_by_side(draft: Draft, p: Mapping[str, int]) -> None:
    """UPCAST the lanes' dim of a store: independent vectors hide each other's latency."""
    facts, found = draft.facts, vectors(draft.kernel)
    bound = {d for s in facts.statements for d in s.bound}
    inner = {d for s in facts.statements if s.bound for d in s.free}
    for place, statement in enumerate(facts.statements):
        if statement.bound:
            continue
        for dim in sorted((statement.free & found.keys()) - bound - inner):
            copies = p["vectors"]
            while copies > 1 and max(statement_ops(facts, place), 1) * copies > MOST_OPS:
                copies //= 2
            if copies > 1 and draft.size(dim) >= found[dim] * copies * 2:
                if draft.do(f"UPCAST {dim}/{found[dim]} {copies}"):
                    draft.note(f"{copies} vectors of {dim} at once")


def _keep(draft: Draft) -> None:
    """KEEP a shared value that is a long sequence of ops: written once, read again from cache."""
    facts, kernel = draft.facts, draft.kernel
    for n, instances in enumerate(kernel.shared):
        if not any(is_costly(v) for v in instances):
            continue
        users = [facts.statements[s] for v in instances for s in facts.within.get(v, ())]
        if not users:
            continue
        common = frozenset.intersection(*[s.dims for s in users])
        loops = [a for a in kernel.schedule.axes if not a.kind.is_expanded and a.dim in common]
        at = loops[-1].name if loops else ""
        size = max(_kept(draft, facts.free[v] - common) for v in instances)
        if 0 < size * instances[0].dtype.itemsize <= draft.target.caches[1] // 2:
            if draft.do(f"KEEP v{n} @{at}"):
                draft.note(f"v{n} is computed once and read again: it holds a long sequence")


def _kept(draft: Draft, dims: frozenset[str]) -> int:
    return prod(draft.size(d) for d in dims)


LANES = Heuristic(
    "lanes",
    (
        Parameter("rows", 4, (1, 2, 4, 8)),
        Parameter("partials", 4, (1, 2, 4, 8)),
        Parameter("vectors", 4, (1, 2, 4, 8)),
    ),
    _run,
)
