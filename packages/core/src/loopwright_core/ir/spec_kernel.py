"""What is legal at level 2: a scalar body over dims, its reduces, and its accesses in range."""

from __future__ import annotations

from collections.abc import Callable

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.given import Given, given_bounds
from loopwright_core.ir.integer import lt, prove
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.spec_common import (
    check_buffer,
    check_combine,
    check_const,
    check_elementwise,
    check_index_arithmetic,
    check_item,
    check_sink,
    check_sources,
    check_var,
    combined_values,
    is_extent,
    need,
    need_arity,
    refuse,
    volume,
)
from loopwright_core.ir.spec_schedule import check_dims, check_schedule
from loopwright_core.ir.uop import FALSE, UOp, Variable, extent_uop, toposort
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel

Free = dict[UOp, frozenset[Dim]]


def verify_kernel(kernel: Kernel) -> None:
    """The body's nodes and types, what its reduces bind, its accesses in range, its schedule.

    Raises VerifyError naming the node or axis and the rule it breaks.
    """
    body = kernel.body
    check_sink(body, "a body", kernel.name)
    check_dims(kernel)
    dims = set(kernel.dims)
    nodes = toposort((body,))
    for node in nodes:
        if node is body:
            continue
        if node.op is Op.DIM:
            need(node.arg in dims, node, "is no dim of the kernel")
        _check(node)
    free = _free_dims(nodes)
    _check_bindings(nodes, free)
    for store in body.src:
        _check_store_dims(store, free)
    _check_memory(body, [*nodes, *kernel.unused])
    for node in nodes:
        if node.op is Op.INDEX:
            check_in_range(node, free[node])
    check_schedule(kernel)


def _check(node: UOp) -> None:
    op = node.op
    check_sources(node, 2)
    for s in node.src:
        if s.op is Op.INDEX and op not in (Op.LOAD, Op.STORE):
            refuse(node, "uses an INDEX: only LOAD and STORE do")
        if s.op is Op.BUFFER and op is not Op.INDEX:
            refuse(node, "uses a BUFFER: only INDEX does")
    if op in ELEMENTWISE:
        check_elementwise(node)
        check_index_arithmetic(node)
        return
    rule = _RULES.get(op)
    if rule is None:
        refuse(node, f"{op.name} is no op of level 2")
    rule(node)


def _dim(node: UOp) -> None:
    need_arity(node, 0)
    need(node.dtype is dt.index, node, "a DIM is an index")


def _index(node: UOp) -> None:
    shape = node.arg
    fine = isinstance(shape, tuple) and all(is_extent(n) for n in shape)
    need(fine, node, "arg is the view shape")
    need_arity(node, len(shape) + 2)
    buffer = node.src[0]
    need(buffer.op is Op.BUFFER, node, f"points into a {buffer.op.name}, not a BUFFER")
    need(node.dtype is buffer.dtype, node, f"calls {buffer.dtype} {node.dtype}")
    same = volume(shape) == volume(buffer.arg.shape)
    need(same, node, f"view shape {shape} has not the element count of {buffer.arg.shape}")
    for i in node.src[1:-1]:
        need(i.dtype is dt.index, node, f"an index has dtype {i.dtype}, not index")
    need(node.src[-1].dtype is dt.bool_, node, "its last source, valid, is bool")


def _load(node: UOp) -> None:
    need_arity(node, 2)
    index, fill = node.src
    need(index.op is Op.INDEX, node, f"loads from a {index.op.name}, not an INDEX")
    need(node.dtype is index.dtype, node, f"loads {index.dtype} as {node.dtype}")
    need(fill.op is Op.CONST and fill.dtype is node.dtype, node, "fill is a CONST of its dtype")


def _store(node: UOp) -> None:
    need_arity(node, 2)
    need(node.dtype is dt.void, node, "a STORE has no value")
    index, value = node.src
    need(index.op is Op.INDEX, node, f"stores to a {index.op.name}, not an INDEX")
    need(value.dtype is index.dtype, node, f"stores {value.dtype} into {index.dtype}")


def _reduce(node: UOp) -> None:
    need(isinstance(node.arg, tuple) and len(node.arg) == 1, node, "arg is (combine,)")
    bound = _combine(node)
    need(bool(bound), node, "binds no dim")
    need(len(set(bound)) == len(bound), node, "binds a dim twice")
    for d in bound:
        need(d.op is Op.DIM and d.arg.is_reduce, node, f"binds {d!r}: no reduce dim")


def _scan(node: UOp) -> None:
    fine = isinstance(node.arg, tuple) and len(node.arg) == 3
    need(fine, node, "arg is (combine, exclusive, reverse)")
    bools = all(type(flag) is bool for flag in node.arg[1:])
    need(bools, node, "exclusive and reverse are bools")
    bound = _combine(node)
    one = len(bound) == 1 and bound[0].op is Op.DIM
    need(one, node, "walks one DIM, its last source")
    need(not bound[0].arg.is_reduce, node, f"walks {bound[0]!r}: no output dim")


