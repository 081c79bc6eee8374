"""Memory access at a leaf: scalar, contiguous, strided, gathered; whole or masked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, UOp, Variable, const
from loopwright_core.kernel.dims import Axis
from loopwright_core.plugin.tensor_core import Digits
from loopwright_lower.build import Builder
from loopwright_lower.dims import DimState, lane_leaf
from loopwright_lower.indices import Indices, Offsets, Place


@dataclass(eq=False)
class AxisArray:
    """A local array addressed by axes: `sum(axis * stride)`.

    `tile`: axes whose digits place an element in a tensor core's tile, the innermost part.
    """

    storage: UOp
    strides: tuple[tuple[Axis, int], ...]
    tile: tuple[tuple[Axis, Digits], ...] = ()

    def within(self, at: Callable[[Axis], UOp]) -> UOp:
        """Where an element lies in its tile."""
        total = integer.add(0, 0)
        for axis, digits in self.tile:
            total = integer.add(total, register_part(digits, at(axis)))
        return total

    def place(self, dims: dict[str, DimState], offsets: Offsets, vector: str | None) -> Place:
        """Where the element of the present axes (and, for lanes, of lane 0) lies."""
        base = integer.add(0, 0)
        lane_stride = 0
        for axis, stride in self.strides:
            state = dims[axis.dim]
            if axis is state.vector or axis == state.vector:
                if axis.dim == vector:
                    lane_stride = stride
            elif axis.kind.is_expanded:
                offset = offsets.get(axis.dim, 0)
                base = integer.add(base, state.coordinate(axis, offset) * stride)
            else:
                value = state.value(axis, offsets.get(axis.dim, 0))
                base = integer.add(base, integer.mul(value, stride))
        if self.tile:
            inner = self.within(lambda a: dims[a.dim].value(a, offsets.get(a.dim, 0)))
            base = integer.add(base, inner)
        return Place(base, lane_stride)


def register_part(digits: Digits, place: UOp) -> UOp:
    """The part of a register's number that its row (or column) decides."""
    total = integer.add(0, 0)
    for d in digits:
        digit = integer.mod(integer.floordiv(place, d.stride), d.modulus)
        total = integer.add(total, integer.mul(digit, d.divisor))
    return total


def axis_strides(axes: tuple[Axis, ...]) -> tuple[tuple[tuple[Axis, int], ...], int]:
    """Row-major strides of a local array over `axes` (outermost first), and its size."""
    strides: list[tuple[Axis, int]] = []
    size = 1
    for axis in reversed(axes):
        strides.append((axis, size))
        size *= axis.size.hi if isinstance(axis.size, Variable) else axis.size
    return tuple(reversed(strides)), size


class Memory:
    """Emits loads and stores."""

    def __init__(self, builder: Builder, indices: Indices, dims: dict[str, DimState]) -> None:
        self.builder, self.indices, self.dims = builder, indices, dims

    def partial_mask(self, count: int, lanes: int) -> UOp:
        """The mask whose first `count` lanes are true."""
        bits = tuple([TRUE if n < count else FALSE for n in range(lanes)])
        return self.builder.place(UOp(Op.VECTORIZE, dt.bool_.vec(lanes), bits))

    def both(self, a: UOp | None, b: UOp | None) -> UOp | None:
        """The conjunction of two conditions, either of which may be absent."""
        if a is None or b is None:
            return a if b is None else b
        return self.builder.alu(Op.AND, dt.bool_, a, b)

    def exists(self, names: tuple[str, ...], offsets: Offsets, vector: str | None) -> UOp | None:
        """The condition (scalar or mask) that this coordinate exists in every dim named."""
        mask: UOp | None = None
        for name in names:
            state, offset = self.dims[name], offsets.get(name, 0)
            if name == vector and state.lane_count(offset) < state.lanes:
                mask = self.both(mask, self.partial_mask(state.lane_count(offset), state.lanes))
            condition = state.exists(offset)
            if condition is not None and condition is not TRUE:
                mask = self.both(mask, self._guard(condition, state))
        return mask

    def _guard(self, condition: UOp, state: DimState) -> UOp:
        """A guard as a scalar or a mask; a constant mask where only the lane number matters."""
        leaf = lane_leaf(state.lanes)
        if state.vector is not None:
            each = [
                integer.substitute(condition, {leaf: const(n, leaf.dtype)})
                for n in range(state.lanes)
            ]
            if all(c.op is Op.CONST for c in each):
                return self.builder.place(UOp(Op.VECTORIZE, dt.bool_.vec(state.lanes), tuple(each)))
        return self.indices.emit(condition)

    def _offset(self, place: Place, lanes: int) -> UOp:
        """The scalar offset of a scalar or contiguous access, or a vector of offsets."""
        emit, b = self.indices.emit, self.builder
        if lanes == 1 or place.stride == 1:
            return emit(place.base)
        if place.stride is None:
            return b.broadcast(emit(place.base), lanes)
        numbers = tuple([const(n * place.stride, b.int_dtype) for n in range(lanes)])
        steps = b.place(UOp(Op.VECTORIZE, b.int_dtype.vec(lanes), numbers))
        return b.alu(Op.ADD, b.int_dtype, emit(place.base), steps)

    def load(
        self, storage: UOp, place: Place, lanes: int, mask: UOp | None, fill: UOp | None
    ) -> UOp:
        """A scalar (lanes 1 or the same for all lanes) or a vector value."""
        b = self.builder
        if lanes > 1 and place.stride == 0 and (mask is None or mask.dtype.lanes == 1):
            lanes = 1
        dtype: DType = storage.dtype.scalar.vec(lanes)
        src: list[UOp] = [b.seen(storage), self._offset(place, lanes)]
        if mask is None:
            return b.place(UOp(Op.LOAD, dtype, (b.place(UOp(Op.INDEX, storage.dtype, (*src,))),)))
        if src[1].dtype.lanes > 1:
            mask = b.broadcast(mask, lanes)
        where = b.place(UOp(Op.INDEX, storage.dtype, (*src, mask)))
        value = fill if fill is not None else const(0, storage.dtype)
        return b.place(UOp(Op.LOAD, dtype, (where, b.broadcast(value, lanes))))

    def store(
        self, storage: UOp, place: Place, value: UOp, lanes: int, mask: UOp | None, hint: object
    ) -> None:
        """Store a scalar, or every lane of a vector."""
        b = self.builder
        offset = self._offset(place, lanes)
        value = b.broadcast(value, lanes) if lanes > 1 else value
        if mask is not None and offset.dtype.lanes > 1:
            mask = b.broadcast(mask, lanes)
        if hint == "nt" and not (
            place.stride == 1 and mask is None and self._aligned(place, lanes)
        ):
            hint = None
        b.store(storage, offset, value, mask, hint)

    def _aligned(self, place: Place, lanes: int) -> bool:
        """Whether a contiguous vector at `place` starts at a multiple of its own size."""
        affine = integer.affine(place.base)
        return affine.const % lanes == 0 and all(c % lanes == 0 for _, c in affine.terms)
