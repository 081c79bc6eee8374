"""Which values fusion will probably store, guessed from each value's direct users alone.

Fusion decides from the outputs down, and what repeating a value costs depends on what below it is
read from memory, which is decided later. This guess, made from the inputs up, fills that gap. A
wrong guess costs speed, never a result: every value is decided again by how it is really used.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from loopwright.fuse.cost import recompute_flops, store_flops
from loopwright.fuse.demand import Demand, Walker, elements
from loopwright_core.ir.ops import ELEMENTWISE, MOVEMENT, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp

_LEAVES = frozenset({Op.BUFFER, Op.CONST, Op.VAR, Op.IOTA})
_PASSING = MOVEMENT | {Op.ITEM}

Needs = dict[Demand[None], None]


def likely_stored(order: Sequence[UOp], outputs: Container[UOp]) -> set[UOp]:
    """The nodes of a graph (sources first) that are cheaper to store than to repeat."""
    evaluations = _local_evaluations(order)
    stored: set[UOp] = set()
    for node in order:
        n_times = evaluations.get(node, 0)
        if node in outputs or node.op in (Op.CONCAT, Op.SCAN):
            stored.add(node)
        elif n_times:
            n = elements(shape_of(node))
            budget = store_flops(node) * n / (n_times - n)
            if recompute_flops(node, stored, budget) >= budget:
                stored.add(node)
    return stored


def _local_evaluations(order: Sequence[UOp]) -> dict[UOp, int]:
    """For values computed more than once an element: how often, were each user computed once."""
    walker: Walker[None] = Walker(None)
    needs: dict[UOp, Needs] = {}
    result: dict[UOp, int] = {}
    for node in reversed(order):
        found = needs.pop(node, None)
        if node.op in _LEAVES:
            continue
        shape = shape_of(node)
        if node.op in _PASSING:
            at = found or {}
        else:
            if found is not None and len(found) == 1 and walker.root(shape) in found:
                pass
            elif found:
                n_times = sum([need.evaluations for need in found])
                if n_times > elements(shape):
                    result[node] = n_times
            if node.op in ELEMENTWISE:
                _pass_on(node, walker, needs)
                continue
            at = {walker.root(shape): None} if node.op is not Op.CONCAT else {}
            if node.op is Op.CONCAT:
                for s in node.src:
                    needs.setdefault(s, {})[walker.root(shape_of(s))] = None
        for need in at:
            for source, inner in walker.sources(node, need):
                if source.op not in _LEAVES:
                    needs.setdefault(source, {})[inner] = None
    return result


def _pass_on(node: UOp, walker: Walker[None], needs: dict[UOp, Needs]) -> None:
    """An elementwise user reads each source once an element."""
    shape = shape_of(node)
    for s in node.src:
        if s.op not in _LEAVES:
            root = walker.root(shape) if shape_of(s) else walker.root(())
            needs.setdefault(s, {})[root] = None
