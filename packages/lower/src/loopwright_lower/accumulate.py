"""Accumulators of REDUCE and SCAN statements: opened, joined, sunk or spilled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Protocol

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.combine import Values as MergeValues
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, UOp, const
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.statements import Statement, reduce_values
from loopwright_core.plugin.target import Target
from loopwright_lower.indices import Offsets
from loopwright_lower.memory import AxisArray, axis_strides
from loopwright_lower.merge import Merger, merger
from loopwright_lower.values import LocalArray, Values

Key = tuple[int, ...]
Registers = dict[tuple[Key, Key], tuple[UOp, ...]]


class Joins(Protocol):
    """How threads of a group join their parts of a reduce."""

    def join(
        self, statement: Statement, merge: Merger, parts: dict[Key, MergeValues], lanes: int
    ) -> dict[Key, MergeValues]:
        """The group's values, in every thread."""


class Accumulators:
    """The accumulators that are open, and the arrays reduces are spilled to."""

    def __init__(self, values: Values, target: Target) -> None:
        self.builder, self.indices, self.memory = values.builder, values.indices, values.memory
        self.values, self.dims, self.target = values, values.dims, target
        # By free and by partial position; the totals of open blocks wait in a stack.
        self._registers: dict[Statement, Registers] = {}
        self._totals: dict[Statement, list[Registers]] = {}
        self.sinks: dict[Statement, Statement] = {}  # reduce -> the STORE it is sunk into
        # A grid's: who stores for ids that do the same, and how groups of threads join.
        self.is_first: Callable[[Statement, bool], UOp] = _everyone
        self.groups: Joins | None = None
        # Arrays that other threads read, by the depth their loops stand at.
        self.shared_depths: dict[Statement, int] = {}
        # Called after a leaf's values: kept values are written then.
        self.after_values: Callable[[Statement, Offsets, dict[UOp, UOp]], None] = _nothing

    def merger(self, statement: Statement) -> Merger:
        dtypes = tuple(v.dtype for v in reduce_values(statement.node))
        return merger(statement.node.arg[0], dtypes, self.target)

    # Coordinates

    def coordinates(self, names: tuple[str, ...]) -> list[Offsets]:
        """Every expanded position of these dims that exists in this body."""
        choices = [self.dims[n].offsets for n in names]
        return [dict(zip(names, c, strict=True)) for c in product(*choices)]

    def _partials(self, statement: Statement) -> list[Key]:
        """One key per separate partial accumulator: the UPCAST axes of bound dims."""
        sizes = [int(a.size) for a in self._bound_upcasts(statement)]  # type: ignore[arg-type]
        return list(product(*[range(n) for n in sizes]))

    def _bound_upcasts(self, statement: Statement) -> list[Axis]:
        return [
            a for d in statement.bound for a in self.dims[d].expanded if a.kind is AxisKind.UPCAST
        ]

    def _partial_of(self, statement: Statement, offsets: Offsets) -> Key:
        return tuple(
            self.dims[a.dim].coordinate(a, offsets[a.dim]) for a in self._bound_upcasts(statement)
        )

    def _lanes(self, statement: Statement) -> int:
        vector = self.values.vector_dim(statement)
        return self.dims[vector].lanes if vector else 1

    # Opening, stepping, closing

    def open(self, statement: Statement, name: str = "acc") -> None:
        """Declare the accumulators, holding the identity."""
        merge = self.merger(statement)
        identity = merge.identity
        if self._runs_upward(statement):
            identity = (identity[0], const(0, merge.dtypes[1]))
        lanes = self._lanes(statement)
        opened: Registers = {}
        self._registers[statement] = opened
        for free in self.coordinates(statement.free):
            key = self.values.free_key(statement.free, free)
            for partial in self._partials(statement):
                opened[key, partial] = tuple(
                    self.builder.register(name, self.builder.broadcast(i, lanes)) for i in identity
                )

    def _runs_upward(self, statement: Statement) -> bool:
        """Whether each accumulator of an argmax meets the positions 0, 1, ... in their order."""
        if not self.merger(statement).can_append or len(statement.bound) != 1:
            return False
        (name,), position = statement.bound, reduce_values(statement.node)[1]
        if position.op is not Op.CAST or position.src[0] is not self.dims[name].dim.uop:
            return False
        strides = [s.axis.stride for s in statement.path if s.axis.dim == name]
        unrolled = [a.stride for a in self.dims[name].expanded if a.kind is AxisKind.UNROLL]
        strides += sorted(unrolled, reverse=True)
        return strides == sorted(strides, reverse=True)

    def open_block(self, statement: Statement) -> None:
        """Start a block of a long sum: accumulators of its own hide the total's."""
        self._totals.setdefault(statement, []).append(self._registers[statement])
        self.open(statement, "part")

    def close_block(self, statement: Statement) -> None:
        """Join a block into the total."""
        merge, b = self.merger(statement), self.builder
        parts, totals = self._registers[statement], self._totals[statement].pop()
        for key, total in totals.items():
            part = tuple([b.read(r) for r in parts[key]])
            joined = merge.merge(b, tuple([b.read(r) for r in total]), part)
            for register, value in zip(total, joined, strict=True):
                b.assign(register, value)
        self._registers[statement] = totals

    def step(self, statement: Statement) -> None:
        """One leaf: every expanded position into its accumulator."""
        merge = self.merger(statement)
        vector = self.values.vector_dim(statement)
        values = reduce_values(statement.node)
        for bound in self.coordinates(statement.bound):
            for free in self.coordinates(statement.free):
                offsets = {**free, **bound}
                known = self.values.evaluate(statement, offsets)
                self.after_values(statement, offsets, known)
                mask = self.memory.exists(statement.bound, offsets, vector)
                key = self.values.free_key(statement.free, free)
                registers = self._registers[statement][key, self._partial_of(statement, offsets)]
                old = tuple([self.builder.read(r) for r in registers])
                new = self._joined(statement, merge, old, values, known, offsets, vector, mask)
                for register, value in zip(registers, new, strict=True):
                    lanes = register.dtype.lanes
                    self.builder.assign(register, self.builder.broadcast(value, lanes))

    def _joined(
        self,
        statement: Statement,
        merge: Merger,
        old: MergeValues,
        values: tuple[UOp, ...],
        known: dict[UOp, UOp],
        offsets: Offsets,
        vector: str | None,
        mask: UOp | None,
    ) -> MergeValues:
        """The accumulator after one more value; a product under a sum is fused where allowed."""
        get = self.values.operand
        is_held = values[0] in self.values.arrays  # kept: not to be multiplied once more
        if merge.can_fuse and mask is None and values[0].op is Op.MUL and not is_held:
            a, b = (get(s, known, offsets, vector) for s in values[0].src)
            return (self.builder.alu(Op.FMA, values[0].dtype, a, b, old[0]),)
        new = tuple([get(v, known, offsets, vector) for v in values])
        new = merge.masked(self.builder, mask, new)
        if self._runs_upward(statement):
            return merge.append(self.builder, old, new)
        return merge.merge(self.builder, old, new)

    def close(self, statement: Statement) -> None:
        """Join the partials; hand the value on in registers, an array or the output."""
        merge = self.merger(statement)
        bound_lanes = any(self.dims[d].vector for d in statement.bound)
        finals: dict[Key, MergeValues] = {}
        for free in self.coordinates(statement.free):
            key = self.values.free_key(statement.free, free)
            parts = [
                tuple([self.builder.read(r) for r in self._registers[statement][key, p]])
                for p in self._partials(statement)
            ]
            value = merge.join(self.builder, parts)
            if bound_lanes:
                value = merge.horizontal(self.builder, value, self._lanes(statement))
            finals[key] = value
        if self.groups is not None and is_grouped(statement):
            lanes = 1 if bound_lanes else self._lanes(statement)
            finals = self.groups.join(statement, merge, finals, lanes)
        self.hand_on(statement, finals)

    def hand_on(self, statement: Statement, finals: dict[Key, MergeValues]) -> None:
        """Where the values of a closed reduce are found, by free position."""
        if not statement.escapes():
            self.values.finals[statement.node] = finals
        elif statement in self.sinks:
            self._sink(statement, self.sinks[statement], finals)
        else:
            self._spill(statement, finals)

    # Values that outlive their loops

    def visits(self, statement: Statement) -> tuple[UOp, UOp]:
        """Whether this is the first / the last time the accumulators are joined into their array
        (index conditions over the reduce loops that are open)."""
        first, last = TRUE, TRUE
        for step in statement.path[: statement.open_depth]:
            if statement.binds(step):
                entered = next(e for e in self.dims[step.axis.dim].entered if e.axis == step.axis)
                first = integer.and_(first, entered.first)
                last = integer.and_(last, entered.last)
        return first, last

    def declare_arrays(self, statement: Statement) -> None:
        """The arrays of a reduce that escapes and is not sunk."""
        axes = [*statement.escapes()]
        shared = self._is_shared(statement, axes)
        if shared:
            depth = self.shared_depths[statement] = statement.shared_depth()
            around = [s.axis for s in statement.path[:depth] if s.axis.kind is AxisKind.LOCAL]
            axes = [*around, *axes]
        for d in statement.free:
            axes += [a for a in self.dims[d].axes if a.kind.is_expanded]
            tensor = self.dims[d].tensor
            if tensor is not None and self.dims[d].part is not None:
                axes.append(tensor)
        axes.sort(key=lambda a: a.kind is AxisKind.VECTOR)  # lanes innermost
        strides, size = axis_strides(tuple(axes))
        arrays: list[LocalArray] = []
        for dtype in self.merger(statement).dtypes:
            storage = self.builder.local("spill", dtype, size, shared)
            arrays.append(AxisArray(storage, strides))
        self.values.arrays[statement.node] = tuple(arrays)

    def _is_shared(self, statement: Statement, escapes: list[Axis]) -> bool:
        """Whether other threads of the workgroup read the value; other workgroups cannot."""
        apart = [a for a in escapes if a.size != 1]
        across = [a.name for a in apart if a.kind in (AxisKind.GLOBAL, AxisKind.GROUP)]
        if across:
            fail(
                LoweringError,
                f"a reduce's value would be read at other ids, along {', '.join(across)}: "
                "workgroups share nothing",
                fix="Keep those axes as loops, or evaluate the reduce first",
            )
        return any(a.kind is AxisKind.LOCAL for a in apart)

    def _free_vector(self, statement: Statement) -> str | None:
        vector = self.values.vector_dim(statement)
        return vector if vector in statement.free else None

    def _spill(self, statement: Statement, finals: dict[Key, MergeValues]) -> None:
        """First visit stores, later visits combine with what is there."""
        merge, first = self.merger(statement), self.visits(statement)[0]
        vector = self._free_vector(statement)
        lanes = self.dims[vector].lanes if vector else 1
        arrays = self.values.arrays[statement.node]

        def write(offsets: Offsets, value: MergeValues) -> None:
            for array, v in zip(arrays, value, strict=True):
                place = array.place(self.dims, offsets, vector)
                self.memory.store(array.storage, place, v, lanes, None, None)

        def read(offsets: Offsets) -> MergeValues:
            return tuple(self.values.from_array(a, offsets, vector) for a in arrays)

        def store_first() -> None:
            for offsets in self.coordinates(statement.free):
                write(offsets, finals[self.values.free_key(statement.free, offsets)])

        def store_later() -> None:
            for offsets in self.coordinates(statement.free):
                value = finals[self.values.free_key(statement.free, offsets)]
                write(offsets, merge.merge(self.builder, read(offsets), value))

        # Every workgroup reads its own array, also those that then store no result.
        shared = statement in self.shared_depths
        with self.once(statement, among_groups=False) if shared else nullcontext():
            self.either(first, store_first, store_later)

    @contextmanager
    def once(self, statement: Statement, among_groups: bool = True) -> Iterator[None]:
        """A block for one of the threads that do the same, in the launch or (not `among_groups`)
        in each workgroup: where it stores what others see."""
        condition = self.is_first(statement, among_groups)
        if condition is not TRUE:
            self.builder.open_if(self.indices.emit(condition))
        yield
        if condition is not TRUE:
            self.builder.close()

    def _sink(self, statement: Statement, sink: Statement, finals: dict[Key, MergeValues]) -> None:
        """Partial sums live in the output itself; the last visit applies the STORE's epilogue."""
        merge, (first, last) = self.merger(statement), self.visits(statement)
        node, vector = sink.node, self._free_vector(statement)

        def output(offsets: Offsets) -> UOp:
            place, mask = self.values.locate(node.src[0], {}, offsets, vector)
            lanes = self.dims[vector].lanes if vector else 1
            storage = node.src[0].src[0]
            return self.memory.load(storage, place, lanes, mask, merge.identity[0])

        def put(with_old: bool, is_final: bool) -> None:
            for offsets in self.coordinates(statement.free):
                value = finals[self.values.free_key(statement.free, offsets)]
                if with_old:
                    value = merge.merge(self.builder, (output(offsets),), value)
                known = {statement.node: value[0]}
                if is_final:
                    self.values.finals[statement.node] = {
                        self.values.free_key(statement.free, offsets): value
                    }
                    known = self.values.evaluate(sink, offsets, known)
                else:
                    known[node.src[1]] = value[0]
                self.values.store(node, known, offsets, vector, None)

        def by_last(with_old: bool) -> None:
            if node.src[1] is statement.node:
                put(with_old, True)
            else:
                self.either(last, lambda: put(with_old, True), lambda: put(with_old, False))

        with self.once(statement):
            self.either(first, lambda: by_last(False), lambda: by_last(True))

    def either(self, condition: UOp, yes: object, no: object) -> None:
        """Emit `yes` where the index condition holds, else `no`."""
        assert callable(yes) and callable(no)
        if condition is TRUE:
            yes()
            return
        if condition is FALSE:
            no()
            return
        emitted = self.indices.emit(condition)
        self.builder.open_if(emitted)
        yes()
        self.builder.close()
        negated = self.builder.alu(Op.XOR, dt.bool_, emitted, TRUE)
        self.builder.open_if(negated)
        no()
        self.builder.close()


def is_grouped(statement: Statement) -> bool:
    """Whether threads of a workgroup share this reduce."""
    return any(
        s.axis.kind is AxisKind.GROUP and s.axis.size != 1 and statement.binds(s)
        for s in statement.path
    )


def _everyone(statement: Statement, among_groups: bool) -> UOp:
    """No two ids do the same."""
    return TRUE


def _nothing(statement: Statement, offsets: Offsets, known: dict[UOp, UOp]) -> None:
    """No value is kept."""
