"""Rendered text has no undefined behaviour and never leaves its arrays: run under sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import test_memory
import test_values
from level3 import installed

from loopwright_core.ir import dtype as dt
from loopwright_core.program.cstyle import scratch_bytes
from loopwright_core.program.program import Program
from loopwright_render_clang.compile import entries, entry_names
from loopwright_render_clang.cpu import host
from loopwright_render_clang.render import render

FLAGS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def main(program: Program, arrays: Sequence[np.ndarray], variables: Sequence[int]) -> str:
    """A C main that reads each array into memory of exactly its size and runs the kernel."""
    lines = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "int main(void) {",
        f"    void *buffers[{len(arrays)}];",
        f"    long long variables[] = {{{', '.join(map(str, [*variables, 0]))}}};",
    ]
    for k, a in enumerate(arrays):
        lines += [
            f"    buffers[{k}] = malloc({a.nbytes});",
            f"    if (fread(buffers[{k}], 1, {a.nbytes}, stdin) != {a.nbytes}) return 3;",
        ]
    size = scratch_bytes(program)
    lines.append(f"    char *scratch = aligned_alloc(64, {size or 64});")
    for name, phase in zip(entry_names(program), program.phases, strict=True):
        lines.append(f"    for (int t = 0; t < {phase.threads}; t++)")
        lines.append(f"        {name}(buffers, variables, t, scratch);")
    lines += [f"    for (int k = 0; k < {len(arrays)}; k++) free(buffers[k]);"]
    return "\n".join([*lines, "    free(scratch);", "    return 0;", "}", ""])


def run_sanitized(
    folder: Path, program: Program, arrays: Sequence[np.ndarray], variables: Sequence[int]
) -> None:
    compiler = installed()["gcc"]
    flags = [f for f in compiler.flags if f not in ("-shared", "-O2", "-fvisibility=hidden")]
    text = render(program, host()) + entries(program) + main(program, arrays, variables)
    (folder / "kernel.c").write_text(text)
    command = [*compiler.argv, *flags, *FLAGS, "-o", "kernel", "kernel.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    data = b"".join([a.tobytes() for a in arrays])
    done = subprocess.run(["./kernel"], cwd=folder, input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:2000]


CASES = {
    "row sum": lambda: (
        test_memory.row_sum(),
        [np.ones((3, 64), np.float32), np.zeros(3, np.float32)],
        [3],
    ),
    "scalar float32": lambda: (*test_values.every_op(dt.float32, 1), ()),
    "scalar int32": lambda: (*test_values.every_op(dt.int32, 1), ()),
    "scalar uint16": lambda: (*test_values.every_op(dt.uint16, 1), ()),
    "scalar int8": lambda: (*test_values.every_op(dt.int8, 1), ()),
    "vector int64": lambda: (*test_values.every_op(dt.int64, 4), ()),
    "vector float64": lambda: (*test_values.every_op(dt.float64, 4), ()),
    "masked uint8": lambda: (*test_memory.masked(dt.uint8, 16, False), ()),
    "masked float32": lambda: (*test_memory.masked(dt.float32, 8, True), ()),
    "gather int16": lambda: (*test_memory.gathers(dt.int16, 8, dt.int32), ()),
    "locals": lambda: (*test_memory.with_locals([100, 5000, 9000], 1), ()),
}


@pytest.mark.skipif(shutil.which("gcc") is None, reason="the sanitizers are GCC's")
@pytest.mark.parametrize("name", CASES)
def test_clean(name: str, tmp_path: Path) -> None:
    """The kernel runs without a report of the address or undefined-behaviour sanitizer."""
    run_sanitized(tmp_path, *CASES[name]())
