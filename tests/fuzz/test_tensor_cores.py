"""Products on every tensor core of every table, in the interpreter, to the bit.

`LOOPWRIGHT_TENSOR_CASES` draws more schedules of each kernel and core (2).
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import numpy as np
import pytest
from schedules import TARGET

from loopwright_core.errors import OptError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_kernel, verify_program
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.program.program import Program
from loopwright_core.targets.amx import AMX_BF16, AMX_INT8
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply
from loopwright_opt.tensor_core import triples
from loopwright_opt.text import parse
from support.core_kernels import KERNELS

DRAWN = int(os.environ.get("LOOPWRIGHT_TENSOR_CASES", "2"))
AMX = replace(
    TARGET,
    name="amx",
    ops=TARGET.ops | {Op.WMMA, Op.TILE_LOAD, Op.TILE_STORE},
    tensor_cores=(*AMX_BF16, *AMX_INT8),
)
# One core of each layout, sum and kind of target; the table's other rows differ in dtypes alone.
LAYOUTS: tuple[tuple[Target, str], ...] = (
    (cuda("sm_75"), "m16n8k8_f16_f16_f32"),
    (cuda("sm_75"), "m8n8k16_s8_u8_s32"),
    (cuda("sm_80"), "m16n8k16_bf16_bf16_f32"),
    (cuda("sm_80"), "m16n8k16_f16_f16_f16"),
    (cuda("sm_80"), "m16n8k8_tf32_tf32_f32"),
    (cuda("sm_80"), "m16n8k32_s8_s8_s32"),
    (metal(), "simdgroup_8x8x8_f32_f32"),
    (metal(), "simdgroup_8x8x8_f16_f32"),
    (AMX, "amx_16x16x32_bfloat16_bfloat16"),
    (AMX, "amx_16x16x64_int8_int8"),
)
CASES = [
    (target, core) for target, name in LAYOUTS for core in target.tensor_cores if core.name == name
]


def buffers(kernel: Kernel) -> dict[int, np.ndarray]:
    """Small whole numbers, none negative in unsigned buffers: every sum is exact in every dtype."""
    rng = np.random.default_rng(11)
    found = {}
    for b in kernel.buffers:
        low = 0 if b.dtype.kind == "uint" else -2
        numbers = rng.integers(low, 3, int(np.prod(b.arg.shape)))
        found[b.arg.slot] = numbers.astype(b.dtype.numpy)
    return found


def sizes_for(core: TensorCore, rng: random.Random, whole: bool) -> tuple[int, int, int]:
    """One or two tiles a side, of one thread's large tiles one; ragged within the last."""
    most = 1 if core.is_tile else 2
    sizes = [n * rng.randint(1, most) for n in core.dims]
    if not whole:
        cut = [rng.randint(0, size // 3) for size in core.dims]
        sizes = [max(4, n - less) for n, less in zip(sizes, cut, strict=True)]
    m, n, k = sizes
    return m, n, k


def bound(
    kernel: Kernel, core: TensorCore, target: Target, rng: random.Random, level: int, shape: bool
) -> Kernel:
    """The kernel with a triple that the core does; at the next level where the level asked for
    allows none."""
    words = " ".join([*(["shape"] if shape else []), core.option])
    numbers = list(range(len(triples(kernel))))
    rng.shuffle(numbers)
    for allowed in range(level, 3):
        for number in numbers:
            (step,) = parse(f"TC {number} level {allowed} {words}")
            try:
                return apply(kernel, step, target)
            except OptError as error:
                reason = str(error)
    raise AssertionError(f"no core does {kernel.name}: {reason}")


def drawn_steps(kernel: Kernel, rng: random.Random, target: Target) -> list[str]:
    """Steps one may take behind TC; not all of them are legal."""
    steps = []
    for axis in kernel.schedule.axes:
        if axis.kind is AxisKind.TENSOR or not isinstance(axis.size, int) or axis.size < 2:
            continue
        is_reduce = kernel.dim(axis.dim).is_reduce
        steps.append(f"{'UNROLL' if is_reduce else 'UPCAST'} {axis.name} 2")
        steps.append(f"TILE {axis.name} 2")
        if target.has_local and not is_reduce:
            steps.append(f"LOCAL {axis.name} 2")
    loops = [a.name for a in kernel.schedule.axes if a.kind in (AxisKind.LOOP, AxisKind.REDUCE)]
    steps += [f"STAGE {name} @{at}" for name in ("A", "B") for at in loops]
    if len(loops) > 1:
        steps.append(f"SWAP {' '.join(rng.sample(loops, 2))}")
    tensor = [a for a in kernel.schedule.axes if a.kind is AxisKind.TENSOR]
    steps.append(f"PADTO {rng.choice(tensor).dim} {tensor[0].size}")
    return rng.sample(steps, min(len(steps), 4))


def scheduled(made: Kernel, rng: random.Random, target: Target) -> Kernel:
    """The kernel with what is legal of some drawn steps."""
    for text in drawn_steps(made, rng, target):
        (step,) = parse(text)
        try:
            made = apply(made, step, target)
        except OptError:
            continue
    return made


def run_exactly(kernel: Kernel, made: Kernel, target: Target) -> Program:
    """Every buffer is what the kernel's definition gives, bit for bit."""
    expected, actual = buffers(kernel), buffers(kernel)
    run_kernel(kernel, expected, {})
    verify_kernel(made)
    program = lower(made, target)
    verify_program(program, target)
    run_program(program, actual, {})
    for slot, values in expected.items():
        np.testing.assert_array_equal(actual[slot], values, err_msg=str(made.schedule))
    return program


def multiplications(program: Program) -> int:
    return sum(n.op is Op.WMMA for phase in program.phases for n in phase.uops)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(("target", "core"), CASES, ids=[c.name for _, c in CASES])
def test_products(target: Target, core: TensorCore, name: str) -> None:
    """Every kernel on every core: whole tiles at level 1 and ragged ones at level 2, by the
    instruction and by plain multiplications of the same axes, and drawn steps behind it."""
    rng = random.Random(f"{core.name} {name}")
    for case in range(DRAWN):
        kernel = index(KERNELS[name](core, sizes_for(core, rng, whole=case == 0)))
        for shape in (False, True) if case == 1 else (case == 2,):
            made = bound(kernel, core, target, rng, 2 if case else 1, shape)
            program = run_exactly(kernel, scheduled(made, rng, target), target)
            assert (multiplications(program) > 0) is not shape
