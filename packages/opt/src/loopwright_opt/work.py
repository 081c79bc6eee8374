"""What the statements of a kernel do, as cost models see it: found once per body, no nodes kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from weakref import WeakKeyDictionary

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.kernel.access import Access, dims_below
from loopwright_core.kernel.dims import Axis
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Stage
from loopwright_opt.axes import inside
from loopwright_opt.facts import Facts, facts_of

# What an op costs next to an addition: instructions of a sequence, or the time of a slow one.
WEIGHTS = {
    Op.EXP: 16.0,
    Op.LOG: 22.0,
    Op.TANH: 30.0,
    Op.SIN: 40.0,
    Op.COS: 40.0,
    Op.POW: 60.0,
    Op.DIV: 9.0,
    Op.SQRT: 10.0,
    Op.MAX: 3.0,
    Op.MIN: 3.0,
    Op.FLOORDIV: 20.0,
    Op.MOD: 20.0,
}
# What joining two partial results costs, and how long the next one waits for it in cycles.
_COMBINES = {"add": (1.0, 4.0), "mul": (1.0, 4.0), "max": (3.0, 5.0), "min": (3.0, 5.0)}
_OTHER_COMBINE = (8.0, 12.0)
_HEADS = (Op.REDUCE, Op.SCAN, Op.STORE)


@dataclass(frozen=True)
class Touch:
    """An access. `form`: for each dimension of its buffer the coefficients of the dims; `steps`:
    elements from one index of a dimension to the next; `conditions`: the dims of each."""

    name: str
    slot: int
    itemsize: int
    total_bytes: int
    form: tuple[dict[str, int], ...]
    steps: tuple[int, ...]
    hidden: frozenset[str]
    is_store: bool
    conditions: tuple[frozenset[str], ...]
    dims: frozenset[str]

    def strides(self, steps: tuple[int, ...] | None = None) -> dict[str, int]:
        """Elements that the offset moves per step of each dim, in a buffer of those `steps`."""
        found: dict[str, int] = {}
        for coefficients, step in zip(self.form, steps or self.steps, strict=True):
            for dim, k in coefficients.items():
                found[dim] = found.get(dim, 0) + k * step
        return found


@dataclass(frozen=True)
class Work:
    """One statement. `ops`: weights of what it computes by the dims that this depends on.

    `merge` and `wait_cycles`: of its combine, 0 for a store. `chained`: the dims whose steps wait
    for each other. `output`: the store of its value, where that has the same dims.
    """

    free: frozenset[str]
    bound: frozenset[str]
    chained: frozenset[str]
    ops: tuple[tuple[frozenset[str], float], ...]
    touches: tuple[Touch, ...]
    merge: float
    wait_cycles: float
    itemsize: int
    output: Touch | None

    @property
    def dims(self) -> frozenset[str]:
        return self.free | self.bound


_found: WeakKeyDictionary[UOp, dict[object, tuple[Work, ...]]] = WeakKeyDictionary()


def works_of(kernel: Kernel) -> tuple[Work, ...]:
    """One work a statement; a value that the schedule keeps is computed by its writer only."""
    kept = tuple([int(s.access[1:]) for s in kernel.schedule.stages if s.mode == "keep"])
    known = _found.setdefault(kernel.body, {})
    if kept not in known:
        known[kept] = _works(kernel, kept)
    return known[kept]


def _works(kernel: Kernel, kept: tuple[int, ...]) -> tuple[Work, ...]:
    facts = facts_of(kernel)
    heads = [n for n in kernel.nodes if n.op in _HEADS]
    accesses = {a.node: a for a in facts.accesses.values()}
    found = []
    for place, head in enumerate(heads):
        read = {
            u: _kept_touch(kernel, facts, u, n)
            for n in kept
            for u in kernel.shared[n]
            if place != _writer(kernel, facts, n) and place in facts.within.get(u, ())
        }
        found.append(_work(kernel, facts, place, head, read, accesses))
    return tuple(found)


def _writer(kernel: Kernel, facts: Facts, n: int) -> int:
    """The first statement without dims beyond those of a shared value that it computes."""
    places = [
        place
        for u in kernel.shared[n]
        for place in facts.within.get(u, ())
        if facts.statements[place].dims <= facts.free[u]
    ]
    return min(places, default=-1)


def _work(
    kernel: Kernel,
    facts: Facts,
    place: int,
    head: UOp,
    read: dict[UOp, Touch],
    accesses: dict[UOp, Access],
) -> Work:
    statement = facts.statements[place]
    values = [s for s in head.src if s.op is not Op.DIM]
    inside = toposort(tuple(values), lambda n: n.op not in (Op.REDUCE, Op.SCAN) and n not in read)
    touches = [read[n] for n in inside if n in read]
    touches += [_touch(accesses[n]) for n in inside if n in accesses]
    is_loop = head.op is not Op.STORE
    merge, wait = _COMBINES.get(head.arg[0], _OTHER_COMBINE) if is_loop else (0.0, 0.0)
    ops: dict[frozenset[str], float] = {}
    for n in inside:
        if n in read or n.op not in ELEMENTWISE or n.dtype is dt.index:
            continue
        if is_loop and n is values[0] and n.op is Op.MUL and head.arg[0] == "add":
            continue  # multiplied and added at once
        ops[facts.free[n]] = ops.get(facts.free[n], 0.0) + WEIGHTS.get(n.op, 1.0)
    chained = frozenset(s.arg.name for s in head.src if s.op is Op.DIM)
    itemsize = max([n.dtype.itemsize for n in values] + [4 if is_loop else 1])
    return Work(
        statement.free,
        statement.bound,
        chained,
        tuple(sorted(ops.items(), key=lambda item: sorted(item[0]))),
        tuple(touches),
        merge,
        wait,
        itemsize,
        _output(facts, kernel, head) if is_loop else None,
    )


def _output(facts: Facts, kernel: Kernel, head: UOp) -> Touch | None:
    for access in facts.accesses.values():
        if access.is_store and access.dims == facts.free[head]:
            return _touch(access)
    return None


def _touch(access: Access) -> Touch:
    sizes = [n.hi if isinstance(n, Variable) else n for n in access.shape]
    form = tuple([{a.arg.name: k for a, k in f.terms if a.op is Op.DIM} for f in access.form])
    return Touch(
        access.name,
        access.buffer.arg.slot,
        access.dtype.itemsize,
        prod(sizes) * access.dtype.itemsize,
        form,
        tuple([prod(sizes[n + 1 :]) for n in range(len(sizes))]),
        access.opaque,
        access.is_store,
        tuple([dims_below((c,)) for c in access.valid]),
        access.dims,
    )


def _kept_touch(kernel: Kernel, facts: Facts, value: UOp, n: int) -> Touch:
    """Reading a kept value: dense over its own dims, those of its statement's loops included."""
    dims = [d for d in kernel.dims if d.name in facts.free[value]]
    sizes = [d.max_size for d in dims]
    return Touch(
        f"v{n}",
        -1 - n,
        value.dtype.itemsize,
        prod(sizes) * value.dtype.itemsize,
        tuple([{d.name: 1} for d in dims]),
        tuple([prod(sizes[at + 1 :]) for at in range(len(sizes))]),
        frozenset(),
        False,
        (),
        frozenset(d.name for d in dims),
    )


