"""Patterns over UOps and the rules made of them: `Rule("mul_one", x * 1, lambda x: x)`.

A pattern says op, dtype and sources; names in it are what the rule's function receives. The order
of the sources of a commutative op does not matter.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

from loopwright_core.errors import ArgumentError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMMUTATIVE, Op
from loopwright_core.ir.uop import UOp

Captures = dict[str, UOp]
Check = Callable[[UOp, Captures], bool]
Test = Callable[[UOp], bool]

# A pattern with more orders of its commutative sources than this is refused.
_MAX_ORDERS = 64


class Pat:
    """One node of a pattern.

    `ops` None is any op; `src` None is any sources. `dtype` and `where` are what the node's dtype
    and the node itself must satisfy; `value` is what a CONST must hold, 0 and 1 of any dtype
    alike, but never -0.0 for 0.
    """

    __slots__ = ("dtype", "name", "ops", "ordered", "src", "value", "where")

    def __init__(
        self,
        ops: Op | Iterable[Op] | None = None,
        *src: Pat,
        name: str | None = None,
        dtype: Callable[[DType], bool] | None = None,
        where: Test | None = None,
        value: bool | int | float | None = None,
        ordered: bool = False,
    ) -> None:
        self.ops = (ops,) if isinstance(ops, Op) else None if ops is None else tuple(ops)
        self.src: tuple[Pat, ...] | None = src or None
        self.name, self.dtype, self.where, self.value = name, dtype, where, value
        self.ordered = ordered

    def named(self, name: str) -> Pat:
        """The same pattern, its node captured under a name."""
        return self._copy(name=name)

    def typed(self, dtype: Callable[[DType], bool]) -> Pat:
        """The same pattern for nodes whose dtype satisfies the predicate."""
        return self._copy(dtype=dtype)

    def when(self, where: Test) -> Pat:
        """The same pattern for nodes that satisfy the predicate."""
        return self._copy(where=where)

    def in_order(self) -> Pat:
        """The same pattern with its sources in this order, also where the op commutes."""
        return self._copy(ordered=True)

    def _copy(self, **changes: Any) -> Pat:
        copy = object.__new__(Pat)
        for slot in Pat.__slots__:
            object.__setattr__(copy, slot, changes.get(slot, getattr(self, slot)))
        return copy

    def _binary(self, op: Op, other: Pat | bool | int | float, swapped: bool = False) -> Pat:
        right = other if isinstance(other, Pat) else number(other)
        return Pat(op, right, self) if swapped else Pat(op, self, right)

    def __add__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.ADD, other)

    def __sub__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.SUB, other)

    def __rsub__(self, other: int | float) -> Pat:
        return self._binary(Op.SUB, other, True)

    def __mul__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.MUL, other)

    def __truediv__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.DIV, other)

    def __floordiv__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.FLOORDIV, other)

    def __mod__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.MOD, other)

    def __and__(self, other: Pat | bool | int) -> Pat:
        return self._binary(Op.AND, other)

    def __or__(self, other: Pat | bool | int) -> Pat:
        return self._binary(Op.OR, other)

    def __xor__(self, other: Pat | bool | int) -> Pat:
        return self._binary(Op.XOR, other)

    def __lshift__(self, other: Pat | int) -> Pat:
        return self._binary(Op.SHL, other)

    def __rshift__(self, other: Pat | int) -> Pat:
        return self._binary(Op.SHR, other)

    def __lt__(self, other: Pat | int | float) -> Pat:
        return self._binary(Op.CMPLT, other)

    def __neg__(self) -> Pat:
        return Pat(Op.NEG, self)

    def eq(self, other: Pat | bool | int | float) -> Pat:
        """CMPEQ; `==` keeps its Python meaning."""
        return self._binary(Op.CMPEQ, other)

    def ne(self, other: Pat | bool | int | float) -> Pat:
        """CMPNE."""
        return self._binary(Op.CMPNE, other)

    def max(self, other: Pat | int | float) -> Pat:
        """MAX."""
        return self._binary(Op.MAX, other)

    def min(self, other: Pat | int | float) -> Pat:
        """MIN."""
        return self._binary(Op.MIN, other)

    def cast(self) -> Pat:
        """CAST to any dtype."""
        return Pat(Op.CAST, self)


def var(name: str, dtype: Callable[[DType], bool] | None = None) -> Pat:
    """Any node, captured; the same name twice in a pattern is the identical node."""
    return Pat(name=name, dtype=dtype)


def constant(name: str, dtype: Callable[[DType], bool] | None = None) -> Pat:
    """Any CONST, captured."""
    return Pat(Op.CONST, name=name, dtype=dtype)


def number(value: bool | int | float) -> Pat:
    """A CONST of that value in any dtype; for 0.0 and -0.0 the sign counts."""
    return Pat(Op.CONST, value=value)


def select(condition: Pat, a: Pat, b: Pat) -> Pat:
    """WHERE."""
    return Pat(Op.WHERE, condition, a, b)


def _orders(p: Pat) -> list[tuple[Pat, ...] | None]:
    """The orders in which a pattern's sources may stand, each source in each of its own orders."""
    if p.src is None:
        return [None]
    found: list[tuple[Pat, ...] | None] = []
    for choice in itertools.product(*[_variants(s) for s in p.src]):
        found.append(choice)
    swaps = not p.ordered and p.ops is not None and all(op in COMMUTATIVE for op in p.ops)
    if swaps and len(p.src) == 2 and p.src[0] is not p.src[1]:
        found += [(c[1], c[0]) for c in found if c is not None]
    return found


