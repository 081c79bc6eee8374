"""VECTOR on targets whose vectors are for memory alone: neighbours move at once, in scalar lanes.

The axis' steps are copies, as those of UPCAST; where they are neighbouring elements of an aligned
run, one access of several lanes loads or stores them.
"""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.plugin.target import Target
from loopwright_lower.dims import DimState
from loopwright_lower.indices import Offsets, Place
from loopwright_lower.values import Run, Values


def as_copies(schedule: Schedule, target: Target) -> tuple[Schedule, dict[str, Axis]]:
    """The schedule with copies for lanes, and the axis of each dim whose copies are neighbours."""
    if target.computes_in_vectors:
        return schedule, {}
    wide = {}
    axes = []
    for axis in schedule.axes:
        if axis.kind is AxisKind.VECTOR:
            axis = wide[axis.dim] = replace(axis, kind=AxisKind.UPCAST)
        axes.append(axis)
    return schedule.with_axes(tuple(axes)), wide


class Wide:
    """Finds runs of neighbouring elements among a leaf's coordinates."""

    def __init__(self, values: Values, axes: dict[str, Axis], target: Target) -> None:
        self.values, self.axes = values, axes
        self.most_bytes = max(target.vector_bytes, default=0)

    def run(self, index: UOp, known: dict[UOp, UOp], offsets: Offsets) -> Run | None:
        """The run that the access at this coordinate is part of."""
        values = self.values
        names = values.facts.free(index)
        dim = next((d for d in names if d in self.axes), None)
        if dim is None:
            return None
        axis, state = self.axes[dim], values.dims[dim]
        count = min(int(axis.size), self.most_bytes // index.dtype.itemsize)  # type: ignore[arg-type]
        flat = values.flat_offset(index)
        terms = integer.affine(flat).terms
        if count < 2 or axis not in state.expanded or any(t.op is not Op.DIM for t, _ in terms):
            return None
        step = next((k for t, k in terms if t.arg.name == dim), 0) * axis.stride
        if step != 1 or state.is_reversed:
            return None
        here = offsets.get(dim, 0)
        lane = state.coordinate(axis, here) % count
        first = here - lane * axis.stride
        steps = [first + n * axis.stride for n in range(count)]
        valid = index.src[-1]
        exist = set(state.offsets)
        if not exist.issuperset(steps) or dim in values.facts.free(valid):
            return None
        there = {**offsets, dim: first}
        place = values.indices.at(flat, there, known, None)
        if not _divides(place.base, count) or not self._together(state, steps):
            return None
        mask = values.memory.exists(names, there, None)
        if valid is not TRUE:
            mask = values.memory.both(mask, values.operand(valid, known, there, None))
        return Run(Place(place.base, 1), count, lane, mask, {**offsets, dim: first})

    def _together(self, state: DimState, steps: list[int]) -> bool:
        """Whether all steps exist wherever the first one does."""
        if state.exists(steps[-1]) in (None, TRUE):
            return True
        n = len(steps)
        is_row = steps[1] - steps[0] == 1
        at = integer.add(state.base, steps[0])
        return is_row and int(state.dim.size) % n == 0 and _divides(at, n)  # type: ignore[arg-type]


def _divides(at: UOp, n: int) -> bool:
    """Whether an index is certainly a multiple of n."""
    form = integer.affine(at)
    return form.const % n == 0 and all(k % n == 0 for _, k in form.terms)
