"""THREAD: an outer loop of all statements in slices, where the work exceeds what a launch costs."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.estimate import estimate
from loopwright_core.plugin.strategy import Parameter
from loopwright_opt.facts import facts_of
from loopwright_opt.strategies.strategy import Draft, Heuristic
from loopwright_opt.strategies.structure import weigh

# Microseconds of work below which waking the other threads costs more than it saves.
WORTH = 40
# What one core does at its usual rates: lanes * ops a second, bytes a second from L3 or memory.
OPS_A_SECOND = 4e9
BYTES_A_SECOND = 20e9


def seconds(draft: Draft) -> float:
    """What one thread needs, roughly."""
    target = draft.target
    lanes = max(target.vector_bytes, default=4) // 4
    ops = weigh(draft.kernel) / (OPS_A_SECOND * max(lanes, 1))
    return max(ops, estimate(draft.kernel).bytes / BYTES_A_SECOND)


def wanted_threads(draft: Draft) -> int:
    """How many threads the work is worth: each has half of the least work at least."""
    most = draft.target.threads
    if most < 2:
        return 1
    work, least = seconds(draft) * 1e6, draft.settings.get("threads.worth", WORTH)
    return max(1, min(most, int(2 * work / max(least, 1e-3)))) if work > least else 1


def balanced(size: int, threads: int) -> bool:
    """Whether slices of so many steps keep all threads busy most of the time."""
    return size >= threads > 1 and -(-size // threads) * threads <= size * 1.15


def thread_one_of(draft: Draft, axes: tuple[str, ...]) -> bool:
    """Split the first of these axes that balances, else the longest, over the threads."""
    n = wanted_threads(draft)
    if n < 2:
        return False
    found = [a for a in (_axis(draft, name) for name in axes) if a is not None and _steps(a) > 1]
    good = [a for a in found if balanced(_steps(a), n)]
    for axis in [*good, *sorted(found, key=_steps, reverse=True)]:
        if draft.do(f"THREAD {axis.name} {min(n, _steps(axis))}"):
            draft.note(f"{n} threads along {axis.dim}: about {seconds(draft) * 1e6:.0f} us of work")
            return True
    return False


def _steps(axis: Axis) -> int:
    return axis.size if isinstance(axis.size, int) else 0


def _axis(draft: Draft, name: str) -> Axis | None:
    dim, slash, _ = name.partition("/")
    for axis in draft.kernel.schedule.axes:
        if axis.dim == dim and axis.kind is AxisKind.LOOP and (not slash or axis.name == name):
            return axis
    return None


def _run(draft: Draft, p: Mapping[str, int]) -> bool:
    """The outermost loops of dims that all statements share, tiles before their elements."""
    schedule = draft.kernel.schedule
    if any(a.kind is AxisKind.THREAD for a in schedule.axes):
        return False
    common = facts_of(draft.kernel).common
    axes = [a.name for a in schedule.axes if a.kind is AxisKind.LOOP and a.dim in common]
    return thread_one_of(draft, tuple(axes))


THREADS = Heuristic("threads", (Parameter("worth", WORTH, (10, 20, 40, 80)),), _run)
