"""Level 1 on NumPy: shaped expressions, one array a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.oracle.alu import compute, constant
from loopwright_core.oracle.memory import Array, flat, last_uses, shape_at
from loopwright_core.oracle.merge import reduce, scan

Variables = Mapping[str, int]
_NONE: dict[str, int] = {}


def run_tensor(sink: UOp, buffers: Mapping[int, Array], variables: Variables = _NONE) -> None:
    """Run a level-1 SINK: each STORE writes into the given array of its buffer's slot.

    Raises VerifyError where an array is missing or does not fit its BUFFER.
    """
    machine = _Tensor(buffers, variables)
    stores = sink.src if sink.op is Op.SINK else (sink,)
    machine.evaluate([s.src[1] for s in stores])
    written = []
    with np.errstate(all="ignore"):
        for store in stores:
            view, value = store.src
            base = _storage(view)
            cells = flat(base, buffers, variables)
            place = machine.positions(view, base)
            written.append(
                (cells, place, np.array(np.broadcast_to(machine.at(value), place.shape)))
            )
        for cells, place, result in written:
            cells[place] = result


def eval_tensor(node: UOp, buffers: Mapping[int, Array], variables: Variables = _NONE) -> Array:
    """The value of a level-1 node as a new array. A node of several values is read by ITEM."""
    machine = _Tensor(buffers, variables)
    machine.evaluate([node])
    shape = shape_at(shape_of(node), variables)
    return np.array(np.broadcast_to(machine.at(node), shape))


def _storage(view: UOp) -> UOp:
    """The BUFFER under a store's view."""
    node = view
    while node.op in (Op.SHRINK, Op.RESHAPE, Op.PERMUTE, Op.FLIP):
        node = node.src[0]
    if node.op is not Op.BUFFER:
        fail(VerifyError, f"{node!r} is no BUFFER to store into")
    return node


class _Tensor:
    """The arrays of one evaluation."""

    def __init__(self, buffers: Mapping[int, Array], variables: Variables) -> None:
        self.buffers, self.variables = buffers, variables
        self.values: dict[UOp, Any] = {}

    def at(self, node: UOp) -> Array:
        value: Array = self.values[node]
        return value

    def shape(self, node: UOp) -> tuple[int, ...]:
        return shape_at(shape_of(node), self.variables)

    def evaluate(self, roots: list[UOp]) -> None:
        with np.errstate(all="ignore"):
            order = toposort(roots)
            done = last_uses(order, roots)
            for node in order:
                self.values[node] = self.compute(node)
                for used in done.get(node, ()):
                    del self.values[used]

    def positions(self, view: UOp, base: UOp) -> Array:
        """Where each element of a view lies in its buffer."""
        shape = self.shape(base)
        place: Array = np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
        chain = []
        while view is not base:
            chain.append(view)
            view = view.src[0]
        for node in reversed(chain):
            place = _MOVES[node.op](self, node, place)
        return place

    def compute(self, node: UOp) -> Any:
        op = node.op
        if op in ELEMENTWISE:
            f = compute(op, node.dtype, tuple([s.dtype for s in node.src]), node.arg)
            return np.asarray(f(*[self.at(s) for s in node.src]))
        if op in _MOVES:
            return _MOVES[op](self, node, self.at(node.src[0]))
        rule = _RULES.get(op)
        if rule is None:
            fail(VerifyError, f"{node!r} is no level-1 op")
        return rule(self, node)


Rule = Callable[[_Tensor, UOp], Any]
Move = Callable[[_Tensor, UOp, Array], Array]


def _buffer(m: _Tensor, node: UOp) -> Array:
    return flat(node, m.buffers, m.variables).reshape(m.shape(node))


def _var(m: _Tensor, node: UOp) -> Array:
    return np.asarray(np.array(shape_at((node.arg,), m.variables)[0]).astype(node.dtype.numpy))


def _shrink(m: _Tensor, node: UOp, x: Array) -> Array:
    spans = [shape_at(span, m.variables) for span in node.arg]
    return x[tuple([slice(*span) for span in spans])]


def _flip(m: _Tensor, node: UOp, x: Array) -> Array:
    return np.flip(x, axis=node.arg)


def _pad(m: _Tensor, node: UOp) -> Array:
    x, fill = m.at(node.src[0]), m.at(node.src[1])
    out = np.full(m.shape(node), fill, node.dtype.numpy)
    out[tuple([slice(lo, lo + n) for n, (lo, _) in zip(x.shape, node.arg, strict=True)])] = x
    return out


def _window(m: _Tensor, node: UOp) -> Array:
    x = m.at(node.src[0])
    axis, size, stride, dilation = node.arg
    n = m.shape(node)[axis]
    index = np.arange(n)[:, None] * stride + np.arange(size) * dilation
    return np.moveaxis(np.take(x, index, axis=axis), axis + 1, -1)


def _iota(m: _Tensor, node: UOp) -> Array:
    shape, axis = m.shape(node), node.arg[1]
    line = np.arange(shape[axis]).astype(node.dtype.numpy)
    return np.broadcast_to(line.reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape)


def gather(x: Array, indices: Array, axis: int) -> Array:
    """numpy.take where an index out of range reads 0 and a negative one counts from the end."""
    n = x.shape[axis]
    inside = indices < n
    where = np.where(inside, indices, 0).astype(np.int64)
    where = np.where(where < 0, where + n, where)
    inside = inside & (where >= 0)
    tail = x.ndim - axis - 1
    if n == 0:
        return np.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    found = np.take(x, np.where(inside, where, 0), axis=axis)
    return np.where(inside.reshape(*indices.shape, *[1] * tail), found, x.dtype.type(0))


def _gather(m: _Tensor, node: UOp) -> Array:
    return gather(m.at(node.src[0]), m.at(node.src[1]), node.arg)


def _concat(m: _Tensor, node: UOp) -> Array:
    return np.concatenate([m.at(s) for s in node.src], axis=node.arg)


def _operands(m: _Tensor, node: UOp) -> tuple[Array, ...]:
    shapes = [m.shape(s) for s in node.src]
    shape = max(shapes, key=len)
    return tuple([np.broadcast_to(m.at(s), shape) for s in node.src])


def _result(values: tuple[Array, ...]) -> Any:
    return values[0] if len(values) == 1 else values


def _reduce(m: _Tensor, node: UOp) -> Any:
    combine, axes = node.arg
    return _result(reduce(combine, [s.dtype for s in node.src], _operands(m, node), tuple(axes)))


def _scan(m: _Tensor, node: UOp) -> Any:
    combine, axis, exclusive, reverse = node.arg
    dtypes = [s.dtype for s in node.src]
    return _result(scan(combine, dtypes, _operands(m, node), axis, exclusive, reverse))


_MOVES: dict[Op, Move] = {
    Op.RESHAPE: lambda m, node, x: x.reshape(m.shape(node)),
    Op.PERMUTE: lambda m, node, x: x.transpose(node.arg),
    Op.EXPAND: lambda m, node, x: np.broadcast_to(x, m.shape(node)),
    Op.SHRINK: _shrink,
    Op.FLIP: _flip,
}
_RULES: dict[Op, Rule] = {
    Op.CONST: lambda m, node: np.asarray(constant(node)),
    Op.VAR: _var,
    Op.BUFFER: _buffer,
    Op.PAD: _pad,
    Op.WINDOW: _window,
    Op.IOTA: _iota,
    Op.GATHER: _gather,
    Op.CONCAT: _concat,
    Op.REDUCE: _reduce,
    Op.SCAN: _scan,
    Op.ITEM: lambda m, node: m.values[node.src[0]][node.arg],
}
