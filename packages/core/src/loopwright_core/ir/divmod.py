"""Quotients and remainders of affine forms by a positive constant, rounding down.

One law a row: a rule gets the dividend `a` and the divisor `m > 1`, and answers with an equal
form or None. Coefficients are reduced before bounds are asked: `(8*i + k) // 8` is `i` for any
`k` in 0..7, whatever the range of `i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd
from typing import NamedTuple

from loopwright_core.ir.affine import (
    Affine,
    Coefficients,
    affine,
    factors,
    from_affine,
    make,
    monomial,
    number,
    plus,
    total,
)
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.fired import count_fired
from loopwright_core.ir.given import Given, affine_range, fits, plain_range
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

Result = Affine | None


class Division(NamedTuple):
    """What a rule may ask: dividend, divisor, dtype of the nodes, known conditions."""

    a: Affine
    m: int
    dtype: DType
    given: Given | None


class DivRule(NamedTuple):
    """A law of `//` or `%`; `law` is what the tests prove."""

    name: str
    law: str
    apply: Callable[[Division], Result]


def atom_div(a: Affine, m: int, dtype: DType) -> UOp:
    """The node `a // m`, nothing simplified."""
    return UOp(Op.FLOORDIV, dtype, (from_affine(a, dtype), number(m, dtype)))


def atom_mod(a: Affine, m: int, dtype: DType) -> UOp:
    """The node `a % m`, nothing simplified."""
    return UOp(Op.MOD, dtype, (from_affine(a, dtype), number(m, dtype)))


def _of(atom: UOp) -> Affine:
    return Affine(((atom, 1),), 0)


def _splits(a: Affine, m: int) -> Iterator[tuple[Affine, Affine]]:
    """(q, r) with a = m*q + r and 0 <= r.const < m: remainders of each coefficient rounded to
    zero, down, and to nearest."""
    c, k = divmod(a.const, m)
    if all(0 <= 2 * v <= m for _, v in a.terms):
        yield Affine((), c), Affine(a.terms, k)
        return
    down = {atom: v % m for atom, v in a.terms}
    to_zero = {atom: r - m if r and v < 0 else r for (atom, v), r in zip(a.terms, down.values())}
    nearest = {atom: r - m if 2 * r > m else r for atom, r in down.items()}
    tried: list[Coefficients] = []
    for rest in (to_zero, down, nearest):
        if rest not in tried:
            tried.append(rest)
            quotient = {atom: (v - rest[atom]) // m for atom, v in a.terms}
            yield make(quotient, c), make(rest, k)


def _anchor(r: Affine, m: int) -> int:
    """The multiple of m to take from r so that its least value lies in 0..m-1.

    A dividend that is never negative is one plain division on every machine. Values that are
    only bounded by their dtype are left alone, or the constant would overflow it.
    """
    lo, hi = plain_range(r)
    return lo // m if lo > -(2**31) and hi < 2**31 else 0


def _constant_quotient(r: Affine, m: int, given: Given | None) -> int | None:
    """r // m where it is the same over the whole range of r."""
    lo, hi = affine_range(r, given)
    q = lo // m
    return q if lo <= hi and hi // m == q else None


def div_coefficients(d: Division) -> Result:
    """(m*q + r) // m --> q + c  where c*m <= r < (c+1)*m."""
    for q, r in _splits(d.a, d.m):
        c = _constant_quotient(r, d.m, d.given)
        if c is not None:
            return Affine(q.terms, q.const + c)
    return None


def div_multiples(d: Division) -> Result:
    """(m*q + r) // m --> q + r // m, with r >= 0 where its bounds allow."""
    q, r = next(_splits(d.a, d.m))
    shift = _anchor(r, d.m)
    r = Affine(r.terms, r.const - shift * d.m)
    if r == d.a:
        return None
    rest = floordiv_const(r, d.m, d.dtype, d.given)
    return plus(Affine(q.terms, q.const + shift), rest)


