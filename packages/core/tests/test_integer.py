"""Facts about index arithmetic: constructors, passes over expressions, hardware integers."""

from __future__ import annotations

import itertools
import operator

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


@settings(max_examples=250, deadline=None)
@given(EXPRESSIONS)
def test_simplify_keeps_every_value(e: UOp) -> None:
    """A simplified index expression has the same value on every point, within its bounds."""
    s = ix.simplify(e)
    expected = value(e, POINTS)
    assert (expected == value(s, POINTS)).all()
    for lo, hi in (ix.bounds(s), ix.bounds(e), ix.given_bounds(s)):
        assert lo <= expected.min() and expected.max() <= hi


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS)
def test_simplify_is_idempotent(e: UOp) -> None:
    """The canonical form of a canonical form is itself."""
    once = ix.simplify(e)
    assert ix.simplify(once) is once


@settings(max_examples=200, deadline=None)
@given(CONDITIONS)
def test_conditions_keep_their_value(c: UOp) -> None:
    """A simplified condition and its negation have the right truth value on every point."""
    s, inverse = ix.simplify(c), ix.not_(ix.simplify(c))
    expected = value(c, POINTS)
    assert (expected == value(s, POINTS)).all()
    assert (expected != value(inverse, POINTS)).all()


@settings(max_examples=200, deadline=None)
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


@settings(max_examples=200, deadline=None)
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


def test_equal_functions_are_identical() -> None:
    """Affine functions that are equal are one node, however they were written."""
    a = ix.add(ix.mul(ix.add(i, 2), 3), ix.sub(j, k))
    b = ix.sub(ix.add(ix.add(i, ix.add(i, i)), ix.add(6, j)), k)
    assert a is b
    assert ix.mul(ix.add(i, 1), n) is ix.add(ix.mul(n, i), n)
    assert ix.total_of([i, j, i, 3]) is ix.add(ix.mul(i, 2), ix.add(j, 3))
    assert ix.sub(a, a) is const(0, dt.index)


def test_comparisons_have_one_form() -> None:
    """Every way to write a bound is one node; decided ones are constants."""
    assert ix.lt(i, 3) is ix.le(i, 2) is ix.not_(ix.ge(i, 3)) is ix.gt(3, i)
    assert ix.lt(ix.add(ix.mul(i, 8), j), 16) is ix.lt(i, 2)
    assert ix.lt(i, 4) is TRUE and ix.lt(i, 0) is FALSE and ix.le(0, i) is TRUE
    assert ix.eq(ix.mul(i, 2), 5) is FALSE and ix.eq(i, i) is TRUE
    assert ix.eq(i, j) is ix.eq(j, i)
    assert ix.ne(i, 9) is TRUE
    assert ix.lt(ix.floordiv(j, 2), 3) is ix.lt(j, 6)


def test_conjunctions() -> None:
    """The tightest bounds are kept; contradictions and tautologies are found."""
    assert ix.and_(ix.lt(j, 5), ix.lt(j, 7)) is ix.lt(j, 5)
    assert ix.or_(ix.lt(j, 5), ix.lt(j, 7)) is ix.lt(j, 7)
    assert ix.and_(ix.lt(j, 3), ix.ge(j, 3)) is FALSE
    assert ix.or_(ix.lt(j, 3), ix.ge(j, 3)) is TRUE
    assert ix.and_() is TRUE and ix.or_() is FALSE
    c = UOp(Op.SPECIAL, dt.bool_, (), ("c", 1))
    assert ix.and_(c, ix.not_(c)) is FALSE and ix.not_(ix.not_(c)) is c
    assert ix.and_(ix.lt(i, 2), ix.lt(j, 5)) is ix.and_(ix.lt(j, 5), ix.lt(i, 2))


def test_symbolic_extents_prove_bounds() -> None:
    """An index below a variable extent is known to be: v < n, i*n + v < 4*n."""
    assert ix.lt(v, n) is TRUE
    assert ix.lt(ix.add(ix.mul(i, n), v), ix.mul(n, 4)) is TRUE
    assert ix.lt(v, 3).op is Op.CMPLT
    extent = ix.minimum(8, ix.sub(n, ix.mul(8, i)))
    lane = UOp(Op.RANGE, dt.index, (extent,), Loop(0, "t"))
    assert ix.lt(ix.add(ix.mul(i, 8), lane), n) is TRUE
    blocks = UOp(Op.RANGE, dt.index, (ix.floordiv(n, 4),), Loop(1, "b"))
    assert ix.lt(ix.add(ix.mul(blocks, 4), 3), n) is TRUE


def test_given_conditions() -> None:
    """A guard tightens bounds and removes conditions and selects below it."""
    guard = ix.lt(ix.add(ix.mul(i, 3), k), 5)
    assert ix.given_bounds(ix.add(ix.mul(i, 3), k), [guard]) == (0, 4)
    assert ix.given_bounds(i, [ix.lt(i, 2), ix.ge(i, 1)]) == (1, 1)
    assert ix.simplify(ix.where(guard, i, j), [guard]) is i
    assert ix.simplify(ix.minimum(ix.add(ix.mul(i, 3), k), 4), [guard]).op is not Op.MIN
    assert ix.prove(ix.lt(i, 2), [guard]) and not ix.prove(ix.lt(i, 1), [guard])
    assert ix.simplify(ix.floordiv(j, 4), [ix.lt(j, 4)]) is const(0, dt.index)
    lo, hi = ix.given_bounds(i, [ix.lt(i, 2), ix.ge(i, 3)])
    assert lo > hi


