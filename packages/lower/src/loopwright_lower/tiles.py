"""STAGE of a store: a tile of results is built in a local array, then written row by row."""

from __future__ import annotations

from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.statements import Statement
from loopwright_lower.cooperate import Cooperation
from loopwright_lower.indices import Offsets
from loopwright_lower.memory import AxisArray
from loopwright_lower.values import Values


class Tiles:
    """The arrays that stores fill, and the statements that write them out."""

    def __init__(self, values: Values, together: Cooperation | None) -> None:
        self.values, self.together = values, together
        self._filled: dict[Statement, AxisArray] = {}
        self._written: dict[Statement, AxisArray] = {}

    def plan(self, store: Statement, writer: Statement, array: AxisArray) -> None:
        """`writer` writes what `store` puts in the array."""
        self._filled[store] = array
        self._written[writer] = array
        writer.copy = array
        writer.reads.append(store)
        store.consumers.append(writer)

    def fills(self, store: Statement) -> bool:
        """Whether the statement's results go to a tile."""
        return store in self._filled

    def fill(
        self, store: Statement, offsets: Offsets, known: dict[UOp, UOp], vector: str | None
    ) -> None:
        """Put one coordinate's result in the tile."""
        array, values = self._filled[store], self.values
        lanes = values.dims[vector].lanes if vector else 1
        value = values.operand(store.node.src[1], known, offsets, vector)
        place = array.place(values.dims, offsets, vector)
        values.memory.store(array.storage, place, value, lanes, None, None)

    def writes(self, statement: Statement) -> bool:
        """Whether the statement writes a tile out."""
        return statement in self._written

    def write(self, writer: Statement, coordinates: list[Offsets], hint: object) -> None:
        """Write what exists of the tile, at the present loops or by all threads together."""
        array, values = self._written[writer], self.values
        if self.together is not None:
            self.together.emit(writer)
            return
        vector = values.vector_dim(writer)
        known = []
        for offsets in coordinates:
            lanes = values.dims[vector].lanes if vector else 1
            place = array.place(values.dims, offsets, vector)
            value = values.memory.load(array.storage, place, lanes, None, None)
            known.append((offsets, {writer.node.src[1]: value}))
        values.store_all(writer.node, known, vector, hint)
