"""Kernels for a processor that is not here: cross-compiled, and run by an emulator."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from loopwright_core.program.clayout import param_bytes, scratch_bytes
from loopwright_core.program.program import Program
from loopwright_render_clang.compile import entries, entry_names
from loopwright_render_clang.device import CpuDevice
from support.exact_kernels import GuardedMemory
from support.schedule_cases import Run

GCC, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
FLAGS = ["-O2", "-march=armv8-a", "-static", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math"]
FLAGS += ["-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing"]
FLAGS += ["-fno-ipa-pure-const", "-fno-ipa-modref", "-w"]
DEVICE = CpuDevice("armv8")
MISSING = [tool for tool in (GCC, EMULATOR) if shutil.which(tool) is None]

# The memory comes in a file, guards and all, and goes back into it: numbers of buffers and
# variables, the size of each buffer and where in it the array begins, the variables, the bytes.
_MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void entry_t(void *const *, const long long *, int, void *);

int main(int argc, char **argv) {
    FILE *file = fopen(argv[1], "r+b");
    long long counts[2], places[64][2], variables[64];
    fread(counts, 8, 2, file);
    fread(places, 16, counts[0], file);
    fread(variables, 8, counts[1], file);
    long begin = ftell(file);
    char *whole[64];
    void *buffers[64];
    for (int k = 0; k < counts[0]; k++) {
        char *block = aligned_alloc(64, (places[k][0] + 191) / 64 * 64);
        whole[k] = block + (64 - places[k][1] % 64) % 64;
        fread(whole[k], 1, places[k][0], file);
        buffers[k] = whole[k] + places[k][1];
    }
    static const long long shared[] = {SHARED};
    for (int k = 0; k < N_SHARED; k++) {
        buffers[counts[0] + k] = aligned_alloc(64, (shared[k] + 63) / 64 * 64);
    }
    void *scratch = aligned_alloc(64, SCRATCH + 64);
    for (int p = 0; p < N_ENTRIES; p++) {
        for (int t = 0; t < threads[p]; t++) functions[p](buffers, variables, t, scratch);
    }
    fseek(file, begin, SEEK_SET);
    for (int k = 0; k < counts[0]; k++) fwrite(whole[k], 1, places[k][0], file);
    return fclose(file);
}
"""


def emulated(program: Program) -> Run:
    """The program compiled for 64-bit Arm; each run is a process of the emulator."""
    folder = tempfile.TemporaryDirectory(prefix="loopwright-tests-")
    binary = Path(folder.name) / "kernel"
    (Path(folder.name) / "kernel.c").write_text(_text(program), encoding="utf-8")
    command = [GCC, *FLAGS, "-o", str(binary), f"{binary}.c", "-lm"]
    subprocess.run(command, check=True, capture_output=True)

    def run(memory: GuardedMemory, variables: Mapping[str, int]) -> None:
        path = Path(folder.name) / "memory"
        blocks = {slot: (raw, start) for slot, raw, start in memory.blocks}
        order = [blocks[p.slot] for p in program.params]
        values = [variables[v.name] for v in program.variables]
        head = [len(order), len(values)]
        for raw, start in order:
            head += [raw.nbytes, start]
        head += values
        path.write_bytes(np.array(head, "<i8").tobytes() + b"".join(r.tobytes() for r, _ in order))
        subprocess.run([EMULATOR, str(binary), str(path)], check=True, capture_output=True)
        data, at = np.fromfile(path, np.uint8), 8 * len(head)
        for raw, _ in order:
            raw[...] = data[at : at + raw.nbytes]
            at += raw.nbytes

    return run


def _text(program: Program) -> str:
    names = entry_names(program)
    threads = ", ".join(str(phase.threads) for phase in program.phases)
    shared = [param_bytes(p) for p in program.scratch]
    main = _MAIN.replace("N_SHARED", str(len(shared)))
    main = main.replace("SHARED", ", ".join(map(str, shared)) or "0")
    main = main.replace("SCRATCH", str(scratch_bytes(program)))
    main = main.replace("N_ENTRIES", str(len(names)))
    head, body = main.split("int main", 1)
    tables = f"static entry_t *const functions[] = {{{', '.join(names)}}};\n"
    tables += f"static const int threads[] = {{{threads}}};\n\nint main"
    return DEVICE.render(program) + entries(program) + head + tables + body
