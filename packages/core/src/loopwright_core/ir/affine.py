"""Affine forms: an index expression as `sum(coefficient * atom) + constant`, in one order.

Atoms are what is not affine: dims, variables, loops, quotients, remainders, casts of loads,
products of those. Equal affine functions of the same atoms give the identical UOp.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from math import gcd
from typing import NamedTuple

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

Term = tuple[UOp, int]
Coefficients = dict[UOp, int]
Key = tuple[int, tuple[int, str], bytes]

# Products with more factors or more terms than this stay one opaque atom.
MAX_FACTORS = 8
MAX_TERMS = 64

LINEAR = frozenset({Op.ADD, Op.SUB, Op.NEG, Op.MUL})
_LEAF_RANK = {Op.DIM: 0, Op.RANGE: 1, Op.SPECIAL: 2, Op.VAR: 3}


class Affine(NamedTuple):
    """`sum(coefficient * atom for atom, coefficient in terms) + const`; no coefficient is 0."""

    terms: tuple[Term, ...]
    const: int

    def coef(self, atom: UOp) -> int:
        """The coefficient of an atom, 0 where it does not occur."""
        for a, c in self.terms:
            if a is atom:
                return c
        return 0

    @property
    def gcd(self) -> int:
        """The greatest common divisor of the coefficients, 0 where there are none."""
        return gcd(*[c for _, c in self.terms])


ZERO = Affine((), 0)


def order_key(u: UOp) -> Key:
    """A sort key that depends on structure alone: equal in every process and hash seed."""
    found: Key | None = u._order
    if found is not None:
        return found
    stack = [u]
    while stack:
        top = stack[-1]
        missing = [s for s in top.src if s._order is None]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        if top._order is None:
            top._order = found = _make_key(top)
    assert found is not None
    return found


def _make_key(u: UOp) -> Key:
    rank = _LEAF_RANK.get(u.op, 9)
    arg = u.arg
    if rank in (0, 3):
        label = (0, arg.name)
    elif rank == 1:
        label = (arg.id, arg.name) if hasattr(arg, "id") else (0, repr(arg))
    elif u.src:
        named = [s for s in u.src if s.op is not Op.CONST] or u.src
        label = named[0]._order[1]
    else:
        label = (0, repr(arg))
    text = f"{u.op.name} {u.dtype.name} {arg!r}".encode()
    digest = blake2b(text + b"".join([s._order[2] for s in u.src]), digest_size=12).digest()
    return rank, label, digest


def _sorted(coefs: Coefficients) -> tuple[Term, ...]:
    """Large strides first, so that what outer loops fix is added first; ties by structure."""
    items = [item for item in coefs.items() if item[1]]
    if len(items) > 1:
        items.sort(key=lambda t: (-abs(t[1]), t[0]._order or order_key(t[0])))
    return tuple(items)


def make(coefs: Coefficients, constant: int) -> Affine:
    """The form with these coefficients, zeros dropped."""
    return Affine(_sorted(coefs), constant)


def linear(u: UOp) -> tuple[Coefficients, int]:
    """`u` as coefficients of nodes that are no sums, differences or multiples, plus a constant.

    Linear in the number of nodes: coefficients flow from `u` down, each node visited once.
    """
    order = u.toposort(is_linear)
    coefs: Coefficients = {u: 1}
    constant = 0
    leaves: Coefficients = {}
    for node in reversed(order):
        c = coefs.pop(node, 0)
        if not c:
            continue
        op, src = node.op, node.src
        if op is Op.CONST:
            constant += c * node.arg
        elif not is_linear(node):
            leaves[node] = c
        elif op is Op.ADD:
            coefs[src[0]] = coefs.get(src[0], 0) + c
            coefs[src[1]] = coefs.get(src[1], 0) + c
        elif op is Op.SUB:
            coefs[src[0]] = coefs.get(src[0], 0) + c
            coefs[src[1]] = coefs.get(src[1], 0) - c
        elif op is Op.NEG:
            coefs[src[0]] = coefs.get(src[0], 0) - c
        else:
            x, k = (src[0], src[1].arg) if src[1].op is Op.CONST else (src[1], src[0].arg)
            coefs[x] = coefs.get(x, 0) + c * k
    return leaves, constant


def is_linear(u: UOp) -> bool:
    """A sum, difference, negation or constant multiple of integers."""
    if u.op not in LINEAR or not u.dtype.is_int or u.dtype.lanes != 1:
        return False
    return u.op is not Op.MUL or u.src[1].op is Op.CONST or u.src[0].op is Op.CONST


def _is_product(u: UOp) -> bool:
    return u.op is Op.MUL and u.dtype.is_int and u.dtype.lanes == 1


def affine(u: UOp) -> Affine:
    """The affine form of an integer expression; one of another kind is an atom of its own."""
    found = u._affine
    if found is not None:
        return found  # type: ignore[no-any-return]
    if u.op is Op.CONST:
        return Affine((), int(u.arg))
    if u.op not in LINEAR:
        return Affine(((u, 1),), 0)
    stack = [u]
    parts: dict[UOp, tuple[Coefficients, int]] = {}
    done: dict[UOp, Affine] = {}
    while stack:
        top = stack[-1]
        if top in done or top._affine is not None:
            stack.pop()
            continue
        if top not in parts:
            parts[top] = linear(top)
            # A product's own factors come first; products are expanded, so that (i+1)*n = i*n + n.
            missing = [
                s
                for n in parts[top][0]
                if _is_product(n)
                for s in n.src
                if s.op in LINEAR and s is not top and s not in done and s._affine is None
            ]
            if missing:
                stack.extend(missing)
                continue
        stack.pop()
        leaves, constant = parts[top]
        coefs: Coefficients = {}
        for node, c in leaves.items():
            if _is_product(node):
                a, b = (done.get(s) or affine(s) for s in node.src)
                form = product(a, b, node.dtype) or Affine(((node, 1),), 0)
                constant += c * form.const
                for atom, k in form.terms:
                    coefs[atom] = coefs.get(atom, 0) + c * k
            else:
                coefs[node] = coefs.get(node, 0) + c
        form = make(coefs, constant)
        done[top] = form
        if all(atom is not top for atom, _ in form.terms):  # no reference cycle
            top._affine = form
    return done.get(u) or u._affine


def factors(atom: UOp) -> list[UOp]:
    """The factors of a product atom, left to right; any other atom is its only factor."""
    found: list[UOp] = []
    while _is_product(atom) and len(found) < MAX_FACTORS:
        found.append(atom.src[1])
        atom = atom.src[0]
    found.append(atom)
    found.reverse()
    return found


def product(a: Affine, b: Affine, dtype: DType) -> Affine | None:
    """a * b multiplied out; None where that has too many terms or factors."""
    if not a.terms:
        return scale(b, a.const)
    if not b.terms:
        return scale(a, b.const)
    if len(a.terms) * len(b.terms) > MAX_TERMS:
        return None
    coefs: Coefficients = {}
    for x, v in a.terms:
        for y, w in b.terms:
            parts = factors(x) + factors(y)
            if len(parts) > MAX_FACTORS:
                return None
            atom = monomial(parts, dtype)
            coefs[atom] = coefs.get(atom, 0) + v * w
    for x, v in a.terms:
        coefs[x] = coefs.get(x, 0) + v * b.const
    for y, w in b.terms:
        coefs[y] = coefs.get(y, 0) + w * a.const
    return make(coefs, a.const * b.const)


def monomial(parts: list[UOp], dtype: DType) -> UOp:
    """The product of atoms in canonical order."""
    parts = sorted(parts, key=order_key)
    atom = parts[0]
    for p in parts[1:]:
        atom = UOp(Op.MUL, dtype, (atom, p))
    return atom


def plus(a: Affine, b: Affine, k: int = 1) -> Affine:
    """a + k * b."""
    if not b.terms or not k:
        return Affine(a.terms, a.const + k * b.const)
    coefs = dict(a.terms)
    for atom, c in b.terms:
        coefs[atom] = coefs.get(atom, 0) + k * c
    return Affine(_sorted(coefs), a.const + k * b.const)


def scale(a: Affine, k: int) -> Affine:
    """a * k."""
    if k == 1:
        return a
    if k == 0:
        return ZERO
    return Affine(tuple([(atom, c * k) for atom, c in a.terms]), a.const * k)


def total(parts: Iterable[tuple[Affine, int]]) -> Affine:
    """The sum of k * a over the parts (a, k)."""
    coefs: Coefficients = {}
    constant = 0
    for a, k in parts:
        constant += k * a.const
        for atom, c in a.terms:
            coefs[atom] = coefs.get(atom, 0) + k * c
    return make(coefs, constant)


def wrapped(value: int, dtype: DType) -> int:
    """The value as that integer dtype holds it; dtype index is unbounded."""
    if dtype is dt.index:
        return value
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value >> (dtype.bits - 1) else value


def number(value: int, dtype: DType) -> UOp:
    """An integer constant, wrapped to its dtype."""
    return UOp(Op.CONST, dtype, (), wrapped(value, dtype))


def from_affine(a: Affine, dtype: DType) -> UOp:
    """The canonical UOp: atom * coefficient in the form's order, added up, the constant last."""
    result: UOp | None = None
    for atom, c in a.terms:
        node = atom if c == 1 else UOp(Op.MUL, dtype, (atom, number(c, dtype)))
        result = node if result is None else UOp(Op.ADD, dtype, (result, node))
    if result is None:
        return number(a.const, dtype)
    if a.const:
        result = UOp(Op.ADD, dtype, (result, number(a.const, dtype)))
    if result._affine is None and (len(a.terms) > 1 or result is not a.terms[0][0]):
        result._affine = a
    return result
