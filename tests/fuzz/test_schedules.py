"""Random legal schedules over odd extents: bit for bit what the plain kernel gives.

LOOPWRIGHT_LONG=1 runs some twenty times as many.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from loopwright_core.ir.spec import verify_program
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from loopwright_render_clang.device import CpuDevice
from support.exact_kernels import KERNELS, GuardedMemory
from support.random_opts import count_steps, schedules

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
PER_KERNEL = 400 if LONG else 24
# Every n-th schedule is also compiled and run on the processor.
COMPILED_EACH = 8

DEVICE = CpuDevice()
IS_READY = DEVICE.state()[0] == "ready"
# Two threads everywhere, and caches so small that every output may be stored around them.
TARGET: Target = replace(DEVICE.target, threads=2, caches=(1 << 10, 1 << 8, 0))


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[str]]:
    """What was applied how often, printed at the end of the module."""
    found: Counter[str] = Counter()
    yield found
    n = found["schedules"]
    mean = found["opts"] / max(n, 1)
    print(f"\n{n} schedules of {mean:.1f} opts on average, {found['compiled']} compiled")
    for name in sorted(found.keys() - {"schedules", "opts", "compiled"}):
        print(f"  {name:13} {found[name]}")


def compare(expected: GuardedMemory, actual: GuardedMemory, kernel: Kernel, seed: int) -> None:
    what = f"seed {seed}: {kernel.schedule}"
    for slot, array in expected.arrays.items():
        np.testing.assert_array_equal(actual.arrays[slot], array, err_msg=what)
    assert actual.broken_guards() == [], what


def launch(program: Program, memory: GuardedMemory) -> None:
    binary = DEVICE.compile(DEVICE.render(program), program)
    buffers = [DEVICE.from_host(memory.arrays[p.slot]) for p in program.params]
    DEVICE.launch(DEVICE.load(binary, program), buffers)


@pytest.mark.parametrize("name", KERNELS)
def test_random_legal_schedules(name: str, counts: Counter[str]) -> None:
    """Whatever the rules of the opts accept is lowered, verifies, and changes no bit and no byte
    outside its buffers."""
    plain = index(KERNELS[name]())
    for turn, (seed, kernel) in enumerate(schedules(plain, TARGET, name, range(PER_KERNEL))):
        try:
            program = lower(kernel, TARGET)
            verify_program(program, TARGET)
        except Exception as error:
            error.add_note(f"seed {seed}: {kernel.schedule}")
            raise
        counts["schedules"] += 1
        counts["opts"] += len(kernel.schedule.opts)
        count_steps(kernel, counts)
        expected, actual = GuardedMemory(plain, seed), GuardedMemory(plain, seed)
        run_kernel(plain, expected.arrays)
        if turn % COMPILED_EACH == 0 and IS_READY:
            counts["compiled"] += 1
            launch(program, actual)
        else:
            run_program(program, actual.arrays)
        compare(expected, actual, kernel, seed)


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


@pytest.mark.skipif(not IS_READY, reason="no C compiler")
@pytest.mark.parametrize("fault", FAULTS)
def test_past_faults(fault: str) -> None:
    """Schedules that once failed compile, and give the bits of the plain kernel."""
    name, text = FAULTS[fault]
    plain = index(KERNELS[name]())
    kernel = apply_all(plain, parse(text), TARGET)
    expected, actual = GuardedMemory(plain, 0), GuardedMemory(plain, 0)
    run_kernel(plain, expected.arrays)
    program = lower(kernel, TARGET)
    verify_program(program, TARGET)
    launch(program, actual)
    compare(expected, actual, kernel, 0)


def test_every_step_was_drawn(counts: Counter[str]) -> None:
    """The schedules above hold every opt, both ways to stage, and every kind of tail."""
    if counts["schedules"] < len(KERNELS) * PER_KERNEL // 2:
        pytest.skip("not all kernels were selected")
    wanted = {"UPCAST", "UNROLL", "VECTOR", "TILE", "ORDER", "SWAP", "THREAD", "KEEP", "NTSTORE"}
    wanted |= {"STAGE panel", "STAGE halo", "PREFETCH"}
    wanted |= {f"tail {kind}" for kind in ("none", "bound", "peel", "guard")}
    assert wanted - {name for name, n in counts.items() if n} == set()
    assert counts["opts"] / counts["schedules"] > 3
