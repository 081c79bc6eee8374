"""Every hook of Loopwright. The docstrings are the manual; docs/hooks.md adds examples.

A plugin is a module named in the entry-point group `loopwright.api1`. It says which API it needs,
`REQUIRES_API = (1, 0)`, and defines functions of the names below, each decorated with
`loopwright_core.plugin.hookimpl`. A function may leave out arguments that it does not use.

First-result hooks are asked one plugin after another until one returns something other than
None: return None for whatever is not yours. The implementations that ship with Loopwright say
`@hookimpl(trylast=True)`; a third party that wants to go first says `tryfirst=True`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.api import hookspec
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.strategy import Strategy
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program

# A spec has no body to return from: pluggy reads its signature and never calls it.
# mypy: disable-error-code="empty-body"


@hookspec
def loopwright_devices() -> list[Device]:
    """The devices this plugin brings; collected from all plugins, once per process.

    A device is returned also where it cannot run: without a driver it renders, and
    `Device.state()` says how far it gets and why not further. So find out late: probing drivers
    and compilers belongs into `state()` and `target`, not here. A name that another plugin has
    taken, or an exception here, gets the whole plugin refused; all others live on.
    """


@hookspec(firstresult=True)
def loopwright_fuse(outputs: Sequence[UOp], target: Target) -> list[Any] | None:
    """Cuts the tensor graph below `outputs` into kernel ASTs, in an order that can run.

    A kernel AST is a level-1 SINK of STOREs. Correctness does not depend on where the cuts are,
    only speed and memory do.
    """


@hookspec(firstresult=True)
def loopwright_index(ast: UOp, name: str | None) -> Kernel | None:
    """Turns a shaped kernel AST into a Kernel: movement ops become index expressions over dims.

    `name` is the kernel's name if the user gave one, else None: then it is made from the dims'
    sizes. The kernel carries its initial schedule, one axis per dim.
    """


@hookspec(firstresult=True)
def loopwright_schedule(kernel: Kernel, target: Target, options: Options) -> Kernel | None:
    """Gives a kernel its schedule: the user's opts, or strategies, or a search.

    Only `kernel.schedule` may change; the body is the same object before and after. A kernel that
    already carries opts comes back as it is. Without any such plugin a kernel runs as it stands.
    """


@hookspec(firstresult=True)
def loopwright_opts(texts: Sequence[str]) -> list[Opt] | None:
    """The steps that a schedule's texts say, before any kernel is there to apply them to.

    Raises OptError for a text that is no step. Whether a step is legal only a kernel tells.
    """


@hookspec
def loopwright_strategies() -> list[Strategy]:
    """Heuristics with named parameters and ranges, collected: each proposes a schedule.

    A kernel without given opts gets the first proposal, those of other plugins before our own.
    The search starts from every strategy's proposal and moves its parameters.
    """


@hookspec
def loopwright_actions(kernel: Kernel, target: Target) -> list[Opt]:
    """Further moves for the search from this kernel's schedule; collected, illegal ones go."""


@hookspec(firstresult=True)
def loopwright_cost(kernel: Kernel, target: Target) -> float | None:
    """Predicted seconds of one launch, to rank candidates before any of them is compiled.

    Units: seconds; only the order matters.
    """


@hookspec(firstresult=True)
def loopwright_lower(kernel: Kernel, target: Target) -> Program | None:
    """Writes the loops: body and schedule become flat lists of level-3 UOps.

    The result uses only ops and dtypes that `target` lists. Same kernel, same program.
    """


@hookspec
def loopwright_rules(stage: str, target: Target) -> Any:
    """Extra rewrite rules at a named stage, collected and run ordered by (order, name).

    `stage` is the name of a rewriting pass of the lowering. Rules keep every value; what they may
    produce is what the level's specification allows.
    """


@hookspec
def loopwright_stage(stage: str, before: Any, after: Any) -> None:
    """Told after each stage of the pipeline: "index", "schedule", "lower", "render".

    `before` and `after` are the stage's input and output, to look at and never to change: for
    tracing, timing, the explain page and tests.
    """