def _variants(p: Pat) -> list[Pat]:
    """The pattern once per order of commutative sources; each is matched without a choice."""
    return [p._copy(src=src) for src in _orders(p)] if p.src is not None else [p]


def _holds(value: bool | int | float) -> Test:
    """Whether a CONST holds the value."""
    if isinstance(value, float) and math.isnan(value):
        return lambda u: bool(u.arg != u.arg)
    if value == 0:
        sign = math.copysign(1.0, value)
        return lambda u: bool(u.arg == 0) and math.copysign(1.0, u.arg) == sign
    return lambda u: bool(u.arg == value)


def _compile(p: Pat, known: int = 0) -> Check:
    """A function that tells whether a node matches one variant, and fills in the captures.

    `known` 2: the op and dtype of the node and the ops of its sources fit already; 1: its op.
    """
    tests: list[Check] = []
    if p.ops is not None and not known:
        if len(p.ops) == 1:
            op = p.ops[0]
            tests.append(lambda u, found: u.op is op)
        else:
            ops = frozenset(p.ops)
            tests.append(lambda u, found: u.op in ops)
    if p.value is not None:
        holds = _holds(p.value)
        tests.append(lambda u, found: holds(u))
    if p.dtype is not None and known < 2:
        has_dtype = p.dtype
        tests.append(lambda u, found: has_dtype(u.dtype))
    if p.where is not None:
        where = p.where
        tests.append(lambda u, found: where(u))
    if p.name is not None:
        name = p.name
        tests.append(lambda u, found: found.setdefault(name, u) is u)
    if p.src is not None:
        parts = [_compile(s, max(known - 1, 0)) for s in p.src]
        tests.append(_sources(parts))
    return reduce(_both, tests) if tests else lambda u, found: True


def _both(first: Check, second: Check) -> Check:
    return lambda u, found: first(u, found) and second(u, found)


def _sources(parts: list[Check]) -> Check:
    if len(parts) == 1:
        (only,) = parts
        return lambda u, found: len(u.src) == 1 and only(u.src[0], found)
    if len(parts) == 2:
        first, second = parts
        return lambda u, found: (
            len(u.src) == 2 and first(u.src[0], found) and second(u.src[1], found)
        )
    return lambda u, found: (
        len(u.src) == len(parts) and all(p(s, found) for p, s in zip(parts, u.src))
    )


