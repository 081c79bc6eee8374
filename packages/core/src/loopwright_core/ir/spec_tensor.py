"""What is legal at level 1: shaped expressions, and the kernel ASTs that fusion hands over."""

from __future__ import annotations

from collections.abc import Callable

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.shape import Shape, shape_of
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
    is_extent,
    need,
    need_arity,
    refuse,
    volume,
)
from loopwright_core.ir.uop import UOp, Variable, toposort

VIEWS = frozenset({Op.SHRINK, Op.RESHAPE, Op.PERMUTE, Op.FLIP})


def verify_tensor(sink: UOp) -> None:
    """A kernel AST: a SINK of STOREs over legal nodes, slots 0, 1, ... by first use.

    Raises VerifyError naming the node and the rule it breaks.
    """
    check_sink(sink, "a kernel AST")
    for node in toposort((sink,)):
        if node is not sink:
            _check(node)
    _check_slots(sink)


def _check(node: UOp) -> None:
    """One node whose sources are legal."""
    op = node.op
    check_sources(node, 1)
    if op in ELEMENTWISE:
        check_elementwise(node)
        check_index_arithmetic(node)
        shapes = {shape_of(s) for s in node.src} - {()}
        need(len(shapes) < 2, node, f"sources have shapes {sorted(map(str, shapes))}")
        return
    rule = _RULES.get(op)
    if rule is None:
        refuse(node, f"{op.name} is no op of level 1" + (_FIX.get(op, "")))
    rule(node)
    if op in _MOVES and node.dtype is not node.src[0].dtype:
        refuse(node, f"moves {node.src[0].dtype} and calls it {node.dtype}")


_FIX = {Op.CONCAT: " kernels: a CONCAT is always stored, one STORE for each part"}


def _source(node: UOp) -> Shape:
    need_arity(node, 2 if node.op in (Op.PAD, Op.GATHER) else 1)
    return shape_of(node.src[0])


def _is_shape(shape: object) -> bool:
    return isinstance(shape, tuple) and all(is_extent(n) for n in shape)


def _reshape(node: UOp) -> None:
    shape = _source(node)
    need(_is_shape(node.arg), node, "arg is a shape")
    same = volume(shape) == volume(node.arg)
    need(same, node, f"{shape} and {node.arg} have different element counts")


def _expand(node: UOp) -> None:
    shape = _source(node)
    need(_is_shape(node.arg), node, "arg is a shape")
    need(len(shape) == len(node.arg), node, f"{shape} and {node.arg} have different ranks")
    fine = all(n == m or n == 1 for n, m in zip(shape, node.arg, strict=True))
    need(fine, node, f"{shape} to {node.arg}: only axes of size 1 repeat")


def _permute(node: UOp) -> None:
    shape = _source(node)
    fine = isinstance(node.arg, tuple) and sorted(node.arg) == list(range(len(shape)))
    need(fine, node, f"{node.arg} is no permutation of {len(shape)} axes")


def _flip(node: UOp) -> None:
    _check_axes(node, node.arg, len(_source(node)))


def _check_axes(node: UOp, axes: object, rank: int) -> None:
    fine = isinstance(axes, tuple) and all(type(a) is int and 0 <= a < rank for a in axes)
    need(fine, node, f"{axes} are no axes of rank {rank}")
    assert isinstance(axes, tuple)
    need(list(axes) == sorted(set(axes)), node, f"axes {axes} are not sorted and unique")


def _pad(node: UOp) -> None:
    shape = _source(node)
    fill, arg = node.src[1], node.arg
    need(fill.op is Op.CONST and fill.dtype is node.dtype, node, "the fill is a CONST of its dtype")
    pairs = isinstance(arg, tuple) and len(arg) == len(shape) and all(len(p) == 2 for p in arg)
    need(pairs, node, f"pads {arg} do not fit rank {len(shape)}")
    need(all(type(n) is int and n >= 0 for p in arg for n in p), node, "pads are 0 or more")
    for n, pair in zip(shape, arg, strict=True):
        need(isinstance(n, int) or pair == (0, 0), node, "an axis of a Variable is not padded")


def _shrink(node: UOp) -> None:
    shape, arg = _source(node), node.arg
    spans = isinstance(arg, tuple) and len(arg) == len(shape) and all(len(s) == 3 for s in arg)
    need(spans, node, f"spans {arg} do not fit rank {len(shape)}")
    for n, (start, stop, step) in zip(shape, arg, strict=True):
        if isinstance(n, Variable):
            need((start, stop, step) == (0, n, 1), node, "an axis of a Variable is not cut")
            continue
        need(all(type(x) is int for x in (start, stop, step)), node, "spans are ints")
        need(step >= 1, node, f"step {step} is not 1 or more")
        need(0 <= start <= stop <= n, node, f"{start}..{stop} leaves the axis of {n}")


