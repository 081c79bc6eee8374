"""Accesses in bounds, proved by z3: independent of the interval analysis that the verifier uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import z3

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.bounds import bounds
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_access import accesses
from loopwright_core.ir.uop import FALSE, Extent, UOp, Variable, extent_uop, toposort
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.program.program import Program

TIMEOUT_MS = 10_000


@dataclass
class Report:
    """How many accesses were proved; the others with a counterexample; the time-outs."""

    proved: int = 0
    unproved: list[str] = field(default_factory=list)
    timeouts: list[str] = field(default_factory=list)

    @property
    def counts(self) -> tuple[int, int, int]:
        """(proved, unproved, timeouts)."""
        return self.proved, len(self.unproved), len(self.timeouts)


def prove_kernel(kernel: Kernel) -> Report:
    """Every index of every level-2 access lies inside its axis where the access is valid."""
    prover = _Prover()
    for node in kernel.nodes:
        if node.op is Op.INDEX and node.src[-1] is not FALSE:
            for k, (n, i) in enumerate(zip(node.arg, node.src[1:-1], strict=True)):
                around = [d for d in node.toposort() if d.op is Op.DIM]
                prover.prove(f"index {k} of {node!r}", i, extent_uop(n), (node.src[-1],), around)
    return prover.report


def prove_program(program: Program) -> Report:
    """Every lane of every level-3 access lies inside its array, and no offset wraps."""
    prover = _Prover()
    for phase in program.phases:
        for a in accesses(phase, program.arrays):
            what = f"{a.statement!r} of {a.name} in {phase.name}"
            prover.prove(what, a.offset, a.size, a.conditions, a.loops)
    return prover.report


class _Prover:
    """One solver for many questions, each distinct one asked once."""

    def __init__(self) -> None:
        self.report = Report()
        self.solver = z3.Solver()
        self.solver.set("timeout", TIMEOUT_MS)
        self.terms = _Terms()
        self.asked: dict[tuple[Any, ...], Any] = {}

    def prove(
        self,
        what: str,
        offset: UOp,
        size: UOp,
        conditions: tuple[UOp, ...],
        around: Iterable[UOp],
    ) -> None:
        """0 <= offset < size where the conditions hold inside these loops."""
        key = (offset, size, conditions, tuple(around))
        if key not in self.asked:
            # A condition must be exact by itself before it may be assumed.
            wanted = self.terms.exact(conditions)
            answer = self.ask(wanted, (), conditions, key[3]) if wanted else z3.unsat
            if answer == z3.unsat:
                at, n = self.terms.of(offset), self.terms.of(size)
                wanted = [at >= 0, at < n, *self.terms.exact((offset, size))]
                answer = self.ask(wanted, conditions, (offset, size, *conditions), key[3])
            self.asked[key] = answer
        answer = self.asked[key]
        if answer == z3.unsat:
            self.report.proved += 1
        elif answer == z3.sat:
            self.report.unproved.append(what)
        else:
            self.report.timeouts.append(what)

    def ask(
        self,
        wanted: list[Any],
        assumed: tuple[UOp, ...],
        roots: tuple[UOp, ...],
        around: tuple[UOp, ...],
    ) -> Any:
        """Whether any values inside the leaves' ranges break what is wanted."""
        assumptions = [self.terms.of(c) for c in assumed]
        self.solver.push()
        self.solver.add(*self.terms.domains((*roots, *around)), *assumptions)
        self.solver.add(z3.Not(z3.And(*wanted)))
        answer = self.solver.check()
        self.solver.pop()
        return answer


class _Terms:
    """UOps as exact integers and booleans; what is neither is an unknown of its dtype's range."""

    def __init__(self) -> None:
        self.made: dict[UOp, Any] = {}
        self.domain: dict[UOp, list[Any]] = {}
        self.n_unknowns = 0

    def of(self, root: UOp) -> Any:
        """The term of a scalar integer or bool node."""
        for node in toposort((root,), self._is_open):
            if node not in self.made:
                self.made[node] = self._make(node) if self._is_open(node) else self._unknown(node)
        return self.made[root]

    def _is_open(self, node: UOp) -> bool:
        exact = node.op in _RULES and not node.dtype.is_float and node.dtype.lanes == 1
        return exact and not any(s.dtype.is_float or s.dtype.lanes > 1 for s in node.src)

    def _make(self, node: UOp) -> Any:
        if node.op is Op.CONST:
            value = node.arg
            return z3.BoolVal(value) if node.dtype.is_bool else z3.IntVal(value)
        made = _RULES[node.op](node, *[self.made[s] for s in node.src])
        return self._unknown(node) if made is None else made

    def _unknown(self, node: UOp) -> Any:
        self.n_unknowns += 1
        name = f"{node.op.name}_{self.n_unknowns}"
        if node.dtype.is_bool:
            return z3.Bool(name)
        term = z3.Int(name)
        low, high = (0, None) if node.op in _COUNTS else bounds(node)
        self.domain[node] = [term >= low]
        if high is not None:
            self.domain[node].append(term <= high)
        if node.op in _COUNTS:
            self.domain[node].append(term < self.of(_extent(node)))
        return term

    def domains(self, roots: tuple[UOp, ...]) -> Iterator[Any]:
        """The ranges of all leaves below these nodes."""
        for root in roots:
            self.of(root)
        waiting, seen = list(roots), set()
        while waiting:
            for node in toposort((waiting.pop(),)):
                if node in seen:
                    continue
                seen.add(node)
                if node in self.domain:
                    yield from self.domain[node]
                if node.op in _COUNTS:
                    waiting.append(_extent(node))

    def exact(self, roots: tuple[UOp, ...]) -> list[Any]:
        """That no fixed-width node above the leaves wraps; intervals show most of them."""
        wanted = []
        for node in toposort(roots, self._is_open):
            dtype = node.dtype
            if not self._is_open(node) or not dtype.is_int or dtype is dt.index or node.op in _LEAF:
                continue
            low, high = int(dtype.min), int(dtype.max)
            if bounds(node) == (low, high):
                term = self.of(node)
                wanted.append(z3.And(term >= low, term <= high))
        return wanted


