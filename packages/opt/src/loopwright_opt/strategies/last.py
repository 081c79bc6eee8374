"""The last resort: where nothing is written out yet, the last output axis by a few."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    axes = draft.outputs()
    if not axes or any(a.kind.is_expanded for a in draft.kernel.schedule.axes):
        return False
    size = axes[-1].size
    if not isinstance(size, int) or size % p["amount"]:
        return False
    if not draft.do(f"UPCAST {axes[-1].name} {p['amount']}"):
        return False
    draft.note(f"{p['amount']} elements of {axes[-1].dim} at once: nothing else is written out")
    return True


LAST = Heuristic("last", (Parameter("amount", 4, (2, 4, 8)),), _run)
