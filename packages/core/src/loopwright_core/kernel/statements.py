"""Statements: what a kernel does, each with the loops it runs in.

One statement per REDUCE, SCAN and STORE, and per copy that a STAGE asks for. A statement's `path`
is the loop-kind axes of its dims, in schedule order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, toposort
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.schedule import Schedule

# What people call the combines.
_VERBS = {
    "add": "sum",
    "mul": "product",
    "max": "maximum",
    "min": "minimum",
    "and": "conjunction",
    "or": "disjunction",
    "xor": "exclusive or",
    "argmax": "position of the maximum",
    "argmin": "position of the minimum",
    "welford": "mean and variance",
    "logsumexp": "log of the sum of exponentials",
}
Kind = Literal["reduce", "scan", "store", "copy"]
# Kinds of an axis of a reduce dim whose steps reduce parts that are joined elsewhere.
_SPLIT = frozenset({AxisKind.GLOBAL, AxisKind.LOOP, AxisKind.THREAD})


def splits(axis: Axis) -> bool:
    """Whether the axis, being one of a reduce dim, splits the reduce in parts."""
    return axis.kind in _SPLIT and axis.size != 1


class Step(NamedTuple):
    """One loop of a path. `owner` is 0, or the number of the copy whose own loop it is."""

    axis: Axis
    owner: int = 0


@dataclass(eq=False)
class Statement:
    """`order`: the value nodes its leaf evaluates, sources first. `reads`: what must run before.

    `by_core`: a reduce of products that the schedule's tensor core does.
    """

    number: int
    kind: Kind
    node: UOp
    values: tuple[UOp, ...]
    free: tuple[str, ...]
    bound: tuple[str, ...]
    path: tuple[Step, ...]
    order: list[UOp] = field(default_factory=list)
    reads: list[Statement] = field(default_factory=list)
    consumers: list[Statement] = field(default_factory=list)
    cut: tuple[str, ...] = ()  # kind "store": reduce dims of whose parts it stores one
    copy: object = None  # kind "copy": the local array it fills, as the lowering describes it
    by_core: bool = False
    is_staged: bool = False  # kind "store": its results go to a tile that is written out later

    @property
    def dims(self) -> tuple[str, ...]:
        return self.free + self.bound

    @property
    def label(self) -> str:
        """`the sum over k`, `the store to C`."""
        if self.kind == "store":
            return f"the store to {buffer_name(self.node.src[0].src[0].arg.slot)}"
        if self.kind == "copy":
            return f"the copy of {buffer_name(self.node.src[0].src[0].arg.slot)}"
        names = self.bound
        dims = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        return f"the {self.verb} over {dims}"

    @property
    def verb(self) -> str:
        """What a reduce or scan computes: `sum`, `running maximum`."""
        name: str = self.node.arg[0]
        return ("running " if self.kind == "scan" else "") + _VERBS.get(name, name)

    def binds(self, step: Step) -> bool:
        """Whether the loop runs over what this statement reduces (or scans); the steps of a split
        axis reduce parts of their own."""
        split = self.kind == "reduce" and splits(step.axis)
        return step.axis.dim in self.bound and not split

    @property
    def open_depth(self) -> int:
        """How many loops are open where the accumulators are declared: all but the last run
        of reduce loops."""
        depth = len(self.path)
        while depth and self.binds(self.path[depth - 1]):
            depth -= 1
        return depth

    def escapes(self) -> tuple[Axis, ...]:
        """Free loops of this reduce that its consumers do not share: its value needs an array."""
        shared = self.shared_depth()
        return tuple(s.axis for s in self.path[shared:] if not self.binds(s))

    @property
    def is_sunk(self) -> bool:
        """Whether partial results of this reduce wait in the output of its only consumer."""
        return (
            len(self.consumers) == 1 and can_sink(self, self.consumers[0]) and bool(self.escapes())
        )

    def shared_depth(self) -> int:
        """How many leading free loops all consumers share with this statement."""
        depth = 0
        while depth < len(self.path) and not self.binds(self.path[depth]):
            depth += 1
        for c in self.consumers:
            same = 0
            while same < min(depth, len(c.path)) and c.path[same] == self.path[same]:
                same += 1
            depth = same
        return depth

    def apart(self) -> tuple[Axis, ...] | None:
        """The loops of this scan that some consumer runs apart from it; None where all of them
        read the running value in its own loops.

        A consumer must share every loop of the scan: in another run of the innermost ones, though
        inside the same step of the scan's, the running value is that of their last step.
        """
        shared = len(self.path)
        for consumer in self.consumers:
            same = 0
            while same < min(shared, len(consumer.path)) and consumer.path[same] == self.path[same]:
                same += 1
            shared = same
        return None if shared == len(self.path) else tuple([s.axis for s in self.path[shared:]])


class Analysis:
    """Facts about the nodes of one body: free dims, and which nodes are index arithmetic.

    A STORE into a part of a split reduce (see `kernel/phases.py`) names the part by the reduce's
    dims: they are no free dims of it but stand in `cut`.
    """

    def __init__(self, roots: tuple[UOp, ...], dims: tuple[Dim, ...]) -> None:
        self.nodes = toposort(roots)
        self.dim_names = [d.name for d in dims]
        bit = {name: 1 << n for n, name in enumerate(self.dim_names)}
        self._names: dict[int, tuple[str, ...]] = {}
        self.mask: dict[UOp, int] = {}
        self.is_index: dict[UOp, bool] = {}
        self.cut: dict[UOp, tuple[str, ...]] = {}
        reduced = sum(bit[d.name] for d in dims if d.is_reduce)
        for node in self.nodes:
            if node.op is Op.DIM:
                mask = bit[node.arg.name]
            else:
                mask = 0
                for s in node.src:
                    mask |= self.mask[s]
                if node.op is Op.REDUCE:
                    for s in node.src:
                        if s.op is Op.DIM:
                            mask &= ~bit[s.arg.name]
                elif node.op is Op.STORE and mask & reduced:
                    self.cut[node] = tuple([d for d in self.dim_names if mask & reduced & bit[d]])
                    mask &= ~reduced
                    self.mask[node.src[0]] &= ~reduced
            self.mask[node] = mask
            self.is_index[node] = self._index_level(node)

    def _index_level(self, node: UOp) -> bool:
        if node.dtype.kind == "index":
            return True
        if not node.dtype.is_bool or node.op in (Op.LOAD, Op.CAST, Op.REDUCE, Op.SCAN, Op.ITEM):
            return False
        inner = [s for s in node.src if s.op is not Op.CONST or s.dtype.kind == "index"]
        return bool(inner) and all(self.is_index[s] for s in inner)

    def free(self, node: UOp) -> tuple[str, ...]:
        """The dims a node's value depends on, in the kernel's order."""
        mask = self.mask[node]
        names = self._names.get(mask)
        if names is None:
            names = tuple(d for n, d in enumerate(self.dim_names) if mask >> n & 1)
            self._names[mask] = names
        return names


def can_sink(statement: Statement, store: Statement) -> bool:
    """Whether a reduce that escapes may keep its partial results in the STORE's output."""
    index = store.node.src[0]
    return (
        statement.kind == "reduce"
        and statement.consumers == [store]
        and store.kind == "store"
        and not store.is_staged
        and not store.consumers  # of a value that it keeps for them
        and store.reads == [statement]
        and store.free == statement.free
        and statement.node.dtype is index.dtype
        and index.src[-1] is TRUE
        and all(n.op is not Op.LOAD for n in toposort(index.src[1:]))
    )


