"""What a plugin gives as a strategy: a heuristic with named parameters that proposes a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that strategies go by, and the values a search may try instead.

    `name` is written `strategy.parameter`; strategies that share a name share the setting.
    """

    name: str
    default: int
    choices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The steps a strategy proposes, and one sentence for each thing it decided."""

    opts: tuple[Opt, ...]
    why: tuple[str, ...] = ()


@dataclass(frozen=True)
class Strategy:
    """`suggest(kernel, target, options, values)` is None where the kernel is not of its kind.

    `kernel` carries no opts yet; `values` has every parameter by its name. Equal arguments give
    equal suggestions. The name is unique among all plugins.
    """

    name: str
    parameters: tuple[Parameter, ...]
    suggest: Callable[[Kernel, Target, Options, Mapping[str, int]], Suggestion | None]
