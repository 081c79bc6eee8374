"""A kernel's schedule in one line, to be read by people."""

from __future__ import annotations

from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel

# SGR codes of the colours named in AxisKind.
_CODES = {
    "green": "32",
    "blue": "34",
    "bright_blue": "94",
    "cyan": "36",
    "white": "37",
    "red": "31",
    "magenta": "35",
    "yellow": "33",
    "bright_yellow": "93",
    "magenta on white": "35;47",
}


def describe(kernel: Kernel, width: int | None = None, colour: bool = False) -> str:
    """The name, then each axis with its kind's letter and its size, in nest order.

    Units: `width` is in characters; a longer line is cut with an ellipsis.

    >>> from loopwright_core.kernel.schedule import initial_schedule
    >>> from loopwright_core.kernel.dims import Dim
    >>> from loopwright_core.ir.ops import Op
    >>> from loopwright_core.ir.uop import UOp
    >>> from loopwright_core.ir.dtype import void
    >>> dims = (Dim("i", 4), Dim("k", 8, True))
    >>> describe(Kernel("r_4_8", UOp(Op.SINK, void), dims, initial_schedule(dims)))
    'r_4_8  i:L4 k:R8'
    """
    schedule = kernel.schedule
    parts: list[tuple[str, AxisKind | None]] = [(f"{kernel.name} ", None)]
    for axis in schedule.axes:
        name = axis.dim if len(schedule.of_dim(axis.dim)) == 1 else axis.name
        parts.append((f"{name}:{axis.kind.letter}{axis_size(axis)}", axis.kind))
    if schedule.tensor_core is not None:
        parts.append((f"({schedule.tensor_core.core.name})", None))
    if schedule.no_locals:
        parts.append(("(no locals)", None))
    if width is not None:
        parts = _cut(parts, width)
    return " ".join(_paint(text, kind) if colour else text for text, kind in parts)


def axis_size(axis: Axis) -> str:
    """How many steps an axis has: a number, or the name of a Variable."""
    return axis.size.name if isinstance(axis.size, Variable) else str(axis.size)


def _paint(text: str, kind: AxisKind | None) -> str:
    return text if kind is None else f"\x1b[{_CODES[kind.colour]}m{text}\x1b[0m"


def _cut(parts: list[tuple[str, AxisKind | None]], width: int) -> list[tuple[str, AxisKind | None]]:
    """The parts, the last of them shortened, whose line is `width` characters long at most."""
    if sum(len(text) + 1 for text, _ in parts) - 1 <= width:
        return parts
    kept: list[tuple[str, AxisKind | None]] = []
    left = width - 1
    for text, kind in parts:
        if len(text) >= left:
            kept.append((text[: max(left, 0)] + "…" * (width > 0), kind))
            break
        kept.append((text, kind))
        left -= len(text) + 1
    return kept
