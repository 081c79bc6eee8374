"""Schedules in the predecessors' notation: OP(axis,amount), axes by number."""

from __future__ import annotations

from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply
from loopwright_opt.axes import resolve

_OUTPUT = (AxisKind.GLOBAL, AxisKind.LOOP)
_AMONG_ALL = ("UPCAST", "LOCAL")
_AMONG_REDUCES = ("UNROLL", "GROUP", "GROUPTOP")


def notation(kernel: Kernel, opts: tuple[Opt, ...], target: Target) -> str:
    """The steps from an unscheduled kernel, each with the number of its axis at that moment.

    Output axes come first, reduce axes last; UNROLL and GROUP count the reduce axes alone. An axis
    that is used up counts no more. `TC(0)` is the first triple. Raises ValueError for a step that
    the predecessors have no word for.
    """
    words = []
    for opt in opts:
        if opt.op == "TC":
            words.append(f"TC({opt.amount})")
        elif opt.op in (*_AMONG_ALL, *_AMONG_REDUCES):
            axis = resolve(kernel, opt, opt.axis)
            reduces = _left(kernel, (AxisKind.REDUCE,))
            axes = reduces if opt.op in _AMONG_REDUCES else _left(kernel, _OUTPUT) + reduces
            words.append(f"{opt.op}({axes.index(axis.name)},{opt.amount})")
        elif opt.op == "NOLOCALS":
            words.append("NOLOCALS")
        else:
            raise ValueError(f"the predecessors have no {opt}")
        kernel = apply(kernel, opt, target)
    return " ".join(words)


def _left(kernel: Kernel, kinds: tuple[AxisKind, ...]) -> list[str]:
    order = {d.name: n for n, d in enumerate(kernel.dims)}
    axes = [a for a in kernel.schedule.axes if a.kind in kinds and a.size != 1]
    return [a.name for a in sorted(axes, key=lambda a: (order[a.dim], -a.stride))]
