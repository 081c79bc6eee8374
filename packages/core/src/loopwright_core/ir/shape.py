"""Shapes of level-1 nodes, computed once per node."""

from __future__ import annotations

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Extent, UOp

Shape = tuple[Extent, ...]


def shape_of(node: UOp) -> Shape:
    """The shape of a level-1 node; constants are scalars and fit every shape."""
    known: Shape | None = node._shape
    if known is not None:
        return known
    stack = [node]
    while stack:
        top = stack[-1]
        missing = [s for s in top.src if s._shape is None]
        if missing:
            stack.extend(missing)
            continue
        if top._shape is None:
            top._shape = _shape(top)
        stack.pop()
    shape: Shape = node._shape
    return shape


def _shape(node: UOp) -> Shape:
    op, arg = node.op, node.arg
    if op in (Op.CONST, Op.VAR, Op.SINK):
        return ()
    if op is Op.BUFFER:
        return arg.shape  # type: ignore[no-any-return]
    if op is Op.IOTA:
        return arg[0]  # type: ignore[no-any-return]
    shape: Shape = node.src[0]._shape
    if op in (Op.RESHAPE, Op.EXPAND):
        return arg  # type: ignore[no-any-return]
    if op is Op.PERMUTE:
        return tuple([shape[a] for a in arg])
    if op is Op.PAD:
        ends = zip(shape, arg, strict=True)
        return tuple([n + lo + hi if lo or hi else n for n, (lo, hi) in ends])
    if op is Op.SHRINK:
        parts = zip(shape, arg, strict=True)
        return tuple([n if (a, b, s) == (0, n, 1) else -((a - b) // s) for n, (a, b, s) in parts])
    if op is Op.WINDOW:
        axis, size, stride, dilation = arg
        n = (shape[axis] - dilation * (size - 1) - 1) // stride + 1
        return (*shape[:axis], n, *shape[axis + 1 :], size)
    if op is Op.GATHER:
        indices: Shape = node.src[1]._shape
        return (*shape[:arg], *indices, *shape[arg + 1 :])
    if op is Op.CONCAT:
        n = sum(s._shape[arg] for s in node.src)
        return (*shape[:arg], n, *shape[arg + 1 :])
    if op is Op.REDUCE:
        return tuple([n for i, n in enumerate(shape) if i not in arg[1]])
    if op is Op.STORE:
        return node.src[1]._shape  # type: ignore[no-any-return]
    for s in node.src:  # elementwise, SCAN, ITEM: constants fit every shape
        if s._shape:
            return s._shape  # type: ignore[no-any-return]
    return shape
