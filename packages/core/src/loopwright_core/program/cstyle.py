"""The base of the C-family renderers: prints a Program's flat lists as readable text, in one pass.

A language subclasses `CPrinter`, names its types and literals, and adds its vector forms. One
printer prints one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.program.cexpr import (
    ADD,
    BINARY,
    LOGICAL,
    OR,
    PRIMARY,
    TERNARY,
    UNARY,
    Expr,
    binary,
    call,
    cast,
    wrap,
)
from loopwright_core.program.cinline import Plan, Storages, is_transparent
from loopwright_core.program.cliterals import decimal, is_finite, storage_bits
from loopwright_core.program.cnames import C_KEYWORDS, LIBRARY, Names, identifier
from loopwright_core.program.program import Phase, Program

# Operands of one expression are named rather than written in place beyond this many characters.
_LONG = 84
# What fits on any thread's stack, and into a first-level cache.
STACK_BYTES = 32 << 10
_ALIGN = 64
_WRAPS = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.CSHL})


def local_bytes(node: UOp) -> int:
    """Bytes of a DEFINE_LOCAL, rounded up to whole cache lines."""
    size: int = node.arg.size * node.dtype.itemsize
    return -(-size // _ALIGN) * _ALIGN


def scratch_offsets(phase: Phase) -> tuple[dict[UOp, int], int]:
    """Where each local that does not fit on the stack lies in the thread's scratch memory, and
    how many bytes of it the phase needs."""
    offsets: dict[UOp, int] = {}
    stack = scratch = 0
    for node in phase.uops:
        if node.op is not Op.DEFINE_LOCAL:
            continue
        size = local_bytes(node)
        if stack + size <= STACK_BYTES:
            stack += size
        else:
            offsets[node] = scratch
            scratch += size
    return offsets, scratch


def scratch_bytes(program: Program) -> int:
    """Bytes of scratch memory each thread of a launch needs, 64-byte aligned; 0: none."""
    return max((scratch_offsets(p)[1] for p in program.phases), default=0)


def function_names(program: Program, keywords: frozenset[str] = C_KEYWORDS) -> tuple[str, ...]:
    """The functions of a program's phases: `name`, `name_1`, ..."""
    base = identifier(program.name, keywords | LIBRARY)
    return tuple([base if k == 0 else f"{base}_{k}" for k in range(len(program.phases))])


