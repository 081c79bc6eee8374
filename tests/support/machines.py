"""The machines of the property test: this processor, compiled, and GPUs in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_render_clang.device import CpuDevice
from support.exact_kernels import GuardedMemory
from support.schedule_cases import Machine, Run

DEVICE = CpuDevice()
IS_READY = DEVICE.state()[0] == "ready"
# Caches so small that every output may be stored around them, every axis walked in pages.
CACHES = (1 << 6, 1 << 6, 0)
CPU: Target = replace(DEVICE.target, threads=3, caches=CACHES)


def compiled(program: Program) -> Run:
    """The program compiled and loaded on this processor."""
    loaded = DEVICE.load(DEVICE.compile(DEVICE.render(program), program), program)

    def run(memory: GuardedMemory, variables: Mapping[str, int]) -> None:
        buffers = [DEVICE.from_host(memory.arrays[p.slot]) for p in program.params]
        DEVICE.launch(loaded, buffers, [variables[v.name] for v in program.variables])

    return run


def interpreted(program: Program) -> Run:
    """The program in core's interpreter, every access checked."""
    return lambda memory, variables: run_program(program, memory.arrays, variables)


def small_limits() -> Target:
    """A GPU whose every limit is soon met: grids of odd sizes, small workgroups, little memory."""
    return replace(
        cuda("sm_80"),
        name="small",
        caches=CACHES,
        shared_bytes=2048,
        max_threads=64,
        local_max=(32, 8, 4),
        global_max=(40, 7, 5),
    )


GPUS = (
    Machine("cuda", replace(cuda("sm_80"), caches=CACHES), interpreted, 240, 110, 6000),
    Machine("metal", replace(metal(), caches=CACHES), interpreted, 240, 80, 4500),
    Machine("small", small_limits(), interpreted, 240, 80, 4500),
)
CPUS = (Machine("cpu", CPU, compiled, 1500, 130, 5000),)
MACHINES = {m.name: m for m in (*CPUS, *GPUS)}