def test_width() -> None:
    """int32 where every value on the way fits, else int64."""
    big = Dim("b", 2**31).uop
    assert ix.width(ix.add(ix.mul(i, 24), j)) is dt.int32
    assert ix.width(big) is dt.int32
    assert ix.width(ix.add(big, 1)) is dt.int64
    assert ix.width(ix.lt(ix.mul(big, 2), 5)) is dt.int32  # 2*b < 5 is b < 3
    assert ix.width(ix.floordiv(ix.mul(big, 3), 4)) is dt.int64


def test_bounds_of_leaves() -> None:
    """Every leaf has the interval of its arg or dtype."""
    view = UOp(Op.BUFFER, dt.int16, (), Buffer(0, (4,)))
    load = UOp(
        Op.LOAD,
        dt.int16,
        (UOp(Op.INDEX, dt.int16, (view, i, TRUE), (4,)), const(0, dt.int16)),
    )
    assert ix.bounds(UOp(Op.CAST, dt.index, (load,))) == (-(2**15), 2**15 - 1)
    assert ix.bounds(n) == (1, 6) and ix.bounds(v) == (0, 5)
    assert ix.bounds(Dim("e", 0).uop) == (0, 0)
    assert ix.bounds(UOp(Op.SPECIAL, dt.int32, (), ("thread", 8))) == (0, 7)
    assert ix.bounds(UOp(Op.CAST, dt.index, (ix.lt(i, 2),))) == (0, 1)
    value = UOp(Op.SPECIAL, dt.float32, (), ("x", 1))
    assert ix.bounds(UOp(Op.CAST, dt.index, (value,))) == (-(2**63), 2**63 - 1)
    wrapping = UOp(Op.ADD, dt.int8, (const(100, dt.int8), UOp(Op.SPECIAL, dt.int8, (), ("x", 90))))
    assert ix.bounds(wrapping) == (-128, 127)


def test_gathered_index() -> None:
    """A loaded index is an atom; what stands below it is substituted too."""
    view = UOp(Op.BUFFER, dt.int32, (), Buffer(0, (4,)))
    index = UOp(Op.INDEX, dt.int32, (view, i, TRUE), (4,))
    atom = UOp(Op.CAST, dt.index, (UOp(Op.LOAD, dt.int32, (index, const(0, dt.int32))),))
    offset = ix.add(ix.mul(atom, 3), k)
    assert ix.affine(offset).coef(atom) == 3
    moved = ix.substitute(offset, {i: ix.add(j, 1)})
    (loaded,) = [u for u in moved.toposort() if u.op is Op.INDEX]
    assert loaded.src[1] is ix.add(j, 1)
    hard = ix.to_int(offset, dt.int32)
    assert all(u.op is not Op.CAST for u in hard.toposort())
    assert dt.index not in {u.dtype for u in hard.toposort()}


def test_mixed_dtypes_are_refused() -> None:
    """Index arithmetic on two integer dtypes is a DTypeError that names both."""
    with pytest.raises(DTypeError, match="index and int32"):
        ix.add(i, const(1, dt.int32))


def test_from_affine_is_the_inverse() -> None:
    """affine and from_affine are inverse on canonical nodes."""
    u = ix.add(ix.mul(i, 24), ix.add(ix.mul(j, -3), 7))
    assert ix.from_affine(ix.affine(u), dt.index) is u
    assert ix.affine(u).const == 7 and ix.affine(u).gcd == 3


CHAIN = 100_000


def chain(kind: str) -> UOp:
    a = i
    for x in range(CHAIN // 2):
        if kind == "add":
            other = const(x, dt.index) if x % 2 else (j if x % 3 else k)
            a = UOp(Op.ADD, dt.index, (a, UOp(Op.MUL, dt.index, (other, const(2, dt.index)))))
        elif kind == "max":
            a = UOp(Op.MAX, dt.index, (UOp(Op.ADD, dt.index, (a, j)), k))
        else:
            a = UOp(Op.ADD, dt.index, (a, Dim(f"d{x}", 3).uop))
    return a


ODD = sum(range(1, CHAIN // 2, 2))
# Bounds of each chain, and its number of terms.
LONG = {
    "add": (2 * ODD, 2 * ODD + 3 + sum(14 if x % 3 else 4 for x in range(0, CHAIN // 2, 2)), 3),
    "max": (0, 3 + 7 * (CHAIN // 2), 1),
    "dims": (0, 3 + 2 * (CHAIN // 2), 1 + CHAIN // 2),
}


@pytest.mark.parametrize("kind", LONG)
def test_long_chains(kind: str) -> None:
    """Expressions of 100,000 nodes need no recursion and keep exact bounds and terms."""
    u = chain(kind)
    *bounds, n_terms = LONG[kind]
    assert ix.bounds(u) == tuple(bounds)
    assert len(ix.affine(u).terms) == n_terms
    assert ix.width(u) is dt.int32
    if kind == "add":
        ix.to_int(u, dt.int64)
        assert len(ix.affine(ix.simplify(u)).terms) == 3


def test_doubling_sixty_times() -> None:
    """x = x + x sixty times is x * 2**60, at once."""
    u = i
    for _ in range(60):
        u = UOp(Op.ADD, dt.index, (u, u))
    assert ix.simplify(u) is ix.mul(i, 2**60)
    assert ix.bounds(u) == (0, 3 * 2**60)
    assert ix.width(u) is dt.int64
    assert ix.substitute(u, {i: j}) is ix.mul(j, 2**60)
