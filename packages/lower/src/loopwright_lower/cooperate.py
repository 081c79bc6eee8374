"""STAGE on targets with workgroups: all threads copy a tile into shared memory together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, const
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.statements import Statement
from loopwright_lower.dims import DimState, Entered
from loopwright_lower.grid import Grid, steps, steps_of_all
from loopwright_lower.indices import Place
from loopwright_lower.memory import AxisArray
from loopwright_lower.values import Values


class Cooperation:
    """Copies whose elements are dealt out to threads in a row: neighbours read neighbours."""

    def __init__(self, values: Values, grid: Grid) -> None:
        self.values, self.grid = values, grid
        self.builder, self.indices, self.dims = values.builder, values.indices, values.dims
        self._orders: dict[Statement, tuple[Axis, ...]] = {}
        self._n_bindings = 0

    def plan(self, copy: Statement, inner: list[Axis], order: list[Axis]) -> None:
        """Remember a copy of the elements of `inner`; `order` as given, outermost first, or by
        how far apart they lie in memory."""
        if not order:
            flat = integer.affine(self.values.flat_offset(copy.node.src[0]))
            apart = {t.arg.name: abs(c) for t, c in flat.terms if t.op is Op.DIM}
            order = sorted(inner, key=lambda a: -apart.get(a.dim, 0) * a.stride)
        self._orders[copy] = (*[a for a in inner if a not in order], *order)

    def emit(self, copy: Statement) -> None:
        """Copy the elements of a panel, or write those of a tile of results out."""
        order = self._orders[copy]
        with self.numbered(steps_of_all(order), copy) as number:
            self._element(copy, order, number)
        assert isinstance(copy.copy, AxisArray)
        if copy.node.op is Op.LOAD:
            self.values.arrays[copy.node] = (copy.copy,)

    @contextmanager
    def numbered(self, total: int, copy: Statement) -> Iterator[UOp]:
        """Barrier, a number below `total` for each thread and round, barrier: readers of the last
        tile are done, those of this one wait."""
        b = self.builder
        rounds = -(-total // self.grid.threads)
        b.barrier()
        number = self.grid.thread
        if rounds > 1:
            loop = b.open_loop(const(rounds, b.int_dtype), "c")
            step = UOp(Op.RANGE, dt.index, (const(rounds, dt.index),), loop.arg)
            self.indices.loops[step] = loop
            number = integer.add(integer.mul(step, self.grid.threads), number)
        within = integer.lt(number, total)
        if copy.node.op is Op.STORE:
            within = integer.and_(within, self.grid.is_first_group(copy.path))
        if within is not TRUE:
            b.open_if(self.indices.emit(within))
        yield number
        if within is not TRUE:
            b.close()
        if rounds > 1:
            b.close()
        b.barrier()

    def _element(self, copy: Statement, order: tuple[Axis, ...], number: UOp) -> None:
        """Load and store the element of that number: into the tile, or out of it."""
        at: dict[Axis, UOp] = {}
        rest = number
        for axis in reversed(order[1:]):
            size = steps(axis)
            at[axis] = integer.mod(rest, size)
            rest = integer.floordiv(rest, size)
        at[order[0]] = rest
        saved = {name: self.dims[name] for name in copy.free}
        for name, state in saved.items():
            self.dims[name] = self._placed(state, at)
        load, array = copy.node, copy.copy
        assert isinstance(array, AxisArray)
        offset = integer.add(0, 0)
        for axis, stride in array.strides:
            offset = integer.add(offset, integer.mul(at[axis], stride))
        place, memory = Place(offset, 0), self.values.memory
        if load.op is Op.STORE:
            index = load.src[0]
            where, mask = self.values.locate(index, {}, {}, None)
            value = memory.load(array.storage, place, 1, mask, None)
            memory.store(index.src[0], where, value, 1, mask, None)
            self.dims.update(saved)
            return
        known = self.values.evaluate(copy, {})
        value = self.values.load(load, known, {}, None)
        self.dims.update(saved)
        memory.store(array.storage, place, value, 1, None, None)

    def _placed(self, state: DimState, at: dict[Axis, UOp]) -> DimState:
        """The dim with the tile's axes at these values instead of where this thread stands."""
        axes = tuple(replace(a, kind=AxisKind.LOOP) if a in at else a for a in state.axes)
        self._n_bindings -= 1
        entered = [e for e in state.entered if e.axis not in at]
        entered += [Entered(a, v, TRUE, TRUE) for a, v in at.items() if a.dim == state.dim.name]
        return DimState(
            state.dim, axes, state.is_reversed, entered, None, self._n_bindings, masked=True
        )
