"""SPLITK: where outputs fill few workgroups, parts of a long reduce run side by side."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from loopwright_core.kernel.dims import AxisKind
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import power_below, reduces


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    if draft.options.parity or len(reduces(draft.kernel)) != 1:
        return False
    axes = draft.kernel.schedule.axes
    groups = prod(a.size for a in axes if a.kind is AxisKind.GLOBAL and isinstance(a.size, int))
    loops = [(a.size, a.name) for a in draft.reduces() if isinstance(a.size, int)]
    if not loops or groups >= p["workgroups"]:
        return False
    steps, name = max(loops)
    parts = power_below(steps // p["steps"], p["workgroups"] // groups)
    if parts < 2 or not draft.do(f"SPLITK {name} {parts}"):
        return False
    draft.note(f"{parts} parts of the reduce: its outputs fill {groups} workgroups only")
    return True


# workgroups: of a device that is busy; steps: of a part, at least.
SPLITS = Heuristic(
    "splits",
    (Parameter("workgroups", 128, (32, 128, 512)), Parameter("steps", 64, (16, 64, 256))),
    _run,
)