def _combine(node: UOp) -> tuple[UOp, ...]:
    values = combined_values(node)
    check_combine(node, node.arg[0], values)
    return node.src[len(values) :]


_RULES: dict[Op, Callable[[UOp], None]] = {
    Op.CONST: check_const,
    Op.VAR: check_var,
    Op.DIM: _dim,
    Op.BUFFER: check_buffer,
    Op.INDEX: _index,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.REDUCE: _reduce,
    Op.SCAN: _scan,
    Op.ITEM: check_item,
}
_NO_DIMS: frozenset[Dim] = frozenset()


def _bound(node: UOp) -> tuple[UOp, ...]:
    return node.src[len(combined_values(node)) :]


def _free_dims(nodes: list[UOp]) -> Free:
    """The dims each node depends on; a REDUCE does not depend on the dims it binds."""
    free: Free = {}
    for node in nodes:
        if node.op is Op.DIM:
            free[node] = frozenset((node.arg,))
            continue
        parts = {free[s] for s in node.src}
        dims = next(iter(parts)) if len(parts) == 1 else _NO_DIMS.union(*parts)
        if node.op is Op.REDUCE:
            dims = dims - {d.arg for d in _bound(node)}
        free[node] = dims
    return free


def _check_bindings(nodes: list[UOp], free: Free) -> None:
    """Reduces share dims only with equal ones that neither depend on each other."""
    by_dim: dict[UOp, list[UOp]] = {}
    for node in nodes:
        if node.op is Op.REDUCE:
            for d in _bound(node):
                by_dim.setdefault(d, []).append(node)
    checked: set[tuple[UOp, ...]] = set()
    for d, sharers in by_dim.items():
        if len(sharers) < 2 or tuple(sharers) in checked:
            continue
        checked.add(tuple(sharers))
        first = sharers[0]
        for other in sharers[1:]:
            same = set(_bound(first)) == set(_bound(other)) and free[first] == free[other]
            need(same, other, f"shares {d.arg.name} with a reduce over other dims")
        inside = set(toposort([v for node in sharers for v in combined_values(node)]))
        for node in sharers:
            need(node not in inside, node, f"shares {d.arg.name} with a reduce that uses it")


def _check_store_dims(store: UOp, free: Free) -> None:
    """No reduce dim is free in a STORE, and its index walks every dim of its value."""
    escaped = sorted(d.name for d in free[store] if d.is_reduce)
    need(not escaped, store, f"reduce dims {escaped} are bound by no REDUCE around their use")
    index, value = store.src
    loose = sorted(d.name for d in free[value] - free[index])
    need(not loose, store, f"its value depends on dims {loose}, its index does not")


def _check_memory(body: UOp, nodes: list[UOp]) -> None:
    """One BUFFER a slot; a buffer that is stored is loaded only where it is stored."""
    slots: dict[int, UOp] = {}
    for node in nodes:
        if node.op is Op.BUFFER:
            slot = node.arg.slot
            need(slots.setdefault(slot, node) is node, node, f"slot {slot} is two buffers")
    for position, slot in enumerate(sorted(slots)):
        need(slot == position, slots[slot], f"slots are 0, 1, 2, ...: {position} is missing")
    stored: dict[UOp, set[UOp]] = {}
    for store in body.src:
        index = store.src[0]
        places = stored.setdefault(index.src[0], set())
        need(index not in places, store, "stores where another STORE does")
        places.add(index)
    for node in nodes:
        if node.op is Op.LOAD:
            found = stored.get(node.src[0].src[0])
            here = found is None or found == {node.src[0]}
            need(here, node, "loads a buffer that the kernel stores at another index")


def check_in_range(node: UOp, free: frozenset[Dim]) -> None:
    """Where an INDEX is valid, every index lies inside its axis."""
    valid = node.src[-1]
    if valid is FALSE or any(d.size == 0 for d in free):
        return
    given = Given((valid,))
    for position, (n, i) in enumerate(zip(node.arg, node.src[1:-1], strict=True)):
        low, high = given_bounds(i, given)
        if low > high:
            return  # the conditions contradict each other: no access is valid
        if low >= 0 and high < (n.lo if isinstance(n, Variable) else n):
            continue
        if isinstance(n, Variable) and low >= 0 and prove(lt(i, extent_uop(n)), given):
            continue
        size = n.name if isinstance(n, Variable) else n
        refuse(
            node,
            f"index {position} is not provably in 0..{size}-1 where it is valid: {low}..{high}",
            f"buffer {node.src[0].arg.slot}",
        )
