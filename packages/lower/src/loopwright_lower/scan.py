"""SCAN statements: an accumulator that is readable inside its own loop.

A consumer in the same loops reads the running value; one elsewhere reads an array of all of them.
"""

from __future__ import annotations

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.combine import Values as MergeValues
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, UOp, const
from loopwright_core.kernel.dims import Axis
from loopwright_core.kernel.statements import Statement, reduce_values
from loopwright_lower.accumulate import Accumulators, Key
from loopwright_lower.grid import PARALLEL
from loopwright_lower.indices import Offsets
from loopwright_lower.memory import AxisArray, axis_strides


class Scans:
    """Running values; carried in an array where free loops lie inside the scan's."""

    def __init__(self, accumulators: Accumulators) -> None:
        self.acc = accumulators
        self._registers: dict[tuple[Statement, Key], tuple[UOp, ...]] = {}
        self._carry: dict[Statement, tuple[AxisArray, ...]] = {}
        self._all: dict[Statement, tuple[AxisArray, ...]] = {}

    def check(self, statement: Statement) -> None:
        """Raises LoweringError for a schedule no scan can follow."""
        (dim,) = statement.bound
        state = self.acc.dims[dim]
        strides = [s.axis.stride for s in statement.path if s.axis.dim == dim]
        is_split_inside = any(s % state.block for s in strides)
        in_order = strides == sorted(strides, reverse=True) and not is_split_inside
        if state.vector is not None or not in_order:
            fail(
                LoweringError,
                f"dim {dim} carries a running value: its axes run in order, largest stride first, "
                "and have no lanes",
                fix="Drop the VECTOR or ORDER opt on it",
            )

    def _inner_free(self, statement: Statement) -> tuple[Axis, ...]:
        """Free loops inside the scan's own: one running value for each of their steps."""
        first = next((n for n, s in enumerate(statement.path) if statement.binds(s)), None)
        if first is None:
            return ()
        return tuple(s.axis for s in statement.path[first:] if not statement.binds(s))

    def declare_arrays(self, statement: Statement) -> None:
        """The array that carries running values between steps of the scan's loop, and the one of
        all values for consumers in other loops."""
        inner = self._inner_free(statement)
        if inner:
            own = tuple(a for a in inner if a.kind not in PARALLEL)
            self._carry[statement] = self._arrays(statement, "carry", own, statement.free)
        apart = statement.apart()
        if apart is not None:
            across = [a.name for a in apart if a.kind in PARALLEL and a.size != 1]
            if across:
                fail(
                    LoweringError,
                    f"a running value would be read by other threads, along {', '.join(across)}",
                    fix="Keep those axes as loops, or evaluate the scan first",
                )
            dims = statement.free + statement.bound
            arrays: tuple[AxisArray, ...] = self._arrays(statement, "scan", apart, dims)
            self._all[statement] = self.acc.values.arrays[statement.node] = arrays

    def _arrays(
        self, statement: Statement, name: str, loops: tuple[Axis, ...], dims: tuple[str, ...]
    ) -> tuple[AxisArray, ...]:
        """One array per value, over these loops and what is expanded of the dims."""
        axes = [*loops]
        for d in dims:
            axes += [a for a in self.acc.dims[d].axes if a.kind.is_expanded]
        axes.sort(key=lambda a: a == self.acc.dims[a.dim].vector)
        strides, size = axis_strides(tuple(axes))
        dtypes = self.acc.merger(statement).dtypes
        return tuple([AxisArray(self.acc.builder.local(name, d, size), strides) for d in dtypes])

    def open(self, statement: Statement) -> None:
        """Declare the running values: the identity, or what an earlier step carried here."""
        acc, b = self.acc, self.acc.builder
        merge = acc.merger(statement)
        vector = acc.values.vector_dim(statement)
        lanes = acc.dims[vector].lanes if vector else 1
        combine, exclusive, _ = statement.node.arg
        start = merge.identity
        if combine == "add" and start[0].dtype.is_float and not exclusive:
            # the first element comes out as it is, and 0.0 would make 0.0 of -0.0
            start = (const(-0.0, start[0].dtype),)
        for free in acc.coordinates(statement.free):
            key = acc.values.free_key(statement.free, free)
            self._registers[statement, key] = tuple(
                b.register("run", b.broadcast(i, lanes)) for i in start
            )
        carry = self._carry.get(statement)
        first = acc.visits(statement)[0]
        if carry is None or first is TRUE:
            return
        if first is not FALSE:
            later = b.alu(Op.XOR, dt.bool_, acc.indices.emit(first), TRUE)
            b.open_if(later)
        for free in acc.coordinates(statement.free):
            key = acc.values.free_key(statement.free, free)
            for register, array in zip(self._registers[statement, key], carry, strict=True):
                value = acc.values.from_array(array, free, vector)
                b.assign(register, b.broadcast(value, lanes))
        if first is not FALSE:
            b.close()

    def step(self, statement: Statement) -> None:
        """One leaf: positions in order; each one's running value is what consumers read there."""
        acc, b = self.acc, self.acc.builder
        merge = acc.merger(statement)
        vector = acc.values.vector_dim(statement)
        _, exclusive, _ = statement.node.arg
        inputs = reduce_values(statement.node)
        finals: dict[Key, MergeValues] = {}
        names = acc.values.facts.free(statement.node)
        for bound in acc.coordinates(statement.bound):
            for free in acc.coordinates(statement.free):
                offsets = {**free, **bound}
                known = acc.values.evaluate(statement, offsets)
                acc.after_values(statement, offsets, known)
                mask = acc.memory.exists(statement.bound, offsets, vector)
                registers = self._registers[statement, acc.values.free_key(statement.free, free)]
                old = tuple([b.read(r) for r in registers])
                new = tuple([acc.values.operand(v, known, offsets, vector) for v in inputs])
                joined = merge.merge(b, old, merge.masked(b, mask, new))
                joined = tuple(
                    [b.broadcast(v, r.dtype.lanes) for v, r in zip(joined, registers, strict=True)]
                )
                # A copy: the register moves on before consumers read this position.
                before = tuple([b.register("before", v) for v in old]) if exclusive else ()
                for register, value in zip(registers, joined, strict=True):
                    b.assign(register, value)
                key = acc.values.free_key(names, offsets)
                finals[key] = before or joined
                self._keep(statement, offsets, before or joined)
        acc.values.finals[statement.node] = finals

    def _keep(self, statement: Statement, offsets: Offsets, value: MergeValues) -> None:
        """Write one position for the consumers in other loops."""
        acc = self.acc
        vector = acc.values.vector_dim(statement)
        lanes = acc.dims[vector].lanes if vector else 1
        for array, v in zip(self._all.get(statement, ()), value, strict=False):
            place = array.place(acc.dims, offsets, vector)
            acc.memory.store(array.storage, place, v, lanes, None, None)

    def close(self, statement: Statement) -> None:
        """Carry the running values to the next step of the scan's loop."""
        acc = self.acc
        vector = acc.values.vector_dim(statement)
        lanes = acc.dims[vector].lanes if vector else 1
        for free in acc.coordinates(statement.free):
            key = acc.values.free_key(statement.free, free)
            registers = self._registers[statement, key]
            for register, array in zip(registers, self._carry.get(statement, ()), strict=False):
                place = array.place(acc.dims, free, vector)
                acc.memory.store(
                    array.storage, place, acc.builder.read(register), lanes, None, None
                )
