"""Rules of cutting one axis: amounts, kinds, lanes, copies."""

from __future__ import annotations

from math import prod

from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.kernel.tails import tail_of
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import is_outermost, refuse
from loopwright_opt.facts import facts_of

MAX_UNROLL = 32
# Copies of one statement at its leaf; more is only text.
MAX_COPIES = 512

_LOOPS = (AxisKind.LOOP, AxisKind.REDUCE, AxisKind.GLOBAL)
_APART = (AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.GROUP, AxisKind.TENSOR)
_SOURCES = {
    "UPCAST": _LOOPS,
    "UNROLL": (AxisKind.REDUCE, AxisKind.GROUP),
    "VECTOR": (*_LOOPS, AxisKind.UPCAST, AxisKind.UNROLL),
    "TILE": _LOOPS,
    "THREAD": (AxisKind.LOOP, AxisKind.REDUCE),
    "SPLITK": (AxisKind.REDUCE,),
    "STREAM": _LOOPS,
    "LOCAL": (AxisKind.GLOBAL, AxisKind.LOOP),
    "GROUP": (AxisKind.REDUCE,),
    "GROUPTOP": (AxisKind.REDUCE,),
}
# What a step on loops of one side is for, and the step for the other side.
_SIDES = {
    "UNROLL": ("reduce", "UPCAST"),
    "THREAD": ("output", "LOCAL"),
    "SPLITK": ("reduce", "THREAD"),
    "LOCAL": ("output", "GROUP"),
    "GROUP": ("reduce", "LOCAL"),
    "GROUPTOP": ("reduce", "LOCAL"),
}


def amount_is_real(kernel: Kernel, opt: Opt, axis: Axis) -> int:
    """The amount in numbers: 0 is the whole axis, 1 would change nothing."""
    amount = opt.amount
    if amount is None or amount < 0 or amount == 1:
        refuse(kernel, opt, "an amount is 2 or more, or 0 for the whole axis", axis.name)
    return amount


def axis_is_fixed(kernel: Kernel, opt: Opt, axis: Axis) -> int:
    """A symbolic axis loops, in threads or not: copies and tiles have a size before launch."""
    size = axis.size
    if kernel.dim(axis.dim).is_symbolic or isinstance(size, Variable):
        reason = "a symbolic axis can only loop, be on the grid, or be cut for threads"
        refuse(kernel, opt, reason, axis.name)
    return size


def slices_have_steps(kernel: Kernel, opt: Opt, axis: Axis) -> int:
    """The largest size of an axis that threads share. A symbolic one is cut once, in slices of
    several steps, and nothing is left over that could be padded or peeled."""
    size = axis.size
    if not isinstance(size, Variable):
        return axis_is_fixed(kernel, opt, axis)
    if opt.arg:
        refuse(kernel, opt, "a symbolic axis has no ragged end", axis.name)
    if opt.amount is not None and not 0 < opt.amount < size.hi:
        reason = f"an axis of {size.hi} steps at most is cut in fewer slices than that"
        refuse(kernel, opt, reason, axis.name)
    return size.hi


def kind_fits(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """A step takes loops of outputs, of reduces, or both; what is expanded or bound to threads is
    not split again."""
    if axis.kind in _SOURCES[opt.op]:
        return
    if axis.kind in _LOOPS:
        side, other = _SIDES[opt.op]
        reason = f"{opt.op} is for {side} axes"
        refuse(kernel, opt, reason, axis.name, f"Use {other} {axis.name}")
    fix = f"Use {opt.op} {axis.dim}/{axis.size}" if axis.kind is AxisKind.TENSOR else ""
    refuse(kernel, opt, f"the axis is {axis.kind.name} already", axis.name, fix)


def split_divides(kernel: Kernel, opt: Opt, axis: Axis, size: int, amount: int) -> None:
    """Only the outermost axis of a dim may be ragged: an inner one splits by a divisor."""
    if size % amount and not is_outermost(kernel.schedule, axis):
        refuse(kernel, opt, f"{amount} does not divide the inner axis of size {size}", axis.name)


def tails_can_be_peeled(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """A body of its own stands behind the last loop over whole blocks: one thread has both."""
    for name, policy in schedule.tails:
        if policy != "peel":
            continue
        axes = schedule.of_dim(name)
        for axis in axes:
            if axis.kind in _APART:
                reason = f"a tail is not peeled along what is {axis.kind.name}, but guarded"
                refuse(kernel, opt, reason, axis.name)
        if tail_of(kernel.dim(name), axes) == "guard":
            reason = "a tail is not peeled where loops lie inside what is expanded, but guarded"
            refuse(kernel, opt, reason, name)


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
        reason = f"{target.name} has no vector of {amount} lanes"
        refuse(kernel, opt, reason, axis.name, f"It has {known}")


def leaf_is_small(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """The copies of one statement, lanes not counted, stay readable and compilable."""
    copies = [a for a in schedule.axes if a.kind in (AxisKind.UPCAST, AxisKind.UNROLL)]
    if prod([a.size for a in copies if isinstance(a.size, int)]) <= MAX_COPIES:
        return
    for statement in facts_of(kernel).statements:
        n = prod(a.size for a in copies if a.dim in statement.dims and isinstance(a.size, int))
        if n > MAX_COPIES:
            reason = f"{statement.label} would be written out {n} times, more than {MAX_COPIES}"
            refuse(kernel, opt, reason)


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