def _parts(a: Affine, m: int) -> Iterator[tuple[int, Affine, Affine]]:
    """(g, t, r) with a = g*t + r, for every divisor g of m that some coefficients share."""
    tried: list[int] = []
    for _, v in a.terms:
        g = gcd(v, m)
        if g > 1 and g not in tried:
            tried.append(g)
            t = tuple([(x, v // g) for x, v in a.terms if v % g == 0])
            r = tuple([(x, v) for x, v in a.terms if v % g])
            yield g, Affine(t, a.const // g), Affine(r, a.const % g)


def div_factor(d: Division) -> Result:
    """(g*t + r) // (g*n) --> (t + c) // n  where c*g <= r < (c+1)*g."""
    for g, t, r in _parts(d.a, d.m):
        c = _constant_quotient(r, g, d.given)
        if c is not None:
            inner = Affine(t.terms, t.const + c)
            return floordiv_const(inner, d.m // g, d.dtype, d.given)
    return None


def _only(a: Affine, op: Op) -> tuple[UOp, int] | None:
    """(x, n) where the form is the one atom `x op n` plus a constant, n a positive constant."""
    if len(a.terms) == 1 and a.terms[0][1] == 1:
        atom = a.terms[0][0]
        if atom.op is op and atom.src[1].op is Op.CONST and atom.src[1].arg > 0:
            return atom.src[0], atom.src[1].arg
    return None


def div_div(d: Division) -> Result:
    """(x // n + c) // m --> (x + c*n) // (n*m)."""
    inner = _only(d.a, Op.FLOORDIV)
    if inner is None:
        return None
    x, n = inner
    form = affine(x)
    whole = Affine(form.terms, form.const + d.a.const * n)
    if not (fits(form, d.dtype) and fits(whole, d.dtype) and fits(Affine((), n * d.m), d.dtype)):
        return None
    return floordiv_const(whole, n * d.m, d.dtype, d.given)


def div_mod(d: Division) -> Result:
    """(x % (m*n)) // m --> (x // m) % n."""
    inner = _only(d.a, Op.MOD)
    if inner is None or d.a.const or inner[1] % d.m:
        return None
    x, n = affine(inner[0]), inner[1] // d.m
    if not fits(x, d.dtype):
        return None
    return mod_const(floordiv_const(x, d.m, d.dtype, d.given), n, d.dtype, d.given)


floordiv_rules = (
    DivRule("div_coefficients", "(m*q + r)//m = q + c if c*m <= r < (c+1)*m", div_coefficients),
    DivRule("div_multiples", "(m*q + r)//m = q + r//m", div_multiples),
    DivRule("div_factor", "(g*t + r)//(g*n) = (t + c)//n if c*g <= r < (c+1)*g", div_factor),
    DivRule("div_div", "(x//n + c)//m = (x + c*n)//(n*m)", div_div),
    DivRule("div_mod", "(x%(m*n))//m = (x//m)%n", div_mod),
)


def mod_coefficients(d: Division) -> Result:
    """(m*q + r) % m --> r - c*m  where c*m <= r < (c+1)*m."""
    for _, r in _splits(d.a, d.m):
        c = _constant_quotient(r, d.m, d.given)
        if c is not None:
            return Affine(r.terms, r.const - c * d.m)
    return None


def mod_mod(d: Division) -> Result:
    """(v*(x % n) + r) % m --> (v*x + r) % m  where m divides v*n."""
    parts: list[tuple[Affine, int]] = []
    found = False
    for atom, v in d.a.terms:
        inner = _only(_of(atom), Op.MOD)
        if inner and v * inner[1] % d.m == 0 and fits(x := affine(inner[0]), d.dtype):
            found = True
            parts.append((x, v))
        else:
            parts.append((_of(atom), v))
    if not found:
        return None
    return mod_const(total([*parts, (Affine((), d.a.const), 1)]), d.m, d.dtype, d.given)


def mod_multiples(d: Division) -> Result:
    """(m*q + r) % m --> r % m, with every coefficient of r in 0..m-1."""
    r = make({x: v % d.m for x, v in d.a.terms}, d.a.const % d.m)
    r = Affine(r.terms, r.const - _anchor(r, d.m) * d.m)
    return None if r == d.a else mod_const(r, d.m, d.dtype, d.given)


def mod_factor(d: Division) -> Result:
    """(g*t + r) % (g*n) --> g*((t + c) % n) + r - c*g  where c*g <= r < (c+1)*g."""
    for g, t, r in _parts(d.a, d.m):
        c = _constant_quotient(r, g, d.given)
        if c is not None:
            inner = Affine(t.terms, t.const + c)
            high = mod_const(inner, d.m // g, d.dtype, d.given)
            return plus(Affine(r.terms, r.const - c * g), high, g)
    return None


mod_rules = (
    DivRule("mod_coefficients", "(m*q + r)%m = r - c*m if c*m <= r < (c+1)*m", mod_coefficients),
    DivRule("mod_mod", "(v*(x%n) + r)%m = (v*x + r)%m if m divides v*n", mod_mod),
    DivRule("mod_multiples", "(m*q + r)%m = r%m", mod_multiples),
    DivRule(
        "mod_factor", "(g*t + r)%(g*n) = g*((t + c)%n) + r - c*g if c*g <= r < (c+1)*g", mod_factor
    ),
)


def floordiv_const(a: Affine, m: int, dtype: DType, given: Given | None = None) -> Affine:
    """a // m for a constant m > 0, by the first rule that applies."""
    if m == 1:
        return a
    if not a.terms:
        return Affine((), a.const // m)
    return _first(floordiv_rules, Division(a, m, dtype, given)) or _of(atom_div(a, m, dtype))


def mod_const(a: Affine, m: int, dtype: DType, given: Given | None = None) -> Affine:
    """a % m for a constant m > 0, by the first rule that applies."""
    if m == 1:
        return Affine((), 0)
    if not a.terms:
        return Affine((), a.const % m)
    return _first(mod_rules, Division(a, m, dtype, given)) or _of(atom_mod(a, m, dtype))


# What was divided before and by which rule, emptied when full.
_memo: dict[tuple[bool, Affine, int, DType], tuple[Result, str]] = {}
_MEMO_SIZE = 4096


def _first(rules: tuple[DivRule, ...], d: Division) -> Result:
    """The first rule's answer, remembered where it depends on no given condition."""
    key = (rules is mod_rules, d.a, d.m, d.dtype)
    result, fired = None, ""
    if d.given is None and key in _memo:
        result, fired = _memo[key]
        if fired:
            count_fired(fired)
        return result
    if fits(d.a, d.dtype):
        for rule in rules:
            result = rule.apply(d)
            if result is not None:
                fired = rule.name
                count_fired(fired)
                break
    if d.given is None:
        if len(_memo) >= _MEMO_SIZE:
            _memo.clear()
        _memo[key] = result, fired
    return result


def recombine(a: Affine, dtype: DType) -> Affine:
    """k*(x % m) + k*m*(x // m) --> k*x, also where x // m is written as a quotient of a quotient.

    Law: x%m + m*(x//m) = x.
    """
    mods = [t for t in a.terms if t[0].op is Op.MOD and _only(_of(t[0]), Op.MOD)]
    divs = [t for t in a.terms if t[0].op is Op.FLOORDIV and _only(_of(t[0]), Op.FLOORDIV)]
    if not mods or not divs:
        return a
    for atom, k in mods:
        x, m = affine(atom.src[0]), atom.src[1].arg
        if not fits(x, dtype):
            continue
        for div, v in divs:
            if v != k * m:
                continue
            y = affine(div.src[0])
            if div.src[1].arg == m:  # the same dividend, up to multiples of m
                gap = plus(y, x, -1)
                same = gap.const % m == 0 and all(c % m == 0 for _, c in gap.terms)
                whole = y if same else None
            else:  # x is a quotient itself: x // m was joined with it
                whole = x if floordiv_const(x, m, dtype) == _of(div) else None
            if whole is not None and fits(y, dtype):
                rest = plus(plus(a, _of(atom), -k), _of(div), -v)
                return recombine(plus(rest, whole, k), dtype)
    return a


def symbolic_div(
    a: Affine, n: UOp, k: int, dtype: DType, given: Given | None
) -> tuple[Affine, Affine] | None:
    """(quotient, remainder) of a by k*n > 0 where the rest is proved to lie in 0..k*n-1.

    Law: (n*q + r) // n = q and (n*q + r) % n = r if 0 <= r < n.
    """
    quotient: list[tuple[Affine, int]] = []
    rest: Coefficients = {}
    for atom, c in a.terms:
        share = without_factor(atom, n, dtype) if c % k == 0 else None
        if share is None:
            rest[atom] = c
        else:
            quotient.append((share, c // k))
    r = make(rest, a.const)
    lo, hi = affine_range(r, given)
    below, above = affine_range(plus(r, _of(n), -k), given)
    if lo < 0 or lo > hi or above >= 0 or below > above:
        return None
    return total(quotient), r


def without_factor(atom: UOp, n: UOp, dtype: DType) -> Affine | None:
    """atom / n where the factors of n are among its factors."""
    if atom is n:
        return Affine((), 1)
    parts = factors(atom)
    for f in factors(n):
        if f not in parts:
            return None
        parts.remove(f)
    return _of(monomial(parts, dtype)) if parts else Affine((), 1)
