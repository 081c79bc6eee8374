"""From a group to its kernel AST: memory instead of stored values, slots by first use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopwright.fuse.partition import Group
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp


@dataclass(frozen=True, slots=True)
class FusedKernel:
    """A kernel AST and what its slots are in the user's graph.

    `buffers`: the BUFFER of each slot. `outputs`: those it writes. `values`: the nodes it stores.
    """

    ast: UOp
    buffers: tuple[UOp, ...]
    outputs: tuple[UOp, ...]
    values: tuple[UOp, ...]


def make_kernel(group: Group, stored: Mapping[UOp, UOp], place: Mapping[UOp, int]) -> FusedKernel:
    """The group as one SINK; groups that compute alike give the same SINK."""
    slots = _Slots()
    done: dict[UOp, UOp] = {}
    stores = sorted(group.stores, key=lambda s: place[s[1]])  # stable: a concat keeps its order
    made: list[UOp] = []
    outputs: dict[UOp, None] = {}
    for target, value in stores:
        new_value = _rebuild(value, group, stored, slots, done)
        new_target = _rebuild(target, group, stored, slots, done)
        made.append(UOp(Op.STORE, dt.void, (new_target, new_value)))
        while target.op is not Op.BUFFER:
            target = target.src[0]
        outputs[target] = None
    sink = UOp(Op.SINK, dt.void, tuple(made))
    values = tuple(dict.fromkeys(value for _, value in stores))
    return FusedKernel(sink, tuple(slots.buffers), tuple(outputs), values)


class _Slots:
    """BUFFER nodes renumbered by first use."""

    def __init__(self) -> None:
        self.buffers: list[UOp] = []
        self._numbered: dict[UOp, UOp] = {}

    def number(self, buffer: UOp) -> UOp:
        found = self._numbered.get(buffer)
        if found is None:
            arg = Buffer(len(self.buffers), buffer.arg.shape)
            found = self._numbered[buffer] = UOp(Op.BUFFER, buffer.dtype, (), arg)
            self.buffers.append(buffer)
        return found


def _rebuild(
    root: UOp,
    group: Group,
    stored: Mapping[UOp, UOp],
    slots: _Slots,
    done: dict[UOp, UOp],
) -> UOp:
    """The expression with memory in place of what other kernels store."""
    stack = [root]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        if node.op is Op.BUFFER:
            done[node] = slots.number(node)
            continue
        view = stored.get(node)
        src = node.src if view is None or node in group.own else (view,)
        missing = [s for s in src if s not in done]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        new = [done[s] for s in src]
        done[node] = new[0] if src is not node.src else node.replace(tuple(new))
    return done[root]
