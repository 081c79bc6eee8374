"""The launches of a kernel: one, or two where reduces are split over what runs apart.

An axis of a reduce dim that is GLOBAL, LOOP or THREAD is *split*: each of its steps reduces a part
of its own. The first launch stores the parts in scratch buffers, the second joins them in order
and does everything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.integer import add, floordiv, mul
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Buffer, UOp, const, rebuild
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.kernel.statements import splits

_LINE_BYTES = 64


@dataclass(frozen=True)
class Phases:
    """`kernels`, run in this order; `scratch`: the BUFFERs that hold what one leaves for the next,
    their slots behind the kernel's own."""

    kernels: tuple[Kernel, ...]
    scratch: tuple[UOp, ...] = ()


def split_axes(kernel: Kernel, schedule: Schedule | None = None) -> tuple[Axis, ...]:
    """The axes whose steps reduce parts of their own."""
    axes = (schedule or kernel.schedule).axes
    reduced = kernel.reduce_dims
    return tuple([a for a in axes if a.dim in reduced and splits(a)])


def phases(kernel: Kernel) -> Phases:
    """What is launched for a kernel under its schedule."""
    split = split_axes(kernel)
    if not split:
        return Phases((kernel,))
    key = tuple([(a.dim, a.stride, a.size) for a in split])
    known = _bodies.setdefault(kernel.body, {})
    bodies = known.get(key)
    if bodies is None:
        bodies = known[key] = _bodies_of(kernel, split)
    first, second, scratch, shared, joined = bodies
    return Phases(
        (
            _kernel(kernel, first, {}, kernel.shared),
            _kernel(kernel, second, joined, shared),
        ),
        scratch,
    )


_Shared = tuple[tuple[UOp, ...], ...]
_Bodies = tuple[UOp, UOp, tuple[UOp, ...], _Shared, dict[str, Dim]]
_bodies: WeakKeyDictionary[UOp, dict[object, _Bodies]] = WeakKeyDictionary()


def _bodies_of(kernel: Kernel, split: tuple[Axis, ...]) -> _Bodies:
    """Bodies of both launches, scratch, the shared values of the second, its dims over parts."""
    parts = {a.dim: a for a in split if isinstance(a.size, int)}
    stores: list[UOp] = []
    scratch: list[UOp] = []
    joined: dict[UOp, UOp] = {}
    free = _free_dims(kernel)
    dims = {n: Dim(n, a.size, True) for n, a in parts.items()}
    slot = len(kernel.buffers)
    for node in kernel.nodes:
        cut = [s.arg.name for s in node.src if s.op is Op.DIM and s.arg.name in parts]
        if node.op is not Op.REDUCE or not cut:
            continue
        values = [s for s in node.src if s.op is not Op.DIM]
        at, row = _place(kernel, [d for d in kernel.dims if d.name in free[node]])
        here = [floordiv(kernel.dim(n).uop, parts[n].stride) for n in cut]
        loads = []
        for item, value in enumerate(values):
            padded = -(-row * value.dtype.itemsize // _LINE_BYTES) * _LINE_BYTES
            shape = (*[dims[n].size for n in cut], padded // value.dtype.itemsize)
            buffer = UOp(Op.BUFFER, value.dtype, (), Buffer(slot + len(scratch), shape))
            scratch.append(buffer)
            part = node if len(values) == 1 else UOp(Op.ITEM, value.dtype, (node,), item)
            index = UOp(Op.INDEX, value.dtype, (buffer, *here, at, TRUE), shape)
            stores.append(UOp(Op.STORE, dt.void, (index, part)))
            there = (buffer, *[dims[n].uop for n in cut], at, TRUE)
            read = UOp(Op.INDEX, value.dtype, there, shape)
            loads.append(UOp(Op.LOAD, value.dtype, (read, const(0, value.dtype))))
        joined[node] = UOp(Op.REDUCE, node.dtype, (*loads, *[dims[n].uop for n in cut]), node.arg)
    flat = [u for group in kernel.shared for u in group]
    second, *changed = rebuild((kernel.body, *flat), lambda node, src: joined.get(node))
    rest = iter(changed)
    shared = tuple([tuple([next(rest) for _ in group]) for group in kernel.shared])
    first = UOp(Op.SINK, dt.void, tuple(stores))
    return first, second, tuple(scratch), shared, dims


def _free_dims(kernel: Kernel) -> dict[UOp, frozenset[str]]:
    found: dict[UOp, frozenset[str]] = {}
    for node in kernel.nodes:
        below = frozenset({node.arg.name}) if node.op is Op.DIM else frozenset()
        below = below.union(*[found[s] for s in node.src])
        if node.op is Op.REDUCE:
            below -= {s.arg.name for s in node.src if s.op is Op.DIM}
        found[node] = below
    return found


def _place(kernel: Kernel, dims: list[Dim]) -> tuple[UOp, int]:
    """Where a value over these dims lies in its part, row-major, and how many there are."""
    at, size = add(0, 0), 1
    for d in reversed(dims):
        at = add(mul(d.uop, size), at)
        size *= d.max_size
    return at, size


def _kernel(kernel: Kernel, body: UOp, joined: dict[str, Dim], shared: _Shared) -> Kernel:
    """One launch as a kernel: the dims its body has, their axes, what it holds of stages."""
    nodes = body.toposort()
    used = {n.arg.name for n in nodes if n.op is Op.DIM}
    dims = tuple([joined.get(d.name, d) for d in kernel.dims if d.name in used])
    axes = [a for a in kernel.schedule.axes if a.dim in used and a.dim not in joined]
    axes += [Axis(d.name, 1, d.size, AxisKind.REDUCE) for d in dims if d.name in joined]
    inside = set(nodes)
    shared = tuple([tuple([u for u in group if u in inside]) for group in shared])
    made = replace(kernel, body=body, dims=dims, shared=shared)
    names = {a.name: a.node for a in accesses(kernel)}
    here = {a.node: a.name for a in accesses(made)}

    def renamed(name: str) -> str | None:
        """The name that an access (or a kept value) of the whole kernel has in this launch."""
        if name in names:
            return here.get(names[name])
        return name if shared[int(name[1:])] else None

    schedule = kernel.schedule
    stages = [(s, renamed(s.access)) for s in schedule.stages]
    ahead = [(renamed(name), n) for name, n in schedule.prefetch]
    schedule = replace(
        schedule.with_axes(tuple(axes)),
        stages=tuple([replace(s, access=name) for s, name in stages if name is not None]),
        prefetch=tuple([(name, n) for name, n in ahead if name is not None]),
    )
    return made.with_schedule(schedule)
