"""What legality asks about a kernel's body: found once per body, read by every opt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from weakref import WeakKeyDictionary, ref

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, toposort
from loopwright_core.kernel.access import Access, accesses
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.renaming import renaming


@dataclass(frozen=True)
class Statement:
    """A REDUCE, SCAN or STORE. `free` dims come from outside, `bound` ones are a REDUCE's own.

    `readers`: which statements read its value, by place. `itemsize`: bytes of what a reduce
    combines. `waits`: it reads another's value. `sinks`: partial results may wait in the output of
    its only reader, as far as the body decides.
    """

    label: str
    free: frozenset[str]
    bound: frozenset[str]
    readers: tuple[int, ...]
    itemsize: int = 0
    waits: bool = False
    sinks: bool = False

    @cached_property
    def dims(self) -> frozenset[str]:
        return self.free | self.bound


@dataclass(frozen=True)
class Facts:
    """`within`: for each value the statements that hold it directly, by place in `statements`.

    `common`: output dims of every statement. `scanned`: dims that a SCAN runs along,
    `backwards`: those it runs along from the end.
    `dtypes`: of the buffers it touches, and what those are computed in. `free`: the dims a value
    depends on. `loaded`, `stored`: BUFFERs. `known_names`: what `renamed` was asked before.
    """

    statements: tuple[Statement, ...]
    within: dict[UOp, tuple[int, ...]]
    free: dict[UOp, frozenset[str]]
    common: frozenset[str]
    scanned: frozenset[str]
    backwards: frozenset[str]
    dtypes: tuple[DType, ...]
    accesses: dict[str, Access]
    loaded: frozenset[UOp]
    stored: frozenset[UOp]
    known_names: dict[tuple[UOp, UOp], dict[str, str] | None] = field(default_factory=dict)

    @cached_property
    def reduces(self) -> tuple[Statement, ...]:
        return tuple([s for s in self.statements if s.bound])

    @cached_property
    def unsunk(self) -> tuple[Statement, ...]:
        """Reduces whose partial results never wait in an output."""
        return tuple([s for s in self.reduces if not s.sinks])

    def renamed(self, a: UOp, b: UOp) -> dict[str, str] | None:
        """The dims of `b` by those of `a`, or None where the two differ in more than names."""
        if (a, b) not in self.known_names:
            self.known_names[a, b] = renaming(a, b)
        return self.known_names[a, b]


_facts: WeakKeyDictionary[UOp, Facts] = WeakKeyDictionary()


class _Last:
    """The body asked about last, and its facts: one step asks a dozen times."""

    known: tuple[Callable[[], UOp | None], Facts | None] = (lambda: None, None)


def facts_of(kernel: Kernel) -> Facts:
    """The facts of a kernel's body; kernels that differ in their schedule share them."""
    body, (last, found) = kernel.body, _Last.known
    if found is not None and last() is body:
        return found
    found = _facts.get(body)
    if found is None:
        found = _facts[body] = _find(kernel)
    _Last.known = ref(body), found
    return found


def _find(kernel: Kernel) -> Facts:
    free: dict[UOp, frozenset[str]] = {}
    nothing: frozenset[str] = frozenset()
    scanned: set[str] = set()
    backwards: set[str] = set()
    heads: list[UOp] = []
    # SINK is left out: facts live as long as it does and must not keep it alive.
    nodes = [n for n in kernel.body.toposort() if n is not kernel.body]
    for node in nodes:
        op = node.op
        if op is Op.DIM:
            free[node] = frozenset({node.arg.name})
            continue
        below = nothing
        for s in node.src:
            if free[s] is not below:
                below = below | free[s] if below else free[s]
        if op is Op.REDUCE:
            below = below - _bound(node)
        elif op is Op.SCAN:
            scanned |= _bound(node)
            backwards |= _bound(node) if node.arg[2] else nothing
        if op in (Op.REDUCE, Op.SCAN, Op.STORE):
            heads.append(node)
        free[node] = below
    within: dict[UOp, tuple[int, ...]] = {}
    statements: list[Statement] = []
    waits: list[tuple[frozenset[str], int, bool]] = []
    read: list[int] = []
    for place, head in enumerate(heads):
        direct = _direct(head)
        for node in direct:
            within[node] = (*within.get(node, ()), place)
        bound, size = (_bound(head), _itemsize(head)) if head.op is Op.REDUCE else (nothing, 0)
        read.append(sum(n.op in (Op.REDUCE, Op.SCAN) for n in direct))
        waits.append((bound, size, read[-1] > 0))
    for head, (bound, size, waiting) in zip(heads, waits, strict=True):
        readers = within.get(head, ())
        sinks = len(readers) == 1 and read[readers[0]] == 1 and _can_sink(head, heads[readers[0]])
        sinks = sinks and free[head] == free[heads[readers[0]]]
        statements.append(Statement(_label(head), free[head], bound, readers, size, waiting, sinks))
    found = accesses(kernel)
    return Facts(
        tuple(statements),
        within,
        free,
        frozenset.intersection(*[s.free for s in statements]) if statements else nothing,
        frozenset(scanned),
        frozenset(backwards),
        tuple(dict.fromkeys(d for a in found for d in _computed(a.dtype))),
        {a.name: a for a in reversed(found)},
        frozenset(n.src[0].src[0] for n in nodes if n.op is Op.LOAD),
        frozenset(a.buffer for a in found if a.is_store),
    )


def _can_sink(reduce: UOp, reader: UOp) -> bool:
    """What `kernel/statements.py` asks of a store to hold a reduce's partial results."""
    if reduce.op is not Op.REDUCE or reader.op is not Op.STORE:
        return False
    index = reader.src[0]
    places = toposort(index.src[1:])
    return (
        reduce.dtype is index.dtype
        and index.src[-1] is TRUE
        and all(n.op is not Op.LOAD for n in places)
    )


def _computed(dtype: DType) -> tuple[DType, ...]:
    """A buffer's dtype and what its values are computed in: small floats in float32."""
    return (dtype, dt.float32) if dtype.is_float and dtype.bits < 32 else (dtype,)


def _bound(node: UOp) -> frozenset[str]:
    return frozenset(s.arg.name for s in node.src if s.op is Op.DIM)


def _itemsize(reduce: UOp) -> int:
    return sum(s.dtype.itemsize for s in reduce.src if s.op is not Op.DIM)


def _label(node: UOp) -> str:
    if node.op is Op.STORE:
        return f"the store to {buffer_name(node.src[0].src[0].arg.slot)}"
    what = "scan along" if node.op is Op.SCAN else "reduce over"
    return f"the {what} {', '.join(s.arg.name for s in node.src if s.op is Op.DIM)}"


def _direct(head: UOp) -> list[UOp]:
    """Everything a statement evaluates itself: down to the values of other statements."""
    seen: dict[UOp, None] = {}
    stack = list(head.src)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen[node] = None
        if node.op not in (Op.REDUCE, Op.SCAN):
            stack.extend(node.src)
    return list(seen)
