"""Which strategy a kernel gets: the first whose structure it has, then threads."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_opt.strategies.columns import COLUMNS
from loopwright_opt.strategies.lanes import LANES
from loopwright_opt.strategies.products import PRODUCTS
from loopwright_opt.strategies.strategy import Draft, Strategy
from loopwright_opt.strategies.threads import THREADS
from loopwright_opt.strategies.transposes import TRANSPOSES
from loopwright_opt.strategies.windows import WINDOWS

# The first that applies ends the list; LANES applies to everything.
STRATEGIES: tuple[Strategy, ...] = (WINDOWS, PRODUCTS, TRANSPOSES, COLUMNS, LANES)

_log = logging.getLogger("loopwright.opt")


@dataclass(frozen=True)
class Proposal:
    """A scheduled kernel, the strategy that made it, and one sentence for each decision."""

    kernel: Kernel
    strategy: str
    why: tuple[str, ...]


def propose(kernel: Kernel, target: Target, settings: Mapping[str, int] | None = None) -> Proposal:
    """The kernel under the strategy of its structure. The same arguments give the same schedule.

    `settings`: values for parameters by `strategy.parameter`; the rest have their defaults.
    """
    for strategy in STRATEGIES:
        draft = Draft(kernel, target, settings or {})
        if strategy(draft):
            break
    THREADS(draft)
    for reason in draft.why:
        _log.debug("%s: %s: %s", kernel.name, strategy.name, reason)
    return Proposal(draft.kernel, strategy.name, tuple(draft.why))
