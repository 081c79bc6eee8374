"""Level 2 on NumPy: a scalar body evaluated for all points of its dims at once.

A value is an array with one axis for each dim it depends on, in the order of `_Body.order`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.alu import compute, constant
from loopwright_core.oracle.memory import Array, flat, last_uses, shape_at, size_of
from loopwright_core.oracle.merge import reduce, scan

Variables = Mapping[str, int]
_NONE: dict[str, int] = {}
MAX_POINTS = 20_000_000  # of one node's iteration space held at once


def run_kernel(
    body: UOp | Kernel, buffers: Mapping[int, Array], variables: Variables = _NONE
) -> None:
    """Run a level-2 body; every load sees its buffer as it was before the kernel.

    Raises VerifyError for a valid access out of bounds, and for a reduce too large to hold.
    """
    sink = body.body if isinstance(body, Kernel) else body
    stores = sink.src if sink.op is Op.SINK else (sink,)
    program = _Body(stores, buffers, variables)
    with np.errstate(all="ignore"):
        if program.points(stores) <= MAX_POINTS:
            _Run(program, {}).store(stores)
            return
        for store in stores:
            for ranges in program.chunks(store):
                _Run(program, ranges).store((store,))


class _Body:
    """What does not change from chunk to chunk: dims, free dims of each node, memory."""

    def __init__(
        self, stores: Sequence[UOp], buffers: Mapping[int, Array], variables: Variables
    ) -> None:
        self.nodes = toposort(stores)
        self.variables = variables
        self.free: dict[UOp, tuple[Dim, ...]] = {}
        self.order: dict[Dim, int] = {}
        for node in self.nodes:
            if node.op is Op.DIM:
                self.order.setdefault(node.arg, len(self.order))
        self.size = {d: size_of(d.size, variables) for d in self.order}
        for node in self.nodes:
            self.free[node] = self._free(node)
        self.scanned = {n.src[-1].arg for n in self.nodes if n.op is Op.SCAN}
        self.memory: dict[UOp, Array] = {}
        self.before: dict[UOp, Array] = {}
        written = {s.src[0].src[0] for s in stores}
        for node in self.nodes:
            if node.op is Op.LOAD:
                source = node.src[0].src[0]
                if source in written and source not in self.before:
                    self.before[source] = flat(source, buffers, variables).copy()
        for node in self.nodes:
            if node.op is Op.BUFFER:
                self.memory[node] = flat(node, buffers, variables)

    def union(self, nodes: Sequence[UOp]) -> tuple[Dim, ...]:
        """The dims any of the nodes depends on, in order."""
        dims: dict[Dim, None] = {}
        for n in nodes:
            dims.update(dict.fromkeys(self.free[n]))
        return tuple(sorted(dims, key=self.order.__getitem__))

    def _free(self, node: UOp) -> tuple[Dim, ...]:
        if node.op is Op.DIM:
            return (node.arg,)
        dims = self.union(node.src)
        if node.op is Op.REDUCE:
            bound = {s.arg for s in _bound(node)}
            return tuple([d for d in dims if d not in bound])
        return dims

    def points(self, stores: Sequence[UOp], ranges: Mapping[Dim, int] = {}) -> int:
        """The largest iteration space of a node, counting a reduce before it is combined."""
        most = 1
        for node in toposort(stores):
            n = 1
            for d in self.union(node.src) or self.free[node]:
                n *= ranges.get(d, self.size[d])
            most = max(most, n)
        return most

    def chunks(self, store: UOp) -> list[dict[Dim, range]]:
        """Ranges of the store's output dims, outermost first, that keep every node in bounds."""
        sizes: dict[Dim, int] = {}
        for d in self.free[store]:
            points = self.points((store,), sizes)
            if points <= MAX_POINTS:
                break
            if d in self.scanned:
                continue
            sizes[d] = self.size[d]
            low, high = 1, self.size[d]
            while low < high:  # the largest step that fits, 1 where none does
                sizes[d] = (low + high + 1) // 2
                if self.points((store,), sizes) <= MAX_POINTS:
                    low = sizes[d]
                else:
                    high = sizes[d] - 1
            sizes[d] = low
        points = self.points((store,), sizes)
        if points > MAX_POINTS:
            fail(
                VerifyError,
                f"a reduce or scan of {points} points is more than the interpreter holds",
                where=repr(store),
                fix=f"run a smaller case: at most {MAX_POINTS} points for one output element",
            )
        found: list[dict[Dim, range]] = [{}]
        for d, step in sizes.items():
            parts = [range(k, min(k + step, self.size[d])) for k in range(0, self.size[d], step)]
            found = [{**ranges, d: part} for ranges in found for part in parts]
        return found


def _bound(node: UOp) -> tuple[UOp, ...]:
    """The DIMs a REDUCE or SCAN binds: the sources behind its values."""
    return node.src[COMBINES[node.arg[0]].n_values :]


