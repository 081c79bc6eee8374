"""LOCAL where few sizes divide: workgroups of whole subgroups, what stands over is masked."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.locals import LOCALS
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import power_above


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    before, n_reasons = draft.kernel, len(draft.why)
    LOCALS(draft)
    least = min(draft.target.subgroup, prod(_sizes(before)))
    if _threads(draft.kernel) >= least:
        return True
    draft.kernel = before
    del draft.why[n_reasons:]
    threads = 1
    for axis in reversed(draft.outputs()):
        size = axis.size if isinstance(axis.size, int) else 1
        amount = min(p["threads"] // threads, power_above(size))
        if threads < least and amount > 1 and draft.do(f"LOCAL {axis.name} {amount}"):
            draft.note(f"{amount} threads along {axis.dim}, the last ones masked")
            threads *= amount
    return threads > 1


def _sizes(kernel: Kernel) -> list[int]:
    return [d.max_size for d in kernel.dims if not d.is_reduce]


def _threads(kernel: Kernel) -> int:
    kinds = (AxisKind.LOCAL, AxisKind.GROUP)
    return prod(a.size for a in kernel.schedule.axes if a.kind in kinds and isinstance(a.size, int))


WHOLE_GROUPS = Heuristic("whole_groups", (Parameter("threads", 128, (32, 64, 128, 256)),), _run)
