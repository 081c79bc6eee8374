"""A plugin for tests: the device `faulty`, whose kernels fail as their schedules ask for.

It is the CPU device but for steps that stand for failures: `TILE i 64` crashes at its first run,
`TILE i 32` never returns, `TILE i 16` computes wrong numbers, `TILE i 128` wants all memory,
`TILE i 48` writes behind its output's end, and `TILE i 96` hangs its compiler. `TILE i 24` computes
wrong numbers where inputs are no multiples of a quarter; no search comes to it by itself.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin import hookimpl
from loopwright_core.plugin.target import Target
from loopwright_render_clang.device import CpuDevice

REQUIRES_API = (1, 0)
FAULTS = {64: "crash", 32: "hang", 16: "wrong", 128: "memory", 48: "behind", 96: "compiler"}
SUBTLE = {24: "subtle"}


class FaultyDevice(CpuDevice):
    """The CPU, with planted failures: the size of the loop in a tile says which."""

    def __init__(self) -> None:
        super().__init__()
        self.name = "faulty"
        self.target = replace(self.target, name="faulty", threads=1)

    def compile(self, source: str, program: Any) -> bytes:
        if fault(source) == "compiler":
            time.sleep(1000)
        return super().compile(source, program)

    def load(self, binary: bytes, program: Any) -> Any:
        return super().load(binary, program), fault(self.render(program))

    def time(self, loaded: Any, buffers: Any, variables: Any, n: int) -> list[float]:
        kernel, planted = loaded
        if planted == "crash":
            ctypes.string_at(0)
        elif planted == "hang":
            while True:
                pass
        elif planted == "memory":
            np.ones(1 << 40, np.uint8)
        times = super().time(kernel, buffers, variables, n)
        held = np.asarray(buffers[-1])
        x = np.asarray(buffers[0])[: 1 << 10].view(np.float32)
        if planted == "wrong" or (planted == "subtle" and (x * 4 % 1).any()):
            held[3] ^= 0x40
        elif planted == "behind":
            held[-1] ^= 1
        # the faulty ones look best, so that a search wants them
        return [t / 10 if planted else t for t in times]


def fault(source: str) -> str:
    """The failure planted for a text: its outer loop is named after the tile."""
    return next((f for n, f in {**FAULTS, **SUBTLE}.items() if f"int i_{n} =" in source), "")


@hookimpl
def loopwright_devices() -> list[Any]:
    return [FaultyDevice()]


@hookimpl
def loopwright_actions(kernel: Kernel, target: Target) -> list[Opt]:
    if target.name != "faulty":
        return []
    return [Opt("TILE", "i", n) for n in FAULTS]


@hookimpl(tryfirst=True)
def loopwright_cost(kernel: Kernel, target: Target) -> float | None:
    """Planted ones rank first, each at a price of its own."""
    if target.name != "faulty":
        return None
    planted = [o.amount for o in kernel.schedule.opts if o.op == "TILE" and o.amount in FAULTS]
    return 1e-9 * (sum(planted) if planted else 1e6 + len(kernel.schedule.opts))


def install(folder: Path) -> None:
    """A distribution in `folder` whose entry point is this module."""
    info = folder / "faults_plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: faults-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[loopwright.api1]\nfaults = faults\n")
    paths = [str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
    sys.path.insert(0, str(folder))