_COUNTS = frozenset({Op.DIM, Op.RANGE, Op.SPECIAL})
_LEAF = frozenset({Op.CONST, Op.VAR})


def _extent(node: UOp) -> UOp:
    """How many values a counting leaf takes."""
    if node.op is Op.RANGE:
        return node.src[0]
    size: Extent | UOp = node.arg.size if node.op is Op.DIM else node.arg[1]
    if isinstance(size, UOp):
        return size
    return _sized(size, node.dtype)


def _sized(size: Extent, dtype: DType) -> UOp:
    if isinstance(size, Variable):
        return UOp(Op.VAR, dtype, (), size)
    return UOp(Op.CONST, dtype, (), size)


def _floor(a: Any, b: Any) -> Any:
    """a // b rounded down, 0 where b is 0; z3's own quotient makes the remainder positive."""
    return z3.If(b == 0, 0, z3.If(b > 0, a / b, (-a) / (-b)))


def _truncated(a: Any, b: Any) -> Any:
    """a / b rounded to zero."""
    size = z3.If(a >= 0, a, -a) / z3.If(b >= 0, b, -b)
    return z3.If((a >= 0) == (b >= 0), size, -size)


def _logic(join: Any) -> Any:
    def make(node: UOp, a: Any, b: Any) -> Any:
        return join(a, b) if node.dtype.is_bool else None

    return make


def _cast(node: UOp, x: Any) -> Any:
    """A value that its new dtype holds; one that may wrap is unknown."""
    if node.dtype.is_bool or node.src[0].dtype.is_bool:
        return None
    low, high = bounds(node.src[0])
    fits = int(node.dtype.min) <= low and high <= int(node.dtype.max)
    return x if fits else None


def _compare(node: UOp, a: Any, b: Any) -> Any:
    if node.op is Op.CMPLT:
        return None if node.src[0].dtype.is_bool else a < b
    return a == b if node.op is Op.CMPEQ else a != b


def _shift(node: UOp, a: Any, b: Any) -> Any:
    amount = node.src[1]
    if amount.op is not Op.CONST or not 0 <= amount.arg < node.dtype.bits:
        return None
    return a * 2**amount.arg if node.op in (Op.CSHL, Op.SHL) else a / 2**amount.arg


_RULES: dict[Op, Any] = {
    Op.CONST: None,
    Op.ADD: lambda node, a, b: z3.Or(a, b) if node.dtype.is_bool else a + b,
    Op.SUB: lambda node, a, b: a - b,
    Op.MUL: lambda node, a, b: z3.And(a, b) if node.dtype.is_bool else a * b,
    Op.NEG: lambda node, a: -a,
    Op.FLOORDIV: lambda node, a, b: _floor(a, b),
    Op.MOD: lambda node, a, b: z3.If(b == 0, 0, a - b * _floor(a, b)),
    Op.CDIV: lambda node, a, b: _truncated(a, b),
    Op.CMOD: lambda node, a, b: a - b * _truncated(a, b),
    Op.MAX: lambda node, a, b: z3.Or(a, b) if node.dtype.is_bool else z3.If(a > b, a, b),
    Op.MIN: lambda node, a, b: z3.And(a, b) if node.dtype.is_bool else z3.If(a < b, a, b),
    Op.AND: _logic(z3.And),
    Op.OR: _logic(z3.Or),
    Op.XOR: _logic(z3.Xor),
    Op.WHERE: lambda node, c, a, b: z3.If(c, a, b),
    Op.CMPLT: _compare,
    Op.CMPEQ: _compare,
    Op.CMPNE: _compare,
    Op.CAST: _cast,
    Op.CSHL: _shift,
    Op.CSHR: _shift,
    Op.SHL: _shift,
    Op.SHR: _shift,
}
