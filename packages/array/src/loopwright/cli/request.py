"""What the commands over a function share: the function, its arguments, device and options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from loopwright.array import Array
from loopwright.cli.arguments import Argument, load_function, located, parse_arguments, parse_opts
from loopwright.devices import default_device
from loopwright.jit import Jitted
from loopwright.memory import empty_buffer
from loopwright.options import options
from loopwright.tracing import tracing
from loopwright_core.errors import ArgumentError, fail


@dataclass(frozen=True)
class Request:
    """What a user typed: `FILE.py:FUNC`, each `--arg`, `--device`, `--schedule`, each `--opts`."""

    text: str
    args: tuple[str, ...] = ()
    device_text: str | None = None
    schedule: str | None = None
    opts: tuple[str, ...] = ()

    @cached_property
    def device(self) -> str:
        return self.device_text or default_device()

    @cached_property
    def function(self) -> Callable[..., Any]:
        return load_function(self.text)

    @cached_property
    def arguments(self) -> list[Argument]:
        return parse_arguments(self.function, self.args)

    def empty(self) -> list[Array]:
        """Arrays without values: enough for text."""
        arguments, device = self.arguments, self.device
        return [Array(empty_buffer(a.dtype, a.shape, device), device) for a in arguments]

    def call(self, given: Sequence[Any]) -> Any:
        """The function of these values, by its parameters' names; a jitted one as it was written,
        so that it gives expressions, and NumPy's values of NumPy's arrays."""
        names = [a.name for a in self.arguments]
        function = self.function
        if isinstance(function, Jitted):
            function = function.__wrapped__
        return function(**dict(zip(names, given, strict=True)))

    def results(self, given: Sequence[Array]) -> list[Array]:
        """What the function gives, as a list. Raises ArgumentError for other than arrays."""
        # as within a trace: jitted functions that it calls are part of its expression
        with located(self.text), tracing(self.text, self.device, False):
            result = self.call(given)
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        for r in results:
            if not isinstance(r, Array):
                fail(
                    ArgumentError,
                    f"the function returns {type(r).__name__}, not Loopwright arrays",
                    fix="compute with its arguments' operators, methods and __array_namespace__()",
                )
        return results

    def options(self, **more: Any) -> AbstractContextManager[Any]:
        """The options that were typed, in force inside the block."""
        return given_options(self.schedule, self.opts, **more)


def given_options(
    schedule: str | None, opts: Sequence[str], **more: Any
) -> AbstractContextManager[Any]:
    """`--schedule` and `--opts` in force inside the block."""
    changes: dict[str, Any] = dict(more)
    if schedule is not None:
        changes["schedule"] = schedule
    if opts:
        changes["opts"] = parse_opts(opts)
    return options(**changes)
