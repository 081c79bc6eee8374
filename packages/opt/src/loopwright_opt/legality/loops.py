"""Rules of the loops around statements: their order, threads, scans."""

from __future__ import annotations

from loopwright_core.errors import OptError
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.nest import build_nest
from loopwright_core.kernel.phases import phases
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.kernel.statements import link_kept, statements_of
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import refuse
from loopwright_opt.facts import facts_of


def not_along_a_scan(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """A scan runs in order: its dim is no lane and no thread."""
    if axis.dim in facts_of(kernel).scanned:
        refuse(kernel, opt, f"a scan along {axis.dim} runs in order", axis.name)


def thread_is_free(kernel: Kernel, opt: Opt, axis: Axis, amount: int, target: Target) -> None:
    """One THREAD axis, over an output dim of every statement or over a reduce, of at most the
    target's threads."""
    if any(a.kind is AxisKind.THREAD for a in kernel.schedule.axes):
        refuse(kernel, opt, "the kernel has a THREAD axis already", axis.name)
    if target.threads < 2:
        refuse(kernel, opt, f"{target.name} runs one thread", axis.name)
    if amount > target.threads:
        refuse(kernel, opt, f"{amount} threads are more than {target.threads}", axis.name)
    facts = facts_of(kernel)
    if axis.dim not in facts.common and not kernel.dim(axis.dim).is_reduce:
        other = next(s for s in facts.statements if axis.dim not in s.free)
        refuse(kernel, opt, f"{other.label} has no dim {axis.dim} to split", axis.name)


def order_is_of_loops(kernel: Kernel, opt: Opt, axes: list[Axis]) -> None:
    """ORDER moves each axis once; what is expanded has no place, THREAD stays outermost."""
    for axis in axes:
        if axis.kind.is_expanded:
            refuse(kernel, opt, f"a {axis.kind.name} axis has no place in the nest", axis.name)
        if axis.kind is AxisKind.TENSOR:
            refuse(kernel, opt, "a TENSOR axis stays innermost", axis.name)
        if axis.kind is AxisKind.THREAD:
            refuse(kernel, opt, "a THREAD axis stays outermost", axis.name)
    if len({id(a) for a in axes}) != len(axes):
        refuse(kernel, opt, "an axis is named twice")
    if len(axes) < 2 or (opt.op == "SWAP" and len(axes) > 2):
        refuse(kernel, opt, "SWAP names two axes, ORDER two or more")


def scans_run_in_order(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """The axes of a scanned dim nest by descending stride, expanded ones innermost."""
    for dim in facts_of(kernel).scanned:
        strides = [a.stride for a in schedule.axes if a.dim == dim and not a.kind.is_expanded]
        expanded = [a.stride for a in schedule.axes if a.dim == dim and a.kind.is_expanded]
        strides += sorted(expanded, reverse=True)
        if strides != sorted(strides, reverse=True):
            refuse(kernel, opt, f"a scan along {dim} walks its axes by descending stride")


def nest_exists(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """The loops nest so that no statement waits for one that waits for it.

    A reduce and the store of its value always nest, so that the usual kernel costs no walk; where
    one of them reads what the other keeps they may not.
    """
    facts = facts_of(kernel)
    kept = [made.access for made in schedule.stages if made.mode == "keep"]
    if len(facts.statements) <= 2 and not kept:
        return
    parts = []
    for launch in phases(kernel.with_schedule(schedule)).kernels:
        parts.append(statements_of(launch))
        free = facts_of(launch).free.__getitem__
        for made in launch.schedule.stages:
            if made.mode == "keep":
                link_kept(launch.shared[int(made.access[1:])], parts[-1], free)
    try:
        for part in parts:
            build_nest(part)
    except OptError as error:
        refuse(kernel, opt, str(error))
