"""What a kernel touches: one Access per INDEX node, derived once from the body."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from weakref import WeakKeyDictionary

from loopwright_core.ir.affine import Affine, affine, plus, scale
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Extent, UOp, Variable
from loopwright_core.kernel.kernel import Kernel, buffer_name


@dataclass(frozen=True)
class Access:
    """One place of the body that reads or writes a buffer.

    name: the buffer's (`B`); further index tuples of it are `B.1`, `B.2`, ... by first use.
    node: the level-2 INDEX. form: one affine form per dimension of the view `shape`.
    strides: elements that the flat offset moves per step of a dim, 0 left out; a stride that
        holds a Variable counts it at its largest.
    opaque: dims that the offset depends on in another way: in div/mod or a loaded index.
    valid: the conjuncts under which it touches memory.
    is_plain: every atom of `form` is a dim.
    """

    name: str
    buffer: UOp
    node: UOp
    dtype: DType
    shape: tuple[Extent, ...]
    form: tuple[Affine, ...]
    strides: dict[str, int]
    opaque: frozenset[str]
    valid: tuple[UOp, ...]
    is_store: bool

    @cached_property
    def is_plain(self) -> bool:
        return all(a.op is Op.DIM for f in self.form for a, _ in f.terms)

    @cached_property
    def is_window(self) -> bool:
        """Whether every condition is a bound of one index: `+-index + const < 0`."""
        for condition in self.valid:
            if condition.op is not Op.CMPLT:
                return False
            terms = plus(affine(condition.src[0]), affine(condition.src[1]), -1).terms
            if not any(terms in (f.terms, scale(f, -1).terms) for f in self.form):
                return False
        return True

    @cached_property
    def dims(self) -> frozenset[str]:
        """Every dim the offset depends on."""
        return self.opaque | self.strides.keys()

    @cached_property
    def valid_dims(self) -> frozenset[str]:
        """Every dim that whether it touches memory depends on."""
        return dims_below(self.valid)

    def stride(self, dim: str) -> int:
        """The flat offset's stride along a dim, 0 where it does not move."""
        return self.strides.get(dim, 0)


def accesses(kernel: Kernel) -> tuple[Access, ...]:
    """Every access of the kernel: loads in evaluation order, a store after its value.

    Derived once per body: kernels that differ in their schedule share the result.
    """
    found = _derived.get(kernel.body)
    if found is None:
        found = _derived[kernel.body] = _derive(kernel.body)
    return found


def access(kernel: Kernel, name: str) -> Access | None:
    """The access of that name, a store where a buffer is only stored to."""
    for a in accesses(kernel):
        if a.name == name:
            return a
    return None


def flat_strides(node: UOp) -> dict[str, int]:
    """Dim name -> stride in elements of an INDEX's flat offset, for dims it is affine in."""
    strides: dict[str, int] = {}
    for stride, at in zip(_steps(node.arg), node.src[1:-1], strict=True):
        for atom, k in affine(at).terms:
            if atom.op is Op.DIM:
                name = atom.arg.name
                strides[name] = strides.get(name, 0) + k * stride
    return {name: s for name, s in strides.items() if s}


def conjuncts(valid: UOp) -> tuple[UOp, ...]:
    """The conditions that a conjunction joins; none for constant true."""
    if valid is TRUE:
        return ()
    found: list[UOp] = []
    stack = [valid]
    while stack:
        u = stack.pop()
        if u.op is Op.AND:
            stack.extend(reversed(u.src))
        else:
            found.append(u)
    return tuple(dict.fromkeys(found))


def dims_below(nodes: tuple[UOp, ...]) -> frozenset[str]:
    """The names of the dims that index expressions depend on, loaded indices included."""
    if not nodes:
        return frozenset()
    seen: set[UOp] = set()
    found: set[str] = set()
    stack = list(nodes)
    while stack:
        u = stack.pop()
        if u in seen:
            continue
        seen.add(u)
        if u.op is Op.DIM:
            found.add(u.arg.name)
        else:
            stack.extend(u.src)
    return frozenset(found)


def _steps(shape: tuple[Extent, ...]) -> list[int]:
    sizes = [n.hi if isinstance(n, Variable) else n for n in shape]
    return [prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


def _derive(body: UOp) -> tuple[Access, ...]:
    nodes = body.toposort()
    written = {n.src[0] for n in nodes if n.op is Op.STORE}
    order: dict[UOp, bool] = {}
    for node in nodes:
        if node.op is Op.INDEX and node not in written:
            order[node] = False
        elif node.op is Op.STORE:
            order.setdefault(node.src[0], True)
    count: dict[UOp, int] = {}
    return tuple([_access(node, count, is_store) for node, is_store in order.items()])


def _access(node: UOp, count: dict[UOp, int], is_store: bool) -> Access:
    buffer = node.src[0]
    turn = count.get(buffer, 0)
    count[buffer] = turn + 1
    name = buffer_name(buffer.arg.slot)
    form = tuple([affine(at) for at in node.src[1:-1]])
    hidden = tuple([a for f in form for a, _ in f.terms if a.op is not Op.DIM])
    return Access(
        name=f"{name}.{turn}" if turn else name,
        buffer=buffer,
        node=node,
        dtype=buffer.dtype,
        shape=node.arg,
        form=form,
        strides=flat_strides(node),
        opaque=dims_below(hidden),
        valid=conjuncts(node.src[-1]),
        is_store=is_store,
    )


_derived: WeakKeyDictionary[UOp, tuple[Access, ...]] = WeakKeyDictionary()