class CPrinter:
    """Prints one program. Subclasses override the hooks below `text`."""

    keywords = C_KEYWORDS
    indent = "    "
    # DType name -> how the language writes it; `bool` is the value, memory has `bool_memory`.
    types: ClassVar[dict[str, str]] = {}
    bool_memory = "bool"

    def __init__(self, program: Program) -> None:
        self.program = program
        self.functions = function_names(program, self.keywords)

    def text(self) -> str:
        """The whole program: same program, same bytes."""
        bodies = [self._function(k, p) for k, p in enumerate(self.program.phases)]
        parts = [*self.prelude(), *bodies]
        return "\n".join(parts).rstrip("\n") + "\n"

    # What a language says

    def prelude(self) -> list[str]:
        """Everything before the functions; called after they are printed."""
        return []

    def parameters(self, phase: Phase) -> list[str]:
        """The declarations of the function's parameters, in order."""
        raise NotImplementedError

    def signature(self, name: str, phase: Phase) -> str:
        """The function's head, up to its parameters' closing parenthesis."""
        return f"void {name}({', '.join(self.parameters(phase)) or 'void'})"

    def type_name(self, dtype: DType) -> str:
        """A value's type."""
        return self.types[dtype.name]

    def memory_type(self, dtype: DType) -> str:
        """The type of an array's elements."""
        return self.bool_memory if dtype.is_bool else self.type_name(dtype.scalar)

    def local_array(self, node: UOp, name: str) -> str:
        """The declaration of a local array."""
        fail(LoweringError, f"this language has no local arrays: {name}", where=self.program.name)

    def scratch_array(self, node: UOp, name: str, offset: int) -> str:
        """The declaration of a local array that lies in the thread's scratch memory."""
        return self.local_array(node, name)

    def number(self, value: bool | int | float, dtype: DType) -> Expr:
        """A literal of a scalar dtype."""
        if dtype.is_bool:
            return Expr("1" if value else "0")
        if dtype.is_float:
            return self._float(float(value), dtype)
        value = int(value)
        suffix = self.int_suffix(dtype)
        if dtype.kind != "uint" and value == -(2 ** (dtype.bits - 1)) and dtype.bits >= 32:
            return Expr(f"-{-value - 1}{suffix} - 1", ADD)  # C has no negative literals
        return Expr(f"{value}{suffix}", UNARY if value < 0 else PRIMARY)

    def int_suffix(self, dtype: DType) -> str:
        """What follows an integer literal of that dtype."""
        unsigned = "u" if dtype.kind == "uint" and dtype.bits >= 32 else ""
        return unsigned + ("ll" if dtype.bits == 64 and dtype.kind != "index" else "")

    def float_suffix(self, dtype: DType) -> str:
        """What follows a floating-point literal of that dtype."""
        return "f" if dtype.bits == 32 else ""

    def infinity(self, dtype: DType) -> Expr:
        """Positive infinity."""
        raise NotImplementedError

    def nan(self, dtype: DType) -> Expr:
        """A quiet NaN."""
        raise NotImplementedError

    def math(self, node: UOp, *args: Expr) -> Expr:
        """SQRT, TRUNC, RINT, FMA and other functions a language has, of scalars."""
        fail(LoweringError, f"this language has no {node.op} of {node.dtype}")

    def bitcast(self, node: UOp, x: Expr) -> Expr:
        """BITCAST of a scalar between dtypes that the language represents differently."""
        fail(LoweringError, f"this language has no BITCAST to {node.dtype}")

    def special(self, node: UOp) -> Expr:
        """An id the launch supplies."""
        return Expr(str(node.arg[0]))

    def vector(self, node: UOp) -> Expr:
        """A value that is a vector or is made from one; not BROADCAST."""
        fail(LoweringError, f"this language has no {node.op} of vectors", where=self.program.name)

    def splat(self, dtype: DType, scalar: Expr) -> Expr:
        """A scalar in all lanes, as a vector of that dtype."""
        fail(LoweringError, "this language has no vectors", where=self.program.name)

    def vector_store(self, node: UOp) -> list[str]:
        """The statements of a STORE of a vector."""
        fail(LoweringError, "this language has no vectors", where=self.program.name)

    def prefetch(self, address: str) -> str:
        """A hint; nothing where the language has none."""
        return ""

    def barrier(self, node: UOp) -> str:
        """BARRIER or FENCE."""
        fail(LoweringError, f"this language has no {node.op}", where=self.program.name)

    def mask_type(self, node: UOp, value: Expr | None) -> str:
        """The type of a variable that holds a mask."""
        return self.type_name(node.dtype)

    # One function

    def _function(self, index: int, phase: Phase) -> str:
        self.names = Names(self.keywords | LIBRARY | frozenset(self.functions))
        self.names.push()
        self.storages = Storages()
        self.place: dict[UOp, str] = {}  # buffers, locals, registers, loop variables
        self.exprs: dict[UOp, Expr] = {}
        self.pinned: dict[tuple[UOp, UOp], Expr] = {}  # registers as an INDEX saw them
        self.params: dict[int, str] = {p.slot: self.names.take(p.name) for p in self.program.params}
        self.variables: dict[Variable, str] = {
            v: self.names.take(v.name) for v in self.program.variables
        }
        self.scratch, self.scratch_size = scratch_offsets(phase)
        self.thread = self.names.take("thread") if phase.threads > 1 else ""
        self.scratch_name = self.names.take("scratch") if self.scratch_size else ""
        self.uops: Sequence[UOp] = phase.uops
        self.plan = Plan(phase.uops, self.storages)
        self.depth = 1
        self.lines: list[str] = wrap(self.signature(self.functions[index], phase) + " {")
        self.begin(phase)
        for node in phase.uops:
            self._print(node)
        if self.depth != 1:
            fail(LoweringError, f"{self.program.name}: a loop or branch is not closed")
        return "\n".join([*self.lines, "}", ""])

    def begin(self, phase: Phase) -> None:
        """Called before the first statement of a function is printed."""

    def line(self, text: str) -> None:
        """Add a statement at the current depth."""
        self.lines += wrap(self.indent * self.depth + text)

    def _open(self, text: str) -> None:
        self.line(text)
        self.depth += 1
        self.names.push()

    def _print(self, node: UOp) -> None:
        op = node.op
        if op is Op.RANGE:
            extent = self._operands(node)[0].at(ADD)
            self.names.push()  # only the loop sees the name
            name = self.place[node] = self.names.take(node.arg.name)
            kind = self.type_name(node.dtype)
            self._open(f"for ({kind} {name} = 0; {name} < {extent}; {name}++) {{")
        elif op is Op.IF:
            condition = self._operands(node)[0]
            self.names.push()
            self._open(f"if ({condition.text}) {{")
        elif op is Op.END or op is Op.ENDIF:
            self.names.pop()
            self.names.pop()
            self.depth -= 1
            self.line("}")
        elif op is Op.STORE:
            self._store(node)
        elif op is Op.ASSIGN:
            self._assign(node)
        elif op is Op.DEFINE_REG:
            value = self.assigned(node, node.src[0])
            name = self.place[node] = self.names.take(node.arg.name)
            self.line(f"{self._variable_type(node, None)} {name} = {value.text};")
        elif op is Op.DEFINE_LOCAL:
            name = self.place[node] = self.names.take(node.arg.name)
            offset = self.scratch.get(node)
            if offset is None:
                self.line(self.local_array(node, name))
            else:
                self.line(self.scratch_array(node, name, offset))
        elif op is Op.PREFETCH:
            text = self.prefetch(self.address(node.src[0]))
            if text:
                self.line(text)
        elif op is Op.BARRIER or op is Op.FENCE:
            self.line(self.barrier(node))
        elif op is Op.INDEX:
            self._pin(node)
        elif op is not Op.AFTER and self.plan.uses.get(node, 0) and not is_transparent(node):
            expr = self._value(node)
            if node in self.plan.inlined:
                self.exprs[node] = expr
            else:
                self._name(node, expr)

    def _pin(self, node: UOp) -> None:
        """An INDEX is written later: a register it uses is read now."""
        for s in node.src[1:]:
            storage = self.storages.of(s)
            if storage.op is Op.DEFINE_REG and (node, s) not in self.pinned:
                name = self.names.number(self._prefix(s))
                self.line(f"const {self.type_name(s.dtype)} {name} = {self.place[storage]};")
                self.pinned[node, s] = Expr(name)

    def _name(self, node: UOp, expr: Expr) -> None:
        """Give a value a name of its own at this point."""
        name = self.names.number(self._prefix(node))
        if expr.is_splat:
            expr = self.splat(node.dtype, expr)
        self.line(f"const {self._variable_type(node, expr)} {name} = {expr.text};")
        self.exprs[node] = Expr(name, PRIMARY, expr.mask)

    def _variable_type(self, node: UOp, value: Expr | None) -> str:
        if node.dtype.is_bool and node.dtype.lanes > 1:
            return self.mask_type(node, value)
        return self.type_name(node.dtype)

    def _prefix(self, node: UOp) -> str:
        if node.op is Op.LOAD:
            storage = self.storages.of(node.src[0].src[0])
            name = self.storage_name(storage).lower()
            return name if len(name) <= 3 else "x"
        if node.dtype.is_bool:
            return "m"
        return "o" if node.dtype.is_int else "t"

    # Values

    def get(self, node: UOp) -> Expr:
        """A source as an expression; a splat stands for its scalar."""
        found = self.exprs.get(node)
        if found is not None:
            return found
        op = node.op
        if op is Op.CONST:
            return self.number(node.arg, node.dtype)
        if op is Op.VAR:
            return self.variable(node)
        if op is Op.SPECIAL:
            return self.special(node)
        if op is Op.BROADCAST:
            scalar = self.get(node.src[0])
            return Expr(scalar.text, scalar.level, 0, True)
        if op is Op.VECTORIZE:
            return self.vector(node)
        storage = self.storages.of(node)
        name = self.place.get(storage)
        if name is None:
            fail(
                LoweringError,
                f"{self.program.name}: {node} is used before it stands in the list",
            )
        return Expr(name, PRIMARY, self.register_mask(storage))

    def register_mask(self, storage: UOp) -> int:
        """Bits per lane of a register that holds a mask; 0 for other registers."""
        return 0

    def full(self, node: UOp) -> Expr:
        """A source as an expression of its own type: splats written out."""
        expr = self._operands_of((node,))[0]
        return self.splat(node.dtype, expr) if expr.is_splat else expr

    def variable(self, node: UOp) -> Expr:
        """A VAR: parameters are int where the bound allows."""
        expr = Expr(self.variables[node.arg])
        if node.dtype.kind != "index" and node.dtype.bits == 64 and node.arg.hi < 2**31:
            return cast(self.type_name(node.dtype), expr)
        return expr

    def storage_name(self, storage: UOp) -> str:
        """The name of a buffer or a local array."""
        return self.params[storage.arg.slot] if storage.op is Op.BUFFER else self.place[storage]

    def index(self, node: UOp) -> tuple[str, Expr, UOp]:
        """Of an INDEX: the array's name, the offset, the storage."""
        storage = self.storages.of(node.src[0])
        return self.storage_name(storage), self.index_part(node, 1), storage

    def index_part(self, node: UOp, k: int) -> Expr:
        """The offset (1) or the validity (2) of an INDEX."""
        return self.pinned.get((node, node.src[k])) or self.get(node.src[k])

    def address(self, node: UOp) -> str:
        """Of an INDEX: `array + offset`."""
        name, offset, _ = self.index(node)
        return name if offset.text == "0" else f"{name} + {offset.at(ADD)}"

    def _operands(self, node: UOp) -> list[Expr]:
        return self._operands_of(node.src)

    def _operands_of(self, src: Sequence[UOp]) -> list[Expr]:
        """The sources; the longest of those written in place get names while all is too long."""
        found = [self.get(s) for s in src]
        while sum([len(e.text) for e in found]) > _LONG:
            long = [s for s in src if s in self.plan.inlined and len(self.get(s).text) > 24]
            if not long:
                break
            longest = max(long, key=lambda s: len(self.get(s).text))
            self._name(longest, self.exprs[longest])
            found = [self.get(s) for s in src]
        return found

    def _value(self, node: UOp) -> Expr:
        op = node.op
        if op is Op.BROADCAST:
            scalar = self._operands(node)[0]
            return Expr(scalar.text, scalar.level, 0, True)
        if node.dtype.lanes > 1 or (node.src and node.src[0].dtype.lanes > 1):
            return self.vector(node)
        if op is Op.LOAD:
            return self._load(node)
        src = self._operands(node)
        if op in BINARY:
            return self._arith(node, src)
        if op is Op.WHERE:
            return self.choose(src[0], src[1], src[2])
        if op is Op.CAST:
            return self._cast(node, src[0])
        if op is Op.FTOI:
            return cast(self.type_name(node.dtype), src[0])
        if op is Op.BITCAST:
            if self.memory_type(node.dtype) == self.memory_type(node.src[0].dtype):
                return src[0]
            if not node.dtype.is_float and not node.src[0].dtype.is_float:
                return cast(self.memory_type(node.dtype), src[0])
            return self.bitcast(node, src[0])
        if op is Op.NEG:
            text = f"-{src[0].at(UNARY)}"
            if src[0].text.startswith("-"):
                text = f"-({src[0].text})"
            return self._wrapped(node, Expr(text, UNARY))
        return self.math(node, *src)

    def choose(self, condition: Expr, a: Expr, b: Expr) -> Expr:
        """`condition ? a : b`."""
        return Expr(f"{condition.at(OR)} ? {a.at(OR)} : {b.at(TERNARY)}", TERNARY)

    def _load(self, node: UOp) -> Expr:
        self._operands_of(node.src[0].src[1:])
        name, offset, _ = self.index(node.src[0])
        value = Expr(f"{name}[{offset.text}]")
        if len(node.src) == 1:
            return value
        return self.choose(self.index_part(node.src[0], 2), value, self.get(node.src[1]))

    def _arith(self, node: UOp, src: Sequence[Expr]) -> Expr:
        a, b = src
        op, dtype = node.op, node.src[0].dtype
        if dtype.is_bool:
            right = node.src[1]
            if op in (Op.XOR, Op.CMPNE) and right.op is Op.CONST and right.arg is True:
                return Expr(f"!{a.at(UNARY)}", UNARY)
            return binary(LOGICAL[op], a, b)
        if op is Op.MUL and dtype.kind == "uint" and dtype.bits == 16:
            a = cast("unsigned", a)  # 65535 * 65535 overflows int
        return self._wrapped(node, self.arith(op, a, b, node.src[1]))

    def arith(self, op: Op, a: Expr, b: Expr, right: UOp) -> Expr:
        """`a op b`; adding a negative constant is written as subtracting."""
        if op is Op.ADD and right.op is Op.BROADCAST:
            right = right.src[0]
        if op is Op.ADD and right.op is Op.CONST and b.level == UNARY and b.text[0] == "-":
            return binary(BINARY[Op.SUB], a, Expr(b.text[1:]))
        return binary(BINARY[op], a, b)

    def _wrapped(self, node: UOp, expr: Expr) -> Expr:
        """C computes narrow integers as int: back to their own width."""
        dtype = node.dtype
        if dtype.is_int and dtype.bits < 32 and node.op in _WRAPS:
            return cast(self.type_name(dtype), expr)
        return expr

    def _cast(self, node: UOp, x: Expr) -> Expr:
        source, dtype = node.src[0].dtype, node.dtype
        if source is dtype:
            return x
        if dtype.is_bool:
            return binary(BINARY[Op.CMPNE], x, Expr("0"))
        return cast(self.type_name(dtype), x)

    def _float(self, value: float, dtype: DType) -> Expr:
        if dtype.bits < 32:
            return Expr(str(storage_bits(value, dtype)))
        if value != value:
            return self.nan(dtype)
        if not is_finite(value, dtype):
            inf = self.infinity(dtype)
            return inf if value > 0 else Expr(f"-{inf.text}", UNARY)
        text = decimal(value, dtype) + self.float_suffix(dtype)
        return Expr(text, UNARY if text[0] == "-" else PRIMARY)

    # Statements

    def _store(self, node: UOp) -> None:
        index, value = node.src
        self._operands_of((*index.src[1:], value))
        if value.dtype.lanes > 1:
            for text in self.vector_store(node):
                self.line(text)
            return
        name, offset, _ = self.index(index)
        text = f"{name}[{offset.text}] = {self.get(value).text};"
        if len(index.src) == 3:
            text = f"if ({self.index_part(index, 2).text}) {text}"
        self.line(text)

    def _assign(self, node: UOp) -> None:
        storage = self.storages.of(node)
        name = self.place[storage]
        value = node.src[1]
        if value.op in (Op.ADD, Op.SUB, Op.MUL, Op.DIV) and value in self.plan.inlined:
            short = self._compound(name, storage, value)
            if short:
                self.line(short)
                return
        self.line(f"{name} = {self.assigned(storage, value).text};")

    def assigned(self, storage: UOp, value: UOp) -> Expr:
        """What a DEFINE_REG or an ASSIGN gives its register."""
        return self.full(value)

    def _compound(self, name: str, storage: UOp, value: UOp) -> str:
        """`name += x` where the value is the register plus x, else nothing."""
        dtype = value.dtype
        if dtype.is_bool or (dtype.is_int and dtype.bits < 32) or value not in self.exprs:
            return ""
        text = self.exprs[value].text
        symbol = BINARY[value.op][0]
        if text.startswith(f"{name} {symbol} ") and self.storages.of(value.src[0]) is storage:
            rest = text[len(name) + 3 :]
            other = value.src[1]
            other_expr = self.exprs.get(other)
            is_whole = other_expr is None or other_expr.level >= UNARY
            if is_whole or value.op in (Op.ADD, Op.SUB):
                return f"{name} {symbol}= {self._bare(rest, other_expr)};"
        end = f" {symbol} {name}"
        if (
            value.op in (Op.ADD, Op.MUL)
            and text.endswith(end)
            and self.storages.of(value.src[1]) is storage
            and self.storages.of(value.src[0]) is not storage
        ):
            return f"{name} {symbol}= {text[: -len(end)]};"
        return ""

    @staticmethod
    def _bare(rest: str, other: Expr | None) -> str:
        """The right side without the parentheses that only the shortened operator needed."""
        return other.text if other is not None and rest == f"({other.text})" else rest


__all__ = ["CPrinter", "Expr", "call", "function_names", "scratch_bytes"]
