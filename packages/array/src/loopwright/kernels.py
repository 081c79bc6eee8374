"""The kernels behind lazy arrays, as text: what would run, without running or compiling it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopwright.evaluate import build_distinct, make_plan
from loopwright.handwritten import HandWritten
from loopwright.named import named_kernel
from loopwright.options import current
from loopwright.own import pending_calls
from loopwright_core.built import Built
from loopwright_core.errors import ArgumentError, ArgumentTypeError, fail
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.loader import registry
from loopwright_core.program.program import Estimate

if TYPE_CHECKING:
    from loopwright.array import Array

__all__ = ["KernelView", "LaunchSize", "kernels", "named_kernel"]


@dataclass(frozen=True, slots=True)
class LaunchSize:
    """How one phase is launched; `global_size` and `local_size` are None on a CPU."""

    threads: int
    global_size: tuple[Any, ...] | None
    local_size: tuple[int, ...] | None


class KernelView:
    """One kernel of an expression. Its text is there; `compile()` alone starts a compiler."""

    def __init__(self, built: Built | HandWritten) -> None:
        self._built = built

    @property
    def _kernel(self) -> Kernel | None:
        """None for a hand-written text."""
        return self._built.kernel if isinstance(self._built, Built) else None

    @property
    def name(self) -> str:
        """The kernel's name: `r_` (has a reduce) or `e_` and its sizes, or what the user gave."""
        return self._built.program.name

    @property
    def source(self) -> str:
        """The text in the device's language."""
        return self._built.source

    @property
    def opts(self) -> tuple[str, ...]:
        """The steps of its schedule, as `lw.options(opts=[...])` takes them; none where the text is
        hand-written."""
        return () if self._kernel is None else tuple(map(str, self._kernel.schedule.opts))

    @property
    def estimate(self) -> Estimate:
        """Floating point operations and compulsory bytes of one launch, by counting. Of a
        hand-written text only the bytes of its arrays are known."""
        return self._built.program.estimate

    @property
    def launch(self) -> tuple[LaunchSize, ...]:
        """The launch sizes of each phase."""
        return tuple(
            LaunchSize(p.threads, p.global_size, p.local_size) for p in self._built.program.phases
        )

    @property
    def built(self) -> Built | HandWritten:
        """The kernel at every stage of the pipeline, or the text that a user wrote."""
        return self._built

    def describe(self, width: int | None = None, colour: bool = False) -> str:
        """One line: the name and the axes in nest order, cut to `width` columns."""
        if self._kernel is None:
            return f"{self.name} (hand-written)"[:width]
        return self._kernel.describe(width, colour)

    def explain(self) -> tuple[str, ...]:
        """The schedule in sentences, one for each thing that was decided."""
        if self._kernel is None:
            return ("its text is hand-written",)
        return self._kernel.explain()

    def compile(self) -> bytes:
        """The compiled text. Raises CompileError, DeviceError."""
        return self._built.binary

    def __repr__(self) -> str:
        return f"<kernel {self.describe()}>"


def kernels(*arrays: Array, device: str | None = None) -> list[KernelView]:
    """The kernels that would compute the arrays, in order, for their device or another one.

    No compiler starts, and the device need not be on this machine. Equal kernels come once.
    """
    from loopwright.array import Array as ArrayClass

    if not arrays:
        fail(ArgumentError, "kernels() takes at least one array", fix="pass the expression")
    for array in arrays:
        if not isinstance(array, ArrayClass):
            fail(ArgumentTypeError, f"kernels() takes arrays, not {type(array).__name__}")
    by_device: dict[str, list[Any]] = {}
    if device is not None and not isinstance(device, str):
        fail(ArgumentTypeError, f"a device is a text like 'cpu', got {device!r}", where="kernels()")
    for array in arrays:
        by_device.setdefault(device or array._device, []).append(array._uop)
    views: list[KernelView] = []
    for name, uops in by_device.items():
        target = registry().device(name)
        built: list[Built | HandWritten] = []
        for written, inputs in pending_calls(uops):
            built += build_distinct(make_plan(inputs, name), target, current())
            built.append(written)
        built += build_distinct(make_plan(uops, name), target, current())
        views += [KernelView(b) for b in dict.fromkeys(built)]
    return views
