"""Random legal schedules, and what happened to each dim's tail in them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from loopwright_core.errors import OptError
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_lower.dims import DimState
from loopwright_opt.apply import apply
from loopwright_opt.axes import inside
from loopwright_opt.text import parse, show

OPS = (
    *("UPCAST", "UPCAST", "UPCAST", "UNROLL", "UNROLL", "VECTOR", "VECTOR", "VECTOR"),
    *("TILE", "TILE", "TILE", "ORDER", "ORDER", "SWAP", "THREAD"),
    *("STAGE", "STAGE", "STAGE", "PREFETCH", "NTSTORE", "NTSTORE"),
)
LONGEST = 9
ATTEMPTS = 60


def random_opt(kernel: Kernel, rng: random.Random, target: Target) -> Opt:
    """One step, legal or not."""
    schedule = kernel.schedule
    axes = [a.name for a in schedule.axes]
    loops = [a.name for a in schedule.axes if not a.kind.is_expanded] or axes
    found = accesses(kernel)
    has_lanes = any(a.kind is AxisKind.VECTOR for a in schedule.axes)
    which = rng.choice((*OPS, *("KEEP",) * 4 * bool(kernel.shared), *("NTSTORE",) * 4 * has_lanes))
    if which in ("ORDER", "SWAP"):
        n = 2 if which == "SWAP" else rng.randint(2, max(2, len(loops)))
        return Opt(which, arg=tuple(rng.sample(loops, min(n, len(loops)))))
    if which == "STAGE":
        access = rng.choice(found)
        at = rng.choice([*loops, ""])
        words = ["@" + at]
        if rng.random() < 0.4:
            words.append("halo")
        else:
            names = [a.name for a in inside(schedule, at, access.dims)]
            for word in ("layout", "order"):
                if names and rng.random() < 0.4:
                    words += [word, ",".join(rng.sample(names, len(names)))]
        return Opt(which, access.name, None, tuple(words))
    if which == "KEEP":
        return Opt(
            which,
            f"v{rng.randrange(len(kernel.shared) + 1)}",
            None,
            ("@" + rng.choice([*loops, ""]),),
        )
    if which == "PREFETCH":
        return Opt(which, rng.choice(found).name, rng.randint(1, 3))
    if which == "NTSTORE":
        return Opt(which, rng.choice([a.name for a in found if a.is_store]))
    if which == "VECTOR":
        lanes = sorted({n for b in kernel.buffers for n in target.lanes(b.dtype)})
        return Opt(which, rng.choice(axes), rng.choice(lanes))
    if which == "THREAD":
        return Opt(which, rng.choice(loops), 2)
    return Opt(which, rng.choice(loops), rng.choice([0, 2, 2, 3, 4, 4, 5, 6, 8, 16]))


def schedules(
    kernel: Kernel, target: Target, name: str, seeds: range
) -> Iterator[tuple[int, Kernel]]:
    """(seed, kernel under a random legal list of opts), one per seed; the empty list is left out.

    The text of each list, read back and applied from the start, gives the same schedule.
    """
    for seed in seeds:
        rng = random.Random(f"{name} {seed}")
        made, wanted = kernel, rng.randint(1, LONGEST)
        for _ in range(ATTEMPTS):
            if len(made.schedule.opts) == wanted:
                break
            try:
                made = apply(made, random_opt(made, rng, target), target)
            except OptError:
                continue
        if not made.schedule.opts:
            continue
        again = kernel
        for opt in parse(show(made.schedule.opts)):
            again = apply(again, opt, target)
        assert again.schedule == made.schedule, show(made.schedule.opts)
        yield seed, made


def count_steps(kernel: Kernel, counts: Counter[str]) -> None:
    """Count the opts of a schedule, its staging modes, and how the dims that are cut end."""
    schedule = kernel.schedule
    for opt in schedule.opts:
        counts[opt.op] += 1
    for stage in schedule.stages:
        if stage.mode != "keep":
            counts[f"STAGE {stage.mode}"] += 1
    for dim in kernel.dims:
        axes = schedule.of_dim(dim.name)
        if len(axes) > 1:
            counts[f"tail {tail_kind(DimState(dim, axes))}"] += 1


def tail_kind(state: DimState) -> str:
    """none: the pieces divide; bound: only a loop ends early; peel: a second body of static size;
    guard: a condition at each element."""
    if state.mode == "exact":
        return "none"
    return "bound" if state.mode == "peel" and state.block == 1 else state.mode
