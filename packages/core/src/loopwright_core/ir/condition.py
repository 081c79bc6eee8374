"""Conditions over index expressions: comparisons in one form, and / or / not of them.

A comparison is written with positive coefficients on both sides and its constant on the right
(`i < n`, `2 < i`, `i + k < 5`), so equal conditions are the identical UOp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.affine import Affine, Term, affine, from_affine, number, order_key, plus
from loopwright_core.ir.bounds import bounds
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.fired import count_fired
from loopwright_core.ir.given import Given, affine_range, difference, fits
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, UOp, const

Int = UOp | int


class CompareRule(NamedTuple):
    """A law of `terms < k`; a rule answers with an equal (terms, k) as a form `< 0`, or None."""

    name: str
    law: str
    apply: Callable[[Affine, DType, Given | None], Affine | None]


def lt_gcd(d: Affine, dtype: DType, given: Given | None) -> Affine | None:
    """g*t + c < 0 --> t + c // g < 0."""
    g = d.gcd
    if g <= 1:
        return None
    return Affine(tuple([(x, v // g) for x, v in d.terms]), d.const // g)


def lt_rest(d: Affine, dtype: DType, given: Given | None) -> Affine | None:
    """g*t + r < 0 --> t + c < 0  where c*g <= r < (c+1)*g."""
    for g in dict.fromkeys(abs(v) for _, v in d.terms):
        r = tuple([(x, v) for x, v in d.terms if v % g])
        if g == 1 or not r:
            continue
        lo, hi = affine_range(Affine(r, d.const), given)
        if lo <= hi and lo // g == hi // g:
            return Affine(tuple([(x, v // g) for x, v in d.terms if v % g == 0]), lo // g)
    return None


def lt_div(d: Affine, dtype: DType, given: Given | None) -> Affine | None:
    """x // m + c < 0 --> x + c*m < 0;  c - x // m < 0 --> (c + 1)*m - 1 - x < 0."""
    if len(d.terms) != 1:
        return None
    atom, v = d.terms[0]
    if atom.op is not Op.FLOORDIV or abs(v) != 1:
        return None
    m = atom.src[1]
    if m.op is not Op.CONST or m.arg <= 0:
        return None
    x = affine(atom.src[0])
    if not fits(x, dtype):
        return None
    if v == 1:
        return plus(x, Affine((), d.const * m.arg))
    return plus(Affine((), (d.const + 1) * m.arg - 1), x, -1)


compare_rules = (
    CompareRule("lt_gcd", "g*t + c < 0 = t + c//g < 0", lt_gcd),
    CompareRule("lt_rest", "g*t + r < 0 = t + c < 0 if c*g <= r < (c+1)*g", lt_rest),
    CompareRule("lt_div", "x//m + c < 0 = x + c*m < 0; c - x//m < 0 = (c+1)*m - 1 - x < 0", lt_div),
)


def _operands(a: Int, b: Int) -> tuple[UOp, UOp]:
    if isinstance(a, UOp):
        return a, b if isinstance(b, UOp) else const(b, a.dtype)
    if isinstance(b, UOp):
        return const(a, b.dtype), b
    return number(a, dt.index), number(b, dt.index)


def compare(op: Op, a: UOp, b: UOp, given: Given | None = None) -> UOp:
    """CMPLT, CMPEQ or CMPNE of two values of one dtype."""
    if op is Op.CMPLT:
        return lt(a, b, given)
    return eq(a, b, given) if op is Op.CMPEQ else ne(a, b, given)


def _plain(op: Op, a: UOp, b: UOp) -> UOp:
    if a.dtype.lanes != 1:
        return UOp(op, dt.bool_.vec(a.dtype.lanes), (a, b))
    node = UOp(op, dt.bool_, (a, b))
    lo, hi = bounds(node)
    return node if lo != hi else TRUE if lo else FALSE


def _sides(d: Affine, dtype: DType) -> tuple[UOp, UOp] | None:
    """The two sides of `d ? 0`, all coefficients positive, the constant on the right."""
    left = Affine(tuple([(x, v) for x, v in d.terms if v > 0]), 0)
    right = Affine(tuple([(x, -v) for x, v in d.terms if v < 0]), -d.const)
    if not (fits(left, dtype) and fits(right, dtype)):
        return None
    if not left.terms:  # -x + c ? 0  is written  c ? x
        left, right = Affine((), d.const), Affine(right.terms, 0)
    return from_affine(left, dtype), from_affine(right, dtype)


def lt(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a < b."""
    x, y = _operands(a, b)
    d = difference(x, y)
    if d is None:
        return _plain(Op.CMPLT, x, y)
    return _below_zero(d, x.dtype, given) or _plain(Op.CMPLT, x, y)


def _below_zero(d: Affine, dtype: DType, given: Given | None = None) -> UOp | None:
    """The canonical node of `d < 0`; None where a fixed width has no room for it."""
    changed = True
    while changed:
        lo, hi = affine_range(d, given)
        if lo <= hi and (hi < 0 or lo >= 0):
            return TRUE if hi < 0 else FALSE
        changed = False
        for rule in compare_rules:
            found = rule.apply(d, dtype, given)
            if found is not None and fits(found, dtype):
                d, changed = found, True
                count_fired(rule.name)
                break
    sides = _sides(d, dtype)
    return None if sides is None else UOp(Op.CMPLT, dt.bool_, sides)


def le(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a <= b, integers."""
    return not_(lt(b, a, given))


def gt(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a > b."""
    return lt(b, a, given)


def ge(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a >= b, integers."""
    return not_(lt(a, b, given))


def eq(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a == b."""
    x, y = _operands(a, b)
    if x.dtype.is_bool and x.dtype.lanes == 1:
        x, y = (y, x) if x.op is Op.CONST else (x, y)
        if x is y or y is TRUE:
            return TRUE if x is y else x
        return not_(x) if y is FALSE else UOp(Op.CMPEQ, dt.bool_, (x, y))
    d = difference(x, y)
    if d is None:
        return _plain(Op.CMPEQ, x, y)
    lo, hi = affine_range(d, given)
    g = d.gcd
    if lo == hi == 0:
        return TRUE
    if (lo <= hi and (lo > 0 or hi < 0)) or (g and d.const % g):
        return FALSE
    k = g if d.terms[0][1] > 0 else -g  # the first coefficient is positive
    sides = _sides(Affine(tuple([(t, v // k) for t, v in d.terms]), d.const // k), x.dtype)
    return _plain(Op.CMPEQ, x, y) if sides is None else UOp(Op.CMPEQ, dt.bool_, sides)


def ne(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a != b."""
    return not_(eq(a, b, given))


def not_(c: UOp) -> UOp:
    """Not c; an opaque condition is written `c != True`."""
    op, src = c.op, c.src
    if c is TRUE or c is FALSE:
        return FALSE if c is TRUE else TRUE
    if op is Op.CMPLT:
        d = difference(*src)
        node = None
        if d is not None:
            flipped = plus(Affine((), -d.const - 1), Affine(d.terms, 0), -1)
            if fits(flipped, src[0].dtype):
                node = _below_zero(flipped, src[0].dtype)
        if node is not None:
            return node
    elif op is Op.CMPEQ:
        return UOp(Op.CMPNE, c.dtype, src)
    elif op is Op.CMPNE:
        return src[0] if src[1] is TRUE else UOp(Op.CMPEQ, c.dtype, src)
    elif op in (Op.AND, Op.OR) and c.dtype is dt.bool_:
        parts = list(parts_of(c, op))
        if not any(p.op in (Op.AND, Op.OR) for p in parts):
            return _join(Op.OR if op is Op.AND else Op.AND, [not_(p) for p in parts])
    return UOp(Op.CMPNE, c.dtype, (c, const(True, c.dtype)))


def parts_of(c: UOp, op: Op) -> Iterator[UOp]:
    """The operands of nested `op`, left to right: conjuncts for AND, alternatives for OR."""
    stack = [c]
    while stack:
        top = stack.pop()
        if top.op is op:
            stack.extend(reversed(top.src))
        else:
            yield top


def and_(*conditions: UOp) -> UOp:
    """All of them; the tightest of several bounds on one form is kept."""
    return _join(Op.AND, list(conditions))


def or_(*conditions: UOp) -> UOp:
    """Any of them; the loosest of several bounds on one form is kept."""
    return _join(Op.OR, list(conditions))


def _join(op: Op, conditions: list[UOp]) -> UOp:
    is_and = op is Op.AND
    absorbing, neutral = (FALSE, TRUE) if is_and else (TRUE, FALSE)
    pick = min if is_and else max
    bound: dict[tuple[Term, ...], tuple[int, UOp]] = {}  # terms < k, the k that decides
    others: dict[UOp, None] = {}
    for condition in conditions:
        for c in parts_of(condition, op):
            if c is absorbing:
                return absorbing
            if c is neutral:
                continue
            d = difference(*c.src) if c.op is Op.CMPLT else None
            if d is None or not d.terms:
                if not_(c) in others:
                    return absorbing
                others[c] = None
                continue
            known = bound.get(d.terms)
            if known is None or pick(known[0], -d.const) != known[0]:
                bound[d.terms] = -d.const, c
    found = list(others)
    for terms, (k, c) in bound.items():
        opposite = bound.get(tuple([(x, -v) for x, v in terms]))
        if opposite is not None:
            least = 1 - opposite[0]  # terms > -opposite
            if k - 1 < least if is_and else k >= least:  # no integer is in both / all are in one
                return absorbing
        found.append(c)
    return _chain(op, found) if found else neutral


def _chain(op: Op, parts: list[UOp]) -> UOp:
    parts = sorted(dict.fromkeys(parts), key=order_key)
    result = parts[0]
    for p in parts[1:]:
        result = UOp(op, p.dtype, (result, p))
    return result
