"""Facts about the rewrite driver: fixed point, order, speed, and endless rewriting."""

from __future__ import annotations

import pytest

from loopwright_core.errors import RewriteError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.fired import fired_rules
from loopwright_core.ir.fold import fold
from loopwright_core.ir.ops import Op
from loopwright_core.ir.pattern import Pat, Rule, Rules, constant, var
from loopwright_core.ir.rewrite import Stats, rewrite, rewrite_all, rewrite_once
from loopwright_core.ir.uop import UOp, const

X = UOp(Op.SPECIAL, dt.int32, (), ("x", 1))
x, y, c = var("x"), var("y"), constant("c")


def node(op: Op, *src: UOp) -> UOp:
    return UOp(op, dt.int32, src)


def num(value: int) -> UOp:
    return const(value, dt.int32)


ONE_STEP = Rules(
    Rule("neg", -x, lambda x: node(Op.SUB, num(0), x)),
    Rule(
        "sub", num_zero := Pat(Op.SUB, Pat(Op.CONST, value=0), x), lambda x: node(Op.XOR, x, num(7))
    ),
)


def test_results_are_rewritten_again() -> None:
    """rewrite goes on to the fixed point; rewrite_once applies one rule to each node."""
    start = node(Op.NEG, X)
    assert rewrite(start, ONE_STEP) is node(Op.XOR, X, num(7))
    assert rewrite_once(start, ONE_STEP) is node(Op.SUB, num(0), X)


def test_new_sources_are_rewritten() -> None:
    """Nodes inside what a rule returns are rewritten as well, and users of changed nodes too."""
    rules = Rules(
        Rule("double", Pat(Op.SQRT, x), lambda x: node(Op.NEG, node(Op.NEG, x))),
        Rule("neg_neg", Pat(Op.NEG, -x), lambda x: x),
    )
    start = node(Op.ADD, node(Op.SQRT, node(Op.SQRT, X)), num(1))
    assert rewrite(start, rules) is node(Op.ADD, X, num(1))


def test_shared_nodes_are_visited_once() -> None:
    """x = x + x sixty times is sixty nodes of work."""
    u = node(Op.NEG, node(Op.NEG, X))
    for _ in range(60):
        u = node(Op.ADD, u, u)
    stats = Stats()
    rewrite(u, Rules(Rule("neg_neg", Pat(Op.NEG, -x), lambda x: x)), stats=stats)
    assert stats.visited < 200 and stats.fired["neg_neg"] == 1


def test_rules_that_undo_each_other() -> None:
    """Two rules that undo each other raise RewriteError with both names."""
    rules = Rules(
        Rule("to_sub", x + y, lambda x, y: node(Op.SUB, x, node(Op.NEG, y))),
        Rule("to_add", Pat(Op.SUB, x, -y), lambda x, y: node(Op.ADD, x, y)),
    )
    with pytest.raises(RewriteError, match="to_sub and to_add undo each other"):
        rewrite(node(Op.ADD, X, num(2)), rules)


def test_a_rule_that_grows_for_ever() -> None:
    """A rule whose result contains its own input is named."""
    rules = Rules(Rule("grow", Pat(Op.SQRT, x, name="u"), lambda u, x: node(Op.NEG, u)))
    with pytest.raises(RewriteError, match="grow never comes to rest"):
        rewrite(node(Op.SQRT, X), rules)


def test_a_rule_that_counts_for_ever() -> None:
    """A rule that makes a new node each time is stopped and named."""
    rules = Rules(
        Rule("count", x + c, lambda x, c: node(Op.ADD, x, num(c.arg + 1))),
    )
    with pytest.raises(RewriteError, match="count never comes to rest"):
        rewrite(node(Op.ADD, X, num(1)), rules)
    deep = Rules(Rule("deep", x + c, lambda x, c: node(Op.NEG, node(Op.ADD, x, num(c.arg + 1)))))
    with pytest.raises(RewriteError, match="deep never comes to rest"):
        rewrite(node(Op.ADD, X, num(1)), deep)


def test_swapping_for_ever() -> None:
    """A rule that is its own inverse is named."""
    rules = Rules(Rule("swap", Pat(Op.SUB, x, y), lambda x, y: node(Op.SUB, y, x)))
    with pytest.raises(RewriteError, match="swap"):
        rewrite(node(Op.SUB, X, num(1)), rules)


def test_long_chain() -> None:
    """A chain of 100,000 nodes is rewritten without recursion, in two visits a node."""
    u = X
    for i in range(50_000):
        u = (
            node(Op.XOR, node(Op.NEG, node(Op.NEG, u)), num(i % 97 + 1))
            if i % 2
            else node(Op.MUL, u, X)
        )
    rules = Rules(Rule("neg_neg", Pat(Op.NEG, -x), lambda x: x))
    stats = Stats()
    n = len(u.toposort())
    made = rewrite(u, rules, stats=stats)
    assert stats.visited <= 2 * n
    assert all(n.op is not Op.NEG for n in made.toposort())


def test_folding_a_long_chain() -> None:
    """(x + 1) + 1 + ... of 20,000 integer additions folds to one."""
    u = X
    for _ in range(20_000):
        u = node(Op.ADD, u, num(1))
    assert fold(u) is node(Op.ADD, X, num(20_000))


def test_several_roots_and_context() -> None:
    """rewrite_all keeps the order of roots and shares their work; ctx reaches the rules."""
    rules = Rules(Rule("ctx_rule", -x, lambda x, ctx: ctx[0]))
    before = fired_rules().get("ctx_rule", 0)
    roots = (node(Op.NEG, X), node(Op.ADD, node(Op.NEG, X), num(1)), X)
    made = rewrite_all(roots, rules, (num(5),))
    assert made == (num(5), node(Op.ADD, num(5), num(1)), X)
    assert fired_rules()["ctx_rule"] == before + 1
