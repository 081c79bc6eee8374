"""What the optimizer plugs into Loopwright."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright_core.errors import OptError, fail
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin import hookimpl
from loopwright_core.plugin.strategy import Strategy
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply_all
from loopwright_opt.cost import predict
from loopwright_opt.strategies.choice import OURS, propose
from loopwright_opt.tensor_core import with_options
from loopwright_opt.text import parse

REQUIRES_API = (1, 0)


@hookimpl(trylast=True)
def loopwright_schedule(kernel: Kernel, target: Target, options: Options) -> Kernel:
    """Given opts as they stand, else what the option `schedule` says."""
    if kernel.schedule.opts:
        return kernel
    given = options.given(kernel.name)
    if given is not None:
        return apply_all(kernel, with_options(parse(given), options), target)
    if options.schedule == "none":
        return kernel
    if options.schedule == "heuristic":
        return propose(kernel, target, options).kernel
    if options.schedule == "beam":
        from loopwright_opt.beam import tune  # processes and pools: no other road needs them

        return tune(kernel, target, options)
    what = f"schedule={options.schedule!r} is not known"
    fail(OptError, what, fix='Use "none", "heuristic" or "beam"')


@hookimpl(trylast=True)
def loopwright_opts(texts: Sequence[str]) -> list[Opt]:
    """The steps of the texts, parsed."""
    return list(parse(texts))


@hookimpl(trylast=True)
def loopwright_strategies() -> list[Strategy]:
    """Ours, in the order of decision."""
    return list(OURS)


@hookimpl(trylast=True)
def loopwright_cost(kernel: Kernel, target: Target) -> float:
    """Predicted seconds of one launch."""
    return predict(kernel, target)
