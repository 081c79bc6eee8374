"""From a group to its kernel AST: memory instead of stored values, slots by first use."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from loopwright.fuse.partition import Group
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """A kernel AST and what its slots are in the user's graph.

    `buffers`: the BUFFER of each slot. `outputs`: those it writes. `values`: the nodes it stores.
    `opts`: the schedule that the user gave it, None where none was; `scheduled_at`: their line.
    """

    ast: UOp
    buffers: tuple[UOp, ...]
    outputs: tuple[UOp, ...]
    values: tuple[UOp, ...]
    opts: tuple[str, ...] | None = None
    scheduled_at: str = ""


def make_kernel(group: Group, stored: Mapping[UOp, UOp], place: Mapping[UOp, int]) -> FusedKernel:
    """The group as one SINK; groups that compute alike give the same SINK."""
    writer = AstWriter(stored, group.own)
    stores = sorted(group.stores, key=lambda s: place[s[1]])  # stable: a concat keeps its order
    outputs: dict[UOp, None] = {}
    for target, _ in stores:
        base = target
        while base.op is not Op.BUFFER:
            base = base.src[0]
        outputs[base] = None
    sink = writer.sink(stores)
    values = tuple(dict.fromkeys(value for _, value in stores))
    return FusedKernel(sink, tuple(writer.buffers), tuple(outputs), values)


class AstWriter:
    """Rebuilds expressions with slots by first use and, for what others store, its memory.

    `buffers`: the BUFFER of each slot so far.
    """

    def __init__(self, stored: Mapping[UOp, UOp], own: Container[UOp] = ()) -> None:
        self.buffers: list[UOp] = []
        self._stored, self._own = stored, own
        self._done: dict[UOp, UOp] = {}

    def sink(self, stores: Iterable[tuple[UOp, UOp]]) -> UOp:
        """The SINK that stores (target, value) pairs; a value's buffers come before its target."""
        made = []
        for target, value in stores:
            new_value = self._rebuild(value)
            made.append(UOp(Op.STORE, dt.void, (self._rebuild(target), new_value)))
        return UOp(Op.SINK, dt.void, tuple(made))

    @property
    def n_nodes(self) -> int:
        """How many nodes were rebuilt."""
        return len(self._done)

    def _rebuild(self, root: UOp) -> UOp:
        done, stored, own = self._done, self._stored, self._own
        stack = [root]
        while stack:
            node = stack[-1]
            if node in done:
                stack.pop()
                continue
            if node.op is Op.BUFFER:
                done[node] = self._number(node)
                continue
            view = stored.get(node)
            src = node.src if view is None or node in own else (view,)
            missing = [s for s in src if s not in done]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            new = [done[s] for s in src]
            done[node] = new[0] if src is not node.src else node.replace(tuple(new))
        return done[root]

    def _number(self, buffer: UOp) -> UOp:
        slot = len(self.buffers)
        self.buffers.append(buffer)
        return UOp(Op.BUFFER, buffer.dtype, (), Buffer(slot, buffer.arg.shape))
