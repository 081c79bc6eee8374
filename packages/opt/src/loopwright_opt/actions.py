"""The moves of a search: one step more, one less, another amount, two steps exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from loopwright_core.errors import OptError
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply, apply_all
from loopwright_opt.facts import facts_of

UPCASTS = (0, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
UNROLLS = (0, 2, 4, 7, 8)
TILES = (8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
_AMOUNTS = {"UPCAST": UPCASTS, "UNROLL": UNROLLS, "TILE": TILES}


def moves(kernel: Kernel, target: Target) -> list[Opt]:
    """Steps that may follow the kernel's schedule. Some are illegal: `apply` tells."""
    axes = kernel.schedule.axes
    loops = [a for a in axes if not a.kind.is_expanded and a.kind is not AxisKind.THREAD]
    found: list[Opt] = []
    for axis in loops:
        for op in ("UPCAST", "VECTOR", "TILE", "THREAD", "UNROLL"):
            if op == "UNROLL" and axis.kind is not AxisKind.REDUCE:
                continue
            found += [Opt(op, axis.name, n) for n in amounts(kernel, op, target) if _fits(axis, n)]
    for first, second in pairwise(loops):
        found.append(Opt("SWAP", arg=(first.name, second.name)))
    if len(loops) > 2:
        for axis in loops[:-1]:  # innermost
            rest = [a.name for a in loops[loops.index(axis) + 1 :]]
            if len(rest) > 1:
                found.append(Opt("ORDER", arg=(*rest, axis.name)))
    facts = facts_of(kernel)
    for name, access in facts.accesses.items():
        if access.is_store:
            found.append(Opt("NTSTORE", name))
            found.append(Opt("PREFETCH", name, 1))
        else:
            at = [""] if not loops else [a.name for a in loops]
            found += [Opt("STAGE", name, None, (f"@{where}",)) for where in at if where]
            found += [Opt("PREFETCH", name, steps) for steps in (1, 4)]
    for place in range(len(kernel.shared)):
        found += [Opt("KEEP", f"v{place}", None, (f"@{a.name}",)) for a in loops]
    return found


def amounts(kernel: Kernel, op: str, target: Target) -> tuple[int, ...]:
    """The amounts a search tries for an op."""
    if op == "VECTOR":
        lanes = {n for d in facts_of(kernel).dtypes for n in target.lanes(d)}
        return tuple(sorted(lanes))
    if op == "THREAD":
        return tuple(n for n in range(2, target.threads + 1) if n == target.threads or not n % 2)
    return _AMOUNTS.get(op, ())


def neighbours(
    base: Kernel, kernel: Kernel, target: Target, extra: tuple[Opt, ...] = ()
) -> Iterator[Kernel]:
    """Every legal schedule one move away. `base`: the same kernel with no opts applied.

    `extra`: steps of other plugins, appended like ours.
    """
    for opt in (*moves(kernel, target), *extra):
        try:
            yield apply(kernel, opt, target)
        except OptError:
            continue
    for opts in _changed(kernel, target):
        try:
            yield apply_all(base, opts, target)
        except OptError:
            continue


def _changed(kernel: Kernel, target: Target) -> Iterator[tuple[Opt, ...]]:
    opts = kernel.schedule.opts
    for at, opt in enumerate(opts):
        before, after = opts[:at], opts[at + 1 :]
        yield (*before, *after)
        if opt.amount is not None:
            for n in amounts(kernel, opt.op, target):
                if n != opt.amount:
                    yield (*before, replace(opt, amount=n), *after)
            # an axis is named by its stride: one that was cut out of it follows along
            for n in amounts(kernel, opt.op, target):
                if n not in (0, opt.amount) and opt.amount:
                    moved = _renamed(after, opt.axis, opt.amount, n)
                    if moved != after:
                        yield (*before, replace(opt, amount=n), *moved)
        if after:
            yield (*before, after[0], opt, *after[1:])


def _renamed(opts: tuple[Opt, ...], axis: str, old: int, new: int) -> tuple[Opt, ...]:
    """Steps after a split by another amount: `i/6` becomes `i/8`."""
    dim, _, stride = axis.partition("/")
    base = int(stride) if stride else 1
    gone, made = f"{dim}/{base * old}", f"{dim}/{base * new}"

    def word(text: str) -> str:
        parts = text.split(",")
        return ",".join(
            [("@" if p[:1] == "@" else "") + made if p.lstrip("@") == gone else p for p in parts]
        )

    return tuple(
        [
            replace(o, axis=made if o.axis == gone else o.axis, arg=tuple(map(word, o.arg)))
            for o in opts
        ]
    )


def _fits(axis: Axis, amount: int) -> bool:
    return isinstance(axis.size, int) and amount <= axis.size
