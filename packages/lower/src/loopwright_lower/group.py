"""GROUP axes: a reduce split over a workgroup's threads, joined in shared memory.

Each thread combines its part and stores it; behind a barrier every thread joins all parts of its
group, so whatever follows in the workgroup has the value at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.combine import Values as MergeValues
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, const
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.statements import Statement, Step
from loopwright_lower.grid import Grid, steps, steps_of_all
from loopwright_lower.indices import Place
from loopwright_lower.merge import Merger
from loopwright_lower.values import Values


def group_axes(statement: Statement) -> tuple[Axis, ...]:
    """The axes whose steps are threads that share this reduce."""
    return tuple(s.axis for s in statement.path if _is_group(statement, s))


def _is_group(statement: Statement, step: Step) -> bool:
    axis = step.axis
    return axis.kind is AxisKind.GROUP and axis.size != 1 and statement.binds(step)


def check_groups(statements: list[Statement]) -> None:
    """Raises LoweringError where threads of a group could not meet to join their parts."""
    for s in statements:
        for depth, step in enumerate(s.path):
            if not _is_group(s, step):
                continue
            if depth < s.open_depth:
                fail(
                    LoweringError,
                    f"axis {step.axis.name} is shared by a group's threads, but other loops stand "
                    "between it and its reduce's own",
                    fix="Move the GROUP axis inside with ORDER",
                )
            for other in statements:
                nested = other is not s and other.path[: depth + 1] == s.path[: depth + 1]
                if nested and group_axes(other) and other.open_depth > depth:
                    fail(
                        LoweringError,
                        "a reduce grouped over threads runs inside another one, along "
                        f"{step.axis.name}",
                        fix="Keep GROUP on one of them",
                    )


class Groups:
    """The shared arrays of grouped reduces, one for each value that a reduce combines."""

    def __init__(self, values: Values, grid: Grid) -> None:
        self.builder, self.indices, self.memory = values.builder, values.indices, values.memory
        self.dims, self.grid = values.dims, grid
        self._arrays: dict[Statement, tuple[UOp, ...]] = {}

    def join(
        self,
        statement: Statement,
        merge: Merger,
        parts: dict[tuple[int, ...], MergeValues],
        lanes: int,
    ) -> dict[tuple[int, ...], MergeValues]:
        """Every thread's parts, by free position, become the group's values in every thread."""
        b = self.builder
        group = group_axes(statement)
        count = steps_of_all(group)
        rows, row = self._row(statement)
        row = integer.mul(row, count)
        stride = rows * count  # of one free position
        arrays = self._arrays.get(statement)
        if arrays is None:
            keys = prod(len(self.dims[d].all_offsets) for d in statement.free)
            size = stride * keys * lanes
            arrays = tuple(b.local("group", d, size, shared=True) for d in merge.dtypes)
            self._arrays[statement] = arrays
        b.barrier()
        self._put(statement, arrays, parts, integer.add(row, self._number(statement)), stride)
        b.barrier()
        joined = {
            key: tuple([b.register("all", b.broadcast(i, lanes)) for i in merge.identity])
            for key in parts
        }
        loop = b.open_loop(const(count, b.int_dtype), "g")
        step = UOp(Op.RANGE, dt.index, (const(count, dt.index),), loop.arg)
        self.indices.loops[step] = loop
        for n, registers in enumerate(joined.values()):
            at = integer.add(integer.add(row, step), n * stride)
            place = Place(integer.mul(at, lanes), 1 if lanes > 1 else 0)
            part = tuple([self.memory.load(a, place, lanes, None, None) for a in arrays])
            total = merge.merge(b, tuple([b.read(r) for r in registers]), part)
            for register, value in zip(registers, total, strict=True):
                b.assign(register, b.broadcast(value, lanes))
        b.close()
        return {k: tuple([b.read(r) for r in registers]) for k, registers in joined.items()}

    def _put(
        self,
        statement: Statement,
        arrays: tuple[UOp, ...],
        parts: dict[tuple[int, ...], MergeValues],
        cell: UOp,
        stride: int,
    ) -> None:
        """Store this thread's parts; threads that repeat another's work store none."""
        b = self.builder
        runs = self.grid.is_first_thread(statement.path, grouped=True)
        if runs is not TRUE:
            b.open_if(self.indices.emit(runs))
        for n, part in enumerate(parts.values()):
            for array, value in zip(arrays, part, strict=True):
                lanes = value.dtype.lanes
                at = integer.mul(integer.add(cell, n * stride), lanes)
                place = Place(at, 1 if lanes > 1 else 0)
                self.memory.store(array, place, value, lanes, None, None)
        if runs is not TRUE:
            b.close()

    def _row(self, statement: Statement) -> tuple[int, UOp]:
        """How many groups a workgroup has, and which one this thread is in."""
        local = [s.axis for s in statement.path if s.axis.kind is AxisKind.LOCAL]
        values = [next(e.value for e in self.dims[a.dim].entered if e.axis == a) for a in local]
        return steps_of_all(local), _row_major(local, values)

    def _number(self, statement: Statement) -> UOp:
        """This thread's number in its group."""
        axes, values = [], []
        for depth, step in enumerate(statement.path):
            if _is_group(statement, step):
                axes.append(step.axis)
                values.append(self.grid.id_of(statement.path, depth).value)
        return _row_major(axes, values)


def _row_major(axes: Sequence[Axis], values: Sequence[UOp]) -> UOp:
    """One number for a coordinate, the last axis the fastest."""
    number = integer.add(0, 0)
    for axis, value in zip(axes, values, strict=True):
        number = integer.add(integer.mul(number, steps(axis)), value)
    return number
