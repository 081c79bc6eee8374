"""Graphs that were cut before: the same structure over other memory is cut the same way.

A program that evaluates one expression again and again pays for fusion once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.fuse.ast import AstWriter, FusedKernel
from loopwright.memory import buffer_node
from loopwright_core.ir.uop import UOp

Cut = Callable[[Sequence[UOp]], list[FusedKernel]]

# Larger graphs are rarely built twice, and a template keeps its graph.
_MAX_NODES = 5_000
_MAX_TEMPLATES = 512
# Per graph in canonical form and device; the device is kept so that its id stays its own.
_templates: dict[tuple[UOp, int], _Template] = {}


@dataclass(frozen=True, slots=True)
class _Template:
    """Kernels over the canonical graph, whose BUFFERs have slots 0, 1, ... by first use."""

    kernels: tuple[FusedKernel, ...]
    device: Any


def fuse_once(stores: Sequence[UOp], device: Any, cut: Cut) -> list[FusedKernel]:
    """`cut(stores)`, from memory where a graph of that structure was cut for the device before.

    The kernels have no `values`.
    """
    writer = AstWriter({})
    sink = writer.sink((store.src[0], store.src[1]) for store in stores)
    key = (sink, id(device))
    template = _templates.get(key)
    if template is None:
        template = _Template(tuple(cut(sink.src)), device)
        if writer.n_nodes <= _MAX_NODES:
            if len(_templates) >= _MAX_TEMPLATES:
                _templates.clear()
            _templates[key] = template
    return _instantiate(template, writer.buffers)


def _instantiate(template: _Template, buffers: Sequence[UOp]) -> list[FusedKernel]:
    """The kernels over these buffers; what lies between kernels gets buffers of its own."""
    own: dict[UOp, UOp] = {}

    def at(buffer: UOp) -> UOp:
        slot: int = buffer.arg.slot
        # fresh slots are counted in the process, so they lie beyond those of any graph's inputs
        if slot < len(buffers):
            return buffers[slot]
        found = own.get(buffer)
        if found is None:
            found = own[buffer] = buffer_node(buffer.dtype, buffer.arg.shape)
        return found

    return [
        FusedKernel(
            kernel.ast,
            tuple([at(b) for b in kernel.buffers]),
            tuple([at(b) for b in kernel.outputs]),
            (),
        )
        for kernel in template.kernels
    ]
