"""Which buffers hold positions in others, and how many positions those have."""

from __future__ import annotations

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import toposort
from loopwright_core.kernel.kernel import Kernel


def index_limits(kernel: Kernel) -> dict[int, int]:
    """By slot of each buffer whose values index another: how many there are to point at, of the
    shortest it indexes. Made-up values below that are read where they point."""
    found: dict[int, int] = {}
    for node in kernel.nodes:
        if node.op is not Op.INDEX:
            continue
        for at, size in zip(node.src[1:-1], node.arg, strict=True):
            for read in toposort((at,), lambda n: n.op is not Op.LOAD):
                if read.op is Op.LOAD and read.dtype.is_int and isinstance(size, int):
                    slot = read.src[0].src[0].arg.slot
                    found[slot] = min(size, found.get(slot, size))
    return found
