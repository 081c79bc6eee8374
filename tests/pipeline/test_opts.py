"""Random legal schedules give the bits of the plain one: on integers every order sums alike."""

from __future__ import annotations

import random
from collections.abc import Callable

import asts
import numpy as np
import pytest
from asts import buffer, keep, op, reduce, scan, sink
from schedules import TARGET

from loopwright_core.errors import OptError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.schedule import Opt
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply
from loopwright_opt.plugin import loopwright_schedule


def squares_of_maxima() -> UOp:
    inner = reduce(buffer(0, 5, 17, 9), "max", 2)
    return sink((buffer(1, 5), reduce(op(Op.MUL, inner, inner), "add", 1)))


def two_loops_and_a_store() -> UOp:
    """e - sum(e) with e = (x - max(x))**2 along rows: like softmax, exact."""
    x = buffer(0, 7, 19)
    centred = op(Op.SUB, x, keep(x, "max", 1))
    e = op(Op.MUL, centred, centred)
    return sink((buffer(1, 7, 19), op(Op.SUB, e, keep(e, "add", 1))))


def two_outputs() -> UOp:
    x = buffer(0, 9, 21)
    rows = (buffer(1, 9), reduce(x, "add", 1))
    return sink(rows, (buffer(2, 9, 21), op(Op.MUL, x, keep(x, "max", 1))))


def minus_column_sum() -> UOp:
    x = buffer(0, 7, 18)
    return sink((buffer(1, 7, 18), op(Op.SUB, x, keep(x, "add", 0))))


KERNELS: dict[str, Callable[[], UOp]] = {
    "matmul": lambda: asts.matmul(11, 19, 13),
    "two loops and a store": two_loops_and_a_store,
    "squares of maxima": squares_of_maxima,
    "column sums inside": minus_column_sum,
    "two outputs": two_outputs,
    "convolution": lambda: asts.conv(3, 7, 9, 2, 3, 2),
    "argmax": lambda: asts.argmax(5, 23),
    "scan": lambda: sink((buffer(1, 13, 11), scan(buffer(0, 13, 11), "add", 0))),
    "gather": lambda: asts.take(7, 11, 9),
    "concat": lambda: sink(
        (asts.shrink(buffer(2, 5, 16), (0, 5, 1), (0, 7, 1)), buffer(0, 5, 7)),
        (asts.shrink(buffer(2, 5, 16), (0, 5, 1), (7, 16, 1)), buffer(1, 5, 9)),
    ),
}
PER_KERNEL = 20


def random_opt(kernel: Kernel, rng: random.Random) -> Opt:
    axes = [a.name for a in kernel.schedule.axes]
    which = rng.choice(
        ["UPCAST", "UNROLL", "VECTOR", "TILE", "THREAD", "ORDER", "SWAP", "STAGE", "KEEP"]
    )
    if which in ("ORDER", "SWAP"):
        n = min(2 if which == "SWAP" else rng.randint(2, 4), len(axes))
        return Opt(which, arg=tuple(rng.sample(axes, n)))
    if which == "STAGE":
        mode = ("halo",) if rng.random() < 0.3 else ()
        return Opt(which, rng.choice(accesses(kernel)).name, None, ("@" + rng.choice(axes), *mode))
    if which == "KEEP":
        return Opt(which, "v0", None, ("@" + rng.choice(axes),))
    return Opt(which, rng.choice(axes), rng.choice([0, 2, 3, 4, 4, 8]))


def memory(kernel: Kernel, seed: int) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        b.arg.slot: rng.integers(-9, 10, b.arg.shape).astype(b.dtype.numpy) for b in kernel.buffers
    }


def agree(plain: Kernel, scheduled: Kernel, seed: int) -> None:
    expected, actual = memory(plain, seed), memory(plain, seed)
    run_kernel(plain, expected)
    run_program(lower(scheduled, TARGET), actual)
    for slot, array in expected.items():
        np.testing.assert_array_equal(actual[slot], array, err_msg=str(scheduled.schedule))


@pytest.mark.parametrize("name", KERNELS)
def test_random_legal_schedules(name: str) -> None:
    """Any legal steps leave every bit as it was; illegal ones are refused and change nothing."""
    plain = index(KERNELS[name]())
    for seed in range(PER_KERNEL):
        rng = random.Random(f"{name} {seed}")
        kernel, wanted = plain, rng.randint(1, 6)
        for _ in range(40):
            if len(kernel.schedule.opts) == wanted:
                break
            try:
                kernel = apply(kernel, random_opt(kernel, rng), TARGET)
            except OptError:
                continue
        agree(plain, kernel, seed)


@pytest.mark.parametrize("name", KERNELS)
def test_the_heuristic_schedule(name: str) -> None:
    """The schedule that is chosen without a word from the user changes no bit either."""
    plain = index(KERNELS[name]())
    agree(plain, loopwright_schedule(plain, TARGET, Options()), 0)
