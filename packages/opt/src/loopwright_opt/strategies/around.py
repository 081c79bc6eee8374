"""NTSTORE: outputs that no cache could hold are written past all of them."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import buffer_name
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import stores

# Where a processor has no third cache: so many times the second one.
WITHOUT_L3 = 8


def is_far(draft: Draft) -> bool:
    """Whether a launch touches more than the last cache holds: its output is gone from there
    before anybody reads it."""
    _, second, third = draft.target.caches
    return estimate(draft.kernel).bytes > (third or WITHOUT_L3 * second)


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    """Reduces are left out: what they store may be rows that are in the first cache already."""
    if any(s.bound for s in draft.facts.statements) or not p["past"]:
        return False
    if p["past"] == 1 and not is_far(draft):
        return False
    names = dict.fromkeys(buffer_name(a.buffer.arg.slot) for a in stores(draft.facts))
    done = [name for name in names if draft.do(f"NTSTORE {name}")]
    if done:
        draft.note(f"{', '.join(done)} written past the caches: nothing reads it from there")
    return bool(done)


# past: 0 never, 1 where the launch touches more than the last cache, 2 wherever it is legal.
AROUND = Heuristic("around", (Parameter("past", 1, (0, 1, 2)),), _run)
