"""Vectors of truth values in C: 0 and -1 in lanes whose width avoids conversions."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.target import Target
from loopwright_core.program.cexpr import BINARY, PRIMARY, UNARY, Expr, binary, call, cast
from loopwright_core.program.cinline import Storages
from loopwright_core.program.cstyle import CPrinter
from loopwright_core.program.program import Program
from loopwright_render_clang.helpers import Helpers
from loopwright_render_clang.types import C_TYPES, VectorTypes, code

_ZERO = frozenset({"0", "0.0", "0.0f"})

# Operators on truth values as bit operations; CMPLT and CMPEQ have more to them.
BOOLEAN: dict[Op, Op] = {
    Op.AND: Op.AND,
    Op.MUL: Op.AND,
    Op.CMPLT: Op.AND,
    Op.OR: Op.OR,
    Op.ADD: Op.OR,
    Op.XOR: Op.XOR,
    Op.CMPNE: Op.XOR,
    Op.CMPEQ: Op.XOR,
}


def mask_widths(uops: Sequence[UOp], storages: Storages) -> dict[UOp, int]:
    """Bits per lane of each vector of truth values and each register of them.

    A comparison gives lanes as wide as its operands; what takes any width is absent.
    """
    found: dict[UOp, int] = {}

    def width(node: UOp) -> int:
        return found.get(storages.of(node), 0)

    for node in uops:
        if node.op is Op.ASSIGN:
            register = storages.of(node)
            if register.dtype.is_bool and not found.get(register):
                found[register] = width(node.src[1])
            continue
        if not node.dtype.is_bool or node.dtype.lanes == 1:
            continue
        if node.op is Op.LOAD:
            found[node] = 8
        elif node.op is Op.VECTORIZE:
            found[node] = 32
        elif node.op in COMPARE and not node.src[0].dtype.is_bool:
            found[node] = node.src[0].dtype.bits
        elif node.op in (Op.CAST, Op.BITCAST):
            source = node.src[0]
            found[node] = width(source) if source.dtype.is_bool else source.dtype.bits
        elif node.op is Op.WHERE or node.op in BOOLEAN:
            found[node] = max([width(s) for s in node.src])
    return {node: bits for node, bits in found.items() if bits}


class MaskPrinter(CPrinter):
    """Vectors, and truth values in them: 0 and -1 in lanes as wide as what they mask."""

    types = C_TYPES
    masks: dict[UOp, int]  # of the function being printed

    def __init__(self, program: Program, target: Target) -> None:
        super().__init__(program)
        self.vectors = VectorTypes()
        self.helpers = Helpers(target, self.vectors)
        self.target = target

    def type_name(self, dtype: DType) -> str:
        if dtype.lanes > 1:
            return self.vectors.name(code(dtype), dtype.lanes)
        return C_TYPES[dtype.name]

    def splat(self, dtype: DType, scalar: Expr) -> Expr:
        if dtype.is_bool:
            return self._mask_splat(scalar, 32, dtype.lanes)
        if scalar.text in _ZERO:
            return Expr(f"({self.type_name(dtype)}){{0}}")
        return call(self.helpers.splat(code(dtype), dtype.lanes), Expr(scalar.text))

    def whole(self, node: UOp) -> Expr:
        """A vector source written as a vector."""
        expr = self.get(node)
        return self.splat(node.dtype, expr) if expr.is_splat else expr

    def _pair(self, node: UOp) -> tuple[Expr, Expr]:
        """Both operands of a binary operator; one may stay a scalar, which C spreads."""
        a, b = self.get(node.src[0]), self.get(node.src[1])
        dtype = node.src[0].dtype
        # Narrow integer expressions have type int in C, which it does not spread.
        if a.is_splat and (b.is_splat or (dtype.bits < 32 and a.level != PRIMARY)):
            a = self.splat(dtype, a)
        if b.is_splat and dtype.bits < 32 and b.level != PRIMARY:
            b = self.splat(dtype, b)
        return a, b

    def _convert(self, x: Expr, to: str, lanes: int) -> Expr:
        return Expr(f"__builtin_convertvector({x.text}, {self.vectors.name(to, lanes)})")

    def mask_width(self, node: UOp) -> int:
        """Bits per lane that this vector of truth values has by itself."""
        return self.masks.get(self.storages.of(node)) or 32

    def register_mask(self, storage: UOp) -> int:
        is_mask = storage.dtype.is_bool and storage.dtype.lanes > 1
        return self.mask_width(storage) if is_mask else 0

    def mask_type(self, node: UOp, value: Expr | None) -> str:
        width = value.mask if value is not None else self.mask_width(node)
        return self.vectors.name(f"i{width}", node.dtype.lanes)

    def assigned(self, storage: UOp, value: UOp) -> Expr:
        if storage.dtype.is_bool and storage.dtype.lanes > 1:
            return self.mask(value, self.mask_width(storage))
        return self.full(value)

    def mask(self, node: UOp, width: int) -> Expr:
        """A vector of truth values as 0 / -1 in lanes of that many bits."""
        lanes = node.dtype.lanes
        one = self._spread(node)
        if one is not None:
            return self._mask_splat(one, width, lanes)
        if node.op is Op.VECTORIZE and node not in self.exprs:
            return self._mask_lanes(node, width)
        expr = self.get(node)
        if expr.mask == width:
            return expr
        converted = self._convert(expr, f"i{width}", lanes)
        return Expr(converted.text, PRIMARY, width)

    def _spread(self, node: UOp) -> Expr | None:
        """The truth value that stands in all lanes, unless that vector has a name."""
        if node.op is not Op.BROADCAST:
            return None
        found = self.exprs.get(node)
        if found is None:
            return self.get(node.src[0])
        return found if found.is_splat else None

    def _mask_splat(self, scalar: Expr, width: int, lanes: int) -> Expr:
        name = self.vectors.name(f"i{width}", lanes)
        if scalar.text == "0":
            return Expr(f"({name}){{0}}", PRIMARY, width)
        if scalar.text == "1":
            return Expr(f"~({name}){{0}}", UNARY, width)
        helper = self.helpers.splat(f"i{width}", lanes)
        return Expr(f"{helper}(-{scalar.at(UNARY)})", PRIMARY, width)

    def _mask_lanes(self, node: UOp, width: int) -> Expr:
        name = self.vectors.name(f"i{width}", node.dtype.lanes)
        values = []
        for s in node.src:
            e = self.get(s)
            values.append({"0": "0", "1": "-1"}.get(e.text, f"-{e.at(UNARY)}"))
        return Expr(f"({name}){{{', '.join(values)}}}", PRIMARY, width)

    def _truth(self, node: UOp) -> Expr:
        """A vector of truth values that is computed."""
        op, src = node.op, node.src
        if op is Op.VECTORIZE:
            return self._mask_lanes(node, self.mask_width(node))
        self._operands(node)
        if op is Op.CAST or op is Op.BITCAST:
            if src[0].dtype.is_bool:
                return self.mask(src[0], self.mask_width(src[0]))
            x = binary(BINARY[Op.CMPNE], self.whole(src[0]), Expr("0"))
            return Expr(x.text, x.level, src[0].dtype.bits)
        if op in COMPARE and not src[0].dtype.is_bool:
            x = binary(BINARY[op], *self._pair(node))
            return Expr(x.text, x.level, src[0].dtype.bits)
        width = self.mask_width(node)
        if op is Op.WHERE:
            a, b = self.mask(src[1], width), self.mask(src[2], width)
            one = self._spread(src[0])
            if one is not None:
                kind = self.vectors.name(f"i{width}", node.dtype.lanes)
                x = self.choose(one, cast(kind, a), cast(kind, b))
            else:
                helper = self.helpers.select(f"i{width}", node.dtype.lanes)
                x = call(helper, self.mask(src[0], width), a, b)
            return Expr(x.text, x.level, width)
        if op not in BOOLEAN:
            fail(LoweringError, f"C has no {op.name} of {node.dtype}", where=self.program.name)
        a, b = self.mask(src[0], width), self.mask(src[1], width)
        flips = src[1].op is Op.BROADCAST and src[1].src[0].arg is True
        if op in (Op.XOR, Op.CMPNE) and flips:
            return Expr(f"~{a.at(UNARY)}", UNARY, width)
        x = binary(BINARY[BOOLEAN[op]], Expr(f"~{a.at(UNARY)}", UNARY) if op is Op.CMPLT else a, b)
        if op is Op.CMPEQ:
            x = Expr(f"~({x.text})", UNARY)
        return Expr(x.text, x.level, width)
