"""Which values of a flat list are written inside their user, and which get a name.

A value used once is written where it is used, unless that would move it into another scope or
behind a write to what it reads. Everything else stands where the list has it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

LEAVES = frozenset({Op.CONST, Op.VAR, Op.BUFFER, Op.SPECIAL, Op.PARAM})
# Print as a name that exists already.
PLACES = LEAVES | {Op.DEFINE_REG, Op.DEFINE_LOCAL, Op.ASSIGN, Op.AFTER, Op.RANGE}
STATEMENTS = frozenset(
    {Op.STORE, Op.ASSIGN, Op.RANGE, Op.END, Op.IF, Op.ENDIF, Op.DEFINE_REG, Op.DEFINE_LOCAL}
    | {Op.PREFETCH, Op.BARRIER, Op.FENCE, Op.RETURN, Op.TILE_LOAD, Op.TILE_STORE, Op.WMMA}
)
_STORES = frozenset({Op.STORE, Op.TILE_STORE})
_SAME = frozenset({Op.AFTER, Op.ASSIGN})


class Storages:
    """Finds the BUFFER, DEFINE_LOCAL or DEFINE_REG below AFTER and ASSIGN; others: themselves."""

    def __init__(self) -> None:
        self._found: dict[UOp, UOp] = {}

    def of(self, node: UOp) -> UOp:
        """What the node stands for; chains are walked once."""
        if node.op not in _SAME:
            return node
        path = []
        while node.op in _SAME:
            known = self._found.get(node)
            if known is not None:
                node = known
                break
            path.append(node)
            node = node.src[0]
        for p in path:
            self._found[p] = node
        return node


def is_transparent(node: UOp) -> bool:
    """Whether the node is written into each of its users, however many: it costs nothing."""
    if node.op is Op.INDEX or node.op is Op.AFTER:
        return True
    if node.op is Op.BROADCAST:
        source = node.src[0].op
        # A register has to be read where the BROADCAST stands.
        is_register = source in _SAME or source is Op.DEFINE_REG
        return source in LEAVES or (node.dtype.is_bool and not is_register)
    # A mask takes the width of what it masks.
    if node.op is Op.VECTORIZE and node.dtype.is_bool:
        return all(s.op is Op.CONST for s in node.src)
    return False


class Plan:
    """The decision for one list: `inlined` holds the values written inside their only user;
    `uses` counts how often a node's text will be written."""

    def __init__(self, uops: Sequence[UOp], storages: Storages) -> None:
        self.uses: dict[UOp, int] = {}
        self.inlined: set[UOp] = set()
        self._storages = storages
        self._writes: dict[UOp, list[int]] = {}
        self._barriers: list[int] = []
        self._find_writes(uops)
        self._decide(uops)

    def _decide(self, uops: Sequence[UOp]) -> None:
        scopes = _scopes(uops)
        uses = self.uses
        lands: dict[UOp, int] = {}  # where the last user's text ends up
        for i in range(len(uops) - 1, -1, -1):
            node = uops[i]
            op = node.op
            if op is Op.AFTER or op in LEAVES:
                continue
            weight, land = 1, i
            if op not in STATEMENTS:
                weight = uses.get(node, 0)
                if weight == 0:
                    continue  # nobody needs it
                if is_transparent(node):
                    land = lands[node]
                elif weight == 1:
                    target = lands[node]
                    if scopes[target] == scopes[i] and self._can_move(
                        node, i, target, uops[target].op
                    ):
                        self.inlined.add(node)
                        land = target
                if not is_transparent(node):
                    weight = 1
            for s in node.src[1:] if op in (Op.ASSIGN, Op.INDEX) else node.src:
                if s.op not in PLACES:
                    uses[s] = uses.get(s, 0) + weight
                    lands[s] = land

    def _can_move(self, node: UOp, start: int, end: int, user: Op) -> bool:
        for storage, is_memory in self._reads(node):
            if user is Op.RANGE:
                return False  # a loop's bound is evaluated again and again
            if _between(self._writes.get(storage, ()), start, end):
                return False
            if is_memory and _between(self._barriers, start, end):
                return False
        return True

    def _reads(self, node: UOp) -> list[tuple[UOp, bool]]:
        """What the node itself reads that can change: (storage, whether it is memory)."""
        found: list[tuple[UOp, bool]] = []
        if node.op is Op.LOAD:
            found.append((self._storages.of(node.src[0].src[0]), True))
        for s in node.src:
            if s.op in _SAME or s.op is Op.DEFINE_REG:
                found.append((self._storages.of(s), False))
        return found

    def _find_writes(self, uops: Sequence[UOp]) -> None:
        for i, node in enumerate(uops):
            if node.op in _STORES:
                self._writes.setdefault(self._storages.of(node.src[0].src[0]), []).append(i)
            elif node.op is Op.ASSIGN:
                self._writes.setdefault(self._storages.of(node), []).append(i)
            elif node.op in (Op.BARRIER, Op.FENCE):
                self._barriers.append(i)


def _between(positions: Sequence[int], start: int, end: int) -> bool:
    """Whether one of the ascending positions lies in start+1 .. end-1."""
    k = bisect_right(positions, start)
    return k < len(positions) and positions[k] < end


def _scopes(uops: Sequence[UOp]) -> list[int]:
    """The innermost open loop or branch of each position, by number; what opens lies outside."""
    found: list[int] = []
    stack, count = [0], 0
    for node in uops:
        if node.op in (Op.END, Op.ENDIF):
            stack.pop()
        found.append(stack[-1])
        if node.op in (Op.RANGE, Op.IF):
            count += 1
            stack.append(count)
    return found
