"""When a scheduling step is legal: one rule a function, each with its reason in one sentence."""

from __future__ import annotations

from math import prod
from typing import NoReturn

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.nest import check_nest
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import is_outermost, refuse
from loopwright_opt.facts import facts_of
from loopwright_opt.text import OTHER_OPS

MAX_UNROLL = 32
# Copies of one statement at its leaf; more is only text.
MAX_COPIES = 512

_LOOPS = (AxisKind.LOOP, AxisKind.REDUCE, AxisKind.GLOBAL)
_SOURCES = {
    "UPCAST": _LOOPS,
    "UNROLL": (AxisKind.REDUCE, AxisKind.GROUP),
    "VECTOR": (*_LOOPS, AxisKind.UPCAST, AxisKind.UNROLL),
    "TILE": _LOOPS,
    "THREAD": (AxisKind.LOOP, AxisKind.REDUCE),
}


def op_is_known(kernel: Kernel, opt: Opt, target: Target) -> NoReturn:
    """Steps that need what the target lacks or this version cannot lower are refused by name."""
    if opt.op in OTHER_OPS:
        refuse(kernel, opt, f"{opt.op} needs {OTHER_OPS[opt.op]}, and {target.name} has none here")
    refuse(kernel, opt, f"{opt.op} is no scheduling step")


def amount_is_real(kernel: Kernel, opt: Opt, axis: Axis) -> int:
    """The amount in numbers: 0 is the whole axis, 1 would change nothing."""
    amount = opt.amount
    if amount is None or amount < 0 or amount == 1:
        refuse(kernel, opt, "an amount is 2 or more, or 0 for the whole axis", axis.name)
    return amount


def axis_is_fixed(kernel: Kernel, opt: Opt, axis: Axis) -> int:
    """A symbolic axis can only loop: its extent is known at launch, copies and tiles before."""
    if isinstance(axis.size, Variable):
        refuse(kernel, opt, "a symbolic axis can only loop", axis.name)
    return axis.size


def kind_fits(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """UNROLL is for reduce axes; what is expanded or bound to threads is not split again."""
    if axis.kind in _SOURCES[opt.op]:
        return
    if opt.op == "UNROLL" and axis.kind is AxisKind.LOOP:
        refuse(kernel, opt, "UNROLL is for reduce axes", axis.name, f"UPCAST {axis.name}")
    refuse(kernel, opt, f"the axis is {axis.kind.name} already", axis.name)


def split_divides(kernel: Kernel, opt: Opt, axis: Axis, size: int, amount: int) -> None:
    """Only the outermost axis of a dim may be ragged: an inner one splits by a divisor."""
    if size % amount and not is_outermost(kernel.schedule, axis):
        refuse(kernel, opt, f"{amount} does not divide the inner axis of size {size}", axis.name)


def upcast_is_small(kernel: Kernel, opt: Opt, axis: Axis, amount: int, target: Target) -> None:
    """The copies of one UPCAST are at most what the target says."""
    if amount > target.max_upcast:
        limit = target.max_upcast
        refuse(kernel, opt, f"{amount} copies are more than the target's {limit}", axis.name)


def unroll_is_small(kernel: Kernel, opt: Opt, axis: Axis, amount: int) -> None:
    """At most 32 steps of a reduce are written out."""
    if amount > MAX_UNROLL:
        refuse(kernel, opt, f"{amount} steps are more than {MAX_UNROLL}", axis.name)


def lanes_exist(kernel: Kernel, opt: Opt, axis: Axis, amount: int, target: Target) -> None:
    """A VECTOR axis has a lane count that the target has for a dtype of this kernel."""
    counts = sorted({n for d in facts_of(kernel).dtypes for n in target.lanes(d)})
    if amount not in counts:
        if not counts:
            refuse(kernel, opt, f"{target.name} has no vectors", axis.name)
        known = ", ".join(map(str, counts))
        refuse(kernel, opt, f"{target.name} has no vector of {amount} lanes", axis.name, known)


def not_along_a_scan(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """A scan runs in order: its dim is no lane and no thread."""
    if axis.dim in facts_of(kernel).scanned:
        refuse(kernel, opt, f"a scan along {axis.dim} runs in order", axis.name)


def thread_is_free(kernel: Kernel, opt: Opt, axis: Axis, amount: int, target: Target) -> None:
    """One THREAD axis, over an output dim of every statement, of at most the target's threads."""
    if any(a.kind is AxisKind.THREAD for a in kernel.schedule.axes):
        refuse(kernel, opt, "the kernel has a THREAD axis already", axis.name)
    if target.threads < 2:
        refuse(kernel, opt, f"{target.name} runs one thread", axis.name)
    if amount > target.threads:
        refuse(kernel, opt, f"{amount} threads are more than {target.threads}", axis.name)
    if axis.kind is AxisKind.REDUCE:
        refuse(kernel, opt, "a reduce axis is not split over threads in this version", axis.name)
    facts = facts_of(kernel)
    if axis.dim not in facts.common:
        other = next(s for s in facts.statements if axis.dim not in s.free)
        refuse(kernel, opt, f"{other.label} has no dim {axis.dim} to split", axis.name)


def order_is_of_loops(kernel: Kernel, opt: Opt, axes: list[Axis]) -> None:
    """ORDER moves each axis once; what is expanded has no place, THREAD stays outermost."""
    for axis in axes:
        if axis.kind.is_expanded:
            refuse(kernel, opt, f"a {axis.kind.name} axis has no place in the nest", axis.name)
        if axis.kind is AxisKind.THREAD:
            refuse(kernel, opt, "a THREAD axis stays outermost", axis.name)
    if len({a.name for a in axes}) != len(axes):
        refuse(kernel, opt, "an axis is named twice")
    if len(axes) < 2 or (opt.op == "SWAP" and len(axes) > 2):
        refuse(kernel, opt, "SWAP names two axes, ORDER two or more")


def one_vector_a_statement(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """Lanes of a value lie along one axis."""
    vectors = [a for a in schedule.axes if a.kind is AxisKind.VECTOR]
    if len(vectors) < 2:
        return
    for statement in facts_of(kernel).statements:
        found = [a for a in vectors if a.dim in statement.dims]
        if len(found) > 1:
            reason = f"{statement.label} would have two VECTOR axes"
            refuse(kernel, opt, reason, " and ".join(a.name for a in found))


def leaf_is_small(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """The copies of one statement, lanes not counted, stay readable and compilable."""
    copies = [a for a in schedule.axes if a.kind in (AxisKind.UPCAST, AxisKind.UNROLL)]
    if prod(a.size for a in copies if isinstance(a.size, int)) <= MAX_COPIES:
        return
    for statement in facts_of(kernel).statements:
        n = prod(a.size for a in copies if a.dim in statement.dims and isinstance(a.size, int))
        if n > MAX_COPIES:
            reason = f"{statement.label} would be written out {n} times, more than {MAX_COPIES}"
            refuse(kernel, opt, reason)


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

    A reduce and the store of its value always nest, so that the usual kernel costs no walk.
    """
    if len(facts_of(kernel).statements) <= 2:
        return
    try:
        check_nest(kernel.with_schedule(schedule))
    except OptError as error:
        refuse(kernel, opt, str(error))
