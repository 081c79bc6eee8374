"""What is known beyond plain intervals: given conditions, symbolic extents, min(a, b) <= a.

`affine_range` bounds a form by trading one atom for what bounds it, as long as that helps.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopwright_core.ir.affine import Affine, affine, factors, plus
from loopwright_core.ir.bounds import Interval, bounds, interval_of
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import TRUE, UOp, extent_uop

# How many substitutions in a row, and in all, a search for a tighter bound may try.
_DEPTH, _BUDGET = 6, 60
# How many quotients, remainders, minima inside each other are seen under conditions.
_NESTING = 4
# How often what conditions say about one atom is carried over to the others.
_ROUNDS = 2
_SEEN_THROUGH = frozenset({Op.FLOORDIV, Op.MOD, Op.MIN, Op.MAX, Op.CDIV, Op.CMOD})


def _is_relational(atom: UOp) -> bool:
    """Whether the atom's bound may depend on other atoms of the same form."""
    op = atom.op
    if op is Op.DIM:
        return type(atom.arg.size) is not int
    if op is Op.RANGE:
        return atom.src[0].op is not Op.CONST
    return op in _RELATIONAL


_RELATIONAL = frozenset({Op.MIN, Op.MAX, Op.FLOORDIV, Op.MOD, Op.MUL})


class Given:
    """Conditions that hold: affine forms that are <= 0, and bool nodes that are true."""

    __slots__ = ("_by_atom", "_depth", "_memo", "_tight", "facts", "known")

    def __init__(self, conditions: Iterable[UOp] = ()) -> None:
        self.facts: list[Affine] = []
        self.known: set[UOp] = set()
        self._by_atom: dict[UOp, list[tuple[Affine, int]]] = {}
        self._memo: dict[UOp, Interval] = {}
        self._tight: dict[UOp, Interval] = {}
        self._depth = 0
        stack = list(conditions)[::-1]
        while stack:
            c = stack.pop()
            if c is TRUE or c in self.known:
                continue
            self.known.add(c)
            if c.op is Op.AND:
                stack.extend(reversed(c.src))
            elif c.op in (Op.CMPLT, Op.CMPEQ):
                form = difference(*c.src)
                if form is not None and c.op is Op.CMPLT:
                    self._fact(Affine(form.terms, form.const + 1))
                elif form is not None:
                    self._fact(form)
                    self._fact(Affine(tuple([(a, -k) for a, k in form.terms]), -form.const))
        self._tighten()
        self._join_splits()

    def _fact(self, form: Affine) -> None:
        if form.terms:
            self.facts.append(form)
            for atom, k in form.terms:
                self._by_atom.setdefault(atom, []).append((form, k))

    def _tighten(self) -> None:
        """Bounds of single atoms: k*x + rest <= 0 gives x <= -min(rest) // k."""
        for _ in range(_ROUNDS):
            for fact in self.facts:
                parts = [(atom, k, self._tight.get(atom) or bounds(atom)) for atom, k in fact.terms]
                least = fact.const + sum([k * (b[0] if k > 0 else b[1]) for _, k, b in parts])
                for atom, k, (lo, hi) in parts:
                    rest = least - k * (lo if k > 0 else hi)
                    edge = -rest // k if k > 0 else -(rest // k)
                    self._tight[atom] = (lo, min(hi, edge)) if k > 0 else (max(lo, edge), hi)

    def _join_splits(self) -> None:
        """Where a quotient and its remainder both have facts: n*(x // n) + x % n is x."""
        for atom in tuple(self._by_atom):
            if atom.op is not Op.FLOORDIV or atom.src[1].op is not Op.CONST or atom.src[1].arg <= 0:
                continue
            whole, rest = affine(atom.src[0]), UOp(Op.MOD, atom.dtype, atom.src)
            if rest in self._by_atom and fits(whole, atom.dtype):
                parts = plus(Affine(((rest, 1),), 0), Affine(((atom, 1),), 0), atom.src[1].arg)
                self._fact(plus(parts, whole, -1))
                self._fact(plus(whole, parts, -1))

    def about(self, atom: UOp) -> Sequence[tuple[Affine, int]]:
        """The facts in which an atom occurs, each with its coefficient there."""
        return self._by_atom.get(atom, ())

    def bounds(self, atom: UOp) -> Interval:
        """The bounds of an atom, its operands seen under the conditions."""
        found = self._memo.get(atom)
        if found is None:
            found = _meet(bounds(atom), self._tight.get(atom) or bounds(atom))
            if atom.op not in _SEEN_THROUGH or not self.facts or self._depth == _NESTING:
                return found
            self._memo[atom] = found  # what a fact about this atom itself may use meanwhile
            self._depth += 1
            parts = [affine_range(affine(s), self) for s in atom.src]
            self._depth -= 1
            found = self._memo[atom] = _meet(found, interval_of(atom, parts))
        return found


def _meet(a: Interval, b: Interval) -> Interval:
    """The common part; conditions that contradict each other leave `a`."""
    lo, hi = max(a[0], b[0]), min(a[1], b[1])
    return (lo, hi) if lo <= hi else a


def plain_range(a: Affine) -> Interval:
    """The interval of a form whose atoms vary independently."""
    lo = hi = a.const
    for atom, c in a.terms:
        low, high = atom._bounds or bounds(atom)
        if c > 0:
            lo += c * low
            hi += c * high
        else:
            lo += c * high
            hi += c * low
    return lo, hi


