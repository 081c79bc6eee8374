"""Facts about index arithmetic: constructors, passes over expressions, hardware integers."""

from __future__ import annotations

import itertools
import operator
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright_core.errors import DTypeError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer as ix
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, Buffer, UOp, Variable, const, extent_uop
from loopwright_core.kernel.dims import Dim
from loopwright_core.program.program import Loop

N = Variable("n", 1, 6)
n = extent_uop(N)
SIZES = {"i": 4, "j": 8, "k": 3}
i, j, k = (Dim(name, size).uop for name, size in SIZES.items())
v = Dim("v", N).uop  # runs below n


def value(root: UOp, env: dict[UOp, np.ndarray]) -> np.ndarray:
    """The values of an expression on every point, by the semantics of docs/ir.md."""
    done: dict[UOp, np.ndarray] = {}
    for u in root.toposort():
        if u in env:
            done[u] = env[u]
        elif u.op is Op.CONST:
            done[u] = np.int64(u.arg)
        else:
            done[u] = SEMANTICS[u.op](*[done[x] for x in u.src])
    return np.broadcast_to(np.asarray(done[root], dtype=np.int64), COUNT)


def floor_div(a, b):
    return np.where(b == 0, 0, a // np.where(b == 0, 1, b))


def c_div(a, b):
    return np.sign(a) * np.sign(b) * (abs(a) // abs(b))


SEMANTICS = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: operator.neg,
    Op.FLOORDIV: floor_div,
    Op.MOD: lambda a, b: np.where(b == 0, 0, a - b * floor_div(a, b)),
    Op.CDIV: c_div,
    Op.CMOD: lambda a, b: a - b * c_div(a, b),
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.WHERE: np.where,
    Op.CMPLT: operator.lt,
    Op.CMPEQ: operator.eq,
    Op.CMPNE: operator.ne,
    Op.AND: np.logical_and,
    Op.OR: np.logical_or,
    Op.CAST: lambda a: a,
}


def _points() -> dict[UOp, np.ndarray]:
    """Every point of the space of i, j, k, n and v < n."""
    spaces = [range(s) for s in SIZES.values()]
    rows = [(*p, m, x) for p in itertools.product(*spaces) for m in range(1, 7) for x in range(m)]
    return dict(zip((i, j, k, n, v), np.array(rows, dtype=np.int64).T))


COUNT = 4 * 8 * 3 * 21
POINTS = _points()


def raw(op: Op, *src: UOp) -> UOp:
    dtype = dt.bool_ if op in (Op.CMPLT, Op.CMPEQ, Op.CMPNE) else src[-1].dtype
    return UOp(op, dtype, src)


CONSTS = st.sampled_from([-13, -8, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12, 24])
LEAVES = st.one_of(st.sampled_from([i, j, k, v, n]), CONSTS.map(lambda c: const(c, dt.index)))
OPS = st.sampled_from(
    [Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.MAX, Op.MIN, Op.FLOORDIV, Op.MOD]
)


def _extend(inner: st.SearchStrategy[UOp]) -> st.SearchStrategy[UOp]:
    binary = st.builds(raw, OPS, inner, inner)
    by_const = st.builds(
        lambda op, x, c: raw(op, x, const(c, dt.index)),
        st.sampled_from([Op.MUL, Op.FLOORDIV, Op.MOD, Op.ADD]),
        inner,
        CONSTS,
    )
    where = st.builds(
        lambda op, a, b, x, y: raw(Op.WHERE, raw(op, a, b), x, y),
        st.sampled_from([Op.CMPLT, Op.CMPEQ, Op.CMPNE]),
        inner,
        inner,
        inner,
        inner,
    )
    return st.one_of(by_const, binary, by_const, where, inner.map(lambda x: raw(Op.NEG, x)))


EXPRESSIONS = st.recursive(LEAVES, _extend, max_leaves=10)
COMPARISONS = st.builds(
    raw, st.sampled_from([Op.CMPLT, Op.CMPEQ, Op.CMPNE]), EXPRESSIONS, EXPRESSIONS
)
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda c: st.builds(raw, st.sampled_from([Op.AND, Op.OR]), c, c),
    max_leaves=4,
)


@settings(max_examples=500, deadline=None)
@given(EXPRESSIONS)
def test_simplify_keeps_every_value(e: UOp) -> None:
    """A simplified index expression has the same value on every point, within its bounds."""
    s = ix.simplify(e)
    expected = value(e, POINTS)
    assert (expected == value(s, POINTS)).all()
    for lo, hi in (ix.bounds(s), ix.bounds(e), ix.given_bounds(s)):
        assert lo <= expected.min() and expected.max() <= hi


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS)
def test_simplify_is_idempotent(e: UOp) -> None:
    """The canonical form of a canonical form is itself."""
    once = ix.simplify(e)
    assert ix.simplify(once) is once


@settings(max_examples=400, deadline=None)
@given(CONDITIONS)
def test_conditions_keep_their_value(c: UOp) -> None:
    """A simplified condition and its negation have the right truth value on every point."""
    s, inverse = ix.simplify(c), ix.not_(ix.simplify(c))
    expected = value(c, POINTS)
    assert (expected == value(s, POINTS)).all()
    assert (expected != value(inverse, POINTS)).all()


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS, CONDITIONS)
def test_simplify_under_conditions(e: UOp, c: UOp) -> None:
    """Under a given condition the simplified expression is equal wherever the condition holds."""
    known = ix.simplify(c)
    s = ix.simplify(e, [known])
    lo, hi = ix.given_bounds(ix.simplify(e), [known])
    holds = value(c, POINTS) != 0
    expected = value(e, POINTS)[holds]
    assert (expected == value(s, POINTS)[holds]).all()
    assert ((lo <= expected) & (expected <= hi)).all()


@settings(max_examples=400, deadline=None)
@given(EXPRESSIONS)
def test_to_int_keeps_every_value(e: UOp) -> None:
    """Hardware integers give the same values; no FLOORDIV, MOD or index node is left."""
    s = ix.simplify(e)
    hard = ix.to_int(s, ix.width(s))
    nodes = hard.toposort()
    assert not {u.op for u in nodes} & {Op.FLOORDIV, Op.MOD}
    assert all(u.dtype is not dt.index for u in nodes)
    swapped = {ix.to_int(x, hard.dtype): values for x, values in POINTS.items()}
    assert (value(s, POINTS) == value(hard, swapped)).all()


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, EXPRESSIONS)
def test_substitute_keeps_every_value(e: UOp, f: UOp) -> None:
    """Substituting a dim equals evaluating with that dim's new value."""
    s = ix.simplify(e)
    new = {**POINTS, k: value(f, POINTS)}
    if abs(new[k]).max() < 2**20:
        assert (value(ix.substitute(s, {k: f}), POINTS) == value(s, new)).all()
