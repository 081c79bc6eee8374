"""The nest tree: which statements share which loops, and in which order they run."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright_core.errors import OptError, fail
from loopwright_core.kernel.statements import Statement, Step


@dataclass(eq=False)
class Leaf:
    """A statement's expanded body."""

    statement: Statement


@dataclass(eq=False)
class LoopNode:
    """A loop over `step.axis` around `children`; `statements` are all those inside.

    `is_last`: no further loop of the same dim lies inside.
    """

    step: Step
    children: list[LoopNode | Leaf]
    statements: list[Statement]
    is_last: bool


Tree = list[LoopNode | Leaf]


def build_nest(statements: list[Statement]) -> Tree:
    """The tree of all statements. Raises OptError where their order is contradictory."""
    return _level(statements, 0)


def _level(statements: list[Statement], depth: int) -> Tree:
    groups = _groups(statements, depth)
    tree: Tree = []
    for members in groups:
        step = _next(members[0], depth)
        if step is None:
            tree.append(Leaf(members[0]))
            continue
        inside = members[0].path[depth + 1 :]
        is_last = all(s.axis.dim != step.axis.dim for s in inside)
        tree.append(LoopNode(step, _level(members, depth + 1), members, is_last))
    return tree


def _next(statement: Statement, depth: int) -> Step | None:
    return statement.path[depth] if depth < len(statement.path) else None


def _groups(statements: list[Statement], depth: int) -> list[list[Statement]]:
    """Statements that must share their next loop, in dependency order; ready neighbours with the
    same next loop are merged."""
    leader = {s: s for s in statements}

    def find(s: Statement) -> Statement:
        while leader[s] is not s:
            leader[s] = leader[leader[s]]
            s = leader[s]
        return s

    for y in statements:
        step = _next(y, depth)
        if step is None:
            continue
        for x in y.reads:
            if x in leader and _next(x, depth) == step and (x.kind == "scan" or not x.binds(step)):
                leader[find(y)] = find(x)
    members: dict[Statement, list[Statement]] = {}
    for s in statements:
        members.setdefault(find(s), []).append(s)
    waits: dict[Statement, dict[Statement, None]] = {g: {} for g in members}
    for y in statements:
        for x in y.reads:
            if x in leader and find(x) is not find(y):
                waits[find(y)][find(x)] = None
    order: list[list[Statement]] = []
    done: set[Statement] = set()
    pending = list(members)
    while pending:
        ready = [g for g in pending if all(w in done for w in waits[g])]
        if not ready:
            names = ", ".join(sorted({str(s.node) for g in pending for s in members[g]}))
            fail(
                OptError,
                f"the loop order makes statements wait for each other: {names}",
                fix="Change the ORDER, or drop it",
            )
        step = _next(ready[0], depth)
        together = [g for g in ready if _next(g, depth) == step] if step else ready[:1]
        merged = [s for g in together for s in members[g]]
        order.append(sorted(merged, key=lambda s: s.number))
        done.update(together)
        pending = [g for g in pending if g not in done]
    return order
