"""One kernel under one schedule, compiled for this processor or interpreted for a GPU, against the
level-1 interpreter, which knows neither dims nor schedules."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import product

import numpy as np

from loopwright_core.errors import OptError
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.oracle.tensor import run_tensor
from loopwright_core.program.program import Program
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from support.exact_kernels import GuardedMemory
from support.machines import CPU, IS_READY, compiled

TARGETS = {"cpu": CPU, "cuda": cuda("sm_80"), "metal": metal()}
LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
MOST = 8
Fill = Callable[[int, np.ndarray], np.ndarray]


def small_numbers(slot: int, array: np.ndarray) -> np.ndarray:
    """Whole numbers whose sums are exact."""
    rng = np.random.default_rng(slot)
    return rng.integers(-9, 10, array.shape).astype(array.dtype)


def positive(slot: int, array: np.ndarray) -> np.ndarray:
    """Numbers between 1 and 2."""
    return (1 + np.random.default_rng(slot).random(array.shape)).astype(array.dtype)


def negative(slot: int, array: np.ndarray) -> np.ndarray:
    """Numbers between -2 and -1: a masked position that counted as 0 would be the maximum."""
    return -positive(slot, array)


def check(
    ast: UOp,
    opts: str = "",
    target: str = "cpu",
    fill: Fill = small_numbers,
    rtol: float = 0.0,
) -> Program:
    """Run the AST under these opts and compare: bit for bit, or within `rtol`."""
    plain = index(ast)
    chosen = TARGETS[target]
    program = lower(apply_all(plain, parse(opts), chosen) if opts else plain, chosen)
    verify_program(program, chosen)
    expected, actual = (_memory(plain, fill) for _ in range(2))
    with np.errstate(all="ignore"):
        run_tensor(ast, expected.arrays)
    _run(program, actual, target)
    what = f"{target}: {opts}"
    for slot, array in expected.arrays.items():
        if rtol:
            np.testing.assert_allclose(actual.arrays[slot], array, rtol, err_msg=what)
        else:
            np.testing.assert_array_equal(actual.arrays[slot], array, err_msg=what)
    assert actual.broken_guards() == [], what
    return program


def _run(program: Program, memory: GuardedMemory, target: str) -> None:
    if target == "cpu" and IS_READY:
        nothing: Mapping[str, int] = {}
        compiled(program)(memory, nothing)
    else:
        run_program(program, memory.arrays)


def _memory(kernel: Kernel, fill: Fill) -> GuardedMemory:
    memory = GuardedMemory(kernel, 0)
    for slot, array in memory.arrays.items():
        array[...] = fill(slot, array)
    return memory


def legal(ast: UOp, target: str, *choices: tuple[str, ...]) -> list[str]:
    """The legal ones among all ways to take one step (or none, "") from each of `choices`; of
    those that must be compiled MOST, evenly, unless LOOPWRIGHT_LONG=1 asks for all."""
    found = list(_legal(ast, target, choices))
    if LONG or target != "cpu" or len(found) <= MOST:
        return found
    return [found[n * len(found) // MOST] for n in range(MOST)]


def _legal(ast: UOp, target: str, choices: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    plain = index(ast)
    for steps in product(*choices):
        text = " · ".join(s for s in steps if s)
        try:
            apply_all(plain, parse(text), TARGETS[target])
        except OptError:
            continue
        yield text
