"""Level-2 kernels built by hand."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Buffer, Extent, UOp, const
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import initial_schedule

F = dt.float32


def at(slot: int, shape: tuple[Extent, ...], *index: UOp, valid: UOp = TRUE) -> UOp:
    buffer = UOp(Op.BUFFER, F, (), Buffer(slot, shape))
    return UOp(Op.INDEX, F, (buffer, *index, valid), shape)


def load(index: UOp) -> UOp:
    return UOp(Op.LOAD, F, (index, const(0, F)))


def op(which: Op, *src: UOp) -> UOp:
    return UOp(which, F, src)


def kernel(dims: tuple[Dim, ...], *stores: tuple[UOp, UOp]) -> Kernel:
    body = UOp(Op.SINK, dt.void, tuple([UOp(Op.STORE, dt.void, s) for s in stores]))
    return Kernel("name", body, dims, initial_schedule(dims))


def matmul(m: int = 4, n: int = 6, p: int = 8) -> Kernel:
    dims = Dim("i", m), Dim("j", n), Dim("k", p, True)
    i, j, k = [d.uop for d in dims]
    product = op(Op.MUL, load(at(0, (m, p), i, k)), load(at(1, (p, n), k, j)))
    total = UOp(Op.REDUCE, F, (product, k), ("add",))
    return kernel(dims, (at(2, (m, n), i, j), total))
