"""Matrix times vector on workgroups: several threads a row, several rows a thread."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.ir.ops import Op
from loopwright_core.kernel.access import Access
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import reduces


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    threads, block, rows = p["threads_per_row"], p["block"], p["rows_per_thread"]
    if draft.options.no_locals or not p["use"] or not _is_matvec(draft):
        return False
    k = draft.reduces()[0]
    if threads < 2 or draft.size(k.dim) % threads:
        return False
    for axis in draft.outputs():
        if draft.size(axis.dim) % (block * rows):
            continue
        if draft.do(
            f"GROUP {k.name} {threads}",
            f"LOCAL {axis.name} {block}",
            f"UPCAST {axis.dim}/{block} {rows}",
        ):
            draft.note(
                f"matrix times vector: {threads} threads along {k.dim}, "
                f"{block} x {rows} rows of {axis.dim} a workgroup"
            )
            return True
    return False


def _is_matvec(draft: Draft) -> bool:
    """A sum of a product of two plain loads, the first walking the first axis of the sum by one
    element, and not both standing still along some axis."""
    facts, found = draft.facts, reduces(draft.kernel)
    sums = draft.reduces()
    if len(found) != 1 or found[0].arg[0] != "add" or not sums:
        return False
    value = found[0].src[0]
    if value.op is not Op.MUL or any(s.op is not Op.LOAD for s in value.src):
        return False
    by_node = {a.node: a for a in facts.accesses.values()}
    first, second = [by_node[s.src[0]] for s in value.src]
    dims = next(s for s in facts.statements if s.bound).dims
    if first.stride(sums[0].dim) != 1:
        return False
    return not (_is_broadcast(first, dims) and _is_broadcast(second, dims))


def _is_broadcast(access: Access, dims: frozenset[str]) -> bool:
    return not dims <= access.dims


MATVEC = Heuristic(
    "matvec",
    (
        Parameter("use", 1, (0, 1)),
        Parameter("threads_per_row", 8, (4, 8, 16, 32)),
        Parameter("block", 4, (2, 4, 8)),
        Parameter("rows_per_thread", 4, (2, 4, 8)),
    ),
    _run,
)
