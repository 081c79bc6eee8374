"""Random kernels under random legal schedules of this processor, compiled: bit for bit what the
plain kernel gives where sums are exact, and within the bounds of rounding where not.

LOOPWRIGHT_LONG=1 runs the long form, LOOPWRIGHT_FUZZ=FIRST:END a range of seeds; -s prints the
report. Any failure names its machine and seed: LOOPWRIGHT_FUZZ=SEED:SEED+1 repeats it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from loopwright_core.ir.spec import verify_program
from loopwright_core.oracle.kernel import run_kernel
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from support.exact_kernels import KERNELS, GuardedMemory
from support.machines import CPU, CPUS, IS_READY, compiled
from support.schedule_cases import Machine, Report, check_report, run_cases

pytestmark = pytest.mark.skipif(not IS_READY, reason="no C compiler")


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    """What was applied how often, printed at the end of the module."""
    found = Report()
    yield found
    print(f"\n{found}")


@pytest.mark.parametrize("machine", CPUS, ids=[m.name for m in CPUS])
def test_random_legal_schedules(machine: Machine, report: Report) -> None:
    """Whatever the rules of the opts accept is lowered, verifies, and changes no bit of exact
    results, no more of others than rounding may, and no byte outside its buffers."""
    run_cases(machine, report)


def test_every_step_was_drawn(report: Report) -> None:
    """The schedules above hold every opt of this target and every tail policy."""
    check_report(CPUS, report)


FAULTS = {
    "kept values read by lanes behind the end": (
        "softmax-like",
        "KEEP v0 @i · UNROLL j.1 3 · VECTOR j 8 · UPCAST j/8 4",
    ),
    "kept values read behind the end": (
        "softmax-like",
        "KEEP v0 @i · TILE j 4 · UPCAST j/4 4 · ORDER i j/16 j j.1",
    ),
    "kept values of blocks apart": (
        "softmax-like",
        "TILE i 3 · SWAP i/3 i · VECTOR j.1 4 · KEEP v0 @i",
    ),
    "kept values of lanes apart": ("softmax-like", "TILE j 4 · VECTOR j/4 4 · KEEP v0 @i"),
    "kept values along the first of two dims": ("softmax of columns", "SWAP i j · KEEP v0 @j"),
    "kept values of a store that waits in its output": (
        "squared row sums",
        "SWAP i k · KEEP v0 @",
    ),
    "equal stores in two bodies": ("matmul", "UPCAST k 4 · UPCAST i 8 · STAGE A @k/4"),
    "one thread of a short dim": ("matmul", "TILE j 32 · THREAD j/32 2"),
    "a tile of one tile": ("gather", "TILE i 16 · TILE i/16 0 · SWAP i/16 i/1"),
    "masks in a compiler's loop": (
        "stencil",
        "VECTOR k 8 · TILE k/8 2 · UPCAST j 8 · UNROLL l 3",
    ),
    "masks from comparisons": (
        "stencil",
        "VECTOR i 8 · STAGE B @i/8 halo · ORDER l j i/8 k · UPCAST l 4 · TILE j 2 · TILE i/8 2",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_past_faults(fault: str) -> None:
    """Schedules that once failed compile, and give the bits of the plain kernel."""
    name, text = FAULTS[fault]
    plain = index(KERNELS[name]())
    kernel = apply_all(plain, parse(text), CPU)
    expected, actual = GuardedMemory(plain, 0), GuardedMemory(plain, 0)
    run_kernel(plain, expected.arrays)
    program = lower(kernel, CPU)
    verify_program(program, CPU)
    compiled(program)(actual, {})
    for slot, array in expected.arrays.items():
        np.testing.assert_array_equal(actual.arrays[slot], array)
    assert actual.broken_guards() == []