def mark_staged(statements: list[Statement], kernel: Kernel) -> None:
    """Say which stores the schedule stages."""
    wanted = {s.access for s in kernel.schedule.stages if s.mode == "panel"}
    if wanted:
        nodes = {a.node for a in accesses(kernel) if a.is_store and a.name in wanted}
        for s in statements:
            s.is_staged = s.kind == "store" and s.node.src[0] in nodes


def bound_dims(node: UOp) -> tuple[str, ...]:
    """The dims a REDUCE or SCAN runs over."""
    return tuple(s.arg.name for s in node.src if s.op is Op.DIM)


def reduce_values(node: UOp) -> tuple[UOp, ...]:
    """The values a REDUCE or SCAN combines."""
    return tuple(s for s in node.src if s.op is not Op.DIM)


def path_of(
    schedule: Schedule,
    dims: tuple[str, ...],
    by_core: bool = False,
    cut: tuple[str, ...] = (),
) -> tuple[Step, ...]:
    """The loops of a statement over these dims, and over the parts of the dims `cut`; `by_core`: a
    tensor core does its TENSOR axes."""
    loops = [
        a
        for a in schedule.axes
        if not a.kind.is_expanded and (a.dim in dims or (a.dim in cut and splits(a)))
    ]
    use = schedule.tensor_core
    if use is not None:
        loops = [
            a for a in loops if a.kind is not AxisKind.TENSOR or (use.is_looped(a) and not by_core)
        ]
    return tuple(map(Step, loops))


