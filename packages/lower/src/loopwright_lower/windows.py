"""Local arrays addressed by position: kept values and conv-like input tiles (halo)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopwright_core.ir import integer
from loopwright_core.ir.affine import affine, plus, scale
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp
from loopwright_lower.dims import DimState
from loopwright_lower.indices import Offsets, Place


@dataclass(eq=False)
class PositionArray:
    """`sum((position - origin) * stride)`, one term per array dimension.

    `locate` gives the position of a dimension at a coordinate as base + stride * lane;
    `origins` hold the index expression of each dimension's first element, set when the array's
    scope is entered. `ragged`: the dims whose positions behind the end nobody wrote.
    """

    storage: UOp
    strides: tuple[int, ...]
    locate: Callable[[int, Offsets, str | None], Place]
    origins: list[UOp]
    ragged: tuple[str, ...] = ()

    def place(self, dims: dict[str, DimState], offsets: Offsets, vector: str | None) -> Place:
        """Where the element of the present coordinate (lane 0) lies."""
        base, lane_stride = integer.add(0, 0), 0
        for n, (stride, origin) in enumerate(zip(self.strides, self.origins, strict=True)):
            at = self.locate(n, offsets, vector)
            assert at.stride is not None
            base = integer.add(base, integer.mul(integer.sub(at.base, origin), stride))
            lane_stride += at.stride * stride
        return Place(base, lane_stride)


@dataclass(frozen=True)
class Limit:
    """A condition on one index of an access: `sign * index + constant < 0`."""

    dimension: int
    sign: int
    constant: int

    def holds(self, at: UOp) -> UOp:
        """The condition where that index is `at`."""
        return integer.lt(integer.add(integer.mul(at, self.sign), self.constant), 0)


def limits_of(index: UOp) -> list[Limit] | None:
    """An access' validity as limits of single indices; None where it says more."""
    found: list[Limit] = []
    forms = [affine(i) for i in index.src[1:-1]]
    stack = [index.src[-1]]
    while stack:
        node = stack.pop()
        if node.op is Op.AND:
            stack.extend(node.src)
        elif node is not TRUE:
            if node.op is not Op.CMPLT:
                return None
            less = plus(affine(node.src[0]), affine(node.src[1]), -1)
            for n, form in enumerate(forms):
                sign = next((k for k in (1, -1) if less.terms == scale(form, k).terms), 0)
                if sign:
                    found.append(Limit(n, sign, less.const - sign * form.const))
                    break
            else:
                return None
    return found
