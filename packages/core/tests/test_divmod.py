"""Facts about quotients, remainders and comparisons: each law proved by z3 and by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import z3

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer as ix
from loopwright_core.ir.affine import Affine, affine, from_affine, plus, scale
from loopwright_core.ir.condition import compare_rules
from loopwright_core.ir.divmod import (
    Division,
    atom_div,
    atom_mod,
    floordiv_rules,
    mod_rules,
    recombine,
    symbolic_div,
)
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, const, extent_uop
from loopwright_core.kernel.dims import Dim

TIMEOUT_MS = 10_000
Law = Callable[..., tuple[list[Any], Any]]

q, r, t, x, c = z3.Ints("q r t x c")


def within(value: Any, c: Any, m: Any) -> list[Any]:
    return [c * m <= value, value < (c + 1) * m]


# The laws in the letters of the tables: a claim that follows from assumptions, for m, n, g > 0.
# z3's / and % on integers round down for a positive divisor, as FLOORDIV and MOD do.
LAWS: dict[str, Law] = {
    "div_coefficients": lambda m, n: (within(r, c, m), (m * q + r) / m == q + c),
    "div_multiples": lambda m, n: ([], (m * q + r) / m == q + r / m),
    "div_factor": lambda g, n: (within(r, c, g), (g * t + r) / (g * n) == (t + c) / n),
    "div_div": lambda m, n: ([], (x / n + c) / m == (x + c * n) / (n * m)),
    "div_mod": lambda m, n: ([], (x % (m * n)) / m == (x / m) % n),
    "mod_coefficients": lambda m, n: (within(r, c, m), (m * q + r) % m == r - c * m),
    "mod_mod": lambda m, n: ([], (m * (x % n) + r) % (m * n) == (m * x + r) % (m * n)),
    "mod_multiples": lambda m, n: ([], (m * q + r) % m == r % m),
    "mod_factor": lambda g, n: (
        within(r, c, g),
        (g * t + r) % (g * n) == g * ((t + c) % n) + r - c * g,
    ),
    "lt_gcd": lambda g, n: ([], (g * t + c < 0) == (t + c / g < 0)),
    "lt_rest": lambda g, n: (within(r, c, g), (g * t + r < 0) == (t + c < 0)),
    "lt_div": lambda m, n: (
        [],
        z3.And(
            (x / m + c < 0) == (x + c * m < 0),
            (c - x / m < 0) == ((c + 1) * m - 1 - x < 0),
        ),
    ),
    "recombine": lambda m, n: ([], n * (x % m) + n * m * (x / m) == n * x),
    "symbolic_div": lambda m, n: (
        [r >= 0, r < m],
        z3.And((m * q + r) / m == q, (m * q + r) % m == r),
    ),
    "negative_divisor": lambda m, n: ([], floor_by_negative(m)),
    "shifted_c_division": lambda m, n: (
        [x + c * m >= 0],
        z3.And((x + c * m) / m - c == x / m, (x + c * m) % m == x % m),
    ),
}
TABLES = {rule.name for table in (floordiv_rules, mod_rules, compare_rules) for rule in table}


def floor_by_negative(m: Any) -> Any:
    """x // -m = -x // m, and x % -m = -(-x % m): q*(-m) + r = x with -m < r <= 0."""
    quotient, rest = (-x) / m, -((-x) % m)
    return z3.And(quotient * -m + rest == x, rest <= 0, rest > -m)


def prove(assumptions: list[Any], claim: Any) -> Any:
    solver = z3.Solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*assumptions, z3.Not(claim))
    return solver.check()


def test_every_rule_states_its_law() -> None:
    """Each row of the division and comparison tables has a law that is proved here."""
    assert set(LAWS) >= TABLES


@pytest.mark.parametrize("name", LAWS)
def test_z3_proves_the_law(name: str) -> None:
    """For small divisors the law holds for all integers; z3 finds no counterexample."""
    late = 0
    for m, n in itertools.product((1, 2, 3, 4, 8, 12), (1, 2, 3, 5)):
        answer = prove(*LAWS[name](m, n))
        assert answer != z3.sat, f"{name} is false for {m}, {n}"
        late += answer == z3.unknown
    print(f"{name}: {late} of 24 queries timed out")
    assert late == 0


i, j, k = Dim("i", 5).uop, Dim("j", 8).uop, Dim("k", 3).uop
DIMS = {i: 5, j: 8, k: 3}


def evaluate(u: UOp, env: dict[UOp, int]) -> int:
    """The value of an index expression."""
    done: dict[UOp, int] = {}
    for node in u.toposort():
        s = [done[x] for x in node.src]
        if node in env:
            done[node] = env[node]
        elif node.op is Op.CONST:
            done[node] = node.arg
        else:
            done[node] = {
                Op.ADD: lambda a, b: a + b,
                Op.MUL: lambda a, b: a * b,
                Op.FLOORDIV: lambda a, b: a // b,
                Op.MOD: lambda a, b: a % b,
                Op.CMPLT: lambda a, b: a < b,
            }[node.op](*s)
    return done[u]


def points() -> list[dict[UOp, int]]:
    return [dict(zip(DIMS, p)) for p in itertools.product(*[range(n) for n in DIMS.values()])]


