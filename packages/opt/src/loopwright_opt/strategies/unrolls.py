"""The last steps of a reduce are written out: all of a short axis, some of a long one."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.facts import Statement
from loopwright_opt.strategies.strategy import Draft, Heuristic

# An axis of at most so many steps is written out whole, two of at most the second number.
SHORT = 32
SHORTEST = 3
# Copies of a leaf beyond which nothing more is written out.
MOST = 64
FEW = 4


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    done = False
    for statement in draft.facts.statements:
        axes = [a for a in draft.reduces() if a.dim in statement.bound]
        if axes and _is_small(draft, statement):
            done = _unroll(draft, axes, p["amount"]) or done
    return done


def _is_small(draft: Draft, statement: Statement) -> bool:
    mine = [a for a in draft.kernel.schedule.axes if a.dim in statement.dims]
    copies = prod(a.size for a in mine if a.kind.is_expanded and isinstance(a.size, int))
    return copies < MOST and (copies <= FEW or all(a.kind is not AxisKind.UNROLL for a in mine))


def _unroll(draft: Draft, axes: list[Axis], amount: int) -> bool:
    size = axes[-1].size
    if not isinstance(size, int):
        return False
    if size > SHORT:
        if size % amount or not draft.do(f"UNROLL {axes[-1].name} {amount}"):
            return False
        draft.note(f"{amount} steps of {axes[-1].dim} written out")
        return True
    if not draft.do(f"UNROLL {axes[-1].name} 0"):
        return False
    draft.note(f"the {size} steps of {axes[-1].dim} written out")
    if size <= SHORTEST and len(axes) > 1:
        second = axes[-2].size
        if isinstance(second, int) and second <= SHORTEST and draft.do(f"UNROLL {axes[-2].name} 0"):
            draft.note(f"the {second} steps of {axes[-2].dim} too")
    return True


UNROLLS = Heuristic("unrolls", (Parameter("amount", 4, (2, 4, 8)),), _run)
