"""The kernels behind lazy arrays, as text: what would run, without running or compiling it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loopwright.evaluate import build_distinct, make_plan
from loopwright.named import named_kernel
from loopwright.options import current
from loopwright_core.built import Built
from loopwright_core.errors import ArgumentError, ArgumentTypeError, fail
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.dims import Axis
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.loader import registry
from loopwright_core.program.program import Estimate

if TYPE_CHECKING:
    from loopwright.array import Array

__all__ = ["KernelView", "LaunchSize", "describe", "kernels", "named_kernel"]


@dataclass(frozen=True, slots=True)
class LaunchSize:
    """How one phase is launched; `global_size` and `local_size` are None on a CPU."""

    threads: int
    global_size: tuple[Any, ...] | None
    local_size: tuple[int, ...] | None


class KernelView:
    """One kernel of an expression. Its text is there; `compile()` alone starts a compiler."""

    def __init__(self, built: Built) -> None:
        self._built = built

    @property
    def name(self) -> str:
        """The kernel's name: `r_` (has a reduce) or `e_` and its sizes, or what the user gave."""
        return self._built.kernel.name

    @property
    def source(self) -> str:
        """The text in the device's language."""
        return self._built.source

    @property
    def opts(self) -> tuple[str, ...]:
        """The steps of its schedule, as `lw.options(opts=[...])` takes them."""
        return tuple(map(str, self._built.kernel.schedule.opts))

    @property
    def estimate(self) -> Estimate:
        """Floating point operations and compulsory bytes of one launch, by counting."""
        return self._built.program.estimate

    @property
    def launch(self) -> tuple[LaunchSize, ...]:
        """The launch sizes of each phase."""
        return tuple(
            LaunchSize(p.threads, p.global_size, p.local_size) for p in self._built.program.phases
        )

    @property
    def built(self) -> Built:
        """The kernel at every stage of the pipeline."""
        return self._built

    def describe(self, width: int | None = None, colour: bool = False) -> str:
        """One line: the name and the axes in nest order, cut to `width` columns."""
        return describe(self._built.kernel, width, colour)

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
        plan = make_plan(uops, name)
        built = build_distinct(plan, registry().device(name), current())
        views += [KernelView(b) for b in dict.fromkeys(built)]
    return views


# SGR codes of the colours named in AxisKind.
_SGR = {
    "blue": "34",
    "bright_blue": "94",
    "cyan": "36",
    "magenta on white": "35;47",
    "green": "32",
    "white": "37",
    "red": "31",
    "magenta": "35",
    "yellow": "33",
    "bright_yellow": "93",
}


def describe(kernel: Kernel, width: int | None = None, colour: bool = False) -> str:
    """A kernel on one line: `name  i:L64 j/16:L4 j:v16`, each axis with its kind's letter."""
    parts = [_axis_text(axis, kernel.schedule.axes) for axis in kernel.schedule.axes]
    if kernel.schedule.no_locals:
        parts.append("(no locals)")
    line = " ".join([f"{kernel.name} ", *parts])
    if width is not None and len(line) > width:
        return line[: max(width - 1, 0)] + "…"
    if not colour:
        return line
    styled = [
        f"\x1b[{_SGR[axis.kind.value[1]]}m{part}\x1b[0m"
        for axis, part in zip(kernel.schedule.axes, parts, strict=False)
    ]
    return " ".join([f"{kernel.name} ", *styled, *parts[len(styled) :]])


def _axis_text(axis: Axis, axes: Sequence[Axis]) -> str:
    is_only = sum(a.dim == axis.dim for a in axes) == 1
    size = axis.size.name if isinstance(axis.size, Variable) else axis.size
    return f"{axis.dim if is_only else axis.name}:{axis.kind.value[0]}{size}"
