"""Programs with one statement taken out: what checks must report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_program import STATEMENTS
from loopwright_core.ir.uop import UOp
from loopwright_core.program.program import Program


def without_one(program: Program) -> Iterator[tuple[UOp, Program]]:
    """The program without each of its barriers and branches in turn (of a branch the condition
    goes, what it guards stays)."""
    (phase,) = program.phases
    for victim in phase.uops:
        if victim.op in (Op.BARRIER, Op.IF):
            yield (
                victim,
                replace(program, phases=(replace(phase, uops=_without(phase.uops, victim)),)),
            )


def _without(uops: tuple[UOp, ...], victim: UOp) -> tuple[UOp, ...]:
    """The list without a node (and its ENDIF), named by no other node any more."""
    gone = {victim, *(n for n in uops if n.op is Op.ENDIF and n.src[0] is victim)}
    new: dict[UOp, UOp] = {}
    kept: dict[UOp, None] = {}
    out: list[UOp] = []
    for node in uops:
        if node in gone:
            continue
        src = tuple([new.get(s, s) for s in node.src if s not in gone])
        made = node if src == node.src else node.replace(src)
        if node.op is Op.AFTER and len(src) == 1:
            new[node] = src[0]
            continue
        new[node] = made
        if made not in kept or made.op in STATEMENTS:
            kept[made] = None
            out.append(made)
    return tuple(out)