def _may_match(p: Pat, node: UOp) -> bool:
    """Whether a variant can match any node with this node's op, dtype and ops of sources."""
    if p.ops is not None and node.op not in p.ops:
        return False
    if p.dtype is not None and not p.dtype(node.dtype):
        return False
    if p.src is None:
        return True
    return len(p.src) == len(node.src) and all(
        q.ops is None or s.op in q.ops for q, s in zip(p.src, node.src)
    )


class Rule:
    """A named law: where the pattern matches, `fn(**captures)` is equal; None is no answer.

    A function with a parameter `ctx` also gets what the caller of `rewrite` passed. Names of
    rules are unique in a table.
    """

    __slots__ = ("_checks", "_takes_ctx", "_variants", "fn", "name", "pattern")

    def __init__(self, name: str, pattern: Pat, fn: Callable[..., UOp | None]) -> None:
        self.name, self.pattern, self.fn = name, pattern, fn
        variants = _variants(pattern)
        if len(variants) > _MAX_ORDERS:
            fail(
                ArgumentError,
                f"rule {name}: {len(variants)} orders of commutative sources",
                fix="Fix an order with Pat.in_order()",
            )
        self._variants = variants
        self._checks = [_compile(v) for v in variants]
        self._takes_ctx = "ctx" in inspect.signature(fn).parameters

    @property
    def ops(self) -> tuple[Op, ...] | None:
        """The ops its root may be, None for any."""
        return self.pattern.ops

    def match(self, node: UOp) -> Captures | None:
        """The captured nodes of the first order that matches."""
        for check in self._checks:
            found: Captures = {}
            if check(node, found):
                return found
        return None

    def apply(self, node: UOp, ctx: Any = None) -> UOp | None:
        """The rewritten node; None where the rule does not match, or leaves the node as it is."""
        return self._run(self._checks, node, ctx)

    def _run(self, checks: Sequence[Check], node: UOp, ctx: Any) -> UOp | None:
        for check in checks:
            found: Captures = {}
            if check(node, found):
                made = self.fn(**found, ctx=ctx) if self._takes_ctx else self.fn(**found)
                if made is not None and made is not node:
                    return made
        return None

    def _checks_for(self, node: UOp) -> tuple[Check, ...]:
        """The checks that nodes of this op, dtype and ops of sources can pass."""
        return tuple([_compile(v, 2) for v in self._variants if _may_match(v, node)])

    def __repr__(self) -> str:
        return f"Rule({self.name})"


class Rules:
    """A table of rules in order; the first that answers wins. Tables are joined with `+`."""

    __slots__ = ("_candidates", "rows")

    def __init__(self, *rows: Rule) -> None:
        self.rows = rows
        names: set[str] = set()
        for row in rows:
            if row.name in names:
                fail(ArgumentError, f"two rules are named {row.name}", fix="Rename one")
            names.add(row.name)
        # By op, dtype and ops of sources: the rules that can match, with their checks.
        self._candidates: dict[Any, list[tuple[Rule, tuple[Check, ...]]]] = {}

    def of(self, op: Op) -> tuple[Rule, ...]:
        """The rules whose root may be that op, in order."""
        return tuple([r for r in self.rows if r.ops is None or op in r.ops])

    def apply(self, node: UOp, ctx: Any = None) -> tuple[Rule, UOp] | None:
        """The first rule that changes the node, and what it becomes."""
        src = node.src
        key: Any
        if len(src) == 2:
            key = node.op, node.dtype, src[0].op, src[1].op
        elif len(src) < 2:
            key = node.op, node.dtype, src[0].op if src else None
        else:
            key = node.op, node.dtype, *[s.op for s in src]
        candidates = self._candidates.get(key)
        if candidates is None:
            found = [(r, r._checks_for(node)) for r in self.rows]
            candidates = self._candidates[key] = [row for row in found if row[1]]
        for rule, checks in candidates:
            made = rule._run(checks, node, ctx)
            if made is not None:
                return rule, made
        return None

    def __add__(self, other: Rules) -> Rules:
        return Rules(*self.rows, *[r for r in other.rows if r not in self.rows])

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"Rules({', '.join(r.name for r in self.rows)})"
