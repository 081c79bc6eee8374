"""Long sums in blocks: a float sum loses digits with the length of its chain of additions.

A reduce loop of more than LONGEST steps is cut in blocks; each block sums apart and is then added
to the total, so no accumulator takes more than about LONGEST additions at a level.
"""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.kernel.statements import (
    Statement,
    bound_dims,
    is_by_core,
    reduce_values,
)

LONGEST = 512
BLOCK = 256
# A tile shorter than this is not worth accumulators of its own.
SHORTEST = 64

_LOOPS = frozenset({AxisKind.REDUCE})
_ROUNDING = frozenset({"add", "welford", "logsumexp"})


def sums_in_floats(reduce: UOp) -> bool:
    """Whether a reduce's result depends on the number of additions in a row."""
    return (
        reduce.op is Op.REDUCE
        and reduce.arg[0] in _ROUNDING
        and reduce_values(reduce)[0].dtype.is_float
    )


def block_sums(schedule: Schedule, nodes: list[UOp]) -> Schedule:
    """loop k(1000000) --> loop k/65536(16) loop k/256(256) loop k/1(256), for float sums."""
    dims = {d: None for n in nodes if sums_in_floats(n) for d in bound_dims(n)}
    for dim in dims:
        if is_by_core(schedule, (dim,)):
            continue  # its additions are the tensor core's
        loops = [a for a in schedule.axes if a.dim == dim and a.kind in _LOOPS]
        if not loops:
            continue
        axis = min(loops, key=lambda a: a.stride)
        while isinstance(axis.size, int) and axis.size > LONGEST:
            block = _block(axis, schedule)
            if block is None:
                break
            outer = Axis(dim, axis.stride * block, -(-axis.size // block), axis.kind)
            inner = replace(axis, size=block)
            at = schedule.axes.index(axis)
            axes = (*schedule.axes[:at], outer, inner, *schedule.axes[at + 1 :])
            schedule = schedule.with_axes(axes)
            axis = outer
    return schedule


def _block(axis: Axis, schedule: Schedule) -> int | None:
    """A block length: any for the dim's outermost axis, else a divisor."""
    size = int(axis.size)  # type: ignore[arg-type]
    if all(a.stride <= axis.stride for a in schedule.axes if a.dim == axis.dim):
        return BLOCK
    return next((b for b in range(BLOCK, SHORTEST - 1, -1) if size % b == 0), None)


def block_depths(statement: Statement) -> tuple[int, ...]:
    """At which depths of its path a sum starts a block of its own."""
    if statement.kind != "reduce" or statement.by_core or not sums_in_floats(statement.node):
        return ()
    path = statement.path
    return tuple(
        p
        for p in range(statement.open_depth + 1, len(path))
        if path[p].axis.dim == path[p - 1].axis.dim
        and path[p - 1].axis.kind is not AxisKind.GROUP
        and isinstance(path[p].axis.size, int)
        and int(path[p].axis.size) >= SHORTEST  # type: ignore[arg-type]
    )
