"""Index expressions in the program: dims become loop variables, index becomes int32 or int64."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const, toposort
from loopwright_lower.build import Builder
from loopwright_lower.dims import DimState, lane_leaf

Offsets = dict[str, int]  # dim -> offset among its expanded positions


class Place(NamedTuple):
    """`base + stride * lane` (stride 0: every lane the same), or a vector of offsets."""

    base: UOp
    stride: int | None


class Indices:
    """Evaluates index expressions over the dims' present positions."""

    def __init__(
        self, builder: Builder, dims: dict[str, DimState], free: Callable[[UOp], tuple[str, ...]]
    ) -> None:
        self.builder, self.dims, self.free = builder, dims, free
        # (reduce or scan, its item, offsets, vector) -> its value here; set by who computes values
        self.result: Callable[[UOp, int, Offsets, str | None], UOp]
        self.loops: dict[UOp, UOp] = {}  # index-typed loop variable -> the program's
        self._affine: dict[UOp, integer.Affine] = {}
        self._bases: dict[tuple[UOp, tuple[object, ...]], UOp] = {}
        self._lowered: dict[UOp, UOp] = {}

    def bindings(self, names: tuple[str, ...]) -> tuple[object, ...]:
        """What tells one set of open loops from another, for these dims."""
        return tuple([self.dims[n].place for n in names])

    def at(self, expr: UOp, offsets: Offsets, values: dict[UOp, UOp], vector: str | None) -> Place:
        """An index expression at a coordinate; `vector` names the dim whose lanes it may walk.

        `values`: emitted values by level-2 node, for casts of loaded indices.
        """
        affine = self._affine.get(expr)
        if affine is None:
            affine = self._affine[expr] = integer.affine(expr)
        if all(atom.op is Op.DIM for atom, _ in affine.terms):
            names = tuple([atom.arg.name for atom, _ in affine.terms])
            key = (expr, self.bindings(names))
            base = self._bases.get(key)
            if base is None:
                base = integer.add(0, affine.const)
                for (_, coef), name in zip(affine.terms, names, strict=True):
                    term = integer.mul(self.dims[name].position(0, False), coef)
                    base = integer.add(base, term)
                self._bases[key] = base
            shift, stride = 0, 0
            for (_, coef), name in zip(affine.terms, names, strict=True):
                dim = self.dims[name]
                sign = -coef if dim.is_reversed else coef
                shift += sign * offsets.get(name, 0)
                if name == vector and dim.vector is not None:
                    stride = sign * dim.vector.stride
            return Place(integer.add(base, shift), stride)
        return self._general(self.substitute(expr, offsets, values, vector), vector)

    def substitute(
        self, expr: UOp, offsets: Offsets, values: dict[UOp, UOp], vector: str | None
    ) -> UOp:
        """The expression over loop variables, the lane number and emitted values."""
        mapping: dict[UOp, UOp] = {}
        for node in toposort((expr,), lambda n: not _is_value_cast(n)):
            if node.op is Op.DIM:
                name = node.arg.name
                mapping[node] = self.dims[name].position(offsets.get(name, 0), name == vector)
            elif _is_value_cast(node):
                value = self._value(node.src[0], offsets, values, vector)
                mapping[node] = UOp(Op.CAST, dt.index, (value,))
        return integer.substitute(expr, mapping)

    def _value(
        self, node: UOp, offsets: Offsets, values: dict[UOp, UOp], vector: str | None
    ) -> UOp:
        """The value that index arithmetic reads, emitted."""
        if node.op is Op.CONST:
            return node
        if node.op in (Op.REDUCE, Op.SCAN) and node not in values:
            return self.result(node, 0, offsets, vector if vector in self.free(node) else None)
        return values[node]

    def _general(self, expr: UOp, vector: str | None) -> Place:
        lanes = self.dims[vector].lanes if vector else 1
        affine = integer.affine(expr)
        leaf = lane_leaf(lanes)
        stride, rest = 0, []
        for atom, coef in affine.terms:
            if atom is leaf:
                stride = coef
            elif _has_lanes(atom, leaf):
                return Place(expr, None)
            else:
                rest.append((atom, coef))
        if not stride:
            return Place(expr, 0)
        base = integer.from_affine(integer.Affine(tuple(rest), affine.const), dt.index)
        return Place(base, stride)

    def condition(
        self, expr: UOp, offsets: Offsets, values: dict[UOp, UOp], vector: str | None
    ) -> UOp:
        """A bool index expression, emitted: a scalar, or a mask where lanes differ."""
        return self.emit(self.substitute(expr, offsets, values, vector))

    def emit(self, expr: UOp) -> UOp:
        """An index expression over loop variables as program values (vectors where lanes are)."""
        found = self._lowered.get(expr)
        if found is not None and (found in self.builder.depth_of or found.op in _ALWAYS):
            return found
        done: dict[UOp, UOp] = {}
        for node in toposort((expr,), lambda n: not _is_value_cast(n)):
            known = self._lowered.get(node)
            if known is None or not (known in self.builder.depth_of or known.op in _ALWAYS):
                known = self._emit_node(node, done)
                self._lowered[node] = known
            done[node] = known
        return done[expr]

    def _emit_node(self, node: UOp, done: dict[UOp, UOp]) -> UOp:
        op, b, int_dtype = node.op, self.builder, self.builder.int_dtype
        src = [done[s] for s in node.src] if not _is_value_cast(node) else []
        if op is Op.CONST:
            return node if node.dtype.is_bool else const(node.arg, int_dtype)
        if op is Op.RANGE:
            return self.loops[node]
        if op is Op.VAR:
            return UOp(Op.VAR, int_dtype, (), node.arg)
        if op is Op.SPECIAL:
            name, n = node.arg
            if name == "lane":
                numbers = tuple(const(i, int_dtype) for i in range(n))
                return b.place(UOp(Op.VECTORIZE, int_dtype.vec(n), numbers))
            return UOp(Op.SPECIAL, int_dtype, (), node.arg)
        if op is Op.CAST:
            value = node.src[0]
            if value.dtype.kind == "bool" and not _is_value_cast(node):
                value = src[0]
            return b.alu(Op.CAST, int_dtype, value)
        if op in (Op.FLOORDIV, Op.MOD):
            return self._divide(node, src)
        if op in (Op.MAX, Op.MIN):
            less = b.alu(Op.CMPLT, dt.bool_, src[0], src[1])
            pair = (src[1], src[0]) if op is Op.MAX else (src[0], src[1])
            return b.alu(Op.WHERE, int_dtype, less, *pair)
        if op in _SAME:
            dtype = dt.bool_ if node.dtype.is_bool else int_dtype
            return b.alu(op, dtype, *src)
        raise LoweringError(f"index arithmetic does not know {op.name}: a bug, report it")

    def _divide(self, node: UOp, src: list[UOp]) -> UOp:
        """Division that rounds down, from one that rounds to zero."""
        b, int_dtype = self.builder, self.builder.int_dtype
        x, m = src
        lo, _ = integer.bounds(node.src[0])
        divisor, _ = integer.bounds(node.src[1])
        is_div = node.op is Op.FLOORDIV
        if divisor <= 0:
            raise LoweringError("an index is divided by something that may not be positive")
        if lo >= 0:
            return b.alu(Op.CDIV if is_div else Op.CMOD, int_dtype, x, m)
        remainder = b.alu(Op.CMOD, int_dtype, x, m)
        negative = b.alu(Op.CMPLT, dt.bool_, remainder, const(0, int_dtype))
        if is_div:
            quotient = b.alu(Op.CDIV, int_dtype, x, m)
            lower = b.alu(Op.SUB, int_dtype, quotient, const(1, int_dtype))
            return b.alu(Op.WHERE, int_dtype, negative, lower, quotient)
        raised = b.alu(Op.ADD, int_dtype, remainder, m)
        return b.alu(Op.WHERE, int_dtype, negative, raised, remainder)


