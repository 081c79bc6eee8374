"""Programs as C with vector extensions and no headers: one text for GCC, Clang and zig cc."""

from __future__ import annotations

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.target import Target
from loopwright_core.program.cexpr import ADD, BINARY, PRIMARY, UNARY, Expr, call, cast
from loopwright_core.program.program import Function, Phase, Program
from loopwright_render_clang.cpu import machine_flag
from loopwright_render_clang.helpers import INLINE
from loopwright_render_clang.masks import MaskPrinter, mask_widths
from loopwright_render_clang.tiles import Tiles
from loopwright_render_clang.types import C_TYPES, code

_FLAGS = "-fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv"
_MATH = {Op.SQRT: "sqrt", Op.TRUNC: "trunc", Op.RINT: "rint", Op.FMA: "fma"}
_ZEROS = ("0.0", "0.0f")


def render(program: Program, target: Target) -> str:
    """The program as C: same program and target, same bytes."""
    return ClangPrinter(program, target).text()


class ClangPrinter(MaskPrinter):
    """C for CPUs. A vector of truth values is a vector of 0 and -1, as wide as what it masks."""

    bool_memory = "unsigned char"

    def __init__(self, program: Program, target: Target) -> None:
        super().__init__(program, target)
        self.tile_macros: dict[str, str] = {}

    def prelude(self) -> list[str]:
        types, helpers = self.vectors.lines(), self.helpers.texts()
        tiles = list(self.tile_macros.values())
        flags = f"// cc -O2 {machine_flag(self.target.name)} {_FLAGS}"
        return [flags, *types, *([""] if types else []), *tiles, *helpers]

    def parameters(self, phase: Phase) -> list[str]:
        found = []
        for p in self.program.arrays:
            const = "" if p.is_output else "const "
            found.append(f"{const}{self.memory_type(p.dtype)} *restrict {self.params[p.slot]}")
        for v, name in self.variables.items():
            found.append(f"{variable_type(v.hi)} {name}")
        if self.thread:
            found.append(f"int {self.thread}")
        if self.scratch_name:
            found.append(f"void *restrict {self.scratch_name}")
        return found

    def called_signature(self, function: Function) -> str:
        parameters = [
            f"{self.type_name(d)} {name}"
            for d, name in zip(function.params, self.arguments, strict=True)
        ]
        result = self.type_name(function.dtype)
        return f"{INLINE} {result} {function.name}({', '.join(parameters)})"

    def begin(self, phase: Phase) -> None:
        self.masks = mask_widths(phase.uops, self.storages)
        self.tiles = Tiles(phase.uops, self.storages, self.tile_macros)
        if self.tiles.is_used:
            self.line("TILES_BEGIN();")

    def end(self, phase: Phase) -> None:
        if self.tiles.is_used:
            self.line("TILES_END();")

    def statement(self, node: UOp) -> list[str] | None:
        if not self.tiles.covers(node):
            return None
        address = row_bytes = ""
        if node.op in (Op.TILE_LOAD, Op.TILE_STORE):
            index, step = node.src[:2]
            address, row_bytes = self.address(index), str(step.arg * index.dtype.itemsize)
        return self.tiles.text(node, address, row_bytes)

    def local_array(self, node: UOp, name: str) -> str:
        return f"_Alignas(64) {self.memory_type(node.dtype)} {name}[{node.arg.size}];"

    def scratch_array(self, node: UOp, name: str, offset: int) -> str:
        kind = self.memory_type(node.dtype)
        base = f"(char *){self.scratch_name} + {offset}" if offset else self.scratch_name
        return f"{kind} *restrict {name} = ({kind} *){f'({base})' if offset else base};"

    def special(self, node: UOp) -> Expr:
        if node.arg[0] != "thread" or not self.thread:
            fail(LoweringError, f"a CPU has no id {node.arg[0]!r}", where=self.program.name)
        name = Expr(self.thread)
        return cast("long long", name) if node.dtype.bits == 64 else name

    def infinity(self, dtype: DType) -> Expr:
        return Expr("__builtin_inff()" if dtype.bits == 32 else "__builtin_inf()")

    def nan(self, dtype: DType) -> Expr:
        return Expr('__builtin_nanf("")' if dtype.bits == 32 else '__builtin_nan("")')

    def prefetch(self, address: str) -> str:
        return f"__builtin_prefetch({address});"

    def barrier(self, node: UOp) -> str:
        if node.op is not Op.FENCE:
            fail(LoweringError, "a CPU target has no barriers", where=self.program.name)
        is_x86 = self.target.arch == "x86_64"
        return "__builtin_ia32_sfence();" if is_x86 else "__sync_synchronize();"

    def math(self, node: UOp, *args: Expr) -> Expr:
        name = _MATH.get(node.op)
        if name is None or not node.dtype.is_float or node.dtype.bits < 32:
            fail(LoweringError, f"C has no {node.op.name} of {node.dtype}", where=self.program.name)
        return call(f"__builtin_{name}{'f' if node.dtype.bits == 32 else ''}", *args)

    def arith(self, op: Op, a: Expr, b: Expr, right: UOp) -> Expr:
        """As everywhere, but what GCC folds to the wrong zero goes through a function.

        Before 0.0 - (double)i it drops the 0.0 as i is never -0.0; that leaves -0.0 for i = 0.
        """
        if op in (Op.ADD, Op.SUB) and right.dtype.is_float and right.dtype.lanes == 1:
            kind = code(right.dtype)
            if a.text in _ZEROS and op is Op.SUB:
                return call(self.helpers.zero_minus(kind), b)
            for zero, x in ((a, b), (b, a)):
                if op is Op.ADD and zero.text in _ZEROS and x.text[0] == "-":
                    return call(self.helpers.plus_zero(kind), x)
        return super().arith(op, a, b, right)

    def bitcast(self, node: UOp, x: Expr) -> Expr:
        return call(self.helpers.bitcast(code(node.src[0].dtype), code(node.dtype)), x)

    # Vectors

    def vector(self, node: UOp) -> Expr:
        op, dtype = node.op, node.dtype
        if op is Op.LOAD:
            return self._vector_load(node)
        if dtype.is_bool and dtype.lanes > 1:
            return self._truth(node)
        self._operands(node)
        if op is Op.LANE:
            return self._lane(node)
        if op is Op.VECTORIZE:
            values = ", ".join([self.get(s).text for s in node.src])
            return Expr(f"({self.type_name(dtype)}){{{values}}}")
        if op in BINARY:
            a, b = self._pair(node)
            return self.arith(op, a, b, node.src[1])
        if op is Op.WHERE:
            return self._where(node)
        if op in (Op.CAST, Op.FTOI):
            return self._vector_cast(node)
        if op is Op.BITCAST:
            return self._vector_bitcast(node)
        if op is Op.CALL:
            return call(node.arg, *[self.whole(s) for s in node.src])
        if op is Op.NEG:
            x = self.whole(node.src[0])
            return Expr(f"-({x.text})" if x.text[0] == "-" else f"-{x.at(UNARY)}", UNARY)
        if op in _MATH and dtype.bits >= 32:
            name = self.helpers.math(_MATH[op], code(dtype), dtype.lanes, len(node.src))
            return call(name, *[self.whole(s) for s in node.src])
        fail(LoweringError, f"C has no {op.name} of {dtype}", where=self.program.name)

    def _lane(self, node: UOp) -> Expr:
        source = node.src[0]
        if source.dtype.is_bool:
            m = self.mask(source, self.mask_width(source))
            return Expr(f"{m.at(PRIMARY)}[{node.arg}] != 0", BINARY[Op.CMPNE][1])
        x = self.get(source)
        return x if x.is_splat else Expr(f"{x.at(PRIMARY)}[{node.arg}]")

    def _where(self, node: UOp) -> Expr:
        condition, a, b = node.src
        dtype = node.dtype
        one = self._spread(condition)
        if one is not None:
            return self._choose(one, self.whole(a), self.whole(b), dtype)
        if condition.op is Op.CMPLT and {a, b} == {*condition.src}:
            which = "min" if condition.src == (a, b) else "max"
            name = self.helpers.extreme(which, code(dtype), dtype.lanes)
            if name:
                return call(name, self.whole(a), self.whole(b))
        name = self.helpers.select(code(dtype), dtype.lanes)
        return call(name, self.mask(condition, dtype.bits), self.whole(a), self.whole(b))

    def _vector_cast(self, node: UOp) -> Expr:
        source, dtype = node.src[0], node.dtype
        if source.dtype.is_bool:
            m = self.mask(source, dtype.bits)
            one = Expr(f"-{m.at(UNARY)}", UNARY)
            if dtype.is_float:
                return self._convert(one, code(dtype), dtype.lanes)
            return one if dtype.is_signed else cast(self.type_name(dtype), one)
        x = self.whole(source)
        if code(source.dtype) == code(dtype):
            return x
        if not source.dtype.is_float and not dtype.is_float and source.dtype.bits == dtype.bits:
            return cast(self.type_name(dtype), x)
        return self._convert(x, code(dtype), dtype.lanes)

    def _vector_bitcast(self, node: UOp) -> Expr:
        source, dtype = node.src[0], node.dtype
        if source.dtype.is_bool:
            m = self.mask(source, 8)
            return cast(self.type_name(dtype), Expr(f"-{m.at(UNARY)}", UNARY))
        x = self.whole(source)
        return x if code(source.dtype) == code(dtype) else cast(self.type_name(dtype), x)

    def _choose(self, condition: Expr, a: Expr, b: Expr, dtype: DType) -> Expr:
        """`condition ? a : b` of vectors: GCC wants both of the very same type, and arithmetic on
        what is loaded in place has the type of unaligned memory."""
        kind = self.type_name(dtype)
        one, other = [x if x.level == PRIMARY else cast(kind, x) for x in (a, b)]
        return self.choose(condition, one, other)

    # Memory

    def _vector_load(self, node: UOp) -> Expr:
        index, dtype = node.src[0], node.dtype
        self._operands_of((*index.src[1:], *node.src[1:]))
        kind, lanes = code(dtype), dtype.lanes
        valid = index.src[2] if len(index.src) == 3 else None
        scalar = self._scalar_valid(index)
        is_gather = index.src[1].dtype.lanes > 1
        if valid is None or scalar is not None:
            x = self._gather(index, kind, lanes) if is_gather else self._contiguous(index, dtype)
            if scalar is not None:
                x = self._choose(scalar, x, self._fill(node), dtype)
        elif is_gather:
            name, _, _ = self.index(index)
            offset_code = code(index.src[1].dtype)
            helper = self.helpers.gather(kind, lanes, offset_code, masked=True)
            mask = self.mask(valid, dtype.bits)
            x = call(helper, Expr(name), self._offsets(index), mask, self._fill(node))
        else:
            n = _prefix(valid)
            where = Expr(self.address(index))
            if n is not None and not self.helpers.has_masked(kind, lanes):
                first = self.helpers.load_first(kind, lanes)
                x = call(first, where, Expr(str(n)), self._fill(node))
            else:
                mask = self.mask(valid, dtype.bits)
                x = call(self.helpers.load_if(kind, lanes), where, mask, self._fill(node))
        if dtype.is_bool:
            return Expr(f"{x.at(ADD)} != 0", BINARY[Op.CMPNE][1], 8)
        return x

    def _scalar_valid(self, index: UOp) -> Expr | None:
        if len(index.src) < 3:
            return None
        valid = index.src[2]
        if valid.dtype.lanes > 1:
            return self._spread(valid)
        return self.index_part(index, 2)

    def _contiguous(self, index: UOp, dtype: DType) -> Expr:
        kind = self.vectors.name(code(dtype), dtype.lanes, unaligned=True)
        address = self.address(index)
        target = address if address.isidentifier() else f"({address})"
        return Expr(f"*(const {kind} *){target}", UNARY)

    def _gather(self, index: UOp, kind: str, lanes: int) -> Expr:
        name = self.storage_name(self.storages.of(index.src[0]))
        strided = self._strided(index)
        if strided is not None:
            base, step = strided
            where = Expr(name if base.text == "0" else f"{name} + {base.at(ADD)}", ADD)
            return call(self.helpers.load_step(kind, lanes), where, Expr(str(step)))
        helper = self.helpers.gather(kind, lanes, code(index.src[1].dtype), masked=False)
        return call(helper, Expr(name), self._offsets(index))

    def _strided(self, index: UOp) -> tuple[Expr, int] | None:
        """(first offset, step) of offsets that are a scalar plus 0, s, 2 s, ..."""
        offset = index.src[1]
        base, steps = Expr("0"), offset
        if offset.op is Op.ADD:
            first, steps = offset.src
            if first.op is Op.VECTORIZE:
                first, steps = steps, first
            if first.op is not Op.BROADCAST:
                return None
            base = self.get(first.src[0])
            # Where the sum has a name of its own, its parts were read long ago.
            if self.exprs[offset].text.isidentifier() and not base.text.isalnum():
                return None
        if steps.op is not Op.VECTORIZE or any(s.op is not Op.CONST for s in steps.src):
            return None
        values = [s.arg for s in steps.src]
        step = values[1] - values[0]
        if any(v != step * k for k, v in enumerate(values)):
            return None
        return base, step

    def _offsets(self, index: UOp) -> Expr:
        expr = self.index_part(index, 1)
        return self.splat(index.src[1].dtype, expr) if expr.is_splat else expr

    def _fill(self, node: UOp) -> Expr:
        fill, dtype = node.src[1], node.dtype
        if not dtype.is_bool:
            return self.whole(fill)
        return cast(self.type_name(dtype), Expr(f"-{self.mask(fill, 8).at(UNARY)}", UNARY))

    def vector_store(self, node: UOp) -> list[str]:
        index, value = node.src
        dtype = value.dtype
        kind, lanes = code(dtype), dtype.lanes
        if dtype.is_bool:
            m = Expr(f"-{self.mask(value, 8).at(UNARY)}", UNARY)
            x = cast(self.type_name(dtype), m)
        else:
            x = self.whole(value)
        scalar = self._scalar_valid(index)
        valid = index.src[2] if len(index.src) == 3 and scalar is None else None
        name, _, _ = self.index(index)
        where = Expr(self.address(index)) if index.src[1].dtype.lanes == 1 else Expr(name)
        if index.src[1].dtype.lanes > 1:
            offset_code = code(index.src[1].dtype)
            helper = self.helpers.scatter(kind, lanes, offset_code, masked=valid is not None)
            mask = [self.mask(valid, dtype.bits)] if valid is not None else []
            text = call(helper, where, self._offsets(index), *mask, x).text
        elif valid is not None:
            n = _prefix(valid)
            if n is not None and not self.helpers.has_masked(kind, lanes):
                text = call(self.helpers.store_first(kind, lanes), where, Expr(str(n)), x).text
            else:
                mask_expr = self.mask(valid, dtype.bits)
                text = call(self.helpers.store_if(kind, lanes), where, mask_expr, x).text
        elif node.arg == "nt":
            text = call(self.helpers.stream(kind, lanes), where, x).text
        else:
            u = self.vectors.name(kind, lanes, unaligned=True)
            target = where.text if where.text.isidentifier() else f"({where.text})"
            text = f"*({u} *){target} = {x.text}"
        guard = f"if ({scalar.text}) " if scalar is not None else ""
        return [f"{guard}{text};"]


def memory_element(dtype: DType) -> str:
    """The C type of an array's elements."""
    return "unsigned char" if dtype.is_bool else C_TYPES[dtype.name]


def variable_type(hi: int) -> str:
    """The C type of a variable that is at most `hi`."""
    return "int" if hi < 2**31 else "long long"


def _prefix(valid: UOp) -> int | None:
    """n where the mask is true in exactly the first n lanes, for certain."""
    if valid.op is not Op.VECTORIZE or not all(s.op is Op.CONST for s in valid.src):
        return None
    flags = [bool(s.arg) for s in valid.src]
    n = sum(flags)
    return n if all(flags[:n]) else None
