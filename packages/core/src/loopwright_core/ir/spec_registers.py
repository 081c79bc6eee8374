"""A register is read only where it still holds what the reading node says it does.

A register prints as one variable, so a node that names its value before an ASSIGN must not be
read after that ASSIGN: inside a loop that assigns it the register reads as AFTER(reg, RANGE).
"""

from __future__ import annotations

from bisect import bisect_right

from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_common import refuse
from loopwright_core.ir.uop import UOp
from loopwright_core.program.program import Phase

_NAMES = frozenset({Op.DEFINE_REG, Op.ASSIGN, Op.AFTER})


def check_registers(phase: Phase) -> None:
    """Refuse reads of a register's stale value. The list is legal otherwise."""
    uops = phase.uops
    base: dict[UOp, UOp] = {}
    position: dict[UOp, int] = {}
    assigns: dict[UOp, list[int]] = {}
    for at, node in enumerate(uops):
        if node.op is Op.DEFINE_REG:
            base[node] = node
        elif node.op in (Op.ASSIGN, Op.AFTER) and node.src[0] in base:
            base[node] = base[node.src[0]]
        if node in base:
            position[node] = at
            if node.op is Op.ASSIGN:
                assigns.setdefault(base[node], []).append(at)
    if not assigns:
        return
    ends = {node.src[0]: at for at, node in enumerate(uops) if node.op is Op.END}
    loops: list[tuple[int, int]] = []
    for at, node in enumerate(uops):
        if node.op is Op.RANGE:
            loops.append((at, ends[node]))
        elif node.op is Op.END:
            loops.pop()
        if node.op is Op.AFTER:  # names the register and reads nothing; so does ASSIGN's first
            continue
        for s in node.src[1:] if node.op is Op.ASSIGN else node.src:
            if s in base:
                _check_read(node, s, at, position[s], assigns.get(base[s], []), loops, phase)


def _check_read(
    node: UOp,
    read: UOp,
    at: int,
    since: int,
    assigned: list[int],
    loops: list[tuple[int, int]],
    phase: Phase,
) -> None:
    after = bisect_right(assigned, since)
    if after < len(assigned) and assigned[after] < at:
        refuse(node, f"reads {read!r}, which an ASSIGN between them has changed", phase.name)
    for start, end in loops:
        if start <= since:
            continue
        inside = bisect_right(assigned, start)
        if inside < len(assigned) and assigned[inside] < end:
            refuse(
                node,
                f"reads {read!r} in a loop that assigns it: say AFTER(register, RANGE)",
                phase.name,
            )
