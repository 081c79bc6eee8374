"""What strategies ask about a kernel: strides, lanes, and what its values cost."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import Access, dims_below
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_opt.facts import Facts, Statement, facts_of
from loopwright_opt.strategies.strategy import Draft

# Ops that a sequence of a dozen or more others stands for.
COSTLY = frozenset({Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.POW})
COSTLY_OPS = 15
# What hands a value on as it is.
_COPIES = frozenset({Op.LOAD, Op.BUFFER, Op.INDEX, Op.BITCAST, Op.WHERE})


def accesses_of(facts: Facts, place: int) -> list[Access]:
    """The accesses that a statement makes itself."""
    return [a for a in facts.accesses.values() if place in facts.within.get(a.node, ())]


def stores(facts: Facts) -> list[Access]:
    return [a for a in facts.accesses.values() if a.is_store]


def inner_first(kernel: Kernel, statement: Statement) -> list[str]:
    """A statement's dims, inner before outer: output dims, those that another reduce binds, then
    its own."""
    names = [d.name for d in reversed(kernel.dims)]
    free = [n for n in names if n in statement.free]
    free.sort(key=lambda n: kernel.dim(n).is_reduce)
    return free + [n for n in names if n in statement.bound]


def lane_bytes(facts: Facts, dim: str) -> int:
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


def lanes_along(draft: Draft, dim: str) -> int:
    """The most lanes of one register that a dim has elements for; 0 where there are none."""
    widest, size = lane_bytes(draft.facts, dim), draft.size(dim)
    fitting = [v // widest for v in draft.target.vector_bytes if 1 < v // widest <= size]
    return max(fitting, default=0)


def wide_lanes(draft: Draft, dim: str, staged: tuple[Access, ...] = ()) -> int:
    """The most lanes that every access along a dim but the staged ones may move at once: side by
    side, never masked one by one, at offsets and up to an end that the lanes divide. 0: none."""
    moving = [a for a in draft.facts.accesses.values() if dim in a.dims and a not in staged]
    if any(dim in a.opaque or a.stride(dim) != 1 or _is_masked(a, dim) for a in moving):
        return 0
    widest = max((a.dtype.itemsize for a in moving), default=0)
    for size in reversed(draft.target.vector_bytes):
        lanes = size // widest if widest else 0
        if lanes < 2 or draft.size(dim) < lanes or draft.size(dim) % lanes:
            continue
        if all(_is_aligned(a, dim, lanes) for a in moving):
            return lanes
    return 0


def _is_masked(access: Access, dim: str) -> bool:
    return dim in dims_below(access.valid)


def _is_aligned(access: Access, dim: str, lanes: int) -> bool:
    """Whether the flat offset is a multiple of the lanes where the dim is."""
    if access.opaque or not access.is_plain:
        return False
    if any(s % lanes for d, s in access.strides.items() if d != dim):
        return False
    offset, step = 0, 1
    for form, size in zip(reversed(access.form), reversed(access.shape), strict=True):
        if not isinstance(size, int):
            return False
        offset += form.const * step
        step *= size
    return offset % lanes == 0


def vectors(kernel: Kernel) -> dict[str, int]:
    """Dims that have lanes already, and how many."""
    return {
        a.dim: a.size
        for a in kernel.schedule.axes
        if a.kind is AxisKind.VECTOR and isinstance(a.size, int)
    }


def reads_once(access: Access, statement: Statement) -> bool:
    """Whether no element of a load is read at two points of a statement's dims."""
    is_plain = not access.opaque and all(len(f.terms) <= 1 for f in access.form)
    return is_plain and access.dims >= statement.dims


def power_above(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


def power_below(n: int, most: int) -> int:
    """The largest power of two that is at most n and at most `most`, 1 at least."""
    return min(most, 1 << max(n.bit_length() - 1, 0))


def reduces(kernel: Kernel) -> list[UOp]:
    return [n for n in kernel.nodes if n.op is Op.REDUCE]


def is_costly(value: UOp) -> bool:
    """Whether a value holds an op that is a whole sequence, down to values of other reduces."""
    return any(n.op in COSTLY for n in below(value))


def below(value: UOp) -> list[UOp]:
    """The nodes a value is computed from, without those of other reduces and scans."""
    seen: dict[UOp, None] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        if node.op not in (Op.REDUCE, Op.SCAN) or node is value:
            stack.extend(node.src)
    return list(seen)


def statement_ops(facts: Facts, place: int) -> int:
    """Arithmetic ops of a statement's leaf, sequences counted by their length."""
    return sum(
        COSTLY_OPS if node.op in COSTLY else 1
        for node, places in facts.within.items()
        if place in places and node.op in ELEMENTWISE and node.dtype is not dt.index
    )


def weigh(kernel: Kernel) -> int:
    """Ops of one launch, sequences counted by their length, a repeated value once for each dim."""
    total = 0
    points: dict[frozenset[str], int] = {}
    for node in kernel.nodes:
        if node.op is Op.REDUCE or node.op is Op.SCAN:
            dims = _dims(kernel, node.src)
        elif node.op in ELEMENTWISE and node.dtype is not dt.index:
            dims = _dims(kernel, (node,))
        else:
            continue
        n = points.get(dims)
        if n is None:
            n = 1
            for d in dims:
                n *= kernel.dim(d).max_size
            points[dims] = n
        total += n * (COSTLY_OPS if node.op in COSTLY else 1)
    return total


def _dims(kernel: Kernel, nodes: tuple[UOp, ...]) -> frozenset[str]:
    free = facts_of(kernel).free
    return frozenset().union(*[free.get(n, frozenset()) for n in nodes])
