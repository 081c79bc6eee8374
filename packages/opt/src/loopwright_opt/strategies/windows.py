"""Convolutions: a register tile of output channels by pixels over a copy of the input's halo."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.products import Product, find, tile, tile_steps
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.threads import thread_one_of

# Rows of weights below which a copy of the input is read too seldom.
ROWS = 12
# Products at a leaf, in vectors, beyond which taps are not written out.
MOST_PRODUCTS = 64


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    found = find(draft)
    if found is None or not found.is_window or found.column.stride(found.lanes) != 1:
        return False
    v, u = found.lanes, found.u
    mr, nv = tile(draft, draft.size(u), -(-draft.size(v) // found.n_lanes))
    width = nv * found.n_lanes
    high = next((d for d in reversed(found.others) if _slides(found, d)), "")
    if draft.size(u) < ROWS or not high:
        return _without_copies(draft, found, mr, nv)
    block = p["block"]
    while block > 1 and _halo_bytes(draft, found, high, block) > draft.target.caches[1] // 2:
        block //= 2
    if block < 2:
        return _without_copies(draft, found, mr, nv)
    outer = [d for d in found.others if d != high]
    # A loop of a few taps inside costs a wrong guess at each of its ends.
    sums = list(found.bound)
    tall = 1
    if -(-draft.size(v) // found.n_lanes) % nv and block % nv == 0 == draft.size(high) % nv:
        tall, nv, width = nv, 1, found.n_lanes
    inner = [f"{high}/{tall}", f"{v}/{width}"]
    # Rows side by side share what their taps read, where these are written out; the next rows
    # find it in L1.
    taps = [d for d in sums if tall > 1 and _slide_together(found, high, d)]
    taps = taps if prod(draft.size(d) for d in taps) * mr * tall <= MOST_PRODUCTS else []
    if taps:
        inner.reverse()
        sums = [*[d for d in sums if d not in taps], *taps]
    order = [*outer, f"{high}/{block}", f"{u}/{mr}", *inner, *sums]
    steps = [f"TILE {high} {block}", *tile_steps(found, mr, nv)]
    steps += [f"UPCAST {high} {tall}"] if tall > 1 else []
    steps.append("ORDER " + " ".join(order))
    if not draft.do(*steps, f"STAGE {found.column.name} @{high}/{block} halo"):
        return _without_copies(draft, found, mr, nv)
    draft.note(
        f"sum over a window: {mr} rows of {u} by {nv * tall} vectors of {v} in registers, "
        f"{found.column.name} copied with its halo for {block} steps of {high}"
    )
    if not found.row.valid and draft.do(f"STAGE {found.row.name} @{u}/{mr}"):
        draft.note(f"{found.row.name} packed: one line holds its {mr} rows")
    for tap in taps:
        if draft.do(f"UNROLL {tap} 0"):
            draft.note(f"the {draft.size(tap)} steps of {tap} written out: rows share their loads")
    thread_one_of(draft, (*outer, f"{high}/{block}", f"{u}/{mr}"))
    return True


def _slides(found: Product, dim: str) -> bool:
    """Whether an output dim and a dim of the sum move the column operand along one of its axes."""
    return any(_slide_together(found, dim, bound) for bound in found.bound)


def _slide_together(found: Product, dim: str, bound: str) -> bool:
    """Whether these two dims move the column operand along one of its axes."""
    return any({dim, bound} <= {atom.arg.name for atom, _ in f.terms} for f in found.column.form)


def _halo_bytes(draft: Draft, found: Product, high: str, block: int) -> int:
    """The copy for so many steps of one dim, whole along the lanes and the sum."""
    inside = {found.lanes, *found.bound}
    total = found.column.dtype.itemsize
    for form in found.column.form:
        reach = 1
        for atom, k in form.terms:
            name = atom.arg.name
            size = block if name == high else draft.size(name) if name in inside else 1
            reach += abs(k) * (size - 1)
        total *= reach
    return total


def _without_copies(draft: Draft, found: Product, mr: int, nv: int) -> bool:
    """The register tile over the operands as they lie; few taps are written out."""
    v, u, width = found.lanes, found.u, nv * found.n_lanes
    axes = [*found.others, f"{u}/{mr}", f"{v}/{width}", *found.bound]
    if not draft.do(*tile_steps(found, mr, nv), "ORDER " + " ".join(axes)):
        return False
    draft.note(f"sum over a window: {mr} rows of {u} by {nv} vectors of {v} in registers")
    taps = [d for d in found.bound if draft.size(d) <= 4]
    if prod(draft.size(d) for d in taps) * mr * nv <= MOST_PRODUCTS:
        draft.do(*[f"UNROLL {d} 0" for d in taps if draft.size(d) > 1])
    thread_one_of(draft, (*found.others, f"{u}/{mr}"))
    return True


WINDOWS = Heuristic("windows", (Parameter("block", 8, (2, 4, 8, 16)),), _run)
