"""PREFETCH: touch what a later step will read or write."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.statements import Statement, Step
from loopwright_lower.accumulate import Accumulators
from loopwright_lower.indices import Offsets

LINE_BYTES = 64


class Prefetches:
    """The accesses to touch, each so many steps ahead of its use.

    A load, and a store at the end of nothing, is ahead by steps of its statement's innermost loop.
    The tile that a reduce is stored to is touched where the reduce begins, which is one step.
    """

    def __init__(self, kernel: Kernel, accumulators: Accumulators) -> None:
        self.accumulators, self.builder = accumulators, accumulators.builder
        wanted = dict(kernel.schedule.prefetch)
        found = accesses(kernel) if wanted else ()
        self._ahead = {a.node: wanted[a.name] for a in found if a.name in wanted}

    def before(self, reduce: Statement) -> None:
        """Where a reduce's accumulators are declared: the tile its value is stored to."""
        if not self._ahead:
            return
        for store in self._stores(reduce):
            steps = self._ahead.get(store.node.src[0])
            if steps is not None:
                loops = reduce.path[: reduce.open_depth]
                self._touch(store.node.src[0], reduce.free, loops, steps - 1)

    def inside(self, statement: Statement) -> None:
        """At a statement's leaf: what it loads, and what it stores."""
        if not self._ahead:
            return
        indices = [n.src[0] for n in statement.order if n.op is Op.LOAD]
        if statement.kind == "store" and not any(
            statement in self._stores(reduce) for reduce in statement.reads
        ):
            indices.append(statement.node.src[0])
        for index in indices:
            if index in self._ahead and statement.path:
                self._touch(index, statement.dims, statement.path, self._ahead[index])

    def _stores(self, reduce: Statement) -> list[Statement]:
        return [
            s
            for s in reduce.consumers
            if reduce.kind == "reduce" and s.kind == "store" and set(s.free) == set(reduce.free)
        ]

    def _touch(
        self, index: UOp, names: tuple[str, ...], loops: tuple[Step, ...], steps: int
    ) -> None:
        """Every line that these dims' expanded positions reach, `steps` of the last loop ahead."""
        values, b = self.accumulators.values, self.builder
        expression, storage = values.flat_offset(index), index.src[0]
        in_line = LINE_BYTES // storage.dtype.itemsize
        seen: set[tuple[object, int]] = set()
        for here in self.accumulators.coordinates(names):
            offsets: Offsets = dict(here)
            if loops:
                axis = loops[-1].axis
                offsets[axis.dim] = offsets.get(axis.dim, 0) + steps * axis.stride
            base = values.indices.at(expression, offsets, {}, None).base
            affine = integer.affine(base)
            line = affine.terms, affine.const // in_line
            if line not in seen:
                seen.add(line)
                where = (storage, values.indices.emit(base))
                place = b.place(UOp(Op.INDEX, storage.dtype, where))
                b.statement(UOp(Op.PREFETCH, dt.void, (place,)))
