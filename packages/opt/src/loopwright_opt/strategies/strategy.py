"""What a strategy is: a rule with named parameters that puts steps on a draft of a schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loopwright_core.errors import OptError
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply_all
from loopwright_opt.facts import Facts, facts_of
from loopwright_opt.text import parse


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that a strategy goes by, and the values a search may try instead."""

    name: str
    default: int
    choices: tuple[int, ...]


@dataclass
class Draft:
    """A kernel whose schedule is being made. `why`: one sentence for each thing decided."""

    kernel: Kernel
    target: Target
    settings: Mapping[str, int] = field(default_factory=dict)
    why: list[str] = field(default_factory=list)

    @property
    def facts(self) -> Facts:
        return facts_of(self.kernel)

    def size(self, dim: str) -> int:
        """A dim's extent; 0 where it is symbolic: such a dim can only loop."""
        found = self.kernel.dim(dim).size
        return found if isinstance(found, int) else 0

    def do(self, *steps: str) -> bool:
        """Apply these steps, all or none; whether they are legal."""
        try:
            self.kernel = apply_all(self.kernel, parse(steps), self.target)
        except OptError:
            return False
        return True

    def note(self, reason: str) -> None:
        self.why.append(reason)


@dataclass(frozen=True)
class Strategy:
    """`run` changes the draft and tells whether the kernel is of its kind.

    Its parameters are read by name from `Draft.settings`, as `strategy.name`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Draft, Mapping[str, int]], bool]

    def __call__(self, draft: Draft) -> bool:
        given = draft.settings
        values = {p.name: given.get(f"{self.name}.{p.name}", p.default) for p in self.parameters}
        return self.run(draft, values)