def affine_range(a: Affine, given: Given | None = None) -> Interval:
    """The tightest interval found for a form, under conditions that hold.

    Under contradicting conditions the interval is empty: low > high.
    """
    if given is None or not given.facts:
        lo, hi = plain_range(a)
        if len(a.terms) < 2 or lo == hi or not any(_is_relational(t[0]) for t in a.terms):
            return lo, hi
    negated = Affine(tuple([(atom, -c) for atom, c in a.terms]), -a.const)
    return -_upper(negated, given), _upper(a, given)


def _upper(a: Affine, given: Given | None) -> int:
    """An upper bound of a form: the least over chains of sound substitutions that raise it."""
    best: int | None = None
    seen = {a}
    level = [a]
    budget = _BUDGET
    for _ in range(_DEPTH):
        following: list[Affine] = []
        for form in level:
            hi = _plain_upper(form, given)
            best = hi if best is None or hi < best else best
            if not form.terms:
                continue
            for raised in _raised(form, given):
                if raised not in seen and budget > 0:
                    budget -= 1
                    seen.add(raised)
                    following.append(raised)
        if not following:
            break
        level = following
    else:
        best = min([best or 0, *[_plain_upper(form, given) for form in level]])
    assert best is not None
    return best


def _plain_upper(a: Affine, given: Given | None) -> int:
    hi = a.const
    for atom, c in a.terms:
        low, high = given.bounds(atom) if given is not None else atom._bounds or bounds(atom)
        hi += c * high if c > 0 else c * low
    return hi


def _raised(a: Affine, given: Given | None) -> list[Affine]:
    """Forms that are >= `a` wherever the conditions hold: one atom traded for what bounds it."""
    found: list[Affine] = []
    others = len(a.terms) > 1
    for atom, c in a.terms:
        if given is not None:
            for fact, k in given.about(atom):
                if c % k == 0 and c // k > 0:  # a = (a - q*fact) + q*fact, and fact <= 0
                    found.append(plus(a, fact, -(c // k)))
        if others and _is_relational(atom):
            for form, num, den in _relations(atom, c > 0, a):
                if c % den == 0:
                    found.append(plus(plus(a, Affine(((atom, 1),), 0), -c), form, c // den * num))
    return found


def _relations(atom: UOp, above: bool, whole: Affine) -> list[tuple[Affine, int, int]]:
    """(form, num, den) with atom <= form * num / den (`above`), else >=."""
    op, src = atom.op, atom.src
    if op is Op.DIM or op is Op.RANGE:
        extent = atom.src[0] if op is Op.RANGE else extent_uop(atom.arg.size)
        if above:
            return [(plus(affine(extent), Affine((), -1)), 1, 1)]
    elif (op is Op.MIN and above) or (op is Op.MAX and not above):
        return [(affine(s), 1, 1) for s in src]
    elif op is Op.FLOORDIV and src[1].op is Op.CONST and src[1].arg > 0:
        x, m = affine(src[0]), src[1].arg
        if any(whole.coef(t[0]) for t in x.terms):
            return [(x if above else plus(x, Affine((), 1 - m)), 1, m)]
    elif op is Op.MOD and above and bounds(src[0])[0] >= 0 and bounds(src[1])[0] > 0:
        return [(affine(src[0]), 1, 1)]
    elif op is Op.MUL:
        return _product_relations(atom, above)
    return []


def _product_relations(atom: UOp, above: bool) -> list[tuple[Affine, int, int]]:
    """One factor traded for its bound where all the other factors are never negative."""
    found: list[tuple[Affine, int, int]] = []
    parts = factors(atom)
    for i, f in enumerate(parts):
        rest = parts[:i] + parts[i + 1 :]
        if f.op is Op.VAR or any(bounds(r)[0] < 0 for r in rest):
            continue
        node = rest[0]
        for r in rest[1:]:
            node = UOp(Op.MUL, atom.dtype, (node, r))
        edges = [Affine((), bounds(f)[1 if above else 0])]
        if f.op in (Op.DIM, Op.RANGE):
            edges += [form for form, _, _ in _relations(f, above, Affine((), 0))]
        for edge in edges:
            terms = [UOp(Op.MUL, atom.dtype, (node, t)) for t, _ in edge.terms]
            form = Affine((), 0)
            for t, (_, k) in zip(terms, edge.terms, strict=True):
                form = plus(form, affine(t), k)
            found.append((plus(form, affine(node), edge.const), 1, 1))
    return found


def difference(a: UOp, b: UOp) -> Affine | None:
    """a - b as an exact integer form; None where a fixed width could wrap on the way."""
    if not a.dtype.is_int or a.dtype.lanes != 1:
        return None
    x, y = affine(a), affine(b)
    if a.dtype.kind != "index":
        for form in (x, y):
            if not fits(form, a.dtype):
                return None
    return plus(x, y, -1)


def fits(a: Affine, dtype: DType) -> bool:
    """Whether the exact value of the form is one the dtype holds, so that it does not wrap."""
    if dtype.kind == "index":
        return True
    lo, hi = plain_range(a)
    return int(dtype.min) <= lo and hi <= int(dtype.max)


def given_bounds(u: UOp, given: Iterable[UOp] | Given = ()) -> Interval:
    """`bounds(u)` where these conditions hold; low > high where they cannot all hold."""
    if u.op in COMPARE or u.dtype.is_bool or not u.dtype.is_int:
        return bounds(u)
    facts = given if isinstance(given, Given) else Given(given)
    lo, hi = bounds(u)
    if facts.facts or u._affine is not None or u.op in (Op.ADD, Op.SUB, Op.MUL, Op.NEG):
        form = affine(u)
        if fits(form, u.dtype):
            low, high = affine_range(form, facts)
            return max(lo, low), min(hi, high)
    return lo, hi
