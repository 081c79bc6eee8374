"""GLOBAL, LOCAL and GROUP axes: no loops, their values come from the ids of the launch.

Ids are bound by position within each nest's path. The workgroup (and the grid) is the largest
that any nest needs; threads beyond what a statement has leave its stores out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Extent, UOp, Variable, const
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.kernel.statements import Statement, Step, can_sink
from loopwright_core.plugin.target import Target
from loopwright_lower.launch import Id, launch

PARALLEL = frozenset({AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP})
OF_WORKGROUP = frozenset({AxisKind.LOCAL, AxisKind.GROUP})
_OF_GRID = frozenset({AxisKind.GLOBAL})
Path = tuple[Step, ...]


def core_threads(schedule: Schedule) -> int:
    """How many threads a tensor core brings into the workgroup, whose axes are no dim's."""
    return schedule.tensor_core.core.threads if schedule.tensor_core else 1


def has_threads(schedule: Schedule) -> bool:
    """Whether workgroups have more than one thread."""
    own = any(a.kind in OF_WORKGROUP and a.size != 1 for a in schedule.axes)
    return own or core_threads(schedule) > 1


class Grid:
    """The launch of one phase. `meets`: its threads meet at barriers, so no branch that depends
    on a thread may stand around one."""

    def __init__(self, statements: list[Statement], schedule: Schedule, target: Target) -> None:
        self.stages = bool(schedule.stages) and has_threads(schedule)
        grouped = any(a.kind is AxisKind.GROUP and a.size != 1 for a in schedule.axes)
        self.meets = grouped or self.stages or any(_spills(s) for s in statements)
        names, sizes = _positions(statements, _OF_GRID)
        self._grid = launch("gidx", names, sizes, target.global_max)
        for axis in schedule.axes:
            if axis.kind in OF_WORKGROUP:
                steps(axis)
        names, sizes = _positions(statements, OF_WORKGROUP)
        together = core_threads(schedule)
        if together > 1:  # neighbours, so the innermost position
            names, sizes = (*names, "of the tensor core"), (*sizes, together)
        self._group = launch("lidx", names, sizes, target.local_max)
        self.core_lane = self._group.ids[-1].value if together > 1 else None
        self._ids = self._group.ids[:-1] if together > 1 else self._group.ids
        self.core_parts: dict[str, UOp] = {}  # of the dims that a core's threads share
        self.local_size = tuple([int(n) for n in self._group.sizes if isinstance(n, int)])
        self.threads = prod(self.local_size)
        if self.threads > target.max_threads:
            largest = max(zip(sizes, names), key=lambda p: _most(p[0]))
            fail(
                LoweringError,
                f"a workgroup of {self.threads} threads is needed, most of them for axis "
                f"{largest[1]}, and {target.name} has {target.max_threads}",
                fix="Use a smaller LOCAL or GROUP",
            )

    @property
    def largest(self) -> int:
        """One more than the largest number that an id is recovered from."""
        return max(self._grid.largest, self._group.largest)

    def global_size(self, dtype: DType) -> tuple[UOp, ...]:
        """The launch's number of workgroups, the fastest id first."""
        return tuple(
            [
                UOp(Op.VAR, dtype, (), n) if isinstance(n, Variable) else const(n, dtype)
                for n in self._grid.sizes
            ]
        )

    def masked(self, dims: tuple[Dim, ...], schedule: Schedule) -> frozenset[str]:
        """Dims whose tail is masked where a branch must not stand, or would need two bodies."""
        found = set()
        for d in dims:
            axes = [a for a in schedule.axes if a.dim == d.name]
            kinds = {a.kind for a in axes}
            many = any(a.kind.is_expanded and a.size != 1 for a in axes)
            waits = (self.meets and AxisKind.LOCAL in kinds) or (
                self.stages and AxisKind.GROUP in kinds
            )
            if kinds & PARALLEL and (many or waits):
                found.add(d.name)
        return frozenset(found)

    def id_of(self, path: Path, depth: int) -> Id:
        """What the axis at this depth of a path takes its value from."""
        axis = path[depth].axis
        kinds = _OF_GRID if axis.kind is AxisKind.GLOBAL else OF_WORKGROUP
        position = sum(_counts(s, kinds) for s in path[:depth])
        return (self._grid.ids if kinds is _OF_GRID else self._ids)[position]

    def bound(self, path: Path, depth: int) -> tuple[UOp, UOp]:
        """An axis' value, and under which condition this id has work there (an IF's); where
        threads meet, those beyond the axis repeat its last value instead."""
        axis = path[depth].axis
        if axis.size == 1:
            return integer.add(0, 0), TRUE
        found = self.id_of(path, depth)
        if found.bound == axis.size:
            return found.value, TRUE
        size = _extent(axis.size)
        if axis.kind is AxisKind.GLOBAL or not self.meets:
            return found.value, integer.lt(found.value, size)
        return integer.minimum(found.value, integer.sub(size, 1)), TRUE

    def is_first(self, statement: Statement, among_groups: bool) -> UOp:
        """The condition under which a store happens: once among the ids that do the same, of the
        launch or of each workgroup."""
        runs = self.is_first_group(statement.path) if among_groups else TRUE
        for name, part in self.core_parts.items():
            if name not in statement.dims:
                runs = integer.and_(runs, integer.eq(part, 0))
        return integer.and_(runs, self.is_first_thread(statement.path, False))

    def is_first_group(self, path: Path) -> UOp:
        """The same among workgroups."""
        own = sum(_counts(s, _OF_GRID) for s in path)
        runs = TRUE
        for extra in self._grid.ids[own:]:
            runs = integer.and_(runs, integer.eq(extra.value, 0))
        return runs

    def is_first_thread(self, path: Path, grouped: bool) -> UOp:
        """The same within a workgroup. `grouped`: each thread along a GROUP axis has its own."""
        runs = TRUE
        own = 0
        for step in path:
            if not _counts(step, OF_WORKGROUP):
                continue
            found = self._ids[own]
            own += 1
            if step.axis.kind is AxisKind.GROUP and not grouped:
                runs = integer.and_(runs, integer.eq(found.value, 0))
            elif self.meets and found.bound != step.axis.size:
                runs = integer.and_(runs, integer.lt(found.value, _extent(step.axis.size)))
        for extra in self._ids[own:]:
            runs = integer.and_(runs, integer.eq(extra.value, 0))
        return runs

    @property
    def thread(self) -> UOp:
        """A thread's number in its workgroup."""
        number, scale = integer.add(0, 0), 1
        for n, size in enumerate(self.local_size):
            special = UOp(Op.SPECIAL, dt.index, (), (f"lidx{n}", size))
            number = integer.add(number, integer.mul(special, scale))
            scale *= size
        return number


