"""Facts about patterns and rules: what matches, what is captured, in which order."""

from __future__ import annotations

import math

import pytest

from loopwright_core.errors import ArgumentError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.pattern import Pat, Rule, Rules, constant, number, select, var
from loopwright_core.ir.uop import UOp, const


def leaf(name: str, dtype: dt.DType = dt.float32) -> UOp:
    return UOp(Op.SPECIAL, dtype, (), (name, 1))


X, Y = leaf("x"), leaf("y")
ONE = const(1.0, dt.float32)


def node(op: Op, *src: UOp, dtype: dt.DType | None = None) -> UOp:
    return UOp(op, dtype or src[0].dtype, src)


def test_captures() -> None:
    """A named place captures its node; one name twice must be the identical node."""
    x, y = var("x"), var("y")
    assert Rule("r", x - y, lambda x, y: None).match(node(Op.SUB, X, Y)) == {"x": X, "y": Y}
    same = Rule("r", x - x, lambda x: None)
    assert same.match(node(Op.SUB, X, Y)) is None
    assert same.match(node(Op.SUB, X, X)) == {"x": X}


def test_commutative_sources_in_either_order() -> None:
    """x * 1 matches 1 * x, also deep inside; x - 1 and in_order() do not."""
    rule = Rule("mul_one", var("x") * 1, lambda x: x)
    assert rule.apply(node(Op.MUL, ONE, X)) is X and rule.apply(node(Op.MUL, X, ONE)) is X
    assert Rule("r", var("x") - 1, lambda x: x).match(node(Op.SUB, ONE, X)) is None
    ordered = Rule("r", (var("x") * 1).in_order(), lambda x: x)
    assert ordered.match(node(Op.MUL, ONE, X)) is None
    deep = Rule("r", (var("x") * 1) + (var("y") * 1), lambda x, y: x)
    assert deep.match(node(Op.ADD, node(Op.MUL, ONE, X), node(Op.MUL, Y, ONE)))
    assert deep.match(node(Op.ADD, X, node(Op.MUL, Y, ONE))) is None


def test_constants_tell_zeros_apart() -> None:
    """0 matches 0 and 0.0 of any dtype but not -0.0; NaN matches NaN."""
    zero = Rule("r", var("x") + 0, lambda x: x)
    assert zero.match(node(Op.ADD, X, const(0.0, dt.float32)))
    assert zero.match(node(Op.ADD, X, const(-0.0, dt.float32))) is None
    minus = Rule("r", var("x") + -0.0, lambda x: x)
    assert minus.match(node(Op.ADD, X, const(-0.0, dt.float32)))
    nan = Rule("r", var("x") + math.nan, lambda x: x)
    assert nan.match(node(Op.ADD, X, const(math.nan, dt.float32)))
    assert nan.match(node(Op.ADD, X, ONE)) is None


def test_predicates() -> None:
    """dtype and node predicates narrow a place; several ops may share a pattern."""
    ints = Rule("r", var("x", lambda d: d.is_int) + var("y"), lambda x, y: x)
    assert ints.match(node(Op.ADD, X, Y)) is None
    assert ints.match(node(Op.ADD, leaf("a", dt.int8), leaf("b", dt.int8)))
    positive = Rule("r", var("x") * constant("c").when(lambda u: u.arg > 0), lambda x, c: x)
    assert positive.match(node(Op.MUL, X, const(-1.0, dt.float32))) is None
    assert positive.match(node(Op.MUL, X, ONE)) == {"x": X, "c": ONE}
    both = Rule("r", Pat((Op.TRUNC, Op.RINT), var("x"), name="root"), lambda root, x: x)
    assert both.match(node(Op.RINT, X)) and both.match(node(Op.TRUNC, X))
    assert both.match(node(Op.NEG, X)) is None
    typed = Rule("r", number(1).typed(lambda d: d.is_bool), lambda: None)
    assert typed.match(ONE) is None and typed.match(const(True, dt.bool_)) == {}


@pytest.mark.parametrize(
    ("pattern", "op"),
    [
        (var("x") + var("y"), Op.ADD),
        (var("x") - var("y"), Op.SUB),
        (var("x") / var("y"), Op.DIV),
        (var("x") // var("y"), Op.FLOORDIV),
        (var("x") % var("y"), Op.MOD),
        (var("x") & var("y"), Op.AND),
        (var("x") | var("y"), Op.OR),
        (var("x") ^ var("y"), Op.XOR),
        (var("x") << var("y"), Op.SHL),
        (var("x") >> var("y"), Op.SHR),
        (var("x") < var("y"), Op.CMPLT),
        (var("x").eq(var("y")), Op.CMPEQ),
        (var("x").ne(var("y")), Op.CMPNE),
        (var("x").max(var("y")), Op.MAX),
        (var("x").min(var("y")), Op.MIN),
        (-var("x"), Op.NEG),
        (var("x").cast(), Op.CAST),
        (select(var("p"), var("x"), var("y")), Op.WHERE),
    ],
)
def test_operators_read_as_ops(pattern: Pat, op: Op) -> None:
    """Python's operators on patterns make patterns of the IR's ops."""
    assert pattern.ops == (op,)


def test_table_order_and_context() -> None:
    """The first rule that answers wins, None passes on, and ctx reaches those that ask for it."""
    x = var("x")
    table = Rules(
        Rule("never", -x, lambda x: None),
        Rule("ctx", -x, lambda x, ctx: ctx),
        Rule("late", -x, lambda x: x),
        Rule("any", Pat(name="u"), lambda u: Y if u is X else None),
    )
    found = table.apply(node(Op.NEG, X), Y)
    assert found is not None and found[0].name == "ctx" and found[1] is Y
    assert [r.name for r in table.of(Op.NEG)] == ["never", "ctx", "late", "any"]
    assert [r.name for r in table.of(Op.ADD)] == ["any"]
    assert table.apply(X)[1] is Y and table.apply(Y) is None  # type: ignore[index]
    assert len(table + Rules(Rule("more", x + 1, lambda x: x))) == 5


def test_names_are_unique() -> None:
    """Two different rules of one name in a table are refused."""
    with pytest.raises(ArgumentError, match="two rules are named a"):
        Rules(Rule("a", var("x") + 1, lambda x: x), Rule("a", var("x") * 1, lambda x: x))
