"""What strategies ask about a kernel: strides, lanes, and what its values cost."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import Access
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


def vectors(kernel: Kernel) -> dict[str, int]:
    """Dims that have lanes already, and how many."""
    return {
        a.dim: a.size
        for a in kernel.schedule.axes
        if a.kind is AxisKind.VECTOR and isinstance(a.size, int)
    }


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
