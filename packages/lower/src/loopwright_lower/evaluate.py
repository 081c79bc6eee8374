"""The value of a level-1 node at one index tuple, as a level-2 expression."""

from __future__ import annotations

from typing import TypeAlias

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.affine import affine
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.movement import ZERO, Index, reshape_index, source_index
from loopwright_core.ir.ops import ELEMENTWISE, MOVEMENT, Op
from loopwright_core.ir.shape import Shape, shape_of
from loopwright_core.ir.uop import FALSE, TRUE, Extent, UOp, Variable, const, extent_uop
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.naming import reduce_names

Key: TypeAlias = tuple[UOp, Index, UOp]

_LEAVES = frozenset({Op.CONST, Op.VAR})
_ALONE = frozenset({Op.CONST, Op.VAR, Op.BUFFER, Op.RESHAPE, Op.IOTA})


class Evaluator:
    """Values of level-1 nodes, each (node, index tuple, valid) once; its own stack, no recursion.

    `valid` is the condition under which anybody uses the value: loads carry it.
    """

    def __init__(self) -> None:
        self.values: dict[Key, UOp] = {}
        self.met: dict[UOp, list[Key]] = {}  # every key of a node, in order of first use
        self.users: dict[UOp, list[UOp]] = {}  # a node's consumers, through movement ops
        self.stored: list[UOp] = []
        self._plans: dict[Key, tuple[Key, ...]] = {}
        self._bound: dict[Key, tuple[UOp, ...]] = {}
        # PAD and GATHER: (index into the source, whether inside, that and `valid`)
        self._sources: dict[Key, tuple[Index, UOp, UOp]] = {}
        self._names = reduce_names()

    def value(self, node: UOp, index: Index) -> UOp:
        """The value of `node` at `index`."""
        if node.op in _LEAVES:
            return node
        root = _resolve(node, index, TRUE)
        self.stored.append(root[0])
        stack = [root]
        while stack:
            key = stack[-1]
            if key in self.values:
                stack.pop()
                continue
            missing = [k for k in self._needs(key) if k not in self.values]
            if missing:
                missing.reverse()
                stack.extend(missing)
                continue
            stack.pop()
            self.values[key] = self._build(key)
        return self.values[root]

    def met_at(self, node: UOp, index: Index) -> list[tuple[UOp, UOp]] | None:
        """Pairs (this index's dim, the bare output dim where the node was met before), or None."""
        if node.op in _LEAVES:
            return None
        core, wanted, _ = _resolve(node, index, TRUE)
        dims = [i for i in index if i.op is Op.DIM]
        for _, found, valid in self.met.get(core, ()):
            if valid is not TRUE or len(found) != len(wanted):
                continue
            pairs = [(a, b) for a, b in zip(wanted, found, strict=True) if a is not b]
            if (
                all(a.op is b.op is Op.DIM and a.arg.size == b.arg.size for a, b in pairs)
                and not any(b.arg.is_reduce for _, b in pairs)
                and {a for a, _ in pairs} == set(dims)
                and len({b for _, b in pairs}) == len(pairs) == len(dims)
            ):
                return pairs
        return None

    def _needs(self, key: Key) -> tuple[Key, ...]:
        """The keys whose values this one is built from. A gather's last one needs its first."""
        plan = self._plans.get(key)
        if plan is None:
            self.met.setdefault(key[0], []).append(key)
            plan = self._plan(key)
            self._plan_as(key, plan)
        if key[0].op is Op.GATHER and key not in self._sources:
            if any(k not in self.values for k in plan):
                return plan
            node, index, valid = key
            x, indices = node.src
            at, inside = self._wrapped(node, plan)
            both = integer.and_(valid, inside)
            axis, n = node.arg, len(shape_of(indices))
            source = (*index[:axis], at, *index[axis + n :])
            self._sources[key] = source, inside, both
            if both is not FALSE:
                plan = (*plan, *_keys((x,), source, both))
                self._plan_as(key, plan)
        return plan

    def _plan_as(self, key: Key, plan: tuple[Key, ...]) -> None:
        self._plans[key] = plan
        for node, _, _ in plan:
            users = self.users.setdefault(node, [])
            if not users or users[-1] is not key[0]:
                users.append(key[0])

    def _plan(self, key: Key) -> tuple[Key, ...]:
        node, index, valid = key
        op = node.op
        if op in ELEMENTWISE:
            return _keys(node.src, index, valid)
        if op in _ALONE:
            return ()
        if op is Op.PAD:
            source, inside = source_index(node, index)
            both = integer.and_(valid, inside)
            self._sources[key] = source, inside, both
            return () if both is FALSE else _keys(node.src[:1], source, both)
        if op is Op.GATHER:
            axis, n = node.arg, len(shape_of(node.src[1]))
            return _keys(node.src[1:], index[axis : axis + n], valid)
        if op is Op.REDUCE:
            return _keys(node.src, _with_dims(node, index, self._dims(key)), valid)
        if op is Op.SCAN:
            return _keys(node.src, index, valid)
        if op is Op.ITEM:
            inner = node.src[0]
            if inner.op is Op.REDUCE and not self._dims((inner, index, valid)):
                return _keys((inner.src[node.arg],), _with_dims(inner, index, ()), valid)
            return _keys(node.src, index, valid)
        fail(LoweringError, f"a kernel AST cannot hold {op.name}", fix="store its operand first")

    def _dims(self, key: Key) -> tuple[UOp, ...]:
        """The reduce dims one instance of a REDUCE binds; axes of size 1 have none."""
        found = self._bound.get(key)
        if found is None:
            shape = shape_of(key[0].src[0])
            sizes = [shape[a] for a in sorted(key[0].arg[1]) if shape[a] != 1]
            found = tuple([Dim(next(self._names), n, is_reduce=True).uop for n in sizes])
            self._bound[key] = found
        return found

    def _build(self, key: Key) -> UOp:
        node, index, valid = key
        op = node.op
        plan = self._plans[key]
        if op in ELEMENTWISE:
            return UOp(op, node.dtype, self._operands(node.src, plan), node.arg)
        if op in _LEAVES:
            return node
        if op is Op.BUFFER or op is Op.RESHAPE:
            return _load(node, index, valid)
        if op is Op.IOTA:
            return UOp(Op.CAST, node.dtype, (index[node.arg[1]],))
        if op is Op.PAD or op is Op.GATHER:
            _, inside, both = self._sources[key]
            fill = node.src[1] if op is Op.PAD else const(0, node.dtype)
            if both is FALSE:
                return fill
            x = node.src[0] if node.src[0].op in _LEAVES else self.values[plan[-1]]
            return _masked(inside, both, x, fill)
        if op is Op.ITEM and not plan:  # a constant of a tuple that reduces nothing
            constant: UOp = node.src[0].src[node.arg]
            return constant
        values = self._operands(node.src, plan)
        if op is Op.ITEM:
            if plan[0][0] is node.src[0]:
                return UOp(Op.ITEM, node.dtype, values, node.arg)
            return values[0]
        if op is Op.SCAN:
            return _scan(key, values)
        dims = self._dims(key)
        if len(values) == 1 and not dims:
            return _alone(node, values[0])
        return UOp(Op.REDUCE, node.dtype, (*values, *dims), node.arg[:1])

    def _operands(self, src: tuple[UOp, ...], plan: tuple[Key, ...]) -> tuple[UOp, ...]:
        keys = iter(plan)
        return tuple([s if s.op in _LEAVES else self.values[next(keys)] for s in src])

    def _wrapped(self, node: UOp, plan: tuple[Key, ...]) -> tuple[UOp, UOp]:
        """(index into the gathered axis, whether it lies inside); negative counts from the end."""
        (value,) = self._operands(node.src[1:], plan)
        extent = extent_uop(shape_of(node.src[0])[node.arg])
        at = _as_index(value)
        if node.src[1].dtype.is_signed:
            at = integer.where(integer.lt(at, ZERO), integer.add(at, extent), at)
        inside = integer.and_(integer.ge(at, ZERO), integer.lt(at, extent))
        return at, inside


