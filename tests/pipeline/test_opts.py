"""Schedules give the bits of the plain one in the interpreter too, where no compiler is needed."""

from __future__ import annotations

import random

import numpy as np
import pytest
from schedules import TARGET

from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.plugin import loopwright_schedule
from support.exact_kernels import KERNELS
from support.random_opts import Opts

PER_KERNEL = 10


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
        drawn = Opts(random.Random(f"{name} {seed}"), TARGET).schedule(plain)
        agree(plain, drawn, seed)


@pytest.mark.parametrize("name", KERNELS)
def test_the_heuristic_schedule(name: str) -> None:
    """The schedule that is chosen without a word from the user changes no bit either."""
    plain = index(KERNELS[name]())
    agree(plain, loopwright_schedule(plain, TARGET, Options()), 0)
