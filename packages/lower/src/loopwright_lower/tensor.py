"""TENSOR axes: reduces of products that a tensor core does, fragment by fragment.

A core's threads hold each operand in pieces. What a thread holds lies at the loops' base, plus a
part that depends on the thread, plus an offset for each of its registers, which is expanded like
UPCAST. Outside of operands M and N stand where the thread's piece of the result lies.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, UOp, const, substitute, toposort
from loopwright_core.kernel.access import flat_strides
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.nest import Leaf, LoopNode
from loopwright_core.kernel.product import factors_as, product_of
from loopwright_core.kernel.schedule import Schedule, TensorUse
from loopwright_core.kernel.statements import (
    Analysis,
    Statement,
    bound_dims,
    can_sink,
    is_by_core,
)
from loopwright_core.plugin.tensor_core import Digits
from loopwright_lower.accumulate import Accumulators
from loopwright_lower.dims import DimState
from loopwright_lower.indices import Offsets, Place
from loopwright_lower.memory import AxisArray, axis_strides, register_part

Key = tuple[int, ...]


def bind_products(roots: tuple[UOp, ...], schedule: Schedule, facts: Analysis) -> tuple[UOp, ...]:
    """REDUCE(MUL(cast(a), cast(b)), k) --> REDUCE(WMMA(a, b), k), for those a core does."""
    use = schedule.tensor_core
    if use is None or not use.multiplies:
        return roots
    mapping: dict[UOp, UOp] = {}
    for node in facts.nodes:
        if node.op is not Op.REDUCE or not is_by_core(schedule, bound_dims(node)):
            continue
        factors = None
        value = product_of(node)
        if value is not None:
            factors = factors_as(value, use.core, use.m not in facts.free(value.src[0]))
        if factors is None:
            fail(LoweringError, f"{use.core.name} does not multiply what {node!r} adds up")
        made = UOp(Op.WMMA, use.core.dtype_out, factors, use.core)
        summed = UOp(Op.REDUCE, use.core.dtype_out, (made, *node.src[1:]), node.arg)
        if summed.dtype is not node.dtype:
            summed = UOp(Op.CAST, node.dtype, (summed,))
        mapping[node] = summed
    return substitute(roots, mapping)


def digits_of(digits: Digits, number: UOp) -> UOp:
    """The sum of a number's digits, as an index expression."""
    total = integer.add(0, 0)
    for d in digits:
        digit = integer.mod(integer.floordiv(number, d.divisor), d.modulus)
        total = integer.add(total, integer.mul(digit, d.stride))
    return total


def place_results(use: TensorUse, dims: dict[str, DimState], lane: UOp) -> None:
    """M and N stand where thread `lane` holds its piece of the result."""
    operand = use.core.operands[2]
    held = [operand.offset(r) for r in range(use.core.elements[2])]
    for name, digits, offsets in (
        (use.m, operand.lane_rows, {row for row, _ in held}),
        (use.n, operand.lane_columns, {column for _, column in held}),
    ):
        dims[name].spread_over(digits_of(digits, lane), tuple(sorted(offsets)))


