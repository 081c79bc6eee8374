"""Which barriers a program needs: each must separate accesses that no other one separates.

Lowering puts a barrier before and behind every write of shared memory. This pass plays the list
through, loops twice, and drops the barriers whose absence makes no new pair of accesses meet.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from loopwright_core.ir.bounds import bounds
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

# The accesses since the last barrier, on some path.
_Pending = frozenset[UOp]


@dataclass
class _Block:
    """A loop's or a branch's accesses and barriers, in order."""

    is_loop: bool
    certainly_runs: bool = True
    items: list[UOp | _Block] = field(default_factory=list)


def drop_needless(uops: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """The list without the barriers that order nothing (those between the same accesses as
    another, those around nothing shared)."""
    barriers = _innermost_first(uops)
    if not barriers:
        return uops
    root = _outline(uops)
    needed = _clashes(root, frozenset())
    dropped: set[UOp] = set()
    for barrier in barriers:
        without = frozenset(dropped | {barrier})
        if _clashes(root, without) <= needed:
            dropped.add(barrier)
    return tuple([n for n in uops if n not in dropped])


def _innermost_first(uops: tuple[UOp, ...]) -> list[UOp]:
    """The barriers, those that would run most often first."""
    found, depth = [], 0
    for node in uops:
        if node.op is Op.RANGE:
            depth += 1
        elif node.op is Op.END:
            depth -= 1
        elif node.op is Op.BARRIER:
            found.append((-depth, node))
    return [n for _, n in sorted(found, key=lambda pair: pair[0])]


def _outline(uops: tuple[UOp, ...]) -> _Block:
    blocks = [_Block(False)]
    for node in uops:
        if node.op in (Op.RANGE, Op.IF):
            is_loop = node.op is Op.RANGE
            blocks.append(_Block(is_loop, is_loop and bounds(node.src[0])[0] > 0))
        elif node.op in (Op.END, Op.ENDIF):
            block = blocks.pop()
            if block.items:
                blocks[-1].items.append(block)
        elif node.op is Op.BARRIER or (node.op in (Op.LOAD, Op.STORE) and _shared(node)):
            blocks[-1].items.append(node)
    return blocks[0]


def _shared(node: UOp) -> UOp | None:
    """The shared array behind a LOAD or STORE, if it is one."""
    storage: UOp = node.src[0].src[0]
    while storage.op is Op.AFTER:
        storage = storage.src[0]
    return storage if storage.op is Op.DEFINE_LOCAL and storage.arg.shared else None


def _clashes(root: _Block, without: frozenset[UOp]) -> set[tuple[UOp, UOp]]:
    """Pairs of accesses of one array, one of both a write, the second of which follows the first
    with no barrier in between on some path."""
    found: set[tuple[UOp, UOp]] = set()

    def play(block: _Block, before: _Pending) -> _Pending:
        now = before
        for item in block.items:
            if isinstance(item, _Block):
                inside = play(item, now)
                if item.is_loop:
                    inside |= play(item, inside)
                now = inside if item.certainly_runs else now | inside
            elif item.op is Op.BARRIER:
                now = now if item in without else frozenset()
            else:
                array = _shared(item)
                for other in now:
                    if other.op is not item.op and _shared(other) is array:
                        found.add((other, item))
                now |= {item}
        return now

    play(root, frozenset())
    return found
