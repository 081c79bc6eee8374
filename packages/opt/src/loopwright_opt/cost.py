"""Predicted seconds of a schedule from accesses, axes and target: no lowering, no graph walks.

Only the order of predictions matters: the search times what ranks well.
"""

from __future__ import annotations

from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_opt import cost_cpu, cost_gpu

_HERTZ = 3e9
_LAUNCH_S = 5e-6  # waking the threads


def predict(kernel: Kernel, target: Target) -> float:
    """Predicted seconds of one launch."""
    if target.has_local:
        return cost_gpu.seconds(with_grid(kernel, target), target)
    seconds = cost_cpu.cycles(kernel, target) / _HERTZ
    if any(a.kind is AxisKind.THREAD for a in kernel.schedule.axes):
        seconds += _LAUNCH_S
    return seconds
