"""Runs fused kernel ASTs on the interpreter: end-to-end checks that need no compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright.fuse import FusedKernel, fuse
from loopwright.memory import buffer_node, has_storage, to_numpy
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.tensor import eval_tensor, run_tensor
from loopwright_core.plugin.target import Target


def a_target(max_buffers: int | None = None) -> Target:
    """A target of which fusion reads `max_buffers`."""
    return Target("test", "test", frozenset(), frozenset(), frozenset(), max_buffers=max_buffers)


def fused(*arrays: Any, max_buffers: int | None = None) -> list[FusedKernel]:
    """The kernels of lazy arrays (or nodes), not run."""
    return fuse(_stores(arrays), a_target(max_buffers))


def checked(*arrays: Any, max_buffers: int | None = None) -> list[FusedKernel]:
    """The kernels of lazy arrays, after running them and comparing with the unfused graph."""
    stores = _stores(arrays)
    kernels = fuse(stores, a_target(max_buffers))
    memory = run_kernels(kernels)
    for store in stores:
        target, node = store.src
        inputs = {b.arg.slot: to_numpy(b) for b in node.toposort() if b.op is Op.BUFFER}
        np.testing.assert_array_equal(eval_tensor(node, inputs), memory[target])
    return kernels


def run_kernels(kernels: Sequence[FusedKernel]) -> dict[UOp, np.ndarray[Any, Any]]:
    """What every kernel writes; a kernel that reads what none has written fails."""
    memory: dict[UOp, np.ndarray[Any, Any]] = {}
    for kernel in kernels:
        slots = {}
        for slot, buffer in enumerate(kernel.buffers):
            if has_storage(buffer):
                slots[slot] = to_numpy(buffer)
                continue
            if buffer not in memory:
                assert buffer in kernel.outputs, "a kernel reads what was not written yet"
                memory[buffer] = np.full(buffer.arg.shape, 77, buffer.dtype.numpy)
            slots[slot] = memory[buffer]
        run_tensor(kernel.ast, slots)
    return memory


def _stores(arrays: Sequence[Any]) -> list[UOp]:
    nodes = [a if isinstance(a, UOp) else a._uop for a in arrays]
    return [UOp(Op.STORE, dt.void, (buffer_node(n.dtype, shape_of(n)), n)) for n in nodes]  # type: ignore[arg-type]


def size(kernels: Sequence[FusedKernel]) -> int:
    """Nodes of all kernels together."""
    return sum(len(k.ast.toposort()) for k in kernels)
