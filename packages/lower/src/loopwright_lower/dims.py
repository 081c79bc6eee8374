"""Where each dim stands while loops are open: its base, what is expanded, how its tail is cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, UOp, extent_uop
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.kernel.tails import Tail, tail_of

ZERO = extent_uop(0)


def lane_leaf(lanes: int) -> UOp:
    """The lane number as an index value; lowered to a vector 0, 1, ..., lanes - 1."""
    return UOp(Op.SPECIAL, dt.index, (), ("lane", lanes))


@dataclass
class Trips:
    """How often a loop runs: `full` whole blocks, and one partial block where total > full."""

    total: UOp
    full: UOp
    has_tail: bool


@dataclass
class Entered:
    """A loop that is open: its axis, its variable, and whether this is its first / last value
    (bool index conditions)."""

    axis: Axis
    value: UOp
    first: UOp
    last: UOp


@dataclass
class DimState:
    """One dim. Positions are `base + offset (+ lane)`; a reversed dim walks n-1 .. 0."""

    dim: Dim
    axes: tuple[Axis, ...]
    is_reversed: bool = False
    entered: list[Entered] = field(default_factory=list)
    tail: int | None = None  # elements left in a partial block
    binding: int = 0  # changes whenever base or tail change
    masked: bool = False  # where ragged: every position asks whether it exists
    policy: str = ""  # what the schedule says of the ragged end
    part: UOp | None = None  # what a tensor core's thread adds to the base
    registers: tuple[int, ...] = (0,)  # offsets of the elements that such a thread holds

    def __post_init__(self) -> None:
        self.size = extent_uop(self.dim.size)
        self.expanded = [a for a in self.axes if a.kind in (AxisKind.UPCAST, AxisKind.UNROLL)]
        vectors = [a for a in self.axes if a.kind is AxisKind.VECTOR]
        self.vector = vectors[0] if vectors else None
        self.tensor = next((a for a in self.axes if a.kind is AxisKind.TENSOR), None)
        self.block = 1
        for a in self.axes:
            if a.kind.is_expanded:
                self.block *= int(a.size)  # type: ignore[arg-type]
        self.mode = self._mode()
        self.all_offsets = self._offsets(self.registers)

    def spread_over(self, part: UOp, registers: tuple[int, ...]) -> None:
        """A tensor core's threads share the TENSOR axis: each has its part and registers."""
        self.part, self.registers = part, registers
        self.all_offsets = self._offsets(registers)

    @property
    def place(self) -> object:
        """Changes whenever positions do, but for their offsets."""
        return self.binding if self.part is None else (self.binding, self.part)

    @property
    def lanes(self) -> int:
        return int(self.vector.size) if self.vector else 1  # type: ignore[arg-type]

    def _mode(self) -> Tail:
        found = tail_of(self.dim, self.axes, self.policy)
        return "guard" if self.masked and found == "peel" and not self.dim.is_symbolic else found

    def _offsets(self, registers: tuple[int, ...]) -> list[int]:
        steps = [[a.stride * n for n in range(int(a.size))] for a in self.expanded]  # type: ignore[arg-type]
        return sorted(sum(c) for c in product(*steps, registers))

    @property
    def blocks(self) -> list[int]:
        """The expanded positions of this body that exist, without a tensor core's registers."""
        return self._existing(self._offsets((0,)))

    @property
    def offsets(self) -> list[int]:
        """The expanded positions of this body that exist (lane 0 of vectors)."""
        return self._existing(self.all_offsets)

    def _existing(self, offsets: list[int]) -> list[int]:
        if self.mode == "guard":
            return [o for o in offsets if self.exists(o) is not FALSE]
        if self.tail is None:
            return offsets
        return [o for o in offsets if o < self.tail]

    @property
    def base(self) -> UOp:
        """The position of offset 0."""
        return self.start if self.part is None else integer.add(self.start, self.part)

    @property
    def start(self) -> UOp:
        """The first position inside the loops that are open, the same for a core's threads."""
        total = ZERO
        for e in self.entered:
            total = integer.add(total, integer.mul(e.value, self.step(e.axis)))
        return total

    def step(self, axis: Axis) -> UOp | int:
        """How far one step of an axis goes: a thread's slice of a symbolic output dim shrinks with
        its extent; one of a reduce is a part whose number must follow from the position."""
        threads = axis.size
        if not self.dim.is_symbolic or self.dim.is_reduce or axis.kind is not AxisKind.THREAD:
            return axis.stride
        assert isinstance(threads, int)
        return integer.floordiv(integer.add(self.size, threads - 1), threads)

    def trips(self, axis: Axis, is_last: bool) -> Trips:
        """How often a loop over `axis`, opened now, must run."""
        if self.dim.is_symbolic:
            return self._symbolic_trips(axis)
        n, size = int(self.dim.size), int(axis.size)  # type: ignore[arg-type]
        if self.mode == "exact" or self.policy == "pad":
            whole = extent_uop(size)
            return Trips(whole, whole, False)
        left = integer.sub(extent_uop(n), self.start)
        total = _clamp(integer.floordiv(integer.add(left, axis.stride - 1), axis.stride), size)
        if self.mode == "guard" or not is_last or n % self.block == 0:
            return Trips(total, total, False)
        steps = integer.floordiv(integer.sub(left, self.block), axis.stride)
        return Trips(total, _clamp(integer.add(steps, 1), size), True)

    def _symbolic_trips(self, axis: Axis) -> Trips:
        """All of the dim, or what a thread has of it."""
        total = extent_uop(axis.size)
        for e in self.entered:
            left = integer.sub(self.size, self.start)
            mine = integer.minimum(left, self.step(e.axis))
            total = integer.maximum(mine, extent_uop(0))
        return Trips(total, total, False)

    def lane_count(self, offset: int) -> int:
        """How many lanes of the vector at `offset` exist in this body."""
        if self.vector is None or self.tail is None:
            return self.lanes
        left = self.tail - offset
        return max(0, min(self.lanes, -(-left // self.vector.stride)))

    def position(self, offset: int, lane: bool) -> UOp:
        """The dim's value at an offset, as an index expression; `lane` adds the lane number."""
        at = integer.add(self.base, offset)
        if lane and self.vector is not None:
            at = integer.add(at, integer.mul(lane_leaf(self.lanes), self.vector.stride))
        if self.is_reversed:
            return integer.sub(integer.sub(self.size, 1), at)
        return at

    def exists(self, offset: int) -> UOp | None:
        """In guard mode: the condition that the position (each lane) exists; else None."""
        if self.mode != "guard":
            return None
        at = integer.add(self.base, offset)
        if self.vector is not None:
            at = integer.add(at, integer.mul(lane_leaf(self.lanes), self.vector.stride))
        return integer.lt(at, self.size)

    def value(self, axis: Axis, offset: int) -> UOp:
        """What a loop's axis (or a TENSOR axis) stands at."""
        for e in self.entered:
            if e.axis == axis:
                return e.value
        if axis.kind is not AxisKind.TENSOR:
            raise LoweringError(f"axis {axis.name} is used outside its loop: a bug, report it")
        own = self.coordinate(axis, offset)
        return integer.add(0, own) if self.part is None else integer.add(self.part, own)

    def coordinate(self, axis: Axis, offset: int) -> int:
        """An expanded axis' own index at an offset."""
        return offset // axis.stride % int(axis.size)  # type: ignore[arg-type]


def _clamp(count: UOp, size: int) -> UOp:
    return integer.maximum(integer.minimum(count, extent_uop(size)), extent_uop(0))


def dim_states(
    dims: tuple[Dim, ...],
    schedule: Schedule,
    reversed_dims: frozenset[str],
    masked: frozenset[str] = frozenset(),
) -> dict[str, DimState]:
    """The state of every dim before any loop is open."""
    return {
        d.name: DimState(
            d,
            tuple(a for a in schedule.axes if a.dim == d.name),
            d.name in reversed_dims,
            masked=d.name in masked,
            policy=schedule.tail(d.name),
        )
        for d in dims
    }
