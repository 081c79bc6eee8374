"""The moves of a search: one step more, one less, another amount, two steps exchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.access import Access
from loopwright_core.kernel.copies import conversions
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply, apply_all
from loopwright_opt.axes import inside
from loopwright_opt.facts import facts_of

AMOUNTS = {
    "UPCAST": (0, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16),
    "UNROLL": (0, 2, 4, 7, 8),
    "TILE": (8, 16, 32, 48, 64, 96, 128, 192, 256, 512, 1024),
    "LOCAL": (2, 3, 4, 8, 13, 16, 29, 32),
    "GROUP": (0, 4, 8, 16),
    "GROUPTOP": (13, 16, 28, 29, 32, 49, 64, 256),
    "STREAM": (2, 4),
    "SPLITK": (2, 4, 8, 16, 32, 64),
    "PADTO": (32,),
}
# Pieces of equal length that a ragged axis may be cut in.
PARTS = (2, 3, 4, 6, 8)
# Steps that a prefetch may be ahead.
AHEAD = (1, 4)
_OUTPUT = (AxisKind.LOOP, AxisKind.GLOBAL)


def moves(kernel: Kernel, target: Target) -> list[Opt]:
    """Steps that may follow the kernel's schedule. Some are illegal: `apply` tells."""
    axes = kernel.schedule.axes
    loops = [a for a in axes if not a.kind.is_expanded and a.kind is not AxisKind.THREAD]
    found: list[Opt] = []
    for axis in loops:
        for op in _ops(axis, target):
            found += [
                Opt(op, axis.name, n) for n in amounts(kernel, op, target) if _fits(axis, op, n)
            ]
        found += [Opt("TILE", axis.name, n) for n in _pieces(axis)]
    for first, second in pairwise(loops):
        found.append(Opt("SWAP", arg=(first.name, second.name)))
    if len(loops) > 2:
        for axis in loops[:-1]:  # innermost
            rest = [a.name for a in loops[loops.index(axis) + 1 :]]
            if len(rest) > 1:
                found.append(Opt("ORDER", arg=(*rest, axis.name)))
    if target.has_local:
        found.append(Opt("NOLOCALS"))
    for name, access in facts_of(kernel).accesses.items():
        if access.is_store:
            found.append(Opt("NTSTORE", name))
            found.append(Opt("PREFETCH", name, 1))
        else:
            casts = not target.has_local and bool(conversions(kernel, name))
            found += [opt for a in loops for opt in _stages(kernel, access, a.name, casts)]
            found += [Opt("PREFETCH", name, steps) for steps in AHEAD]
    for place in range(len(kernel.shared)):
        found += [Opt("KEEP", f"v{place}", None, (f"@{a.name}",)) for a in loops]
    return found


def _ops(axis: Axis, target: Target) -> tuple[str, ...]:
    """The ops that split an axis of its kind."""
    found = ["UPCAST", "VECTOR", "TILE"]
    if axis.kind is AxisKind.REDUCE:
        found += ["UNROLL", "SPLITK", "STREAM"]
        found += ["GROUP", "GROUPTOP"] if target.has_local else []
    if axis.kind in _OUTPUT:
        found += ["LOCAL"] if target.has_local else ["STREAM"]
    if target.threads > 1:
        found.append("THREAD")
    return tuple(found)


def _pieces(axis: Axis) -> list[int]:
    """Lengths that cut an axis evenly, without those that are tried anyway."""
    if not isinstance(axis.size, int):
        return []
    found = {-(-axis.size // n) for n in PARTS} - {*AMOUNTS["TILE"], 1, axis.size}
    return sorted(found)


def _stages(kernel: Kernel, access: Access, at: str, is_converted: bool) -> Iterator[Opt]:
    """Copies of a load inside an axis: as it lies, packed along the lanes, with its halo; of
    converted elements too, where all readers convert them alike."""
    kinds: tuple[tuple[str, ...], ...] = ((), ("cast",)) if is_converted else ((),)
    for kind in kinds:
        yield Opt("STAGE", access.name, None, (f"@{at}", *kind))
    within = inside(kernel.schedule, at, access.dims)
    lanes = next((a.dim for a in within if a.kind is AxisKind.VECTOR), "")
    if lanes:
        strips = [a for a in within if a.dim == lanes and not a.kind.is_expanded]
        tail = sorted(
            [a for a in within if a.dim == lanes and a.kind.is_expanded], key=lambda a: -a.stride
        )
        rest = [a for a in within if a.dim != lanes]
        layout, order = ((*strips, *rest, *tail), (*rest, *strips, *tail))
        words = [",".join([a.name for a in axes]) for axes in (layout, order)]
        for kind in kinds:
            placed = (f"@{at}", "layout", words[0], "order", words[1], *kind)
            yield Opt("STAGE", access.name, None, placed)
    if access.valid or any(len(f.terms) > 1 for f in access.form):
        yield Opt("STAGE", access.name, None, (f"@{at}", "halo"))


def amounts(kernel: Kernel, op: str, target: Target) -> tuple[int, ...]:
    """The amounts a search tries for an op."""
    if op == "VECTOR":
        lanes = {n for d in facts_of(kernel).dtypes for n in target.lanes(d)}
        return tuple(sorted(lanes))
    if op == "THREAD":
        return tuple(n for n in range(2, target.threads + 1) if n == target.threads or not n % 2)
    return AMOUNTS.get(op, ())


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
        if opt.op in ("STAGE", "KEEP"):
            for axis in kernel.schedule.axes:
                if not axis.kind.is_expanded and f"@{axis.name}" not in opt.arg:
                    yield (*before, replace(opt, arg=(f"@{axis.name}",)), *after)
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


def _fits(axis: Axis, op: str, amount: int) -> bool:
    if isinstance(axis.size, Variable):
        return op == "THREAD"
    return amount <= axis.size
