"""Leaf values: every node of a statement at one coordinate of its expanded axes."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp
from loopwright_core.kernel.statements import Analysis, Statement
from loopwright_lower.build import LEAVES, Builder
from loopwright_lower.dims import DimState
from loopwright_lower.indices import Indices, Offsets, Place
from loopwright_lower.memory import AxisArray, Memory
from loopwright_lower.windows import PositionArray

LocalArray = AxisArray | PositionArray


class Run(NamedTuple):
    """Neighbouring elements: where they start, how many, which of them is meant, under which
    condition they exist, and the coordinate of the first."""

    place: Place
    lanes: int
    lane: int
    mask: UOp | None
    first: Offsets


class Runs(Protocol):
    """Finds the run that an access at a coordinate is part of, if there is one."""

    def run(self, index: UOp, known: dict[UOp, UOp], offsets: Offsets) -> Run | None: ...


Finals = dict[tuple[int, ...], tuple[UOp, ...]]


class Values:
    """Evaluates statements' nodes; remembers what stands in open scopes."""

    def __init__(
        self,
        builder: Builder,
        indices: Indices,
        memory: Memory,
        dims: dict[str, DimState],
        facts: Analysis,
    ) -> None:
        self.builder, self.indices, self.memory = builder, indices, memory
        self.dims, self.facts = dims, facts
        self.runs: Runs | None = None
        indices.result = self.result
        self._memo: dict[tuple[UOp, tuple[int, ...], tuple[object, ...]], UOp] = {}
        self._flat: dict[UOp, UOp] = {}
        self.finals: dict[UOp, Finals] = {}  # reduce -> its values by free offsets
        self.arrays: dict[UOp, tuple[LocalArray, ...]] = {}  # reduce / staged LOAD / kept value

    def vector_dim(self, statement: Statement) -> str | None:
        """The dim whose lanes this statement's vectors walk."""
        found = [d for d in statement.dims if self.dims[d].vector is not None]
        if len(found) > 1:
            fail(
                LoweringError,
                f"dims {' and '.join(found)} both have a VECTOR axis in one statement",
                fix="Keep VECTOR on one of them",
            )
        return found[0] if found else None

    def free_key(self, names: tuple[str, ...], offsets: Offsets) -> tuple[int, ...]:
        return tuple([offsets.get(n, 0) for n in names])

    def evaluate(
        self, statement: Statement, offsets: Offsets, known: dict[UOp, UOp] | None = None
    ) -> dict[UOp, UOp]:
        """Values of the statement's nodes at a coordinate; `known` are given, and what follows
        from them is not remembered: it holds for this call alone."""
        vector = self.vector_dim(statement)
        values: dict[UOp, UOp] = dict(known or {})
        given = set(values)
        facts, memo, open_nodes = self.facts, self._memo, self.builder.depth_of
        for node in statement.order:
            if node in values:
                continue
            if given and not given.isdisjoint(node.src):
                given.add(node)
                lanes_of = vector if vector in facts.free(node) else None
                values[node] = self._node(node, values, offsets, lanes_of)
                continue
            names = facts.free(node)
            # What follows from a reduce's part is another value in each part.
            around = self.indices.bindings((*names, *statement.cut))
            key = (node, self.free_key(names, offsets), around)
            found = memo.get(key)
            if found is None or not (found in open_nodes or found.op in LEAVES):
                lanes_of = vector if vector in names else None
                found = memo[key] = self._node(node, values, offsets, lanes_of)
            values[node] = found
        return values

    def operand(
        self, node: UOp, values: dict[UOp, UOp], offsets: Offsets, vector: str | None
    ) -> UOp:
        """A source's value: computed before, a constant, or an index expression."""
        found = values.get(node)
        if found is not None:
            return found
        if node.op is Op.CONST and node.dtype.kind != "index":
            return node
        if node.op in (Op.REDUCE, Op.SCAN):
            return self.result(node, 0, offsets, vector)
        if self.facts.is_index[node]:
            names = self.facts.free(node)
            return self.indices.condition(
                node, offsets, values, vector if vector in names else None
            )
        raise LoweringError(f"{node} has no value where it is read: a bug, report it")

    def _node(self, node: UOp, values: dict[UOp, UOp], offsets: Offsets, vector: str | None) -> UOp:
        if node in self.arrays:
            return self.from_array(self.arrays[node][0], offsets, vector)
        if node.op is Op.LOAD:
            return self.load(node, values, offsets, vector)
        if node.op is Op.ITEM:
            return self.result(node.src[0], node.arg, offsets, vector)
        src = [self.operand(s, values, offsets, vector) for s in node.src]
        return self.builder.alu(node.op, node.dtype, *src, arg=node.arg)

    def result(self, reduce: UOp, item: int, offsets: Offsets, vector: str | None) -> UOp:
        """A reduce's (or scan's) value here: in a register, or in the array it was spilled to."""
        arrays = self.arrays.get(reduce)
        if arrays is not None:
            return self.from_array(arrays[item], offsets, vector)
        finals = self.finals.get(reduce)
        key = self.free_key(self.facts.free(reduce), offsets)
        if finals is None or key not in finals:
            raise LoweringError(f"{reduce} is read before it is computed: a bug, report it")
        return finals[key][item]

    def from_array(self, array: LocalArray, offsets: Offsets, vector: str | None) -> UOp:
        """A value of a local array at the present coordinate."""
        lanes = self.dims[vector].lanes if vector else 1
        place = array.place(self.dims, offsets, vector)
        ragged = array.ragged if isinstance(array, PositionArray) else ()
        mask = self.memory.exists(ragged, offsets, vector)
        return self.memory.load(array.storage, place, lanes, mask, None)

    def flat_offset(self, index: UOp) -> UOp:
        """The element offset of a level-2 INDEX, as an index expression over dims."""
        found = self._flat.get(index)
        if found is None:
            found = integer.add(0, 0)
            for n, i in zip(index.arg, index.src[1:-1], strict=True):
                size = n if isinstance(n, int) else UOp(Op.VAR, i.dtype, (), n)
                found = integer.add(integer.mul(found, size), i)
            self._flat[index] = found
        return found

    def locate(
        self, index: UOp, values: dict[UOp, UOp], offsets: Offsets, vector: str | None
    ) -> tuple[Place, UOp | None]:
        """Where an access goes at a coordinate, and under which condition."""
        place = self.indices.at(self.flat_offset(index), offsets, values, vector)
        mask = self.memory.exists(self.facts.free(index), offsets, vector)
        valid = index.src[-1]
        if valid is not TRUE:
            condition = self.operand(valid, values, offsets, vector)
            if condition is not TRUE:
                mask = self.memory.both(mask, condition)
        return place, mask

    def load(self, node: UOp, values: dict[UOp, UOp], offsets: Offsets, vector: str | None) -> UOp:
        """A level-2 LOAD from its buffer."""
        index, fill = node.src
        run = self.runs.run(index, values, offsets) if self.runs else None
        if run is not None:
            found = self.memory.load(index.src[0], run.place, run.lanes, run.mask, fill)
            return self.builder.place(UOp(Op.LANE, found.dtype.scalar, (found,), run.lane))
        place, mask = self.locate(index, values, offsets, vector)
        lanes = self.dims[vector].lanes if vector else 1
        return self.memory.load(index.src[0], place, lanes, mask, fill)

    def store(
        self, node: UOp, values: dict[UOp, UOp], offsets: Offsets, vector: str | None, hint: object
    ) -> None:
        """A level-2 STORE to its buffer."""
        index, value = node.src
        place, mask = self.locate(index, values, offsets, vector)
        lanes = self.dims[vector].lanes if vector else 1
        emitted = self.operand(value, values, offsets, vector)
        self.memory.store(index.src[0], place, emitted, lanes, mask, hint)

    def store_all(
        self,
        node: UOp,
        known: list[tuple[Offsets, dict[UOp, UOp]]],
        vector: str | None,
        hint: object,
    ) -> None:
        """A level-2 STORE at every coordinate of a leaf, a run of neighbours at once."""
        index, value = node.src
        pending: dict[tuple[tuple[str, int], ...], list[UOp]] = {}
        for offsets, values in known:
            run = self.runs.run(index, values, offsets) if self.runs else None
            if run is None:
                self.store(node, values, offsets, vector, hint)
                continue
            row = pending.setdefault(tuple(sorted(run.first.items())), [])
            row.append(self.operand(value, values, offsets, None))
            if len(row) == run.lanes:
                dtype = index.dtype.vec(run.lanes)
                together = self.builder.place(UOp(Op.VECTORIZE, dtype, tuple(row)))
                self.memory.store(index.src[0], run.place, together, run.lanes, run.mask, hint)
