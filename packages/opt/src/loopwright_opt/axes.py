"""Names of axes: which axis a word means, which axes lie inside another."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

from loopwright_core.errors import OptError, fail
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule

_THREADS = (AxisKind.LOCAL, AxisKind.GROUP)


def refuse(kernel: Kernel, opt: Opt, reason: str, axis: str = "", fix: str = "") -> NoReturn:
    """Raise OptError: the step, the rule it breaks in one sentence, kernel and axis."""
    where = f"kernel {kernel.name}" + (f", axis {axis}" if axis else "")
    fail(OptError, f"{opt}: {reason}", where=where, fix=fix)


def resolve(kernel: Kernel, opt: Opt, word: str) -> Axis:
    """The axis a word means: `j/64` that one, `j` the only or the innermost one of dim j."""
    dim, slash, stride = word.partition("/")
    found = [a for a in kernel.schedule.axes if a.dim == dim]
    if not found:
        dims = ", ".join(d.name for d in kernel.dims)
        refuse(kernel, opt, f"there is no dim {dim}", fix=f"The dims are {dims}")
    if not slash:
        return min(found, key=lambda a: a.stride)
    for axis in found:
        if axis.stride == int(stride):
            return axis
    names = ", ".join(a.name for a in sorted(found, key=lambda a: -a.stride))
    refuse(kernel, opt, f"there is no axis {word}", fix=f"The axes of {dim} are {names}")


def spread(kernel: Kernel, opt: Opt) -> tuple[Opt, ...]:
    """The steps that an opt on `j*` stands for: the same on j, j.0, j.1, as far as they exist."""
    if "*" not in opt.axis and "*" not in "".join(opt.arg):
        return (opt,)
    if opt.op in ("ORDER", "SWAP"):
        words = [w for word in opt.arg for w in _starred(kernel, opt, word)]
        return (replace(opt, arg=tuple(words)),)
    return tuple([replace(opt, axis=word) for word in _starred(kernel, opt, opt.axis)])


def _starred(kernel: Kernel, opt: Opt, word: str) -> list[str]:
    dim, slash, stride = word.partition("/")
    if not dim.endswith("*"):
        return [word]
    base = dim[:-1]
    found = [d.name for d in kernel.dims if d.name == base or d.name.startswith(base + ".")]
    if not found:
        refuse(kernel, opt, f"there is no dim {base}")
    return [name + slash + stride for name in found]


def is_outermost(schedule: Schedule, axis: Axis) -> bool:
    """Whether no axis of its dim has a larger stride: the one that may be ragged."""
    return all(a.stride <= axis.stride for a in schedule.axes if a.dim == axis.dim)


def is_whole(schedule: Schedule, axis: Axis, amount: int) -> bool:
    """Whether a piece is the whole inner axis: an outer part of size 1 would have the name of
    the axis that follows it. The outermost axis keeps one, so that one text serves all sizes,
    unless its own size is 1 already: the two parts would have one name."""
    return axis.size == amount and (amount == 1 or not is_outermost(schedule, axis))


def named(schedule: Schedule, name: str) -> Axis | None:
    """The axis of a full name, `j/64`."""
    dim, _, text = name.partition("/")
    stride = int(text)
    for axis in schedule.axes:
        if axis.stride == stride and axis.dim == dim:
            return axis
    return None


def inside(
    schedule: Schedule, at: str, dims: frozenset[str], own: bool = False
) -> tuple[Axis, ...]:
    """The axes of some dims within an axis: loops behind it in the nest, all expanded ones, and
    (but for what is each thread's `own`) all over a workgroup's threads, if several, which work
    on what is inside together."""
    found = []
    open_ = not at
    around = named(schedule, at) if at else None
    for axis in schedule.axes:
        if axis.dim in dims:
            kind = axis.kind
            shared = not own and kind in _THREADS and axis.size != 1
            if open_ or shared or kind.is_expanded:
                found.append(axis)
        if axis is around:
            open_ = True
    return tuple(found)
