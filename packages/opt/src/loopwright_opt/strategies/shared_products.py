"""Sums of products on workgroups: a tile of each operand in shared memory, a small one a thread."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.products import operands
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import power_below, stores, wide_lanes

# Rows and columns below which a tile is read too seldom.
SMALLEST = 16


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    pair = operands(draft)
    if pair is None:
        return False
    statement, x, y = pair
    if x.valid or y.valid or any(len(f.terms) > 1 for a in (x, y) for f in a.form):
        return False
    sums = [d for d in statement.bound if d in x.dims and d in y.dims]
    rows = [d for d in statement.free if d in x.dims and d not in y.dims]
    columns = [d for d in statement.free if d in y.dims and d not in x.dims]
    if len(statement.bound) != 1 or not sums or not rows or not columns:
        return False
    (k,) = sums
    u, v = [max(side, key=lambda d: (draft.size(d), d)) for side in (rows, columns)]
    if stores(draft.facts)[0].stride(u) == 1:
        u, v = v, u
    if min(draft.size(u), draft.size(v), draft.size(k)) < SMALLEST:
        return False
    r, c = p["rows"], p["columns"]
    high, wide = [power_below(draft.size(d) // n, p["threads"]) for d, n in ((u, r), (v, c))]
    is_vector = wide_lanes(draft, v, (x, y)) >= c
    steps = [f"VECTOR {v} {c}" if is_vector else f"UPCAST {v} {c}", f"UPCAST {u} {r}"]
    steps += [f"LOCAL {u}/{r} {high}", f"LOCAL {v}/{c} {wide}", f"TILE {k} {p['depth']}"]
    steps += [f"STAGE {a.name} @{k}/{p['depth']}" for a in (x, y)]
    if not draft.do(*steps):
        return False
    draft.note(
        f"sum of products: {r} by {c} elements a thread, {high} by {wide} threads, "
        f"{p['depth']} steps of {k} of both operands in shared memory"
    )
    return True


SHARED_PRODUCTS = Heuristic(
    "shared_products",
    (
        Parameter("rows", 4, (2, 4, 8)),
        Parameter("columns", 4, (2, 4, 8)),
        Parameter("threads", 16, (8, 16, 32)),
        Parameter("depth", 16, (8, 16, 32)),
    ),
    _run,
)
