"""Where a program's functions and local arrays go: names of functions, stack or scratch memory."""

from __future__ import annotations

from math import prod

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.program.cnames import C_KEYWORDS, LIBRARY, identifier
from loopwright_core.program.program import Param, Phase, Program

# What fits on any thread's stack, and into a first-level cache.
STACK_BYTES = 32 << 10
_ALIGN = 64


def local_bytes(node: UOp) -> int:
    """Bytes of a DEFINE_LOCAL, rounded up to whole cache lines."""
    size: int = node.arg.size * node.dtype.itemsize
    return -(-size // _ALIGN) * _ALIGN


def param_bytes(param: Param) -> int:
    """Bytes of an array of fixed size."""
    return prod([n for n in param.shape if isinstance(n, int)]) * param.dtype.itemsize


def scratch_offsets(phase: Phase) -> tuple[dict[UOp, int], int]:
    """Where each local that does not fit on the stack lies in the thread's scratch memory, and
    how many bytes of it the phase needs."""
    offsets: dict[UOp, int] = {}
    stack = scratch = 0
    for node in phase.uops:
        if node.op is not Op.DEFINE_LOCAL:
            continue
        size = local_bytes(node)
        if stack + size <= STACK_BYTES:
            stack += size
        else:
            offsets[node] = scratch
            scratch += size
    return offsets, scratch


def scratch_bytes(program: Program) -> int:
    """Bytes of scratch memory each thread of a launch needs, 64-byte aligned; 0: none."""
    return max((scratch_offsets(p)[1] for p in program.phases), default=0)


def function_names(program: Program, keywords: frozenset[str] = C_KEYWORDS) -> tuple[str, ...]:
    """The functions of a program's phases: `name`, `name_1`, ..."""
    base = identifier(program.name, keywords | LIBRARY)
    return tuple([base if k == 0 else f"{base}_{k}" for k in range(len(program.phases))])
