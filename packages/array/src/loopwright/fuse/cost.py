"""What computing an element costs, in floating point operations, against storing it."""

from __future__ import annotations

import math
from collections.abc import Container

from loopwright.fuse.demand import Demand, Walker, elements
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.ops import MOVEMENT, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp

# Storing a value and reading it back, per byte; a load that the cache serves, per element.
STORE_FLOPS_PER_BYTE = 20.0
LOAD_FLOPS = 4.0
TRANSCENDENTAL_FLOPS = 20.0
# No schedule tiles a contraction inside the loop of another reduce. A kernel of its own is faster
# even where nothing is repeated, once an element costs so many stores and all a further launch.
NESTED_STORES = 1.5
LAUNCH_FLOPS = 1e6

_TRANSCENDENTAL = frozenset({Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.POW})
_FREE = MOVEMENT | {Op.CONST, Op.VAR, Op.IOTA, Op.ITEM, Op.BITCAST, Op.REDUCE}
_LOADS = frozenset({Op.BUFFER, Op.GATHER, Op.CONCAT, Op.SCAN})
# A walk below a value stops here: what is larger than a kernel is not repeated.
_MAX_VISITS = 2000


def flops(node: UOp) -> float:
    """One element of this node, its sources given; a REDUCE's steps count in `reduce_flops`."""
    op = node.op
    if op in _FREE:
        return 0.0
    if op in _TRANSCENDENTAL:
        return TRANSCENDENTAL_FLOPS
    if op in _LOADS:
        return LOAD_FLOPS
    if op is Op.CAST:
        return 0.0 if node.dtype.bits >= node.src[0].dtype.bits else 1.0
    return 1.0


def reduce_flops(node: UOp) -> float:
    """One step of a REDUCE: joining one more element."""
    return float(COMBINES[node.arg[0]].n_values ** 2)


def store_flops(node: UOp) -> float:
    """Storing one element and reading it back."""
    values = (node.dtype,) if node.dtype.itemsize else [s.dtype for s in node.src]
    return STORE_FLOPS_PER_BYTE * sum([d.itemsize for d in values])


def is_contraction(node: UOp) -> bool:
    """Whether a node sums products of two values that are each used for several elements."""
    if node.op is not Op.REDUCE or node.arg[0] != "add":
        return False
    value = node.src[0]
    while value.op is Op.CAST:
        value = value.src[0]
    return value.op is Op.MUL and all(_is_repeated(s) for s in value.src)


def is_large_contraction(node: UOp) -> bool:
    """Whether a contraction is worth a further launch, that it may have the loops it needs."""
    return is_contraction(node) and 2.0 * elements(shape_of(node.src[0])) >= LAUNCH_FLOPS


def _is_repeated(value: UOp) -> bool:
    while value.op in MOVEMENT or value.op is Op.CAST:
        if value.op is Op.EXPAND:
            return True
        value = value.src[0]
    return False


def recompute_flops(node: UOp, stored: Container[UOp], budget: float) -> float:
    """One element of a node with all that is computed below it; inf once it exceeds `budget`.

    What is in `stored` is read. A value that several elements share counts by its share.
    """
    walker: Walker[None] = Walker(None)
    n = max(elements(shape_of(node)), 1)
    cost, seen = 0.0, set()
    stack: list[tuple[UOp, Demand[None]]] = [(node, walker.root(shape_of(node)))]
    while stack:
        top = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        at, demand = top
        share = demand.evaluations / n
        is_leaf = at is not node and (at.op in _LOADS or at in stored)
        if is_leaf and at.op is not Op.GATHER:
            cost += LOAD_FLOPS * share
        else:
            cost += flops(at) * share
            if at.op is Op.REDUCE:
                cost += reduce_flops(at) * walker.body(at, demand).evaluations / n
            stack.extend(walker.sources(at, demand))
        if cost >= budget or len(seen) > _MAX_VISITS:
            return math.inf
    return cost