_ALWAYS = frozenset({Op.CONST, Op.VAR, Op.SPECIAL})
_SAME = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.WHERE, Op.AND, Op.OR, Op.XOR}
    | {Op.CMPLT, Op.CMPEQ, Op.CMPNE}
)


def _is_value_cast(node: UOp) -> bool:
    """CAST(value -> index): where index arithmetic reads a computed or loaded value."""
    return node.op is Op.CAST and node.dtype.kind == "index" and node.src[0].dtype.kind != "bool"


def _has_lanes(expr: UOp, leaf: UOp) -> bool:
    for node in toposort((expr,)):
        if node is leaf or (_is_value_cast(node) and node.src[0].dtype.lanes > 1):
            return True
    return False


def int_dtype_for(nodes: list[UOp], dims: dict[str, DimState], ids: int = 1) -> DType:
    """int32 where every loop, offset, array and number of `ids` stays below 2**31, else int64."""
    limit = 2**31 - 1
    if ids > limit:
        return dt.int64
    for state in dims.values():
        covered = state.dim.max_size
        for a in state.axes:
            covered = max(covered, a.stride * (a.size if isinstance(a.size, int) else 1))
        if covered + state.block > limit:
            return dt.int64
    for node in nodes:
        if node.op is Op.BUFFER:
            size = 1
            for n in node.arg.shape:
                size *= n if isinstance(n, int) else n.hi
            if size > limit:
                return dt.int64
        elif node.dtype.kind == "index":
            lo, hi = integer.bounds(node)
            if lo < -limit or hi > limit:
                return dt.int64
    return dt.int32
