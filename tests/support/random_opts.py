"""Random legal schedules, and what happened to each dim's tail in them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.copies import conversions, is_own
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.kernel.tails import POLICIES
from loopwright_core.plugin.target import Target
from loopwright_lower.dims import DimState
from loopwright_opt.apply import apply
from loopwright_opt.axes import inside
from loopwright_opt.facts import facts_of
from loopwright_opt.text import AMOUNT_OPS, WORD_OPS, WORKGROUP_OPS, parse, show

LONGEST = 9
ATTEMPTS = 50
AMOUNTS = (0, 2, 2, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8, 8, 16)
# Opts that take part of a reduce, and opts that take part of an output.
_OF_REDUCES = frozenset({"UNROLL", "GROUP", "GROUPTOP", "SPLITK"})
_OF_OUTPUTS = frozenset({"LOCAL"})
_THREADS = (AxisKind.LOCAL, AxisKind.GROUP)
_ON_GRID = (AxisKind.GLOBAL, AxisKind.LOCAL)
SYMBOLIC_THREAD = "THREAD of a symbolic dim"
# Ways of holding something near that workgroups have.
TOGETHER = ("KEEP for other threads", "KEEP of one thread of many", "STAGE halo by all threads")
_CPU_ONLY = frozenset({"THREAD", "NTSTORE"})
# Legal once for each of few things.
_ONCE = frozenset({"KEEP", "NTSTORE", "NOLOCALS", "THREAD"})
# Drawn more often: what other opts meet.
_OFTEN = ("UPCAST", "UPCAST", "TILE", "TILE", "STAGE", "VECTOR", "LOCAL", "GROUP", "ORDER")


def ops_for(target: Target) -> tuple[str, ...]:
    """Every opt whose text is known and that some kernel may have on a target."""
    found = AMOUNT_OPS | WORD_OPS
    found -= _CPU_ONLY if target.has_local else frozenset(WORKGROUP_OPS)
    if not target.tensor_cores:
        found -= {"TC", "PADTO"}
    return tuple(sorted(found))


@dataclass
class Opts:
    """Draws steps for a kernel's schedule. `focus`: the op that is drawn as often as all others.

    `tried`, `legal`: how many steps of each op were drawn, and how many of them were legal.
    """

    rnd: random.Random
    target: Target
    focus: str = ""
    tried: Counter[str] = field(default_factory=Counter)
    legal: Counter[str] = field(default_factory=Counter)

    def schedule(self, kernel: Kernel) -> Kernel:
        """The kernel under some legal steps, at least one wherever any is found.

        The text of the list, read back and applied from the start, gives the same schedule.
        """
        made, wanted = kernel, self.rnd.randint(1, LONGEST)
        for _ in range(ATTEMPTS):
            if len(made.schedule.opts) == wanted:
                break
            opt = self.step(with_grid(made, self.target))
            self.tried[opt.op] += 1
            try:
                made = apply(made, opt, self.target)
            except OptError:
                continue
            self.legal[opt.op] += 1
        again = kernel
        for opt in parse(show(made.schedule.opts)):
            again = apply(again, opt, self.target)
        assert again.schedule == made.schedule, show(made.schedule.opts)
        return made

    def step(self, kernel: Kernel) -> Opt:
        """One step, legal or not."""
        known = ops_for(self.target)
        which = self.rnd.choice((*known, *[op for op in _OFTEN if op in known]))
        before = {opt.op for opt in kernel.schedule.opts}
        if self.focus in ("TC", "PADTO"):  # the core comes first or not at all
            done = "TC" not in before if before else False
        else:
            done = self.focus in _ONCE and self.focus in before
        if self.focus and not done and self.rnd.random() < (0.4 if before else 0.9):
            which = self.focus
        unfit = {"KEEP": not kernel.shared, "TC": bool(before), "PADTO": "TC" not in before}
        if unfit.get(which, False) and (which == "KEEP" or which != self.focus):
            which = "TILE"
        make = _WORDS.get(which, partial(_amount, which))
        return make(self, kernel)

    def loops(self, kernel: Kernel) -> list[Axis]:
        axes = [a for a in kernel.schedule.axes if not a.kind.is_expanded]
        return axes or list(kernel.schedule.axes)


def _amount(op: str, d: Opts, kernel: Kernel) -> Opt:
    """OP axis amount, now and then with what becomes of the ragged end."""
    opt = _cut(op, d, kernel)
    if d.rnd.random() < 0.7:
        return opt
    return replace(opt, arg=(d.rnd.choice((*POLICIES, "pad")),))


def _cut(op: str, d: Opts, kernel: Kernel) -> Opt:
    """On an axis of the right sort, mostly by a divisor or a usual number."""
    axes = list(kernel.schedule.axes) if op == "VECTOR" else d.loops(kernel)
    if op in _OF_REDUCES:
        axes = [a for a in axes if kernel.dim(a.dim).is_reduce] or axes
    elif op in _OF_OUTPUTS:
        axes = [a for a in axes if not kernel.dim(a.dim).is_reduce] or axes
    axis = d.rnd.choice(axes)
    if op == "THREAD":
        symbolic = [a for a in axes if isinstance(a.size, Variable)]
        axis = d.rnd.choice(symbolic) if symbolic and d.rnd.random() < 0.7 else axis
        return Opt(op, axis.name, d.rnd.randint(2, max(2, d.target.threads)))
    if op == "VECTOR":
        lanes = sorted({n for b in kernel.buffers for n in d.target.lanes(b.dtype)})
        return Opt(op, axis.name, d.rnd.choice(lanes or [4]))
    size = axis.size if isinstance(axis.size, int) else 0
    fitting = [n for n in AMOUNTS if n and n < size and size % n == 0]
    if fitting and d.rnd.random() < 0.35:
        return Opt(op, axis.name, d.rnd.choice(fitting))
    smaller = [n for n in AMOUNTS if n < max(size, 2)]
    return Opt(op, axis.name, d.rnd.choice(smaller if d.rnd.random() < 0.8 else AMOUNTS))


def _order(d: Opts, kernel: Kernel) -> Opt:
    names = [a.name for a in d.loops(kernel)]
    n = d.rnd.randint(2, max(2, len(names)))
    return Opt("ORDER", arg=tuple(d.rnd.sample(names, min(n, len(names)))))


def _swap(d: Opts, kernel: Kernel) -> Opt:
    names = [a.name for a in d.loops(kernel)]
    return Opt("SWAP", arg=tuple(d.rnd.sample(names, min(2, len(names)))))


def _stage(d: Opts, kernel: Kernel) -> Opt:
    access = d.rnd.choice(accesses(kernel))
    axes = d.loops(kernel)
    at = d.rnd.choice([*[a.name for a in axes if a.dim in access.dims], axes[-1].name, ""])
    words = ["@" + at]
    if d.rnd.random() < 0.35:
        words.append("halo")
    else:
        names = [a.name for a in inside(kernel.schedule, at, access.dims)]
        for word in ("layout", "order"):
            if names and d.rnd.random() < 0.4:
                words += [word, ",".join(d.rnd.sample(names, len(names)))]
    if not d.target.has_local and conversions(kernel, access.name) and d.rnd.random() < 0.5:
        words.append("cast")
    return Opt("STAGE", access.name, None, tuple(words))


def _keep(d: Opts, kernel: Kernel) -> Opt:
    """In a loop over a dim of all instances, mostly the innermost one on the grid, or one over a
    workgroup's threads."""
    place = d.rnd.randrange(len(kernel.shared))
    free = [facts_of(kernel).free.get(u, frozenset()) for u in kernel.shared[place]]
    around = [a for a in d.loops(kernel) if all(a.dim in dims for dims in free)]
    kind = d.rnd.choice((AxisKind.GLOBAL, AxisKind.LOCAL))
    grid = [a for a in around if a.kind is kind] or [a for a in around if a.kind in _ON_GRID]
    names = [a.name for a in (grid[-1:] if grid and d.rnd.random() < 0.7 else around)]
    return Opt("KEEP", f"v{place}", None, ("@" + d.rnd.choice(names or [""]),))