POINTS = points()
FORMS = [
    plus(plus(scale(affine(i), a), affine(j), b), plus(scale(affine(k), d), Affine((), e)))
    for a, b, d in itertools.product((0, 8, 24, -6), (0, 1, 3, -1), (0, 1, 4))
    for e in (-9, 0, 7)
]
NESTED = [
    Affine(((atom, v),), e)
    for base in (affine(j), plus(scale(affine(i), 8), affine(j)))
    for atom in (atom_div(base, 3, dt.index), atom_mod(base, 12, dt.index))
    for v in (1, 2, -1)
    for e in (-5, 0, 1)
]


@pytest.mark.parametrize("table", [floordiv_rules, mod_rules], ids=["floordiv", "mod"])
def test_rules_on_every_point(table: Any) -> None:
    """Each row fires, and what it answers is equal on every point of a small space."""
    fired = dict.fromkeys([rule.name for rule in table], 0)
    for form, m in itertools.product(FORMS + NESTED, (2, 3, 4, 8, 12)):
        if not form.terms:
            continue
        before = (atom_div if table is floordiv_rules else atom_mod)(form, m, dt.index)
        for rule in table:
            made = rule.apply(Division(form, m, dt.index, None))
            if made is not None:
                fired[rule.name] += 1
                after = from_affine(made, dt.index)
                for p in POINTS[::7]:
                    assert evaluate(before, p) == evaluate(after, p), (rule.name, form, m)
    assert all(fired.values()), fired


def test_comparison_rules_on_every_point() -> None:
    """Each row of the comparison table fires and keeps the truth value everywhere."""
    fired = dict.fromkeys([rule.name for rule in compare_rules], 0)
    zero = const(0, dt.index)
    for form in FORMS + NESTED:
        for rule in compare_rules:
            made = rule.apply(form, dt.index, None) if form.terms else None
            if made is not None:
                fired[rule.name] += 1
                before = UOp(Op.CMPLT, dt.bool_, (from_affine(form, dt.index), zero))
                after = UOp(Op.CMPLT, dt.bool_, (from_affine(made, dt.index), zero))
                for p in POINTS[::7]:
                    assert evaluate(before, p) == evaluate(after, p), (rule.name, form)
    assert all(fired.values()), fired


def test_merged_and_split_again_is_affine() -> None:
    """Splitting a merged index in any other way and merging it back gives the flat index."""
    flat = ix.add(ix.add(ix.mul(i, 24), ix.mul(j, 3)), k)
    for split in ((5, 24), (5, 8, 3), (10, 12), (20, 6), (15, 2, 4), (60, 2), (3, 40)):
        rest, parts, stride = flat, [], 1
        for n in reversed(split[1:]):
            parts.append(ix.mul(ix.mod(rest, n), stride))
            rest, stride = ix.floordiv(rest, n), stride * n
        parts.append(ix.mul(rest, stride))
        assert ix.total_of(parts) is flat, split
        total = parts[0]
        for part in parts[1:]:
            total = ix.add(total, part)
        assert total is flat, split


def test_recombine_leaves_other_sums_alone() -> None:
    """x % 4 + 3*(x // 4) is no multiple of x and stays."""
    div, mod = atom_div(affine(j), 4, dt.index), atom_mod(affine(j), 4, dt.index)
    form = plus(affine(mod), affine(div), 3)
    assert recombine(form, dt.index) == form
    assert recombine(plus(affine(mod), affine(div), 4), dt.index) == affine(j)


def test_division_by_a_variable() -> None:
    """(i*n + v) // n is i and its remainder v where v runs below n."""
    n = extent_uop(Variable("n", 1, 64))
    v = Dim("v", Variable("n", 1, 64)).uop
    flat = ix.add(ix.mul(i, n), v)
    assert ix.floordiv(flat, n) is i and ix.mod(flat, n) is v
    assert ix.floordiv(ix.mul(flat, 4), ix.mul(n, 4)) is i
    assert symbolic_div(affine(ix.add(flat, 1)), n, 1, dt.index, None) is None
    assert ix.floordiv(flat, i).op is Op.FLOORDIV


def test_negative_and_zero_divisors() -> None:
    """x // -m and x % -m round down; by 0 both are 0."""
    for m in (-3, -1, 0):
        div, mod = ix.floordiv(j, m), ix.mod(j, m)
        for p in POINTS[:24]:
            expected = (p[j] // m, p[j] % m) if m else (0, 0)
            assert expected == (evaluate(div, p), evaluate(mod, p))


def test_dividends_are_not_negative() -> None:
    """Constants are moved out of a dividend until it starts at 0 or just above."""
    assert ix.bounds(ix.floordiv(ix.sub(j, 5), 3).src[0].src[0])[0] >= 0
    flipped = ix.floordiv(ix.sub(7, j), 2)
    assert flipped.op is Op.FLOORDIV and ix.bounds(flipped.src[0]) == (0, 7)


def test_fixed_width_divisions_do_not_wrap() -> None:
    """In int32 a dividend that may wrap is left as it is."""
    big = UOp(Op.SPECIAL, dt.int32, (), ("id", 2**31 - 1))
    wraps = ix.add(ix.mul(big, 4), 1)
    assert ix.bounds(wraps) == (-(2**31), 2**31 - 1)
    assert ix.floordiv(wraps, 4).op is Op.FLOORDIV
    small = UOp(Op.SPECIAL, dt.int32, (), ("id", 100))
    assert ix.floordiv(ix.add(ix.mul(small, 4), 1), 4) is small
    assert ix.lt(wraps, 5).op is Op.CMPLT