class _Run:
    """One evaluation over (a part of) the iteration space."""

    def __init__(self, body: _Body, ranges: Mapping[Dim, range]) -> None:
        self.body, self.ranges = body, ranges
        self.values: dict[UOp, Any] = {}

    def store(self, stores: Sequence[UOp]) -> None:
        """Evaluate the stores' values, then write them all."""
        wanted = [s for store in stores for s in (*store.src[0].src, store.src[1])]
        order = toposort(wanted)
        done = last_uses(order, wanted)
        for node in order:
            if node.op not in (Op.BUFFER, Op.INDEX):
                self.values[node] = self.compute(node)
                for used in done.get(node, ()):
                    self.values.pop(used, None)
        for store in stores:
            index, value = store.src
            dims = self.body.union(store.src)
            offset, valid = self.address(index, dims)
            shape = tuple([len(self.range(d)) for d in dims])
            offset = np.broadcast_to(offset, shape)
            cells = self.body.memory[index.src[0]]
            result = np.broadcast_to(self.on(value, dims), shape)
            if valid is None:
                cells[offset.reshape(-1)] = result.reshape(-1)
            else:
                mask = np.broadcast_to(valid, shape)
                cells[offset[mask]] = result[mask]

    def range(self, d: Dim) -> range:
        return self.ranges.get(d) or range(self.body.size[d])

    def on(self, node: UOp, dims: tuple[Dim, ...]) -> Any:
        """The node's value with an axis (of size 1 where it does not depend) for each of `dims`."""
        return self._spread(self.values[node], self.body.free[node], dims)

    def _spread(self, value: Any, own: tuple[Dim, ...], dims: tuple[Dim, ...]) -> Any:
        if own == dims or not own:
            return value
        sizes = dict(zip(own, np.shape(value), strict=True))
        return value.reshape([sizes.get(d, 1) for d in dims])

    def compute(self, node: UOp) -> Any:
        op, free = node.op, self.body.free[node]
        if op in ELEMENTWISE:
            f = compute(op, node.dtype, tuple([s.dtype for s in node.src]), node.arg)
            value = f(*[self.on(s, free) for s in node.src])
            return value if free else np.asarray(value)[()]
        if op is Op.CONST:
            return constant(node)
        if op is Op.VAR:
            return node.dtype.numpy.type(size_of(node.arg, self.body.variables))
        if op is Op.DIM:
            r = self.range(node.arg)
            return np.arange(r.start, r.stop, dtype=np.int64)
        if op is Op.LOAD:
            return self.load(node)
        if op in (Op.REDUCE, Op.SCAN):
            return self.combine(node)
        if op is Op.ITEM:
            return self.values[node.src[0]][node.arg]
        fail(VerifyError, f"{node!r} is no level-2 op")

    def address(self, index: UOp, dims: tuple[Dim, ...]) -> tuple[Any, Any]:
        """Flat offsets over `dims` and where they are valid (None: everywhere)."""
        shape = shape_at(index.arg, self.body.variables)
        valid = self.on(index.src[-1], dims)
        always = bool(np.all(valid))
        offset: Any = np.int64(0)
        for position, (n, node) in enumerate(zip(shape, index.src[1:-1], strict=True)):
            i = self.on(node, dims)
            inside = (i >= 0) & (i < n)
            if not always:
                i = np.where(valid, i, 0)
                inside = inside | ~np.asarray(valid)
            if not np.all(inside):
                low, high = np.min(i), np.max(i)
                fail(
                    VerifyError,
                    f"index {position} of {index!r} reaches {low}..{high} of 0..{n - 1}",
                    where=f"buffer {index.src[0].arg.slot}",
                )
            offset = offset * n + i
        return offset, None if always else valid

    def load(self, node: UOp) -> Any:
        index, fill = node.src
        dims = self.body.free[node]
        offset, valid = self.address(index, dims)
        source = index.src[0]
        cells = self.body.before.get(source)
        if cells is None:
            cells = self.body.memory[source]
        if valid is None:
            return self._full(cells[offset], dims)
        if not np.any(valid):
            return self._full(self.values[fill], dims)
        return self._full(np.where(valid, cells[offset], self.values[fill]), dims)

    def _full(self, value: Any, dims: tuple[Dim, ...]) -> Any:
        return np.broadcast_to(value, [len(self.range(d)) for d in dims])

    def combine(self, node: UOp) -> Any:
        bound = [s.arg for s in _bound(node)]
        values = node.src[: len(node.src) - len(bound)]
        dims = self.body.union(node.src)
        shape = [len(self.range(d)) for d in dims]
        arrays = tuple([np.broadcast_to(self.on(v, dims), shape) for v in values])
        dtypes = [v.dtype for v in values]
        axes = tuple([dims.index(d) for d in bound])
        if node.op is Op.SCAN:
            combine, exclusive, reverse = node.arg
            result = scan(combine, dtypes, arrays, axes[0], exclusive, reverse)
        else:
            result = reduce(node.arg[0], dtypes, arrays, axes)
        return result[0] if len(result) == 1 else result