def _prefetch(d: Opts, kernel: Kernel) -> Opt:
    return Opt("PREFETCH", d.rnd.choice(accesses(kernel)).name, d.rnd.randint(1, 3))


def _nt_store(d: Opts, kernel: Kernel) -> Opt:
    """Around the cache; where nothing is in whole vectors yet, what it needs first."""
    store = d.rnd.choice([a for a in accesses(kernel) if a.is_store])
    widest = max(d.target.lanes(store.dtype), default=0)
    schedule = kernel.schedule
    if widest and not any(a.kind is AxisKind.VECTOR for a in schedule.axes):
        for axis in schedule.axes:
            if store.stride(axis.dim) * axis.stride == 1:
                return Opt("VECTOR", axis.name, widest)
    return Opt("NTSTORE", store.name)


def _stream(d: Opts, kernel: Kernel) -> Opt:
    """Pages of an axis along which some array lies, unless there is none."""
    found = accesses(kernel)
    axes = [a for a in d.loops(kernel) if any(x.stride(a.dim) * a.stride == 1 for x in found)]
    return Opt("STREAM", d.rnd.choice(axes or d.loops(kernel)).name, d.rnd.choice((2, 2, 4)))


def _tensor_core(d: Opts, kernel: Kernel) -> Opt:
    """Any triple at any level, multiplied by the core or by plain multiplies. Options that round
    more coarsely than the dtypes do are left out."""
    words = ("level", str(d.rnd.randrange(3))) if d.rnd.random() < 0.2 else ()
    if d.rnd.random() < 0.2:
        words = (*words, "shape")
    return Opt("TC", "", d.rnd.choice((0, 0, 0, 0, 1)), words)


