"""A program: what lowering hands to a renderer. Flat lists of level-3 UOps, run phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import Extent, UOp, Variable


@dataclass(frozen=True, slots=True)
class Loop:
    """arg of RANGE: `id` is unique in the program, `name` is what a reader sees (`i`, `k_1`)."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Local:
    """arg of DEFINE_LOCAL: an array of `size` elements, aligned to 64 bytes, uninitialised.

    `shared`: one for all threads of a workgroup; else each thread has its own.
    """

    id: int
    name: str
    size: int
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Register:
    """arg of DEFINE_REG: one named variable of the node's (vector) dtype."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Param:
    """One buffer argument, by slot. `is_output`: the kernel stores to it; else it only reads."""

    slot: int
    name: str
    dtype: DType
    shape: tuple[Extent, ...]
    is_output: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one launch costs by counting: floating point operations and compulsory bytes."""

    flops: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Function:
    """A pure function that CALL nodes name (`exp_f32x8`): no loops, no memory.

    `params`: the dtypes of its PARAM leaves; `uops` ends in RETURN; a CALL in it names a function
    that stands before it.
    """

    name: str
    params: tuple[DType, ...]
    uops: tuple[UOp, ...]

    @property
    def dtype(self) -> DType:
        """What it returns."""
        return self.uops[-1].src[0].dtype


@dataclass(frozen=True, slots=True)
class Phase:
    """One launch. `uops` in execution order, sources before users; leaves (CONST, VAR, BUFFER,
    SPECIAL) are not listed. `threads`: how many values SPECIAL "thread" takes (1: it is absent).
    `global_size` (workgroups) and `local_size` (threads of one) are the launch of a GPU target,
    the fastest id first, else None; `local_size` alone is None where the runtime chooses it and
    `global_size` counts threads.
    """

    name: str
    uops: tuple[UOp, ...]
    threads: int = 1
    global_size: tuple[UOp, ...] | None = None
    local_size: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel ready to render. `name` is a legal C identifier.

    `scratch`: arrays that one phase leaves for a later one, in slots behind the params'; whoever
    launches the program supplies them, uninitialised, for the length of the launch.
    """

    name: str
    phases: tuple[Phase, ...]
    params: tuple[Param, ...]
    variables: tuple[Variable, ...]
    estimate: Estimate
    functions: tuple[Function, ...] = ()
    scratch: tuple[Param, ...] = ()

    @property
    def arrays(self) -> tuple[Param, ...]:
        """Params and scratch: every array by slot."""
        return self.params + self.scratch
