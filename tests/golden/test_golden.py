"""A few whole kernels, word for word, for named processors; each compiles, and runs where it can.

    LOOPWRIGHT_RENEW=1 uv run pytest tests/golden

writes the files anew: read the difference before it is committed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import asts
import numpy as np
import pytest

from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from loopwright_render_clang import cpu
from loopwright_render_clang.compile import compile_program
from loopwright_render_clang.device import CpuDevice
from loopwright_render_clang.runtime import Loaded
from support.emulated import MISSING, emulated
from support.exact_kernels import GuardedMemory, elementwise, minus_column_sum, transpose

FOLDER = Path(__file__).parent / "kernels"
FIRST_LINE = "// To renew: LOOPWRIGHT_RENEW=1 uv run pytest tests/golden\n"
RENEW = os.environ.get("LOOPWRIGHT_RENEW", "") not in ("", "0")


class Golden(NamedTuple):
    variant: str
    ast: Callable[[], UOp]
    opts: str


def row_sums() -> UOp:
    return asts.sink((asts.buffer(1, 6), asts.reduce(asts.buffer(0, 6, 203), "add", 1)))


GOLDEN = {
    "matmul_tiled": Golden(
        "x86-64-v3",
        lambda: asts.matmul(12, 64, 40),
        "TILE j 32 · UPCAST i 3 · VECTOR j 8 · UPCAST j/8 2 · ORDER j/32 i/3 j/16 k · "
        "STAGE B @j/32 layout j/16,k,j/8,j · PREFETCH C",
    ),
    "matmul_plain": Golden("armv8", lambda: asts.matmul(5, 8, 9), "VECTOR j 4"),
    "row_sums": Golden("x86-64-v4", row_sums, "VECTOR k 16 · UPCAST k/16 2"),
    "broadcast_tail": Golden("x86-64-v3", elementwise, "VECTOR j 8"),
    "column_sums": Golden("armv8", minus_column_sum, "VECTOR j* 4"),
    "stencil_halo": Golden(
        "x86-64-v3",
        lambda: asts.conv(1, 9, 11, 1),
        "TILE i 4 · ORDER i/4 j i/1 · STAGE A @i/4 halo · UNROLL l 3",
    ),
    "transpose_threads": Golden("x86-64-v4", transpose, "UPCAST i 2 · THREAD i/2 4"),
    "running_sums": Golden("armv8", lambda: asts.cumsum(3, 7), "UPCAST j 2"),
}


def made(golden: Golden) -> tuple[Kernel, Program, str]:
    device = CpuDevice(golden.variant)
    kernel = apply_all(index(golden.ast()), parse(golden.opts), device.target)
    program = lower(kernel, device.target)
    return kernel, program, device.render(program)


def source(name: str) -> str:
    path = FOLDER / f"{name}.c"
    assert path.is_file(), f"{path.name} is missing; write it: {FIRST_LINE[3:]}"
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GOLDEN)
def test_text(name: str) -> None:
    """The text of each kernel is what was agreed on."""
    golden = GOLDEN[name]
    text = f"{FIRST_LINE}// {golden.variant}: {golden.opts}\n{made(golden)[2]}"
    if RENEW:
        (FOLDER / f"{name}.c").write_text(text, encoding="utf-8", newline="\n")
    assert text == source(name)


def test_no_file_is_left_over() -> None:
    """Every file in the folder belongs to a kernel above."""
    assert {p.name for p in FOLDER.iterdir()} == {f"{name}.c" for name in GOLDEN}


def compilers(variant: str) -> list[list[str]]:
    """The commands on this machine that make code for that processor."""
    arch = cpu.VARIANTS[variant][0]
    if arch == "aarch64":
        gcc, flags = "aarch64-linux-gnu-gcc", ["-march=armv8-a"]
    else:
        gcc, flags = "gcc", [f"-march={variant}"]
    found = [[gcc, *flags]] if shutil.which(gcc) else []
    clang = next((c for c in ("clang", "clang-19") if shutil.which(c)), "")
    return [*found, [clang, f"--target={arch}-linux-gnu", *flags]] if clang else found


@pytest.mark.parametrize("name", GOLDEN)
def test_compiles(name: str, tmp_path: Path) -> None:
    """Every compiler for that processor that is here takes the text without a warning."""
    commands = compilers(GOLDEN[name].variant)
    if not commands:
        pytest.skip(f"no compiler for {GOLDEN[name].variant} here")
    path = tmp_path / f"{name}.c"
    path.write_text(source(name), encoding="utf-8")
    for command in commands:
        flags = ["-O2", "-std=gnu11", "-Wall", "-Werror", "-c", "-o", str(tmp_path / "out.o")]
        out = subprocess.run(
            [*command, *flags, str(path)], capture_output=True, encoding="utf-8", check=False
        )
        assert out.returncode == 0, f"{' '.join(command)}\n{out.stderr}"


@pytest.mark.parametrize("name", GOLDEN)
def test_runs(name: str) -> None:
    """On a processor that has what the text needs, or emulated, it computes what its body says."""
    golden = GOLDEN[name]
    arch, features = cpu.VARIANTS[golden.variant]
    is_here = cpu.architecture() == arch and features <= cpu.features()
    if CpuDevice().state()[0] != "ready":
        pytest.skip("no C compiler here")
    if not is_here and (golden.variant != "armv8" or MISSING):
        pytest.skip(f"this processor is no {golden.variant}")
    kernel, program, _ = made(golden)
    expected, actual = GuardedMemory(kernel, 0), GuardedMemory(kernel, 0)
    run_kernel(kernel, expected.arrays)
    if is_here:
        loaded = Loaded(compile_program(source(name), program), program)
        loaded.bind([CpuDevice().from_host(actual.arrays[p.slot]) for p in program.params])()
    else:
        emulated(program)(actual, {})
    for slot, array in expected.arrays.items():
        np.testing.assert_array_equal(actual.arrays[slot], array)
    assert actual.broken_guards() == []
