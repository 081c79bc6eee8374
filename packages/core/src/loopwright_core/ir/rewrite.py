"""Rewriting a graph by a table of rules, iteratively; endless rewriting is an error."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, NoReturn

from loopwright_core.errors import RewriteError, fail
from loopwright_core.ir.fired import count_fired
from loopwright_core.ir.pattern import Rule, Rules
from loopwright_core.ir.uop import UOp, toposort

# A node that rules change more often than this in a row never comes to rest.
MAX_STEPS = 1000


class Stats:
    """How often each rule fired, and how many nodes were visited."""

    __slots__ = ("fired", "visited")

    def __init__(self) -> None:
        self.fired: Counter[str] = Counter()
        self.visited = 0

    def __str__(self) -> str:
        rows = sorted(self.fired.items(), key=lambda row: (-row[1], row[0]))
        return "\n".join([f"{count:8} {name}" for name, count in rows])


class _Step(NamedTuple):
    """How a node came about: by which rule, from which node, after how many rewrites in a row."""

    rule: Rule
    before: UOp
    n: int


def rewrite(root: UOp, rules: Rules, ctx: Any = None, stats: Stats | None = None) -> UOp:
    """`root` with the rules applied bottom-up until none changes any node.

    Raises: RewriteError where rules undo each other or never come to rest.
    """
    return rewrite_all((root,), rules, ctx, stats)[0]


def rewrite_all(
    roots: tuple[UOp, ...], rules: Rules, ctx: Any = None, stats: Stats | None = None
) -> tuple[UOp, ...]:
    """`rewrite` of several roots in one walk."""
    done: dict[UOp, UOp] = {}
    steps: dict[UOp, _Step] = {}  # of nodes that a rule made
    open_: dict[UOp, UOp] = {}  # nodes that wait for what a rule made of them, and that
    stack: list[tuple[UOp, UOp | None]] = [(r, None) for r in reversed(roots)]
    visited = 0
    while stack:
        node, waits_for = stack[-1]
        if waits_for is not None:  # what a rule made of it is finished
            stack.pop()
            del open_[node]
            done[node] = done[waits_for]
            continue
        if node in done:
            stack.pop()
            continue
        src = node.src
        missing = [s for s in src if s not in done]
        if missing:
            step = steps.get(node)
            for s in reversed(missing):
                if s in open_:
                    _endless(s, node, steps)
                if step is not None:
                    steps.setdefault(s, step)
                stack.append((s, None))
            continue
        stack.pop()
        visited += 1
        new = node
        for s in src:
            if done[s] is not s:
                new = node.replace(tuple([done[x] for x in src]))
                break
        if new is not node:
            if new in open_:
                _endless(new, new, steps)
            if new not in done:
                open_[node] = new
                if node in steps:
                    steps.setdefault(new, steps[node])
                stack.append((node, new))
                stack.append((new, None))
            else:
                done[node] = done[new]
            continue
        found = rules.apply(node, ctx)
        if found is None:
            done[node] = node
            continue
        rule, made = found
        count_fired(rule.name)
        if stats is not None:
            stats.fired[rule.name] += 1
        last = steps.get(node)
        n = 1 if last is None else last.n + 1
        if made in open_ or n > MAX_STEPS:
            steps[made] = _Step(rule, node, n)
            _endless(made, node, steps)
        if made in done:
            done[node] = done[made]
            continue
        steps[made] = _Step(rule, node, n)
        open_[node] = made
        stack.append((node, made))
        stack.append((made, None))
    if stats is not None:
        stats.visited += visited
    return tuple([done[r] for r in roots])


def _endless(node: UOp, seen: UOp, steps: dict[UOp, _Step]) -> NoReturn:
    """Reports the two rules that led back to a node, or the rule that grows without end."""
    last = steps.get(node) or steps.get(seen)
    first = steps.get(last.before) if last is not None else None
    names = [step.rule.name for step in (first, last) if step is not None]
    names = list(dict.fromkeys(names)) or ["unknown"]
    who = " and ".join(names)
    verb = "undo each other" if len(names) > 1 else "never comes to rest"
    fail(
        RewriteError,
        f"endless rewriting: {who} {verb} at {node!r}",
        fix="Make one of the rules inapplicable to what the other returns",
    )


def rewrite_once(root: UOp, rules: Rules, ctx: Any = None, stats: Stats | None = None) -> UOp:
    """One bottom-up walk: each node, over its new sources, is rewritten at most once."""
    done: dict[UOp, UOp] = {}
    order = toposort((root,))
    for node in order:
        new = node.replace(tuple([done[s] for s in node.src]))
        found = rules.apply(new, ctx)
        if found is not None:
            rule, new = found
            count_fired(rule.name)
            if stats is not None:
                stats.fired[rule.name] += 1
        done[node] = new
    if stats is not None:
        stats.visited += len(order)
    return done[root]
