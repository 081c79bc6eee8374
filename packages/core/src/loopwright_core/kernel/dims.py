"""Dims (the loops of the algorithm) and axes (how a schedule cuts them)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Extent, UOp, Variable


@dataclass(frozen=True, slots=True)
class Dim:
    """One dimension of the iteration space. Its name is unique in the kernel (i, j, j.0, k, ...).

    `is_reduce` tells dims that a REDUCE binds from output dims. Its values are 0 .. size-1.
    """

    name: str
    size: Extent
    is_reduce: bool = False

    @property
    def uop(self) -> UOp:
        """The level-2 value that walks this dim."""
        return UOp(Op.DIM, dt.index, (), self)

    @property
    def max_size(self) -> int:
        """The largest extent it can have."""
        return self.size.hi if isinstance(self.size, Variable) else self.size

    @property
    def is_symbolic(self) -> bool:
        return isinstance(self.size, Variable)


class AxisKind(Enum):
    """How an axis runs: (letter, colour) are what `describe()` shows.

    `is_expanded`: written out at the leaf instead of looped over.
    """

    GLOBAL = ("g", "blue")
    THREAD = ("t", "bright_blue")
    LOCAL = ("l", "cyan")
    TENSOR = ("T", "magenta on white")
    GROUP = ("G", "green")
    LOOP = ("L", "white")
    REDUCE = ("R", "red")
    UNROLL = ("r", "magenta")
    UPCAST = ("u", "yellow")
    VECTOR = ("v", "bright_yellow")

    __hash__ = object.__hash__  # members are single objects; Enum's takes ten times as long

    def __init__(self, letter: str, colour: str) -> None:
        self.letter = letter
        self.colour = colour
        self.is_expanded = self.name in ("UNROLL", "UPCAST", "VECTOR")


@dataclass(frozen=True, slots=True)
class Axis:
    """`size` steps of `stride` along a dim: value(dim) = sum(stride * axis) over its axes.

    Sorted by stride the axes of a dim are a mixed radix: `next.stride == stride * size`, and only
    the outermost-stride axis may be ragged (the product of sizes exceeds the dim). `size` is the
    dim's Variable for the one axis of a symbolic dim, else an int. A symbolic dim may be cut for
    THREAD alone: in slices as for its largest extent, which of an output shrink with the extent
    at launch.
    """

    dim: str
    stride: int
    size: Extent
    kind: AxisKind

    @property
    def name(self) -> str:
        """`j/64`; `j/1` for stride 1. Texts may say `j` for the only or the innermost axis."""
        return f"{self.dim}/{self.stride}"
