"""The first strategy: lanes along what lies side by side, copies where they reuse a load."""

from __future__ import annotations

from collections.abc import Iterator

from loopwright_core.errors import OptError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.kernel.access import Access
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply
from loopwright_opt.facts import Facts, Statement, facts_of

ROWS = 4
# What hands a value on as it is.
_COPIES = frozenset({Op.LOAD, Op.BUFFER, Op.INDEX, Op.BITCAST, Op.WHERE})


def propose(kernel: Kernel, target: Target) -> Kernel:
    """The kernel under this strategy: each step is legal or skipped."""
    for make in (_lanes, _reuse, _partials):
        for opt in list(make(kernel, target)):
            try:
                kernel = apply(kernel, opt, target)
            except OptError:
                continue
    return kernel


def _lanes(kernel: Kernel, target: Target) -> Iterator[Opt]:
    """VECTOR: in each statement one dim along which every access stands still or steps by one."""
    facts = facts_of(kernel)
    everything = list(facts.accesses.values())
    taken: set[str] = set()
    for place in reversed(range(len(facts.statements))):
        statement = facts.statements[place]
        if statement.dims & taken:
            continue
        if not _accesses(facts, place):  # a reduce of reduces: it touches no memory itself
            continue
        for dim in _candidates(kernel, statement):
            steps = {a.stride(dim) for a in everything}
            hidden = any(dim in a.opaque for a in everything)
            size = kernel.dim(dim).size
            if hidden or 1 not in steps or steps - {0, 1} or not isinstance(size, int):
                continue
            widest = _lane_bytes(facts, dim)
            lanes = [v // widest for v in target.vector_bytes if 1 < v // widest <= size]
            if lanes:
                taken.add(dim)
                yield Opt("VECTOR", dim, max(lanes))
                break


def _lane_bytes(facts: Facts, dim: str) -> int:
    """Bytes of the widest value that statements over a dim compute: its lanes fill one register.

    Wider values are cut into registers by the C compiler, slowly and often through memory.
    """
    along = {p for p, statement in enumerate(facts.statements) if dim in statement.dims}
    found = 1
    for node, places in facts.within.items():
        dtype = node.dtype
        if dtype is dt.index or dtype is dt.void or node.op is Op.CONST:
            continue
        if along.isdisjoint(places):
            continue
        # arithmetic of small floats is done in float32
        is_small = dtype.is_float or any(s.dtype.is_float for s in node.src)
        found = max(found, dtype.itemsize, 4 if is_small and node.op not in _COPIES else 1)
    return found


def _candidates(kernel: Kernel, statement: Statement) -> list[str]:
    """Output dims before reduce dims, inner before outer."""
    names = [d.name for d in reversed(kernel.dims)]
    free = [n for n in names if n in statement.free and not kernel.dim(n).is_reduce]
    return free + [n for n in names if n in statement.bound]


def _reuse(kernel: Kernel, target: Target) -> Iterator[Opt]:
    """UPCAST in a reduce of vectors: several rows share a vector load, several vectors a row.

    Without such a row there are still several vectors side by side: whole lines, and sums that do
    not wait for each other.
    """
    facts = facts_of(kernel)
    vectors = {a.dim: a.size for a in kernel.schedule.axes if a.kind is AxisKind.VECTOR}
    for place, statement in enumerate(facts.statements):
        found = sorted(statement.free & vectors.keys())
        if not statement.bound or not found:
            continue
        along = found[0]
        row = _shared_row(kernel, facts, place, along)
        if row is not None:
            yield Opt("UPCAST", row, ROWS)
        side = 2 if row is not None else ROWS
        lanes, size = vectors[along], kernel.dim(along).size
        if isinstance(lanes, int) and isinstance(size, int) and size >= lanes * side * 2:
            yield Opt("UPCAST", f"{along}/{lanes}", side)
        return


def _shared_row(kernel: Kernel, facts: Facts, place: int, along: str) -> str | None:
    """An output dim along which a load of vectors stands still while another one moves."""
    statement = facts.statements[place]
    touched = [a for a in _accesses(facts, place) if not a.is_store]
    for dim in _candidates(kernel, statement):
        size = kernel.dim(dim).size
        if dim == along or dim in statement.bound or not isinstance(size, int) or size < ROWS:
            continue
        still = any(dim not in a.dims and along in a.dims for a in touched)
        if still and any(dim in a.dims for a in touched):
            return dim
    return None


def _partials(kernel: Kernel, target: Target) -> Iterator[Opt]:
    """UPCAST: a reduce along lanes keeps several vectors of partial results."""
    vectors = {a.dim: a.size for a in kernel.schedule.axes if a.name.endswith("/1")}
    for statement in facts_of(kernel).statements:
        for dim in sorted(statement.bound & _vectors(kernel)):
            lanes, size = vectors[dim], kernel.dim(dim).size
            if isinstance(lanes, int) and isinstance(size, int) and size >= lanes * ROWS * 2:
                yield Opt("UPCAST", f"{dim}/{lanes}", ROWS)


def _vectors(kernel: Kernel) -> frozenset[str]:
    return frozenset(a.dim for a in kernel.schedule.axes if a.kind is AxisKind.VECTOR)


def _accesses(facts: Facts, place: int) -> list[Access]:
    """The accesses a statement makes itself."""
    return [a for a in facts.accesses.values() if place in facts.within.get(a.node, ())]
