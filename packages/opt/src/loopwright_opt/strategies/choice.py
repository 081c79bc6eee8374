"""Which strategy a kernel gets: the first, over all plugins, that proposes a legal schedule."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from loopwright_core.errors import LoopwrightError, OptError, PluginError, fail
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.notes import note
from loopwright_core.plugin.loader import registry
from loopwright_core.plugin.strategy import Strategy
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply_all
from loopwright_opt.strategies.around import AROUND
from loopwright_opt.strategies.columns import COLUMNS
from loopwright_opt.strategies.group_columns import GROUP_COLUMNS
from loopwright_opt.strategies.group_rows import GROUP_ROWS
from loopwright_opt.strategies.groups import GROUPS
from loopwright_opt.strategies.lanes import LANES
from loopwright_opt.strategies.last import LAST
from loopwright_opt.strategies.locals import LOCALS
from loopwright_opt.strategies.masked import MASKED
from loopwright_opt.strategies.matvec import MATVEC
from loopwright_opt.strategies.products import PRODUCTS
from loopwright_opt.strategies.shared_loads import SHARED_LOADS
from loopwright_opt.strategies.shared_products import SHARED_PRODUCTS
from loopwright_opt.strategies.shared_transposes import SHARED_TRANSPOSES
from loopwright_opt.strategies.splits import SPLITS
from loopwright_opt.strategies.strategy import Draft, strategy
from loopwright_opt.strategies.tensor_cores import TENSOR_CORES
from loopwright_opt.strategies.threads import THREADS
from loopwright_opt.strategies.tile_registers import TILE_REGISTERS
from loopwright_opt.strategies.transposes import TRANSPOSES
from loopwright_opt.strategies.unrolls import UNROLLS
from loopwright_opt.strategies.upcasts import UPCASTS
from loopwright_opt.strategies.whole_groups import WHOLE_GROUPS
from loopwright_opt.strategies.wide_streams import WIDE_STREAMS
from loopwright_opt.strategies.windows import WINDOWS

_log = logging.getLogger("loopwright.opt")


@dataclass(frozen=True)
class Proposal:
    """A scheduled kernel, the strategy that made it, and one sentence for each decision.

    `settings`: the parameters that were not left at their defaults.
    """

    kernel: Kernel
    strategy: str
    why: tuple[str, ...]
    settings: Mapping[str, int] = field(default_factory=dict)


def _on_cpu(draft: Draft) -> bool:
    return not draft.target.has_local and not draft.options.parity


def _on_gpu(draft: Draft) -> bool:
    options = draft.options
    return draft.target.has_local and not options.parity and not options.no_locals


def _on_tensor_cores(draft: Draft) -> bool:
    options = draft.options
    return draft.target.has_local and options.tensor_cores != "off" and not options.no_locals


def _on_tile_registers(draft: Draft) -> bool:
    return _on_cpu(draft) and draft.options.tensor_cores != "off"


def _anywhere(draft: Draft) -> bool:
    return True


_CPU = (WINDOWS, PRODUCTS, TRANSPOSES, COLUMNS, LANES)  # LANES applies to everything
# Image buffers are no part of the core yet: no rule looks for texels.
_GPU = (SHARED_PRODUCTS, GROUP_ROWS, GROUP_COLUMNS, SHARED_TRANSPOSES, WIDE_STREAMS)
_STEPS = (MASKED, UPCASTS, UNROLLS, LAST)
# In the order of decision.
OURS: tuple[Strategy, ...] = (
    strategy("tensor_cores", (TENSOR_CORES,), _on_tensor_cores),
    strategy("tile_registers", (TILE_REGISTERS, THREADS), _on_tile_registers),
    *[strategy(h.name, (h, THREADS, AROUND), _on_cpu) for h in _CPU],
    *[strategy(h.name, (h, SPLITS), _on_gpu) for h in _GPU],
    strategy("matvec", (MATVEC,), _anywhere),
    strategy("groups", (GROUPS, SPLITS), _anywhere),
    strategy("shared_steps", (*_STEPS, WHOLE_GROUPS, SHARED_LOADS), _on_gpu, needs_first=False),
    strategy("steps", (*_STEPS, LOCALS), _anywhere, needs_first=False),
)


def strategies() -> tuple[Strategy, ...]:
    """Every plugin's strategies in the order of decision, our own last.

    Raises PluginError for two of one name, and for what is none.
    """
    found: dict[str, Strategy] = {}
    for part in registry().hook.loopwright_strategies():
        for given in part:
            if not isinstance(given, Strategy):
                fail(PluginError, f"loopwright_strategies returned {given!r}, which is no Strategy")
            if given.name in found:
                fail(PluginError, f"two plugins bring a strategy named {given.name!r}", fix=_FIX)
            found[given.name] = given
    return tuple(found.values())


_FIX = "uninstall one of them, or name those wanted in LOOPWRIGHT_PLUGINS"


def propose(
    kernel: Kernel,
    target: Target,
    options: Options | None = None,
    settings: Mapping[str, int] | None = None,
) -> Proposal:
    """The kernel under the strategy of its structure. The same arguments give the same schedule.

    `settings`: values for parameters by `strategy.parameter`; the rest have their defaults.
    """
    options = options or Options()
    for each in strategies():
        found = _made(each, kernel, target, options, settings or {})
        if found is not None:
            for reason in found.why:
                _log.debug("%s: %s: %s", kernel.name, found.strategy, reason)
                note("schedule", kernel.name, f"{found.strategy}: {reason}")
            return found
    return Proposal(kernel, "none", ())


def proposals(kernel: Kernel, target: Target, options: Options | None = None) -> list[Proposal]:
    """What every strategy proposes that applies to the kernel, in the order of decision."""
    options = options or Options()
    found = [_made(each, kernel, target, options, {}) for each in strategies()]
    return [p for p in found if p is not None]


def variations(
    kernel: Kernel, target: Target, options: Options, base: Proposal, pairs: bool = False
) -> Iterator[Proposal]:
    """What made `base` with one parameter, or two as well, at another value than there."""
    each = next(s for s in strategies() if s.name == base.strategy)
    moves = [
        (p.name, value)
        for p in each.parameters
        for value in p.choices
        if value != base.settings.get(p.name, p.default)
    ]
    changes = [[move] for move in moves]
    if pairs:
        changes += [[a, b] for a, b in combinations(moves, 2) if a[0] != b[0]]
    for change in changes:
        found = _made(each, kernel, target, options, {**base.settings, **dict(change)})
        if found is not None:
            yield found


def _made(
    each: Strategy, kernel: Kernel, target: Target, options: Options, settings: Mapping[str, int]
) -> Proposal | None:
    """None where it does not apply, or where its steps are not legal."""
    values = {p.name: settings.get(p.name, p.default) for p in each.parameters}
    try:
        found = each.suggest(kernel, target, options, values)
        if found is None:
            return None
        made = apply_all(kernel, found.opts, target)
        return Proposal(made, each.name, found.why, settings)
    except OptError as error:
        _log.info("%s: strategy %s: %s", kernel.name, each.name, error)
        return None
    except (LoopwrightError, MemoryError):
        raise
    except Exception as error:
        what = f"strategy {each.name} failed with {type(error).__name__}: {error}"
        raise PluginError(f"{what}. This is a bug there; please report it.") from error