def _keys(src: tuple[UOp, ...], index: Index, valid: UOp) -> tuple[Key, ...]:
    """The keys of several operands at one index tuple; constants need none."""
    return tuple(
        [_resolve(s, index if shape_of(s) else (), valid) for s in src if s.op not in _LEAVES]
    )


def _resolve(node: UOp, index: Index, valid: UOp) -> Key:
    """The key behind movement ops: the first node that computes, pads or loads."""
    while node.op in MOVEMENT:
        if node.op is Op.RESHAPE:
            base = _below_reshapes(node)
            if base.op is Op.BUFFER:
                return node, index, valid
            index = reshape_index(index, node.arg, shape_of(base))
            index, node = simplify_under(index, valid), base
            continue
        source, inside = source_index(node, index)
        if inside is not TRUE and integer.simplify(inside, (valid,)) is not TRUE:
            return node, index, valid
        node, index = node.src[0], source
    if node.op in _LEAVES:
        return node, (), TRUE
    return node, index, valid


def _below_reshapes(node: UOp) -> UOp:
    while node.op is Op.RESHAPE:
        node = node.src[0]
    return node


def view_of(node: UOp, index: Index) -> tuple[UOp | None, Index, Shape]:
    """(buffer, index, view shape) behind a view without padding; None where it is no view."""
    key_node, at, _ = _resolve(node, index, TRUE)
    buffer = _below_reshapes(key_node)
    if buffer.op is not Op.BUFFER:
        return None, at, ()
    return buffer, at, shape_of(key_node)


def simplify_under(index: Index, valid: UOp) -> Index:
    """The index values as they are where `valid` holds: quotients and remainders may vanish."""
    if valid is TRUE:
        return index
    return tuple([i if _is_plain(i) else integer.simplify(i, (valid,)) for i in index])


def _is_plain(index: UOp) -> bool:
    return all(atom.op is Op.DIM or atom.op is Op.VAR for atom, _ in affine(index).terms)