def _window(node: UOp) -> None:
    shape, arg = _source(node), node.arg
    fine = isinstance(arg, tuple) and len(arg) == 4 and all(type(x) is int for x in arg)
    need(fine, node, "arg is (axis, size, stride, dilation)")
    axis, size, stride, dilation = arg
    need(0 <= axis < len(shape), node, f"axis {axis} is none of rank {len(shape)}")
    need(min(size, stride, dilation) >= 1, node, "size, stride and dilation are 1 or more")
    n = shape[axis]
    need(isinstance(n, int), node, "an axis of a Variable has no windows")
    assert isinstance(n, int)
    fits = (n - dilation * (size - 1) - 1) // stride + 1 >= 0
    need(fits, node, f"a window of {size} does not fit {n}")


def _iota(node: UOp) -> None:
    need_arity(node, 0)
    fine = isinstance(node.arg, tuple) and len(node.arg) == 2 and _is_shape(node.arg[0])
    need(fine, node, "arg is (shape, axis)")
    shape, axis = node.arg
    need(type(axis) is int and 0 <= axis < len(shape), node, f"axis {axis} is none of {shape}")
    need(node.dtype.is_int or node.dtype.is_float, node, "an IOTA counts: no bool")


def _gather(node: UOp) -> None:
    shape = _source(node)
    need(type(node.arg) is int and 0 <= node.arg < len(shape), node, f"has no axis {node.arg}")
    need(node.src[1].dtype.is_int, node, "indices are integers")


def _check_reduced(node: UOp, combine: object) -> Shape:
    check_combine(node, combine, node.src)
    shape = shape_of(node.src[0])
    for s in node.src:
        fits = shape_of(s) in ((), shape)
        need(fits, node, f"values have shapes {shape} and {shape_of(s)}")
    return shape


def _reduce(node: UOp) -> None:
    need(isinstance(node.arg, tuple) and len(node.arg) == 2, node, "arg is (combine, axes)")
    shape = _check_reduced(node, node.arg[0])
    _check_axes(node, node.arg[1], len(shape))


def _scan(node: UOp) -> None:
    fine = isinstance(node.arg, tuple) and len(node.arg) == 4
    need(fine, node, "arg is (combine, axis, exclusive, reverse)")
    combine, axis, exclusive, reverse = node.arg
    shape = _check_reduced(node, combine)
    need(type(axis) is int and 0 <= axis < len(shape), node, f"axis {axis} is none of {shape}")
    need(type(exclusive) is bool and type(reverse) is bool, node, "exclusive, reverse are bools")


def _store(node: UOp) -> None:
    need_arity(node, 2)
    need(node.dtype is dt.void, node, "a STORE has no value")
    view, value = node.src
    base = _base(view)
    need(base.op is Op.BUFFER, node, f"stores into a {base.op.name}: no view of a BUFFER")
    need(view.dtype is value.dtype, node, f"stores {value.dtype} into {view.dtype}")
    same = shape_of(view) == shape_of(value) or value.op is Op.CONST
    need(same, node, f"stores shape {shape_of(value)} into {shape_of(view)}")


def _base(view: UOp) -> UOp:
    while view.op in VIEWS:
        view = view.src[0]
    return view


_MOVES = frozenset(
    {Op.RESHAPE, Op.PERMUTE, Op.EXPAND, Op.PAD, Op.SHRINK, Op.FLIP, Op.WINDOW, Op.GATHER}
)
_RULES: dict[Op, Callable[[UOp], None]] = {
    Op.CONST: check_const,
    Op.VAR: check_var,
    Op.BUFFER: check_buffer,
    Op.RESHAPE: _reshape,
    Op.EXPAND: _expand,
    Op.PERMUTE: _permute,
    Op.FLIP: _flip,
    Op.PAD: _pad,
    Op.SHRINK: _shrink,
    Op.WINDOW: _window,
    Op.IOTA: _iota,
    Op.GATHER: _gather,
    Op.REDUCE: _reduce,
    Op.SCAN: _scan,
    Op.ITEM: check_item,
    Op.STORE: _store,
}


def _check_slots(sink: UOp) -> None:
    """Slots count up by first use: loads in evaluation order, a store's target after its value."""
    order = [s for store in sink.src for s in (store.src[1], _base(store.src[0]))]
    slots: dict[int, UOp] = {}
    for node in toposort(order):
        if node.op is not Op.BUFFER:
            continue
        slot = node.arg.slot
        need(slots.setdefault(slot, node) is node, node, f"slot {slot} is two different buffers")
    for position, (slot, node) in enumerate(slots.items()):
        need(slot == position, node, f"slot {slot} is the number {position} by first use")