def masked_dims(dims: tuple[Dim, ...], schedule: Schedule, grid: Grid | None) -> frozenset[str]:
    """Dims whose tail is masked: those of a tensor core, whose tiles are whole, and a grid's."""
    found = {a.dim for a in schedule.axes if a.kind is AxisKind.TENSOR}
    return frozenset(found | grid.masked(dims, schedule) if grid is not None else found)


def _extent(size: Extent) -> UOp:
    return integer.add(0, size) if isinstance(size, int) else UOp(Op.VAR, dt.index, (), size)


def _counts(step: Step, kinds: frozenset[AxisKind]) -> bool:
    """Whether the step takes a position: an axis of size 1 needs no id."""
    return step.axis.kind in kinds and step.axis.size != 1


def _positions(
    statements: list[Statement], kinds: frozenset[AxisKind]
) -> tuple[tuple[str, ...], tuple[Extent, ...]]:
    """The largest axis at each position over all paths, by name and size."""
    largest: list[Axis] = []
    for statement in statements:
        own = [s.axis for s in statement.path if _counts(s, kinds)]
        for n, axis in enumerate(own):
            if n == len(largest):
                largest.append(axis)
            elif _most(axis.size) > _most(largest[n].size):
                largest[n] = axis
    sizes: list[Extent] = [a.size for a in largest]
    for statement in statements:
        own = [s.axis for s in statement.path if _counts(s, kinds)]
        for n, axis in enumerate(own):
            if isinstance(sizes[n], Variable) and axis.size != sizes[n]:
                sizes[n] = _most(sizes[n])  # two extents share the position: the launch is masked
    return tuple([a.name for a in largest]), tuple(sizes)


def _most(size: Extent) -> int:
    return size.hi if isinstance(size, Variable) else size


def _spills(statement: Statement) -> bool:
    """Whether other threads read this reduce's value."""
    if statement.kind != "reduce":
        return False
    consumers = statement.consumers
    if len(consumers) == 1 and can_sink(statement, consumers[0]):
        return False
    return crosses(statement.escapes(), AxisKind.LOCAL)


def steps(axis: Axis) -> int:
    """The size of an axis over threads or of a tile: always a number."""
    if isinstance(axis.size, Variable):
        fail(LoweringError, f"axis {axis.name} has no size before launch: threads cannot share it")
    return axis.size


def steps_of_all(axes: Iterable[Axis]) -> int:
    """How many coordinates these axes have together."""
    return prod([steps(a) for a in axes])


def crosses(axes: Sequence[Axis], kind: AxisKind) -> bool:
    """Whether a value that is kept along these axes is read at other ids of that kind."""
    return any(a.kind is kind and a.size != 1 for a in axes)
