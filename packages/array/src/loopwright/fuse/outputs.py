"""Which outputs gain from sharing a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loopwright.fuse.demand import elements
from loopwright_core.ir.ops import MOVEMENT, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp

# What turns axes or walks along some, from an output down to a buffer.
Axes = tuple[tuple[Op, object], ...]
_NO_MEMORY = frozenset({Op.CONST, Op.VAR, Op.IOTA})
# An output streams a buffer if nothing in it has more than this many times the buffer's elements.
_STREAMING = 2


class _Sets:
    """Sets of numbers that are joined pairwise."""

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def find(self, i: int) -> int:
        """The number that stands for i's set."""
        parent = self._parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        """Make one set of i's and j's."""
        self._parent[self.find(i)] = self.find(j)


def related_outputs(outputs: Iterable[UOp], n_users: Mapping[UOp, int]) -> dict[UOp, int]:
    """Outputs that nothing else uses, each with the number of the set that it shares work with.

    Work is a computed value that both need, or a buffer that both stream along the same axes: two
    sums over the rows of one array read it once, a sum over rows and one over columns do not. Two
    matmuls of one operand do not gain: what they compute dwarfs what they read.
    """
    roots = [node for node in outputs if node not in n_users]
    if len(roots) < 2:
        return {}
    sets = _Sets(len(roots))
    owner: dict[UOp, int] = {}
    readers: dict[tuple[UOp, Axes], dict[int, None]] = {}
    largest = [0] * len(roots)
    for number, root in enumerate(roots):
        stack: list[tuple[UOp, Axes]] = [(root, ())]
        while stack:
            node, axes = stack.pop()
            if node.op in _NO_MEMORY:
                continue
            if node.op is Op.BUFFER:
                readers.setdefault((node, axes), {})[number] = None
                continue
            largest[number] = max(largest[number], elements(shape_of(node)))
            if node.op not in MOVEMENT:
                if node in owner:
                    sets.join(number, owner[node])
                    continue
                owner[node] = number
            if node.op is Op.PERMUTE or node.op in (Op.REDUCE, Op.SCAN):
                axes = (*axes, (node.op, node.arg if node.op is Op.PERMUTE else node.arg[1]))
            stack.extend([(source, axes) for source in node.src])
    for (buffer, _), numbers in readers.items():
        n = _STREAMING * elements(shape_of(buffer))
        streaming = [number for number in numbers if largest[number] <= n]
        for number in streaming[1:]:
            sets.join(number, streaming[0])
    return {root: sets.find(number) for number, root in enumerate(roots)}
