"""Which values share a kernel: one walk from the outputs to the inputs, decided by cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loopwright.fuse.cost import (
    LAUNCH_FLOPS,
    NESTED_STORES,
    is_contraction,
    is_large_contraction,
    recompute_flops,
    store_flops,
)
from loopwright.fuse.demand import Demand, Walker, elements
from loopwright.fuse.likely import likely_stored
from loopwright.fuse.outputs import related_outputs
from loopwright.memory import buffer_node
from loopwright_core import notes
from loopwright_core.ir.ops import MOVEMENT, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.plugin.target import Target

# Level-1 nodes, each at each index; lowered they stay below 2,000 nodes of a kernel's body.
MAX_SIZE = 1000
# Operands of one concat that one kernel copies; outputs that share a kernel for what they read.
MAX_STORES = 32
# Kernels looked at to prove that two may be one; beyond it they stay apart.
_MAX_SEARCH = 10_000

_LEAVES = frozenset({Op.BUFFER, Op.CONST, Op.VAR, Op.IOTA})
_NO_MEMORY = frozenset({Op.CONST, Op.VAR, Op.IOTA})
_PASSING = MOVEMENT | {Op.ITEM}


class Group:
    """A kernel in the making.

    `stores`: (view of a BUFFER, value). `own`: the values it stores, which others read from
    memory. `depends`: the groups that must run before. `pending`: what it reads or may yet compute.
    `has_product`: it sums products, with work enough for a register tile.
    """

    __slots__ = ("depends", "has_product", "has_scan", "own", "pending", "size", "stores", "walker")

    def __init__(self) -> None:
        self.stores: list[tuple[UOp, UOp]] = []
        self.own: set[UOp] = set()
        self.depends: dict[Group, None] = {}
        self.pending: dict[UOp, None] = {}
        self.size = 0
        self.has_scan = False
        self.has_product = False
        self.walker: Walker[Group] = Walker(self)


Need = Demand[Group]
Needs = tuple[Need, ...]


class Partition:
    """The groups of a graph; `stored` says from which view of a buffer a value is read."""

    def __init__(self, stores: Sequence[UOp], target: Target | None) -> None:
        self.max_buffers = target.max_buffers if target else None
        cores = target.tensor_cores if target else ()
        self._widenings = {(d, core.dtype_out) for core in cores for d in core.dtype_in}
        self.groups: list[Group] = []
        self.stored: dict[UOp, UOp] = {}
        self.producers: dict[UOp, list[Group]] = {}
        self.targets: dict[UOp, list[UOp]] = {}
        for store in stores:
            view, value = _push_views(*store.src)
            self.targets.setdefault(value, []).append(view)
        self.order = toposort(self.targets)
        self._likely = likely_stored(self.order, self.targets)
        self._needs: dict[UOp, Needs] = {}
        self._items: dict[UOp, list[UOp]] = {}
        self._n_users: dict[UOp, int] = {}
        for node in self.order:
            for s in node.src:
                self._n_users[s] = self._n_users.get(s, 0) + 1
        self._related = related_outputs(self.targets, self._n_users)
        self._by_relation: dict[object, Group] = {}
        for node in reversed(self.order):
            self._decide(node)

    def _decide(self, node: UOp) -> None:
        needs = self._needs.pop(node, ())
        if node in self.targets:
            self._store(node, needs, "it is asked for")
        elif node.op in _LEAVES or not needs:
            return
        elif node.op is Op.CONCAT:
            self._store(node, needs, "its operands are copied side by side")
        elif node.op in _PASSING:
            if node.op is Op.ITEM:
                self._items.setdefault(node.src[0], []).append(node)
            self._fuse(node, needs)
        elif not self._is_cheap(node, needs):
            self._store(node, needs, "computing it where it is used costs more than memory")
        elif self._is_second_product(node, needs):
            why = "its kernel sums products already: each has a tile of its own"
            self._store(node, needs, why, apart=True)
        elif not self._fits(node, needs):
            self._store(node, needs, "the kernels that use it have no room for it")
        else:
            self._explain(node, needs, stored="")
            self._fuse(node, needs)

    def _is_cheap(self, node: UOp, needs: Needs) -> bool:
        """Whether computing the value wherever it is used costs less than storing it."""
        if node.op is Op.SCAN:
            return len(needs) == 1 and _is_scan_output(node, needs[0])
        n = elements(shape_of(node))
        if n and is_contraction(node) and any(need.is_in_reduce for need in needs):
            budget = NESTED_STORES * store_flops(node) + LAUNCH_FLOPS / n
            if recompute_flops(node, self._likely, budget) >= budget:
                return False
        evaluations = needs[0].evaluations
        for need in needs[1:]:
            evaluations += need.evaluations
        if evaluations <= n or self._is_of_a_core(node):
            return True
        budget = store_flops(node) * n / (evaluations - n)
        return recompute_flops(node, self._likely, budget) < budget

    def _is_of_a_core(self, node: UOp) -> bool:
        """Whether a tensor core reads the narrow elements of memory and widens them itself."""
        if node.op is not Op.CAST:
            return False
        source = node.src[0]
        while source.op in MOVEMENT:
            source = source.src[0]
        return source.op is Op.BUFFER and (source.dtype, node.dtype) in self._widenings

    def _is_second_product(self, node: UOp, needs: Needs) -> bool:
        """Whether a kernel that has one contraction would get another beside it: a schedule tiles
        one. What is inside a reduce is priced by what repeating it costs."""
        if not any(n.owner.has_product and not n.is_in_reduce for n in needs):
            return False
        return is_large_contraction(node)

    def _fits(self, node: UOp, needs: Needs) -> bool:
        """Whether every kernel that would compute it stays within its limits."""
        weight = _weight(node)
        if len(needs) == 1:
            return self._has_room(needs[0].owner, node, weight)
        sizes: dict[Group, int] = {}
        for need in needs:
            sizes[need.owner] = sizes.get(need.owner, 0) + weight
        return all(self._has_room(group, node, size) for group, size in sizes.items())

    def _has_room(self, group: Group, node: UOp, size: int) -> bool:
        if group.size + size > MAX_SIZE:
            return False
        if self.max_buffers is None:
            return True
        new = {s for s in node.src if s.op not in _NO_MEMORY and s not in group.pending}
        n_buffers = len(group.pending) - (node in group.pending) + len(new) + len(group.stores)
        return n_buffers <= self.max_buffers

    def _fuse(self, node: UOp, needs: Needs) -> None:
        """Compute the value where it is needed: its sources are needed there too."""
        if node.op not in _PASSING:
            weight = _weight(node)
            for need in needs:
                need.owner.size += weight
                need.owner.has_scan |= node.op is Op.SCAN
                need.owner.has_product |= node.op is Op.REDUCE and is_large_contraction(node)
        if self.max_buffers is not None:
            for need in needs:
                pending = need.owner.pending
                pending.pop(node, None)
                pending.update({s: None for s in node.src if s.op not in _NO_MEMORY})
        if len(needs) == 1:
            for source, need in needs[0].owner.walker.sources(node, needs[0]):
                self._need(source, (need,))
            return
        by_source: dict[UOp, dict[Need, None]] = {}
        for need in needs:
            for source, inner in need.owner.walker.sources(node, need):
                by_source.setdefault(source, {})[inner] = None
        for source, inners in by_source.items():
            inner_needs = tuple(inners)
            self._need(source, needs if inner_needs == needs else inner_needs)

    def _need(self, node: UOp, needs: Needs) -> None:
        if node.op in _LEAVES:
            return
        known = self._needs.get(node)
        if known is None:
            self._needs[node] = needs
        elif known is not needs:
            self._needs[node] = tuple(dict.fromkeys((*known, *needs)))

    def _explain(self, node: UOp, needs: Needs, stored: str) -> None:
        """Tell whoever listens what became of a value, in numbers that fusion went by.

        `stored`: why it is stored, "" where it is not.
        """
        if not notes.is_heard():
            return
        n, uses = elements(shape_of(node)), sum(need.evaluations for need in needs)
        counts = f"; {n} elements, {uses} evaluations for {len(needs)} uses" if uses > n else ""
        if stored:
            text = f"stored: {stored}{counts}"
        elif counts:
            text = f"computed where it is used: repeating it costs less than memory{counts}"
        else:
            text = f"computed where it is used, each of its {n} elements at most once"
        notes.note("fuse", node, text)

    def _store(self, node: UOp, needs: Needs, why: str, apart: bool = False) -> None:
        """Give the value memory: a kernel of its own, or (unless `apart`) a further output of one
        that needs it."""
        self._explain(node, needs, stored=why)
        if node.op is Op.CONCAT:
            self._store_parts(node, needs)
            return
        if node.op in (Op.REDUCE, Op.SCAN) and node in self._items:
            self._store_items(node, needs)
            return
        host = None if apart else self._host(node, needs)
        group = host or self._relative(node, needs) or self._new_group()
        if node.op is Op.ITEM:
            self._items.setdefault(node.src[0], []).append(node)
        self._add_stores(group, node, self._targets_of(node), needs)
        self._fuse(node, (group.walker.root(shape_of(node)),))

    def _store_items(self, node: UOp, needs: Needs) -> None:
        """A reduce of several values is stored as each of its values that is used."""
        group = self._host(node, needs) or self._new_group()
        inside = [group.walker.root(shape_of(node))]
        for item in self._items[node]:
            if item in self.stored:  # an output, whose kernel computes the reduce itself
                inside += [n for n in needs if n.owner is self.producers[item][0]]
            else:
                self._add_stores(group, item, [buffer_node(item.dtype, _ints(item))], needs)
        self._fuse(node, tuple(dict.fromkeys(inside)))

    def _store_parts(self, node: UOp, needs: Needs) -> None:
        """A concat is one store an operand, each into its slice of one buffer."""
        parts: list[tuple[UOp, UOp]] = []
        targets = self._targets_of(node)
        for target in targets:
            self._split_concat(target, node, parts)
        self.stored[node] = targets[0]
        self.producers[node] = []
        n = MAX_STORES if self.max_buffers is None else min(MAX_STORES, self.max_buffers // 2)
        for start in range(0, len(parts), max(n, 1)):
            group = self._new_group()
            self.producers[node].append(group)
            group.own.add(node)
            for target, value in parts[start : start + max(n, 1)]:
                group.stores.append((target, value))
                root = group.walker.root(shape_of(value))
                if self.max_buffers is not None and value.op not in _NO_MEMORY:
                    group.pending[value] = None
                self._need(value, (root,))
        for need in needs:
            need.owner.depends.update(dict.fromkeys(self.producers[node]))

    def _split_concat(self, target: UOp, node: UOp, parts: list[tuple[UOp, UOp]]) -> None:
        stack = [(target, node)]
        while stack:
            view, value = stack.pop()
            is_inner = value is node or (
                self._n_users.get(value) == 1 and value not in self.targets
            )
            if value.op is not Op.CONCAT or not is_inner:
                if 0 not in shape_of(value):
                    parts.append((view, value))
                continue
            start, pieces = 0, []
            for operand in value.src:
                n = shape_of(operand)[value.arg]
                spans: list[object] = [(0, size, 1) for size in shape_of(view)]
                spans[value.arg] = (start, start + n, 1)
                piece = UOp(Op.SHRINK, view.dtype, (view,), tuple(spans))
                pieces.append((piece, operand))
                start += n
            stack.extend(reversed(pieces))

    def _targets_of(self, node: UOp) -> list[UOp]:
        return self.targets.get(node) or [buffer_node(node.dtype, _ints(node))]

    def _add_stores(self, group: Group, node: UOp, targets: Iterable[UOp], needs: Needs) -> None:
        targets = list(targets)
        group.stores.extend((target, node) for target in targets)
        if node.op in _LEAVES:  # a copy, which nobody else has to read
            return
        self.stored[node] = targets[0]
        self.producers[node] = [group]
        group.own.add(node)
        for need in needs:
            if need.owner is not group:
                need.owner.depends[group] = None

    def _new_group(self) -> Group:
        group = Group()
        self.groups.append(group)
        return group

    def _host(self, node: UOp, needs: Needs) -> Group | None:
        """A kernel that computes the value anyway, at each element once, and may also store it."""
        if not needs or node.op in _LEAVES:
            return None
        shape, owners = shape_of(node), dict.fromkeys(need.owner for need in needs)
        for need in reversed(needs):
            group = need.owner
            if not group.walker.is_root(need, shape):
                continue
            if any(other is not need and other.owner is group for other in needs):
                continue  # it would read at other indices what it stores at this one
            if node.op is Op.SCAN and not _is_scan_output(node, need):
                continue
            if not self._fits(node, (need,)):
                continue
            others = [g for g in owners if g is not group]
            if not others or not self._reaches(group, others):
                return group
        return None

    def _reaches(self, start: Group, goals: list[Group]) -> bool:
        """Whether `start` must run after one of `goals`."""
        wanted, seen, stack = set(goals), {start}, [start]
        while stack:
            for group in stack.pop().depends:
                if group in wanted or len(seen) > _MAX_SEARCH:
                    return True
                if group not in seen:
                    seen.add(group)
                    stack.append(group)
        return False

    def _relative(self, node: UOp, needs: Needs) -> Group | None:
        """For an output nobody else uses: the kernel of another such output that shares work."""
        if needs or node not in self._related:
            return None
        axis = node.arg[1] if node.op is Op.SCAN else None  # it fixes which loop is innermost
        key = (self._related[node], shape_of(node), axis)
        group = self._by_relation.get(key)
        is_full = group is not None and len(group.stores) >= MAX_STORES
        if group is None or is_full or not self._has_room(group, node, _weight(node)):
            group = self._by_relation[key] = self._new_group()
        return group


def _is_scan_output(node: UOp, need: Need) -> bool:
    """A scan runs along an output dim: a kernel that walks exactly its elements fuses one scan."""
    group = need.owner
    return not group.has_scan and group.walker.is_root(need, shape_of(node))


def _push_views(target: UOp, value: UOp) -> tuple[UOp, UOp]:
    """STORE(B, RESHAPE(x)) --> STORE(RESHAPE(B), x): the kernel's dims are those of the work.

    A scan and a concat are stored where they are computed: PERMUTE and FLIP move as well.
    """
    base = value
    while base.op in (Op.RESHAPE, Op.PERMUTE, Op.FLIP):
        base = base.src[0]
    if base.op is Op.CAST:  # from the dtype that running values are kept in
        base = base.src[0]
    is_turned = base.op in (Op.SCAN, Op.CONCAT)
    while True:
        op, shape = value.op, shape_of(value.src[0]) if value.src else ()
        whole = target.src[0] if target.op is Op.RESHAPE else target
        if op is Op.RESHAPE and whole.op is Op.BUFFER:
            is_back = shape == shape_of(whole)
            target = whole if is_back else UOp(Op.RESHAPE, whole.dtype, (whole,), shape)
        elif op is Op.PERMUTE and is_turned:
            inverse = tuple(sorted(range(len(shape)), key=value.arg.__getitem__))
            target = UOp(Op.PERMUTE, target.dtype, (target,), inverse)
        elif op is Op.FLIP and is_turned:
            target = UOp(Op.FLIP, target.dtype, (target,), value.arg)
        else:
            return target, value
        value = value.src[0]


def _ints(node: UOp) -> tuple[int, ...]:
    return shape_of(node)  # type: ignore[return-value]  # extents are ints in user graphs


def _weight(node: UOp) -> int:
    """About how many nodes of a kernel's body one instance becomes."""
    return 1 + sum([1 if s.op is Op.CONST else 2 if s.op is Op.BUFFER else 0 for s in node.src])