def is_by_core(schedule: Schedule, bound: tuple[str, ...]) -> bool:
    """Whether a reduce over these dims is what the schedule's tensor core multiplies."""
    use = schedule.tensor_core
    if use is None or not use.multiplies:
        return False
    return any(a.kind is AxisKind.TENSOR and a.dim in bound for a in schedule.axes)


def make_statements(sink: UOp, schedule: Schedule, facts: Analysis) -> list[Statement]:
    """REDUCEs, SCANs and STOREs of the body, in an order in which each may run."""
    found: dict[UOp, Statement] = {}
    for node in facts.nodes:
        if node.op in (Op.REDUCE, Op.SCAN):
            bound = bound_dims(node)
            free = tuple(d for d in facts.free(node) if d not in bound)
            kind: Kind = "reduce" if node.op is Op.REDUCE else "scan"
            values = reduce_values(node)
        elif node.op is Op.STORE:
            free, bound, kind, values = facts.free(node), (), "store", node.src
        else:
            continue
        by_core = is_by_core(schedule, bound)
        cut = facts.cut.get(node, ())
        path = path_of(schedule, free + bound, by_core, cut)
        made = Statement(len(found) + 1, kind, node, values, free, bound, path)
        made.by_core, made.cut = by_core, cut
        found[node] = made
    for statement in found.values():
        _walk(statement, found, facts)
    return list(found.values())


# By body: the dims it was asked with and its statements, which do not hold the SINK itself.
_known: WeakKeyDictionary[UOp, tuple[tuple[Dim, ...], list[Statement]]] = WeakKeyDictionary()


def statements_of(kernel: Kernel) -> list[Statement]:
    """The statements of a kernel; the graph is walked once for all schedules of a body."""
    known_dims, known = _known.get(kernel.body, (None, []))
    if known_dims != kernel.dims:
        facts = Analysis((kernel.body,), kernel.dims)
        known = make_statements(kernel.body, kernel.schedule, facts)
        _known[kernel.body] = (kernel.dims, known)
    steps = [(a.dim, Step(a)) for a in kernel.schedule.axes if not a.kind.is_expanded]
    made = []
    plain = kernel.schedule.tensor_core is None
    for s in known:
        dims, cut, by_core = s.dims, s.cut, False
        if plain and not cut:
            path = tuple([step for dim, step in steps if dim in dims])
        else:
            by_core = is_by_core(kernel.schedule, s.bound)
            path = path_of(kernel.schedule, dims, by_core, cut)
        own = Statement(s.number, s.kind, s.node, s.values, s.free, s.bound, path, s.order)
        own.by_core, own.cut = by_core, cut
        made.append(own)
    for old, new in zip(known, made, strict=True):
        new.reads = [made[s.number - 1] for s in old.reads]
        new.consumers = [made[s.number - 1] for s in old.consumers]
    if kernel.schedule.stages:
        mark_staged(made, kernel)
    return made


def link_kept(
    instances: tuple[UOp, ...],
    statements: list[Statement],
    free: Callable[[UOp], Iterable[str]],
) -> tuple[UOp, Statement, list[tuple[UOp, Statement]]] | None:
    """Make the readers of a kept value wait for its writer, the first statement that has no dims
    beyond the value's own.

    The instance written, its statement, and all (instance, statement) pairs; None where no
    statement computes the value once, or nobody else reads it.
    """
    users = [(v, s) for v in instances for s in statements if v in s.order]
    writers = [(v, s) for v, s in users if set(s.dims) == set(free(v))]
    if not writers or len({v for v, _ in users}) < 2:
        return None
    writer, owner = min(writers, key=lambda user: user[1].number)
    for value, reader in users:
        if value is not writer:
            reader.reads.append(owner)
            owner.consumers.append(reader)
    return writer, owner, users


def _walk(statement: Statement, found: dict[UOp, Statement], facts: Analysis) -> None:
    """Fill in what the leaf evaluates and which statements it reads."""
    inside = toposort(statement.values, lambda n: n.op not in (Op.REDUCE, Op.SCAN))
    for node in inside:
        if node.op in (Op.REDUCE, Op.SCAN):
            other = found[node]
            statement.reads.append(other)
            other.consumers.append(statement)
        elif node.op not in _SILENT and not facts.is_index[node]:
            statement.order.append(node)


_SILENT = frozenset({Op.CONST, Op.INDEX, Op.BUFFER, Op.DIM, Op.VAR, Op.STORE})
