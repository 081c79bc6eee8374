"""NTSTORE: outputs that no cache could hold are written past all of them."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import buffer_name
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import stores
from loopwright_opt.traffic import LINE
from loopwright_opt.work import works_of

# Where a processor has no third cache: so many times the second one.
WITHOUT_L3 = 8
# What an element may cost, in additions, where a vector is a part of a line only: the longer its
# other parts take, the more often the line leaves half written. Measured with 32 bytes of 64:
# x + 1 takes 0.75 of the time past the caches, eight operations 1.6, exp 1.6.
CHEAP = 2.0


def is_far(draft: Draft) -> bool:
    """Whether a launch touches more than the last cache holds: its output is gone from there
    before anybody reads it."""
    _, second, third = draft.target.caches
    return estimate(draft.kernel).bytes > (third or WITHOUT_L3 * second)


def _fills_lines(draft: Draft) -> bool:
    """Whether whole lines are written at once, or their parts soon after each other."""
    if max(draft.target.vector_bytes, default=0) >= LINE:
        return True
    return all(sum(cost for _, cost in work.ops) <= CHEAP for work in works_of(draft.kernel))


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    """Reduces are left out: what they store may be rows that are in the first cache already."""
    if any(s.bound for s in draft.facts.statements) or not p["past"]:
        return False
    if p["past"] == 1 and not (is_far(draft) and _fills_lines(draft)):
        return False
    names = dict.fromkeys(buffer_name(a.buffer.arg.slot) for a in stores(draft.facts))
    done = [name for name in names if draft.do(f"NTSTORE {name}")]
    if done:
        draft.note(f"{', '.join(done)} written past the caches: nothing reads it from there")
    return bool(done)


# past: 0 never, 1 where the launch touches more than the last cache and lines are filled,
# 2 wherever it is legal.
AROUND = Heuristic("around", (Parameter("past", 1, (0, 1, 2)),), _run)
