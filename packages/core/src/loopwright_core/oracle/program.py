"""Level 3 on NumPy: a flat list compiled to closures and run, every memory access checked.

A phase of a CPU runs its threads one after another; a grid runs its workgroups in lock-step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp
from loopwright_core.oracle.compiler import Compiler, Functions, Step, Variables
from loopwright_core.oracle.lockstep import run_grid
from loopwright_core.oracle.memory import Array, Cells, flat, size_of
from loopwright_core.oracle.threads import Watched
from loopwright_core.program.program import Param, Phase, Program

_NONE: dict[str, int] = {}


def run_program(
    program: Program, buffers: Mapping[int, Array], variables: Variables = _NONE
) -> None:
    """Run each phase in order, its threads one after another; outputs are written in place.

    Raises VerifyError, naming the node, for an access out of bounds, a read of uninitialised
    memory, a write to a parameter that is only read or over a result that nobody read, an undefined
    raw op, an element that two threads touch without a barrier between them, and a barrier that not
    all threads reach.
    """
    arrays = {
        p.slot: flat(UOp(Op.BUFFER, p.dtype, (), Buffer(p.slot, p.shape)), buffers, variables)
        for p in program.params
    }
    on_grid = program.phases[0].global_size is not None
    kind = Watched if on_grid else Cells
    scratch = {p.slot: _uninitialised(p, kind) for p in program.scratch}
    with np.errstate(all="ignore"):
        functions = _functions(program)
        for phase in program.phases:
            memory = {p.slot: kind(p.name, arrays[p.slot], p.is_output) for p in program.params}
            for cells in scratch.values():
                cells.settle()
            memory |= scratch
            run = run_grid if on_grid else _run_phase
            run(phase, memory, variables, functions)


def _uninitialised(param: Param, kind: type[Cells]) -> Cells:
    """What the phases share: nothing is read before it was written."""
    size = prod([size_of(n, _NONE) for n in param.shape])
    return kind(param.name, np.empty(size, param.dtype.numpy), True, is_local=True)


def _functions(program: Program) -> Functions:
    """The program's functions as Python functions."""
    found: Functions = {}
    for function in program.functions:
        compiled = Compiler(Phase(function.name, function.uops[:-1]), {}, {}, dict(found))
        places = [compiled.declare(UOp(Op.PARAM, d, (), n)) for n, d in enumerate(function.params)]
        steps = compiled.steps()
        result = compiled.place(function.uops[-1].src[0], function.name)
        found[function.name] = _caller(compiled, places, steps, result)
    return found


def _caller(
    compiled: Compiler, places: list[int], steps: list[Step], result: int
) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        env = compiled.start(0)
        for place, value in zip(places, arguments, strict=True):
            env[place] = value
        for step in steps:
            step(env)
        return env[result]

    return run


def _run_phase(
    phase: Phase, memory: dict[int, Cells], variables: Variables, functions: Functions
) -> None:
    for cells in memory.values():
        shared = phase.threads > 1 and cells.is_writable
        cells.owner = np.zeros(cells.size, np.int32) if shared else None
    compiled = Compiler(phase, memory, variables, functions)
    steps = compiled.steps()
    for thread in range(phase.threads):
        env = compiled.start(thread)
        for step in steps:
            step(env)
