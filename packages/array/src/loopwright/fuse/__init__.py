"""Fusion: a graph of array operations becomes kernels, wherever the cost is lowest."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.fuse.ast import FusedKernel, make_kernel
from loopwright.fuse.partition import Partition
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.target import Target

__all__ = ["FusedKernel", "fuse"]


def fuse(stores: Sequence[UOp], target: Target | None = None) -> list[FusedKernel]:
    """The kernels that compute STOREs of values into whole BUFFERs, in an order that can run."""
    partition = Partition(stores, target)
    place = {node: p for p, node in enumerate(partition.order)}
    return _run_order([make_kernel(g, partition.stored, place) for g in partition.groups])


def _run_order(kernels: Sequence[FusedKernel]) -> list[FusedKernel]:
    """Every kernel after those whose outputs it reads."""
    writers: dict[UOp, list[int]] = {}
    for i, kernel in enumerate(kernels):
        for buffer in kernel.outputs:
            writers.setdefault(buffer, []).append(i)
    order: list[FusedKernel] = []
    seen: set[int] = set()
    for root in range(len(kernels)):
        stack = [(root, False)]
        while stack:
            i, is_done = stack.pop()
            if is_done:
                order.append(kernels[i])
            elif i not in seen:
                seen.add(i)
                stack.append((i, True))
                inputs = [b for b in kernels[i].buffers if b not in kernels[i].outputs]
                stack.extend(
                    (w, False) for b in inputs for w in writers.get(b, ()) if w not in seen
                )
    return order
