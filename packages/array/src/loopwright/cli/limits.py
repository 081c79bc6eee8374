"""What small kernels reach on this machine: the limits that others are measured against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loopwright.api.statistical import sum as lw_sum
from loopwright.array import Array
from loopwright.cli.check import run_timed
from loopwright.cli.output import Output
from loopwright.memory import new_buffer
from loopwright.options import options
from loopwright_core.errors import LoopwrightError
from loopwright_core.ir import dtype as dt
from loopwright_core.plugin.loader import registry


@dataclass(frozen=True, slots=True)
class Limits:
    """What small kernels reach on this machine."""

    gflops: float
    gbytes: float

    def share(self, flops: int, n_bytes: int, time_s: float) -> tuple[float, str]:
        """How near a kernel comes to the limit that holds it back, and which: "arithmetic",
        "memory"."""
        arithmetic_s, memory_s = flops / self.gflops / 1e9, n_bytes / self.gbytes / 1e9
        is_compute = arithmetic_s > memory_s
        return max(arithmetic_s, memory_s) / time_s, "arithmetic" if is_compute else "memory"

    def show(self, out: Output) -> None:
        """One line."""
        out.text(
            f"limits of this machine, measured by small kernels: {self.gflops:.1f} GFLOP/s of "
            f"float32 arithmetic, {self.gbytes:.1f} GB/s of memory\n"
        )


def measure_limits(device: str) -> Limits:
    """Arithmetic from a product that stays in registers and L1, memory from a copy and a sum."""
    return Limits(_arithmetic_limit(device), _memory_limit(device))


def _arithmetic_limit(device: str) -> float:
    target = registry().device(device).target
    lanes = max(target.lanes(dt.float32), default=1)
    n_blocks, n_rows, n_steps, n_columns = 256, 6, 256, 2 * lanes
    a = np.ones((n_blocks, n_rows, n_steps), np.float32)
    b = np.ones((n_steps, n_columns), np.float32)
    product = Array(new_buffer(a, device), device) @ Array(new_buffer(b, device), device)
    best = 0.0
    # The whole tile of outputs in registers, by hand; where it is refused, the usual schedule.
    tile = [f"UPCAST i {n_rows}", f"VECTOR j {lanes}", f"UPCAST j/{lanes} 0"]
    for opts in ([*tile, f"THREAD i/{n_rows} {target.threads}"], tile, None):
        try:
            with options(opts=opts):
                _, timed = run_timed([product._uop], device, n=30)
        except LoopwrightError:
            continue
        n_flops = 2 * math.prod((n_blocks, n_rows, n_steps, n_columns))
        best = max(best, n_flops / sum(t.best_s for t in timed) / 1e9)
    return best


def _memory_limit(device: str) -> float:
    x = Array(new_buffer(np.ones(1 << 24, np.float32), device), device)
    best = 0.0
    for small in (x + 1.0, lw_sum(x)):  # writing costs some machines a read more
        _, timed = run_timed([small._uop], device, n=8)
        n_bytes = sum(t.built.program.estimate.bytes for t in timed)
        best = max(best, n_bytes / sum(t.best_s for t in timed) / 1e9)
    return best
