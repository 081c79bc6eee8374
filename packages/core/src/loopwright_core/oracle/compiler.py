"""A flat list of level-3 nodes as closures over an environment, one thread at a time.

A value is a NumPy scalar, or an array with one element a lane on its last axis. Elementwise
closures never look at leading axes: `lockstep.py` runs them on values with a leading axis over
threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.ops import ELEMENTWISE, RAW, Op
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.access import load_step, store_step
from loopwright_core.oracle.alu import compute, constant, undefined
from loopwright_core.oracle.memory import Cells, size_of
from loopwright_core.oracle.multiply import multiply_step, tile_step
from loopwright_core.program.program import Phase

Env = list[Any]
Step = Callable[[Env], None]
Variables = Mapping[str, int]
Functions = dict[str, Callable[..., Any]]
_ALIASES = frozenset({Op.AFTER, Op.ASSIGN})
_NO_EFFECT = frozenset({Op.AFTER, Op.INDEX, Op.PREFETCH, Op.FENCE})
_LATER = frozenset({Op.BARRIER, Op.SHUFFLE})


class Compiler:
    """Turns a phase into steps over an environment; place 0 holds the running thread's number."""

    def __init__(
        self,
        phase: Phase,
        memory: dict[int, Cells],
        variables: Variables,
        functions: Functions,
    ) -> None:
        self.phase, self.memory, self.variables = phase, memory, variables
        self.functions = functions
        self.places: dict[UOp, int] = {}
        self.initial: Env = [0]
        self.threads: list[tuple[int, UOp]] = []
        self.locals: dict[UOp, Cells] = {}

    def start(self, thread: int) -> Env:
        """A fresh environment: leaves filled in, everything else not yet computed."""
        env = list(self.initial)
        env[0] = thread
        for place, node in self.threads:
            env[place] = node.dtype.numpy.type(thread)
        return env

    def steps(self) -> list[Step]:
        """The phase's statements, loops and branches nested."""
        blocks: list[tuple[UOp | None, list[Step]]] = [(None, [])]
        for number, node in enumerate(self.phase.uops):
            where = f"#{number} {node!r} of {self.phase.name}"
            if node.op in (Op.RANGE, Op.IF):
                self.place(node.src[0], where)
                self.declare(node)
                blocks.append((node, []))
            elif node.op in (Op.END, Op.ENDIF):
                opener, body = blocks.pop()
                if opener is None or opener is not node.src[0]:
                    fail(VerifyError, f"{where} does not close what was opened last")
                blocks[-1][1].append(self.block(opener, body))
            elif node.op not in _NO_EFFECT:
                blocks[-1][1].append(self.step(node, where))
        if len(blocks) != 1:
            fail(VerifyError, f"{blocks[-1][0]!r} of {self.phase.name} is never closed")
        return blocks[0][1]

    def declare(self, node: UOp) -> int:
        """A new place for a node's value."""
        self.places[node] = place = len(self.initial)
        self.initial.append(None)
        return place

    def place(self, node: UOp, user: str) -> int:
        """Where a node's value lies. Raises VerifyError for one that is not computed before."""
        while node.op in _ALIASES:
            node = node.src[0]
        found = self.places.get(node)
        if found is not None:
            return found
        if node.op is Op.CONST:
            value: Any = constant(node)
        elif node.op is Op.VAR:
            value = node.dtype.numpy.type(size_of(node.arg, self.variables))
        elif node.op is Op.SPECIAL:
            value = None
            self.check_id(node, user)
        else:
            fail(VerifyError, f"{user} uses {node!r}, which does not stand before it")
        place = self.declare(node)
        self.initial[place] = value
        if node.op is Op.SPECIAL:
            self.threads.append((place, node))
        return place

    def check_id(self, node: UOp, user: str) -> None:
        """Raises VerifyError for an id that the launch does not supply."""
        if node.arg[0] != "thread":
            fail(VerifyError, f"{node!r} is an id the interpreter does not supply", where=user)

    def cells(self, storage: UOp, user: str) -> Cells:
        """The memory behind a BUFFER, a DEFINE_LOCAL or an AFTER of one."""
        while storage.op is Op.AFTER:
            storage = storage.src[0]
        found = self.locals.get(storage)
        if found is None and storage.op is Op.BUFFER:
            found = self.memory.get(storage.arg.slot)
        if found is None:
            fail(VerifyError, f"{user} uses {storage!r}, which is no declared memory")
        return found

    def block(self, opener: UOp, body: list[Step]) -> Step:
        condition = self.place(opener.src[0], repr(opener))
        steps = tuple(body)
        if opener.op is Op.IF:

            def branch(env: Env) -> None:
                if env[condition]:
                    for step in steps:
                        step(env)

            return branch
        variable, kind = self.places[opener], opener.dtype.numpy.type

        def loop(env: Env) -> None:
            for value in map(kind, range(int(env[condition]))):
                env[variable] = value
                for step in steps:
                    step(env)

        return loop

    def step(self, node: UOp, where: str) -> Step:
        """One statement. A node with a value gets its place after its sources are found."""
        op = node.op
        if op is Op.LOAD:
            return load_step(self, node, where)
        if op is Op.STORE:
            return store_step(self, node, where)
        if op is Op.DEFINE_LOCAL:
            array = np.empty(node.arg.size, node.dtype.scalar.numpy)
            cells = self.locals[node] = Cells(node.arg.name, array, True, is_local=True)
            return lambda env: cells.forget()
        if op is Op.ASSIGN:
            value, target = self.place(node.src[1], where), self.place(node.src[0], where)

            def assign(env: Env) -> None:
                env[target] = env[value]

            return assign
        if op in (Op.TILE_LOAD, Op.TILE_STORE):
            return tile_step(self, node, where)
        if op is Op.WMMA:
            return multiply_step(self, node, where)
        if op in _LATER:
            fail(VerifyError, f"{where}: the interpreter runs no {op.name} yet")
        sources = [self.place(s, where) for s in node.src]
        target = self.declare(node)
        if op is Op.DEFINE_REG:
            (value,) = sources

            def define(env: Env) -> None:
                env[target] = env[value]

            return define
        f = self.function(node, where)
        if len(sources) == 2:
            first, second = sources

            def binary(env: Env) -> None:
                env[target] = f(env[first], env[second])

            return binary
        if len(sources) == 1:
            (only,) = sources

            def unary(env: Env) -> None:
                env[target] = f(env[only])

            return unary

        def general(env: Env) -> None:
            env[target] = f(*[env[s] for s in sources])

        return general

    def function(self, node: UOp, where: str) -> Callable[..., Any]:
        """The function of a node that only computes."""
        if node.op is not Op.CALL:
            f = function_of(node, where)
            return _checked(f, node, where) if may_be_undefined(node) else f
        if node.arg not in self.functions:
            fail(VerifyError, f"{where} calls {node.arg!r}, which the program has not")
        return self.functions[node.arg]