class Products:
    """Opens, steps and closes the accumulators of reduces that a tensor core does."""

    def __init__(self, accumulators: Accumulators, use: TensorUse, lane: UOp | None) -> None:
        self.accumulators, self.use, self.core = accumulators, use, use.core
        self.values, self.dims = accumulators.values, accumulators.dims
        self.builder, self.indices = accumulators.builder, accumulators.indices
        self.memory, self.vector_bytes = accumulators.memory, accumulators.target.vector_bytes
        self.lane = lane  # which of the core's threads runs; None: there is one
        self._registers: dict[Statement, dict[Key, UOp]] = {}
        self._operands: dict[tuple[Statement, int], Statement] = {}
        self._scratch: dict[int, UOp] = {}
        self._outputs: dict[Statement, tuple[Statement, int]] = {}

    def declare(self, statement: Statement, streamed: frozenset[UOp]) -> Statement | None:
        """Where whole tiles go at the end of their reduce: an array that its readers read, or the
        output itself, and then this is the STORE that nothing is left of. `streamed`: outputs that
        are written around the cache, for which a core has no instruction.
        """
        if statement.escapes():
            fail(
                LoweringError,
                f"{self.core.name} holds its sums in registers, but the loops of the reduce "
                f"stand around {', '.join(a.name for a in statement.escapes())}",
                fix="Move the reduce's loops inside with ORDER",
            )
        store = statement.consumers[0]
        apart = self._rows_of_output(statement, store)
        if apart is not None and store.node.src[0].src[0] not in streamed:
            self._outputs[statement] = store, apart
            return store
        axes = [a for d in statement.free for a in self.dims[d].axes if a.kind.is_expanded]
        strides, size = axis_strides((*axes, self._axis(self.use.m), self._axis(self.use.n)))
        storage = self.builder.local("sums", self.core.dtype_out, size)
        self.values.arrays[statement.node] = (AxisArray(storage, strides),)
        return None

    def _rows_of_output(self, statement: Statement, store: Statement) -> int | None:
        """How far apart rows of the output lie, where it is nothing but these sums."""
        names = statement.free
        if not can_sink(statement, store) or store.node.src[1] is not statement.node:
            return None
        if any(self.dims[d].mode == "guard" for d in names):
            return None
        return self._apart(store.node.src[0], self.use.m, self.use.n)

    def are_lanes(self, node: LoopNode) -> bool:
        """Whether a loop over the columns of a tile is one vector: whole rows, stored side by
        side, in statements that have no lanes yet."""
        axis, state = node.step.axis, self.dims[node.step.axis.dim]
        if axis != self._axis(self.use.n) or not self.core.is_tile or state.mode != "exact":
            return False
        if self.core.dtype_out.itemsize * self.core.dims[1] not in self.vector_bytes:
            return False
        return all(
            s.kind == "store"
            and flat_strides(s.node.src[0]).get(axis.dim) == 1
            and self.values.vector_dim(s) is None
            for s in node.statements
        ) and all(isinstance(child, Leaf) for child in node.children)

    def open(self, statement: Statement) -> None:
        """Accumulators of zeros."""
        zero = self.builder.place(const(0, self.core.dtype(2)))
        self._registers[statement] = {
            self.values.free_key(statement.free, free): self.builder.register("acc", zero)
            for free in self._blocks(statement.free)
        }

    def step(self, statement: Statement) -> None:
        """One leaf: every block of the result takes its rows and columns."""
        b = self.builder
        inputs: dict[tuple[int, Key], UOp] = {}
        for bound in self._blocks(statement.bound):
            for free in self._blocks(statement.free):
                offsets = {**free, **bound}
                x, y = (self._input(statement, n, offsets, inputs) for n in (0, 1))
                register = self._registers[statement][self.values.free_key(statement.free, free)]
                held = b.read(register)
                b.assign(register, b.place(UOp(Op.WMMA, held.dtype, (x, y, held), self.core)))

    def close(self, statement: Statement) -> None:
        """Hand the sums on: each element in a register of its own, or tiles in memory."""
        if self.core.is_tile:
            self._put(statement)
            return
        b, operand = self.builder, self.core.operands[2]
        finals: dict[Key, tuple[UOp, ...]] = {}
        for free in self._blocks(statement.free):
            key = self.values.free_key(statement.free, free)
            held = b.read(self._registers[statement][key])
            for r in range(self.core.elements[2]):
                row, column = operand.offset(r)
                at = self._moved(free, (self.use.m, row), (self.use.n, column))
                element = b.place(UOp(Op.LANE, held.dtype.scalar, (held,), r))
                finals[self.values.free_key(statement.free, at)] = (element,)
        self.accumulators.hand_on(statement, finals)

    def _put(self, statement: Statement) -> None:
        """Store every tile, to its array or to the output."""
        shape, b = self.core.tile_shape(2), self.builder
        output = self._outputs.get(statement)
        for free in self._blocks(statement.free):
            value = b.read(self._registers[statement][self.values.free_key(statement.free, free)])
            if output is None:
                (array,) = self.values.arrays[statement.node]
                storage, apart = array.storage, shape[1]
                place = array.place(self.dims, free, None)
            else:
                store, apart = output
                storage = store.node.src[0].src[0]
                place, _ = self.values.locate(store.node.src[0], {}, free, None)
            b.store_tile(storage, self.indices.emit(place.base), apart, value, shape)

    # Operands

    def _input(
        self,
        statement: Statement,
        which: int,
        offsets: Offsets,
        inputs: dict[tuple[int, Key], UOp],
    ) -> UOp:
        """An operand at a block, loaded once for all blocks of this leaf that need it."""
        names = self._statement_of(statement, which).dims
        key = which, self.values.free_key(names, offsets)
        if key not in inputs:
            inputs[key] = self._operand(statement, which, offsets)
        return inputs[key]

    def _operand(self, statement: Statement, which: int, offsets: Offsets) -> UOp:
        """What this thread holds of A (0) or B (1) at a block."""
        inner = self._statement_of(statement, which)
        if self.core.is_tile:
            return self._tile(inner, which, offsets)
        operand = self.core.operands[which]
        row, column = self._dims_of(statement, which)
        assert self.lane is not None
        parts = digits_of(operand.lane_rows, self.lane), digits_of(operand.lane_columns, self.lane)
        elements = []
        with self._placed((row, parts[0]), (column, parts[1])):
            for r in range(self.core.elements[which]):
                down, right = operand.offset(r)
                at = self._moved(offsets, (row, down), (column, right))
                elements.append(self._element(inner, at))
        if len(elements) == 1:
            return elements[0]
        return self.builder.place(UOp(Op.VECTORIZE, self.core.dtype(which), tuple(elements)))

    def _element(self, inner: Statement, at: Offsets) -> UOp:
        """One element of an operand; zero where it does not exist."""
        node = inner.node
        if any(self.dims[d].exists(at.get(d, 0)) is FALSE for d in inner.dims):
            return const(0, node.dtype)
        known = self.values.evaluate(inner, at)
        value = self.values.operand(node, known, at, None)
        mask = self.memory.exists(inner.dims, at, None)
        if mask is None or self._is_filled(inner):
            return value
        return self.builder.alu(Op.WHERE, value.dtype, mask, value, const(0, value.dtype))

    def _is_filled(self, inner: Statement) -> bool:
        """Whether the operand is a load that reads zero wherever it does not exist."""
        node = inner.node
        if node.op is not Op.LOAD or node in self.values.arrays:
            return False
        ragged = {d for d in inner.dims if self.dims[d].mode == "guard"}
        return node.src[1].arg == 0 and ragged <= set(self.values.facts.free(node.src[0]))

    def _statement_of(self, statement: Statement, which: int) -> Statement:
        """An operand as a statement of its own: what its leaf evaluates, and where it exists."""
        found = self._operands.get((statement, which))
        if found is None:
            node = statement.node.src[0].src[which]
            below = set(toposort((node,), lambda n: n.op not in (Op.REDUCE, Op.SCAN)))
            needed = (*self.values.facts.free(node), *statement.bound)
            names = tuple([d for d in statement.dims if d in needed])
            found = Statement(statement.number, "reduce", node, (node,), names, (), ())
            found.order = [n for n in statement.order if n in below]
            self._operands[statement, which] = found
        return found

    def _dims_of(self, statement: Statement, which: int) -> tuple[str, str]:
        """The dims that an operand's rows and columns run along."""
        (k,) = (d for d in statement.bound if self.dims[d].tensor is not None)
        return (self.use.m, k) if which == 0 else (k, self.use.n)

    @contextmanager
    def _placed(self, *parts: tuple[str, UOp]) -> Iterator[None]:
        """Dims standing at an operand's elements instead of the result's."""
        before = {name: self.dims[name].part for name, _ in parts}
        for name, part in parts:
            self.dims[name].part = part
        yield
        for name, old in before.items():
            self.dims[name].part = old

    # Whole tiles, by one thread

    def _tile(self, inner: Statement, which: int, offsets: Offsets) -> UOp:
        """A tile: from where its rows lie as the core reads them, else gathered first."""
        (k,) = (d for d in inner.dims if self.dims[d].dim.is_reduce and self.dims[d].tensor)
        row, column = (self.use.m, k) if which == 0 else (k, self.use.n)
        load, core = inner.node, self.core
        rows, columns = core.tile_shape(which)
        arrays = self.values.arrays.get(load)
        if arrays is not None and isinstance(arrays[0], AxisArray) and arrays[0].tile:
            place = arrays[0].place(self.dims, offsets, None)
            return self._load(arrays[0].storage, place.base, columns, which)
        stride = None if arrays else self._rows_apart(inner, which, row, column)
        if stride is not None:
            place, _ = self.values.locate(load.src[0], {}, offsets, None)
            return self._load(load.src[0].src[0], place.base, stride, which)
        storage = self._scratch.get(which)
        if storage is None:
            size = rows * columns
            storage = self.builder.local("AB"[which] + "_part", core.dtype_in[which], size)
            self._scratch[which] = storage
        operand, b = core.operands[which], self.builder
        steps = [self._loop(n, name) for n, name in ((operand.rows, "r"), (operand.columns, "c"))]
        at = integer.add(
            register_part(operand.register_rows, steps[0]),
            register_part(operand.register_columns, steps[1]),
        )
        with self._placed((row, steps[0]), (column, steps[1])):
            value = self._element(inner, offsets)
        self.memory.store(storage, Place(at, 0), value, 1, None, None)
        b.close()
        b.close()
        return self._load(storage, integer.add(0, 0), columns, which)

    def _rows_apart(self, inner: Statement, which: int, row: str, column: str) -> int | None:
        """How far apart an operand's rows lie in its buffer, if the core can read them there."""
        load = inner.node
        if load.op is not Op.LOAD or load.src[0].src[-1] is not TRUE:
            return None
        if not self.core.is_row_major(which) or any(
            self.dims[d].mode == "guard" for d in inner.dims
        ):
            return None
        return self._apart(load.src[0], row, column)

    def _apart(self, index: UOp, row: str, column: str) -> int | None:
        """How far apart rows lie whose columns lie side by side; None where they do not."""
        flat = integer.affine(self.values.flat_offset(index))
        if any(atom.op is not Op.DIM for atom, _ in flat.terms):
            return None
        strides = {atom.arg.name: step for atom, step in flat.terms}
        stride = strides.get(row, 0)
        return stride if strides.get(column) == 1 and stride > 0 else None

    def _load(self, storage: UOp, offset: UOp, stride: int, which: int) -> UOp:
        b = self.builder
        src = (b.seen(storage), self.indices.emit(offset))
        where = b.place(UOp(Op.INDEX, storage.dtype, src))
        rows = self.core.tile_shape(which)
        node = (where, const(stride, b.int_dtype))
        return b.place(UOp(Op.TILE_LOAD, self.core.dtype(which), node, rows))

    def _loop(self, extent: int, name: str) -> UOp:
        loop = self.builder.open_loop(const(extent, self.builder.int_dtype), name)
        step = UOp(Op.RANGE, dt.index, (const(extent, dt.index),), loop.arg)
        self.indices.loops[step] = loop
        return step

    # Coordinates

    def _blocks(self, names: tuple[str, ...]) -> list[Offsets]:
        """Every expanded position of these dims, at the first element of each block."""
        choices = [self.dims[n].blocks for n in names]
        return [dict(zip(names, c, strict=True)) for c in product(*choices)]

    def _moved(self, offsets: Offsets, *by: tuple[str, int]) -> Offsets:
        return {**offsets, **{name: offsets.get(name, 0) + step for name, step in by}}

    def _axis(self, dim: str) -> Axis:
        axis = self.dims[dim].tensor
        assert axis is not None
        return axis


def tile_digits(
    use: TensorUse, schedule: Schedule, load: UOp, statements: list[Statement]
) -> tuple[tuple[Axis, Digits], ...]:
    """How a staged load lies within its tiles, where it is an operand of a core that loads whole
    tiles; () for others."""
    if not use.core.is_tile or not use.multiplies:
        return ()
    axes = {a.dim: a for a in schedule.axes if a.kind is AxisKind.TENSOR}
    for statement in statements:
        value = statement.node.src[0] if statement.by_core else None
        for which in (0, 1):
            if value is None or value.src[which] is not load:
                continue
            operand = use.core.operands[which]
            (k,) = (d for d in statement.bound if d in axes)
            row, column = (use.m, k) if which == 0 else (k, use.n)
            return (axes[row], operand.register_rows), (axes[column], operand.register_columns)
    return ()