def _with_dims(node: UOp, index: Index, dims: tuple[UOp, ...]) -> Index:
    """The index into a REDUCE's operand: the result's with the bound dims put in."""
    shape = shape_of(node.src[0])
    axes = set(node.arg[1])
    rest, bound = iter(index), iter(dims)
    found = []
    for axis, n in enumerate(shape):
        if axis not in axes:
            found.append(next(rest))
        else:
            found.append(ZERO if n == 1 else next(bound))
    return tuple(found)


def _load(view: UOp, index: Index, valid: UOp) -> UOp:
    place = place_of(_below_reshapes(view), index, shape_of(view), valid)
    return UOp(Op.LOAD, place.dtype, (place, const(0, place.dtype)))


def place_of(buffer: UOp, index: Index, shape: Shape, valid: UOp) -> UOp:
    """The INDEX node of one element of a buffer seen under a shape; axes of size 1 left out."""
    kept = [axis for axis, n in enumerate(shape) if n != 1]
    at = simplify_under(tuple([index[axis] for axis in kept]), valid)
    view = tuple([shape[axis] for axis in kept])
    if not all(map(_is_plain, at)):
        at, view = _joined(at, view)
    return UOp(Op.INDEX, buffer.dtype, (buffer, *at, valid), view)


def _joined(index: Index, view: Shape) -> tuple[Index, Shape]:
    """Neighbouring view dimensions merged where that makes the index simpler.

    (i//8, i%8) in a view (8, 8) --> i in a view (64,)
    """
    at: list[UOp] = []
    sizes: list[Extent] = []
    for i, n in zip(index, view, strict=True):
        at.append(i)
        sizes.append(n)
        while len(at) > 1:
            m, last = sizes[-2], sizes[-1]
            if isinstance(m, Variable) or isinstance(last, Variable):
                break
            if _is_plain(at[-1]) or _is_plain(at[-2]):
                break
            one = integer.add(integer.mul(at[-2], last), at[-1])
            if _n_hidden(one) >= _n_hidden(at[-2]) + _n_hidden(at[-1]):
                break
            at[-2:], sizes[-2:] = [one], [m * last]
    return tuple(at), tuple(sizes)


def _n_hidden(index: UOp) -> int:
    """How many quotients, remainders and the like an index holds."""
    return sum(atom.op not in (Op.DIM, Op.VAR) for atom, _ in affine(index).terms)


def _masked(inside: UOp, both: UOp, value: UOp, fill: UOp) -> UOp:
    """where(inside, value, fill), value being used only where `both` holds.

    where(valid, load(valid), c) --> load with fill c
    """
    if inside is TRUE:
        return value
    if value.op is Op.LOAD and value.src[0].src[-1] is both:
        return UOp(Op.LOAD, value.dtype, (value.src[0], fill))
    if fill is const(0, fill.dtype):
        core = value
        while core.op is Op.CAST:
            core = core.src[0]
        if (
            core.op is Op.LOAD
            and core.src[0].src[-1] is both
            and core.src[1] is const(0, core.dtype)
        ):
            return value  # the load's own fill 0 is the fill after every cast
    return UOp(Op.WHERE, value.dtype, (inside, value, fill))


def _alone(node: UOp, value: UOp) -> UOp:
    """The REDUCE of one element: itself, but 0.0 for -0.0 in a sum, which starts from 0.0."""
    if node.arg[0] != "add" or not node.dtype.is_float:
        return value
    return UOp(Op.ADD, node.dtype, (value, const(0.0, node.dtype)))


def _scan(key: Key, values: tuple[UOp, ...]) -> UOp:
    """The SCAN at the dim its axis is walked by; one over a single element is that element."""
    node, index, _ = key
    combine, axis, exclusive, reverse = node.arg
    extent = shape_of(node)[axis]
    at = index[axis]
    if extent == 1 and len(values) == 1:
        return COMBINES[combine].identity((node.dtype,))[0] if exclusive else values[0]
    if at.op is not Op.DIM or at.arg.is_reduce or at.arg.size != extent:
        fail(
            LoweringError,
            f"a scan over axis {axis} is read at another place than its running element",
            fix="store the scan in a kernel of its own",
        )
    return UOp(Op.SCAN, node.dtype, (*values, at), (combine, exclusive, reverse))


def _as_index(value: UOp) -> UOp:
    """A value as an index; a cast of an index expression is that expression where it fits.

    It is in canonical form: the conditions made of it are about the index that is simplified later.
    """
    value = integer.simplify(value)
    if value.op is Op.CONST:
        return const(value.arg, dt.index)
    if value.op is Op.CAST and value.src[0].dtype is dt.index:
        lo, hi = integer.bounds(value.src[0])
        if value.dtype.is_int and value.dtype.min <= lo and hi <= value.dtype.max:
            return value.src[0]
    if value.dtype is dt.uint64:  # what no index holds must not come out negative
        value = UOp(Op.MIN, dt.uint64, (value, const(dt.int64.max, dt.uint64)))
    return UOp(Op.CAST, dt.index, (value,))
