"""The parameters of a jitted function: bound to a call's arguments, told apart by their role."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopwright_core.errors import ArgumentError, ArgumentTypeError, fail

_KINDS = inspect.Parameter


class Signature:
    """How a function takes its arguments, looked at once."""

    def __init__(self, f: Callable[..., Any], name: str) -> None:
        try:
            self.full = _without_settings(f) if isinstance(f, np.ufunc) else inspect.signature(f)
        except (TypeError, ValueError):  # some functions of C do not tell
            self.full = inspect.Signature(
                [_KINDS("args", _KINDS.VAR_POSITIONAL), _KINDS("kwargs", _KINDS.VAR_KEYWORD)]
            )
        self._name = name
        parameters = self.full.parameters
        self.names = tuple(parameters)
        self._positional = tuple(
            p.name
            for p in parameters.values()
            if p.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)
        )
        self.takes_out = "out" in self.names
        self._defaults = [p.default for p in parameters.values()]
        # How many arguments may be given by position alone; none where only a binding tells.
        plain = all(p.kind is _KINDS.POSITIONAL_OR_KEYWORD for p in parameters.values())
        n_required = sum(default is _KINDS.empty for default in self._defaults)
        self._n_plain = range(n_required, len(self.names) + 1) if plain else range(0)

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by parameter, defaults included. Raises ArgumentTypeError."""
        if not kwargs and len(args) in self._n_plain:
            return dict(zip(self.names, (*args, *self._defaults[len(args) :]), strict=True))
        try:
            bound = self.full.bind(*args, **kwargs)
        except TypeError as error:
            fail(ArgumentTypeError, f"{self._name}() {error}")
        bound.apply_defaults()
        return bound.arguments

    def select(self, given: Any, setting: str) -> tuple[str, ...]:
        """Names of parameters from names and positions. Raises ArgumentError."""
        wanted = (given,) if isinstance(given, (str, int)) else tuple(given)
        found: list[str] = []
        for one in wanted:
            if isinstance(one, int) and not isinstance(one, bool):
                if not -len(self._positional) <= one < len(self._positional):
                    self._refuse(one, setting)
                one = self._positional[one]
            if one not in self.names:
                self._refuse(one, setting)
            if one not in found:
                found.append(one)
        return tuple(found)

    def _refuse(self, one: Any, setting: str) -> None:
        fail(
            ArgumentError,
            f"{self._name}() has no parameter {one!r}",
            where=f"{setting}=",
            fix=f"name one of {', '.join(self.names) or 'none: it takes no arguments'}, or give "
            "its position",
        )


def _without_settings(f: np.ufunc) -> inspect.Signature:
    """The operands of NumPy's function, which refuses its own defaults where they are given."""
    names = ["x"] if f.nin == 1 else [f"x{i + 1}" for i in range(f.nin)]
    operands = [_KINDS(name, _KINDS.POSITIONAL_ONLY) for name in names]
    return inspect.Signature([*operands, _KINDS("kwargs", _KINDS.VAR_KEYWORD)])
