"""How our strategies are made: heuristics that put steps on a draft of a schedule, in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from loopwright_core.errors import OptError
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.strategy import Parameter, Strategy, Suggestion
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply_all
from loopwright_opt.facts import Facts, facts_of
from loopwright_opt.text import parse

_OUTPUT = (AxisKind.GLOBAL, AxisKind.LOOP)


@dataclass
class Draft:
    """A kernel whose schedule is being made. `why`: one sentence for each thing decided."""

    kernel: Kernel
    target: Target
    settings: Mapping[str, int] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    why: list[str] = field(default_factory=list)

    @property
    def facts(self) -> Facts:
        return facts_of(self.kernel)

    def size(self, dim: str) -> int:
        """A dim's extent; 0 where it is symbolic: such a dim can only loop."""
        found = self.kernel.dim(dim).size
        return found if isinstance(found, int) else 0

    def outputs(self) -> list[Axis]:
        """The output axes that nothing was done to yet, in the order of the kernel's dims."""
        return self._left(_OUTPUT)

    def reduces(self) -> list[Axis]:
        """The reduce axes that nothing was done to yet, in the order of the kernel's dims."""
        return self._left((AxisKind.REDUCE,))

    def _left(self, kinds: tuple[AxisKind, ...]) -> list[Axis]:
        order = {d.name: n for n, d in enumerate(self.kernel.dims)}
        found = [a for a in self.kernel.schedule.axes if a.kind in kinds and a.size != 1]
        return sorted(found, key=lambda a: (order[a.dim], -a.stride))

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
class Heuristic:
    """`run` changes the draft and tells whether the kernel is of its kind.

    It is given its parameters by their names without `heuristic.`; the settings have them with it.
    """

    name: str
    parameters: tuple[Parameter, ...]
    run: Callable[[Draft, Mapping[str, int]], bool]

    def __call__(self, draft: Draft) -> bool:
        given = draft.settings
        values = {p.name: given.get(f"{self.name}.{p.name}", p.default) for p in self.parameters}
        return self.run(draft, values)


def strategy(
    name: str,
    heuristics: tuple[Heuristic, ...],
    when: Callable[[Draft], bool],
    needs_first: bool = True,
) -> Strategy:
    """The strategy of heuristics in a row, where `when` holds and the first of them applies.

    `needs_first` False: none of them needs to.
    """

    def suggest(
        kernel: Kernel, target: Target, options: Options, values: Mapping[str, int]
    ) -> Suggestion | None:
        draft = Draft(kernel, target, values, options)
        if not when(draft):
            return None
        for n, heuristic in enumerate(heuristics):
            if not heuristic(draft) and n == 0 and needs_first:
                return None
        return Suggestion(draft.kernel.schedule.opts, tuple(draft.why))

    named = [
        Parameter(f"{h.name}.{p.name}", p.default, p.choices)
        for h in heuristics
        for p in h.parameters
    ]
    return Strategy(name, tuple(named), suggest)
