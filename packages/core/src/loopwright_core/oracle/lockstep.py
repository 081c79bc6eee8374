"""Level 3 on a grid: every value has a leading axis over threads, which run in lock-step.

A workgroup that shares memory or meets barriers runs alone; where nothing is shared, many
workgroups run as one batch. A thread that a branch or a loop leaves out touches no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.access import stores_once
from loopwright_core.oracle.alu import compute, undefined
from loopwright_core.oracle.compiler import (
    Compiler,
    Env,
    Functions,
    Step,
    Variables,
    function_of,
    may_be_undefined,
)
from loopwright_core.oracle.memory import Array, Cells, size_of
from loopwright_core.oracle.multiply import multiply_together
from loopwright_core.oracle.threads import Private, Watched
from loopwright_core.program.program import Phase

# Threads of a batch of workgroups that share nothing.
_BATCH = 1 << 16


def run_grid(
    phase: Phase,
    memory: dict[int, Cells],
    variables: Variables,
    functions: Functions,
) -> None:
    """Run every workgroup of a phase over watched memory; outputs are written in place.

    Raises VerifyError as `run_program` says.
    """
    assert phase.global_size is not None
    compiled = Lockstep(phase, memory, variables, functions)
    steps = compiled.steps()
    groups = tuple([_number(n, variables) for n in phase.global_size])
    local = phase.local_size or (1,)
    one, total = prod(local), prod(groups)
    alone = bool(compiled.shared) or any(n.op is Op.BARRIER for n in phase.uops)
    step = 1 if alone else max(1, _BATCH // one)
    for first in range(0, total, step):
        env = compiled.begin(first, min(step, total - first), groups, local)
        for run in steps:
            run(env)


def _number(node: UOp, variables: Variables) -> int:
    """The value of a launch size: constants, variables and arithmetic on them."""
    done: dict[UOp, Any] = {}
    for n in node.toposort():
        if n.op is Op.CONST:
            done[n] = n.dtype.numpy.type(n.arg) if n.dtype.is_int else np.int64(n.arg)
        elif n.op is Op.VAR:
            done[n] = np.int64(size_of(n.arg, variables))
        else:
            f = compute(n.op, n.dtype, tuple([s.dtype for s in n.src]), n.arg)
            done[n] = f(*[done[s] for s in n.src])
    return int(done[node])


class Lockstep(Compiler):
    """Place 0 of the environment holds which threads run here: None for all, else an array."""

    def __init__(
        self,
        phase: Phase,
        memory: dict[int, Cells],
        variables: Variables,
        functions: Functions,
    ) -> None:
        super().__init__(phase, memory, variables, functions)
        self.count = 0
        self.batch = np.zeros(0, np.int64)  # a thread's number in the batch
        self.numbers = np.zeros(0, np.int64)  # ... and in the launch
        self.shared: list[Watched] = []

    def begin(self, first: int, groups: int, grid: tuple[int, ...], local: tuple[int, ...]) -> Env:
        """The environment of some workgroups in a row, counted along the first id first."""
        one = prod(local)
        self.count = groups * one
        self.batch = np.arange(self.count, dtype=np.int64)
        self.numbers = first * one + self.batch
        ids: dict[str, Array] = {}
        for name, rest, sizes in (
            ("gidx", self.numbers // one, grid),
            ("lidx", self.numbers % one, local),
        ):
            for n, size in enumerate(sizes):
                ids[f"{name}{n}"] = rest % size
                rest = rest // size
        env = list(self.initial)
        env[0] = None
        for place, node in self.threads:
            env[place] = ids[node.arg[0]].astype(node.dtype.numpy)
        return env

    def check_id(self, node: UOp, user: str) -> None:
        name = str(node.arg[0])
        sizes = {"gidx": self.phase.global_size, "lidx": self.phase.local_size}.get(name[:4]) or ()
        if name[4:] not in map(str, range(len(sizes))):
            fail(VerifyError, f"{node!r} is an id the launch does not supply", where=user)

    # Branches

    def block(self, opener: UOp, body: list[Step]) -> Step:
        condition = self.place(opener.src[0], repr(opener))
        steps = tuple(body)

        def narrowed(env: Env, runs: Any) -> None:
            """Run the body for those threads."""
            before = env[0]
            if np.ndim(runs) == 0:
                if not runs:
                    return
            else:
                env[0] = runs if before is None else runs & before
                if env[0].all():
                    env[0] = None
            if env[0] is None or env[0].any():
                for step in steps:
                    step(env)
            env[0] = before

        if opener.op is Op.IF:
            return lambda env: narrowed(env, env[condition])
        variable, kind = self.places[opener], opener.dtype.numpy.type

        def loop(env: Env) -> None:
            extent = env[condition]
            for value in map(kind, range(int(np.max(extent)))):
                env[variable] = value
                narrowed(env, value < extent)

        return loop

    # Statements

    def step(self, node: UOp, where: str) -> Step:
        op = node.op
        if op is Op.LOAD:
            return self.load(node, where)
        if op is Op.STORE:
            return self.store(node, where)
        if op is Op.DEFINE_LOCAL:
            return self.array(node)
        if op is Op.BARRIER:
            return self.barrier(where)
        if op is Op.WMMA:
            group = prod(self.phase.local_size or (1,))
            return multiply_together(self, node, where, lambda: self.count, group)
        if op in (Op.TILE_LOAD, Op.TILE_STORE):
            fail(VerifyError, f"{where}: one thread moves whole tiles, but the phase has a grid")
        if op is Op.ASSIGN:
            value, target = self.place(node.src[1], where), self.place(node.src[0], where)
            lanes = node.dtype.lanes

            def assign(env: Env) -> None:
                active, new = env[0], env[value]
                if active is not None:
                    mask = active if lanes == 1 else active[:, None]
                    new = np.where(mask, new, env[target])
                env[target] = new

            return assign
        if may_be_undefined(node):
            return self.raw(node, where)
        return super().step(node, where)

    def array(self, node: UOp) -> Step:
        kind, arg = node.dtype.scalar.numpy, node.arg
        if arg.shared:
            shared = Watched(arg.name, np.empty(arg.size, kind), True, is_local=True)
            self.shared.append(shared)
            self.locals[node] = shared

            def forget(env: Env) -> None:
                shared.forget()
                shared.settle()

            return forget
        private = self.locals[node] = Private(arg.name, arg.size, kind)
        return lambda env: private.allot(self.count)

    def barrier(self, where: str) -> Step:
        def run(env: Env) -> None:
            if env[0] is not None:
                left = int(np.flatnonzero(~env[0])[0])
                fail(VerifyError, f"{where}: thread {left} does not reach the barrier")
            for cells in self.shared:
                cells.settle()

        return run

    def raw(self, node: UOp, where: str) -> Step:
        """An op that hardware leaves undefined for some values: those of active threads count."""
        f, op, dtype, lanes = function_of(node, where), node.op, node.dtype, node.dtype.lanes
        sources = [self.place(s, where) for s in node.src]
        target = self.declare(node)

        def run(env: Env) -> None:
            values = [env[s] for s in sources]
            seen = values
            if env[0] is not None:
                shape = (self.count,) if lanes == 1 else (self.count, lanes)
                seen = [_spread(v, lanes, lanes, shape)[env[0]] for v in values]
            why = undefined(op, dtype, seen)
            if why is not None:
                fail(VerifyError, f"{where} {why}")
            env[target] = f(*values)

        return run

    # Memory

    def load(self, node: UOp, where: str) -> Step:
        index = node.src[0]
        cells = self.cells(index.src[0], where)
        find = self.touched(index, node.dtype.lanes, where)
        fill = self.place(node.src[1], where) if len(node.src) > 1 else None
        fill_lanes = node.dtype.lanes
        target = self.declare(node)
        kind, lanes = node.dtype.scalar.numpy, node.dtype.lanes

        def load(env: Env) -> None:
            offsets, threads, mask = find(env, cells)
            shape = (self.count,) if lanes == 1 else (self.count, lanes)
            if mask is None:
                env[target] = cells.read(where, offsets, threads)
                return
            if fill is None:
                result = np.zeros(shape, kind)
            else:
                result = _spread(env[fill], fill_lanes, lanes, shape).copy()
            if offsets.size:
                result[mask] = cells.read(where, offsets, threads)
            env[target] = result

        return load

    def store(self, node: UOp, where: str) -> Step:
        index, stored = node.src
        cells = self.cells(index.src[0], where)
        lanes = stored.dtype.lanes
        find = self.touched(index, lanes, where)
        value = self.place(stored, where)
        once = stores_once(index)

        def store(env: Env) -> None:
            offsets, threads, mask = find(env, cells)
            full = _spread(env[value], lanes, lanes, threads.shape if mask is None else mask.shape)
            if mask is None:
                cells.write(where, offsets, full, threads, once)
            elif offsets.size:
                cells.write(where, offsets, full[mask], threads, once)

        return store

    def touched(
        self, index: UOp, lanes: int, where: str
    ) -> Callable[[Env, Cells], tuple[Any, Any, Any]]:
        """(offsets, threads, mask) of an access: all elements where the mask is None, else those
        it selects in a row."""
        offset_lanes = index.src[1].dtype.lanes
        offset = self.place(index.src[1], where)
        valid = self.place(index.src[2], where) if len(index.src) > 2 else None
        valid_lanes = index.src[2].dtype.lanes if len(index.src) > 2 else 1
        steps = np.arange(lanes, dtype=np.int64)

        def find(env: Env, cells: Cells) -> tuple[Any, Any, Any]:
            shape = (self.count,) if lanes == 1 else (self.count, lanes)
            offsets = _spread(env[offset], offset_lanes, lanes, shape)
            if lanes > 1 and offset_lanes == 1:
                offsets = offsets + steps
            numbers = self.batch if isinstance(cells, Private) else self.numbers
            threads = _spread(numbers, 1, lanes, shape)
            mask: Any = None
            if env[0] is not None:
                mask = _spread(env[0], 1, lanes, shape)
            if valid is not None:
                on = _spread(env[valid], valid_lanes, lanes, shape)
                mask = on if mask is None else mask & on
            if mask is None:
                return offsets, threads, None
            return offsets[mask], threads[mask], mask

        return find


def _spread(value: Any, value_lanes: int, lanes: int, shape: tuple[int, ...]) -> Any:
    """A value for every thread and lane."""
    value = np.asarray(value)
    if value.shape == shape:
        return value
    if value.ndim == 0:
        return np.full(shape, value)
    if lanes > 1 and value_lanes == 1 and value.ndim == 1:
        value = value[:, None]
    return np.broadcast_to(value, shape)