def placed(touch: Touch, stage: Stage | None, kernel: Kernel) -> tuple[Touch, dict[str, int]]:
    """(the access where it reads from, its elements per step of each axis by name)."""
    axes = kernel.schedule.axes
    if stage is None:
        own = touch.strides()
        return touch, {a.name: own.get(a.dim, 0) * a.stride for a in axes}
    within = inside(kernel.schedule, stage.at, touch.dims)
    strides: dict[str, int] = {}
    if stage.mode == "panel":
        step = 1
        by_name = {a.name: a for a in within}
        for name in reversed(stage.layout or [a.name for a in within]):
            strides[name] = step
            step *= size_of(by_name[name])
    else:
        reach = [
            1 + sum(abs(k.get(a.dim, 0)) * a.stride * (size_of(a) - 1) for a in within)
            for k in touch.form
        ]
        own = touch.strides(tuple([prod(reach[n + 1 :]) for n in range(len(reach))]))
        step = prod(reach)
        strides = {a.name: own.get(a.dim, 0) * a.stride for a in within}
    itemsize = touch.itemsize if stage.dtype is None else stage.dtype.itemsize
    packed = replace(
        touch,
        slot=-100 - touch.slot,
        itemsize=itemsize,
        total_bytes=step * itemsize,
        conditions=(),
    )
    return packed, strides


def size_of(axis: Axis) -> int:
    """An axis's steps, the most where they are symbolic."""
    return axis.size.hi if isinstance(axis.size, Variable) else axis.size