def _pad_to(d: Opts, kernel: Kernel) -> Opt:
    """Pads what a tensor core is bound to."""
    if kernel.schedule.tensor_core is None:
        return _tensor_core(d, kernel)
    bound = [a.dim for a in kernel.schedule.axes if a.kind is AxisKind.TENSOR]
    axes = [a for a in kernel.schedule.axes if a.dim in bound]
    return Opt("PADTO", d.rnd.choice(axes).name, d.rnd.choice((8, 16, 16, 32, 32, 48, 64)))


def _no_locals(d: Opts, kernel: Kernel) -> Opt:
    return Opt("NOLOCALS")


_WORDS: dict[str, Callable[[Opts, Kernel], Opt]] = {
    "ORDER": _order,
    "SWAP": _swap,
    "STAGE": _stage,
    "KEEP": _keep,
    "PREFETCH": _prefetch,
    "NTSTORE": _nt_store,
    "NOLOCALS": _no_locals,
    "STREAM": _stream,
    "TC": _tensor_core,
    "PADTO": _pad_to,
}


def count_steps(kernel: Kernel, counts: Counter[str]) -> None:
    """Count the opts of a schedule, its staging modes, and how the dims that are cut end."""
    schedule = kernel.schedule
    for opt in schedule.opts:
        counts[opt.op] += 1
    threads = any(a.kind in _THREADS and a.size != 1 for a in schedule.axes)
    for stage in schedule.stages:
        if stage.mode == "keep":
            free = facts_of(kernel).free
            instances = kernel.shared[int(stage.access[1:])]
            own = is_own(schedule, stage.at, [d for u in instances for d in free[u]])
            if threads:
                counts[TOGETHER[own]] += 1
        else:
            counts[f"STAGE {stage.mode}{' by all threads' if threads else ''}"] += 1
    for dim in kernel.dims:
        axes = schedule.of_dim(dim.name)
        if dim.is_symbolic and len(axes) > 1:
            counts[SYMBOLIC_THREAD] += 1
            continue
        if len(axes) > 1:
            state = DimState(dim, axes, policy=schedule.tail(dim.name))
            counts[f"tail {tail_kind(state)}"] += 1


def tail_kind(state: DimState) -> str:
    """none: the pieces divide; bound: only a loop ends early; peel: a second body of static size;
    guard: a condition at each element; pad: the same, and all loops run to the end."""
    if state.mode == "exact":
        return "none"
    if state.policy == "pad":
        return "pad"
    return "bound" if state.mode == "peel" and state.block == 1 else state.mode