def function_of(node: UOp, where: str) -> Callable[..., Any]:
    """The function of a node that only computes."""
    op, lanes = node.op, node.dtype.lanes
    if op is Op.BROADCAST:
        kind = node.dtype.numpy

        def broadcast(x: Any) -> Any:
            return (
                np.repeat(x[..., None], lanes, axis=-1) if np.ndim(x) else np.full(lanes, x, kind)
            )

        return broadcast
    if op is Op.VECTORIZE:
        kind = node.dtype.numpy

        def vectorize(*xs: Any) -> Any:
            if any(map(np.ndim, xs)):
                return np.stack(np.broadcast_arrays(*xs), axis=-1)
            return np.array(xs, kind)

        return vectorize
    if op is Op.LANE:
        which = node.arg
        return lambda x: x[..., which]
    if op not in ELEMENTWISE and op not in RAW:
        fail(VerifyError, f"{where}: {op.name} is no op of a program")
    return compute(op, node.dtype, tuple([s.dtype for s in node.src]), node.arg)


def may_be_undefined(node: UOp) -> bool:
    """A raw op, but for a constant divisor or amount that is fine whatever the other source."""
    if node.op not in RAW or node.op is Op.FMA:
        return False
    if node.op is Op.FTOI:
        return True
    amount = node.src[1]
    if amount.op is Op.BROADCAST:
        amount = amount.src[0]
    if amount.op is not Op.CONST:
        return True
    if node.op in (Op.CDIV, Op.CMOD):
        return amount.arg in (0, -1)
    return not 0 <= amount.arg < node.dtype.bits


def _checked(f: Callable[..., Any], node: UOp, where: str) -> Callable[..., Any]:
    op, dtype = node.op, node.dtype

    def run(*values: Any) -> Any:
        why = undefined(op, dtype, values)
        if why is not None:
            fail(VerifyError, f"{where} {why}")
        return f(*values)

    return run
