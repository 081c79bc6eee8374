"""Builds level-3 programs by hand, runs them through a compiler and through the interpreter."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import Buffer, Extent, UOp, Variable, const
from loopwright_core.oracle.program import run_program
from loopwright_core.program.program import (
    Estimate,
    Local,
    Loop,
    Param,
    Phase,
    Program,
    Register,
)
from loopwright_render_clang import compilers
from loopwright_render_clang.compile import compile_c, entries
from loopwright_render_clang.compilers import Compiler
from loopwright_render_clang.cpu import host
from loopwright_render_clang.render import render
from loopwright_render_clang.runtime import Loaded, allocate, from_host

I32, I64 = dt.int32, dt.int64


class Builder:
    """One list under construction: every method appends what it returns."""

    def __init__(self, name: str = "kernel") -> None:
        self.name = name
        self.uops: list[UOp] = []
        self.params: list[Param] = []
        self.variables: list[Variable] = []
        self.threads = 1
        self.phases: list[Phase] = []
        self._n = 0

    def add(self, op: Op, dtype: DType, *src: UOp, arg: Any = None) -> UOp:
        node = UOp(op, dtype, src, arg)
        if node not in self.uops:
            self.uops.append(node)
        return node

    def _id(self) -> int:
        self._n += 1
        return self._n

    def buffer(
        self, name: str, dtype: DType, shape: Sequence[Extent], is_output: bool = False
    ) -> UOp:
        slot = len(self.params)
        self.params.append(Param(slot, name, dtype, tuple(shape), is_output))
        return UOp(Op.BUFFER, dtype, (), Buffer(slot, tuple(shape)))

    def variable(self, name: str, lo: int, hi: int, dtype: DType = I32) -> UOp:
        v = Variable(name, lo, hi)
        self.variables.append(v)
        return UOp(Op.VAR, dtype, (), v)

    def range(self, extent: UOp | int, name: str, dtype: DType = I32) -> UOp:
        extent = extent if isinstance(extent, UOp) else const(extent, dtype)
        return self.add(Op.RANGE, dtype, extent, arg=Loop(self._id(), name))

    @contextmanager
    def loop(self, extent: UOp | int, name: str, dtype: DType = I32) -> Iterator[UOp]:
        r = self.range(extent, name, dtype)
        yield r
        self.add(Op.END, dt.void, r)

    def reg(self, initial: UOp, name: str) -> UOp:
        return self.add(Op.DEFINE_REG, initial.dtype, initial, arg=Register(self._id(), name))

    def local(self, dtype: DType, size: int, name: str) -> UOp:
        return self.add(Op.DEFINE_LOCAL, dtype, arg=Local(self._id(), name, size))

    def assign(self, reg: UOp, value: UOp) -> UOp:
        return self.add(Op.ASSIGN, value.dtype, reg, value)

    def after(self, x: UOp, *deps: UOp) -> UOp:
        return self.add(Op.AFTER, x.dtype, x, *deps)

    def index(self, storage: UOp, offset: UOp | int, valid: UOp | None = None) -> UOp:
        offset = offset if isinstance(offset, UOp) else const(offset, I32)
        src = (storage, offset) if valid is None else (storage, offset, valid)
        return self.add(Op.INDEX, storage.dtype, *src)

    def load(
        self,
        storage: UOp,
        offset: UOp | int,
        lanes: int = 1,
        valid: UOp | None = None,
        fill: UOp | None = None,
    ) -> UOp:
        src = [self.index(storage, offset, valid)] + ([] if fill is None else [fill])
        return self.add(Op.LOAD, storage.dtype.vec(lanes), *src)

    def store(
        self,
        storage: UOp,
        offset: UOp | int,
        value: UOp,
        valid: UOp | None = None,
        arg: Any = None,
    ) -> UOp:
        return self.add(Op.STORE, dt.void, self.index(storage, offset, valid), value, arg=arg)

    def op(self, op: Op, *src: UOp, dtype: DType | None = None) -> UOp:
        if dtype is None:
            dtype = dt.bool_.vec(src[0].dtype.lanes) if op in COMPARE else src[-1].dtype
        return self.add(op, dtype, *src)

    def splat(self, scalar: UOp, lanes: int) -> UOp:
        return self.add(Op.BROADCAST, scalar.dtype.vec(lanes), scalar)

    def lanes(self, dtype: DType, values: Sequence[Any]) -> UOp:
        """A vector of constants."""
        return self.add(Op.VECTORIZE, dtype.vec(len(values)), *[const(v, dtype) for v in values])

    def iota(self, start: UOp, lanes: int) -> UOp:
        """start, start + 1, ... as lanes."""
        steps = self.lanes(start.dtype, range(lanes))
        return self.op(Op.ADD, self.splat(start, lanes), steps)

    def next_phase(self) -> None:
        name = self.name if not self.phases else f"{self.name}_{len(self.phases)}"
        self.phases.append(Phase(name, tuple(self.uops), self.threads))
        self.uops, self.threads = [], 1

    def program(self) -> Program:
        self.next_phase()
        return Program(
            self.name,
            tuple(self.phases),
            tuple(self.params),
            tuple(self.variables),
            Estimate(0, 0),
        )


@cache
def installed() -> dict[str, Compiler]:
    """The compilers of this machine by kind; other installations through LOOPWRIGHT_TEST_CC."""
    found: dict[str, Compiler] = {}
    argvs = compilers.candidates()
    argvs += [(p,) for v in range(30, 13, -1) if (p := shutil.which(f"clang-{v}"))]
    argvs += [tuple(c.split()) for c in os.environ.get("LOOPWRIGHT_TEST_CC", "").split(":") if c]
    for argv in argvs:
        compiler, _ = compilers.probe(argv)
        if compiler is not None:
            found.setdefault(compiler.kind, compiler)
    return found


def run_c(
    program: Program,
    arrays: Sequence[np.ndarray],
    variables: Sequence[int] = (),
    compiler: Compiler | None = None,
    extra: tuple[str, ...] = (),
    target: Any = None,
) -> list[np.ndarray]:
    """The output arrays after one launch on copies of all arrays."""
    compiler = compiler or compilers.find()
    text = render(program, target or host())
    binary = compile_c(text + entries(program), program.name, compiler, extra)
    copies = [np.ascontiguousarray(a).copy() for a in arrays]
    memory = []
    for a in copies:
        m = allocate(a.nbytes)
        np.asarray(m)[:] = a.reshape(-1).view(np.uint8)
        memory.append(m)
    Loaded(binary, program).bind(memory, variables)()
    out = []
    for p, a, m in zip(program.params, copies, memory):
        if p.is_output:
            out.append(np.asarray(m)[: a.nbytes].view(a.dtype).reshape(a.shape).copy())
    return out


def run_oracle(
    program: Program, arrays: Sequence[np.ndarray], variables: Sequence[int] = ()
) -> list[np.ndarray]:
    """The output arrays as the interpreter has them."""
    copies = [np.ascontiguousarray(a).copy() for a in arrays]
    named = dict(zip([v.name for v in program.variables], variables))
    run_program(program, dict(enumerate(copies)), named)
    return [a for p, a in zip(program.params, copies) if p.is_output]


def assert_same(got: Sequence[np.ndarray], want: Sequence[np.ndarray], names: Any = None) -> None:
    """Equal bit for bit, but for which NaN it is."""
    for k, (g, w) in enumerate(zip(got, want, strict=True)):
        bad = ~((g == w) | ((g != g) & (w != w)))
        if g.dtype.kind == "f":
            bad |= (np.signbit(g) != np.signbit(w)) & (g == g)
        where = names[k] if names else k
        assert not bad.any(), (where, np.argwhere(bad)[:4].tolist(), g[bad][:4], w[bad][:4])


def check(
    program: Program,
    arrays: Sequence[np.ndarray],
    variables: Sequence[int] = (),
    compiler: Compiler | None = None,
    extra: tuple[str, ...] = (),
) -> None:
    """The compiled program equals the interpreter."""
    names = [p.name for p in program.params if p.is_output]
    want = run_oracle(program, arrays, variables)
    assert_same(run_c(program, arrays, variables, compiler, extra), want, names)


__all__ = ["from_host"]
