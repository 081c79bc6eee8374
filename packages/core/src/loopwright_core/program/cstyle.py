"""The base of the C-family renderers: prints a Program's flat lists as readable text, in one pass.

A language subclasses `CPrinter`, names its types and literals, and adds its vector forms. One
printer prints one program.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.program.cexpr import (
    ADD,
    BINARY,
    LOGICAL,
    MUL,
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
from loopwright_core.program.clanguage import CLanguage
from loopwright_core.program.clayout import function_names, scratch_bytes, scratch_offsets
from loopwright_core.program.cnames import LIBRARY, Names
from loopwright_core.program.program import Function, Phase, Program

# Operands of one expression are named rather than written in place beyond this many characters.
_LONG = 84
_WRAPS = frozenset({Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.CSHL})


class CPrinter(CLanguage):
    """Prints one program."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.functions = function_names(program, self.keywords)
        self.lines: list[str] = []

    def text(self) -> str:
        """The whole program: same program, same bytes."""
        called = [self._called(f) for f in self.program.functions]
        bodies = [self._function(k, p) for k, p in enumerate(self.program.phases)]
        parts = [*self.prelude(), *called, *bodies]
        return "\n".join(parts).rstrip("\n") + "\n"

    # One function

    def _called(self, function: Function) -> str:
        """A function of values, printed before the phases that call it."""
        phase = Phase(function.name, function.uops)
        self._start(phase)
        self.arguments = [self.names.take("xyzw"[n]) for n in range(len(function.params))]
        self.lines = wrap(self.called_signature(function) + " {")
        return self._finish(phase)

    def _start(self, phase: Phase) -> None:
        taken = {f.name for f in self.program.functions} | set(self.functions)
        self.names = Names(self.keywords | LIBRARY | frozenset(taken))
        self.names.push()
        self.storages = Storages()
        self.place: dict[UOp, str] = {}  # buffers, locals, registers, loop variables
        self.exprs: dict[UOp, Expr] = {}
        self.pinned: dict[tuple[UOp, UOp], Expr] = {}  # registers as an INDEX saw them
        self.uops: Sequence[UOp] = phase.uops
        self.plan = Plan(phase.uops, self.storages)
        self.depth = 1

    def _function(self, index: int, phase: Phase) -> str:
        self._start(phase)
        self.params: dict[int, str] = {p.slot: self.names.take(p.name) for p in self.program.arrays}
        self.variables: dict[Variable, str] = {
            v: self.names.take(v.name) for v in self.program.variables
        }
        self.scratch, self.scratch_size = scratch_offsets(phase)
        self.thread = self.names.take("thread") if phase.threads > 1 else ""
        self.scratch_name = self.names.take("scratch") if self.scratch_size else ""
        self.lines = wrap(self.signature(self.functions[index], phase) + " {")
        return self._finish(phase)

    def _finish(self, phase: Phase) -> str:
        self.begin(phase)
        for node in phase.uops:
            self._print(node)
        if self.depth != 1:
            fail(LoweringError, f"{self.program.name}: a loop or branch is not closed")
        self.end(phase)
        return "\n".join([*self.lines, "}", ""])

    def begin(self, phase: Phase) -> None:
        """Called before the first statement of a function is printed."""

    def end(self, phase: Phase) -> None:
        """Called behind the last statement of a function."""

    def line(self, text: str) -> None:
        """Add a statement at the current depth."""
        self.lines += wrap(self.indent * self.depth + text)

    def _open(self, text: str) -> None:
        self.line(text)
        self.depth += 1
        self.names.push()

    def _print(self, node: UOp) -> None:
        op = node.op
        own = self.statement(node)
        if own is not None:
            for text in own:
                self.line(text)
        elif op is Op.RANGE:
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
        elif op is Op.RETURN:
            self.line(f"return {self.full(node.src[0]).text};")
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
            literal = self.exprs[node] = self.number(node.arg, node.dtype)
            return literal
        if op is Op.VAR:
            return self.variable(node)
        if op is Op.SPECIAL:
            return self.special(node)
        if op is Op.PARAM:
            return Expr(self.arguments[node.arg])
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
        expr = self.get(node)
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
            return self.choose(src[0], self._typed(src[1], *node.src[1:]), src[2])
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
        if op is Op.CALL:
            return call(node.arg, *src)
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
        elif op is Op.CSHL or op is Op.CSHR:
            a = self._typed(a, node.src[0])
        else:
            a = self._typed(a, *node.src)
        return self._wrapped(node, self.arith(op, a, b, node.src[1]))

    def _typed(self, first: Expr, *nodes: UOp) -> Expr:
        """The first operand with its own type where all operands are literals, which are int."""
        dtype = nodes[0].dtype
        is_int = dtype.kind == "int" and dtype.bits <= 32
        if not dtype.is_int or is_int or not all(n.op is Op.CONST for n in nodes):
            return first
        return cast(self.type_name(dtype), first) if dtype.bits >= 32 else first

    def arith(self, op: Op, a: Expr, b: Expr, right: UOp) -> Expr:
        """`a op b`; what adds something negative is written as subtracting."""
        if op is Op.MUL and b.text == "-1" and right.dtype.is_int and not a.is_splat:
            return Expr(f"-{a.at(PRIMARY)}", UNARY)
        if op is Op.ADD and b.level == UNARY and b.text[0] == "-":
            return binary(BINARY[Op.SUB], a, Expr(b.text[1:], b.level))
        if op is Op.ADD and b.level == MUL and right.dtype.is_int:
            factor, times, number = b.text.rpartition(" * -")
            if times and number.isdigit():
                return binary(BINARY[Op.SUB], a, Expr(f"{factor} * {number}", MUL))
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

    # Statements

    def _store(self, node: UOp) -> None:
        index, value = node.src
        self._operands_of(index.src[1:])
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
