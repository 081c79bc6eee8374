"""What a C-family language says for itself: the hooks that `CPrinter` calls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import UOp
from loopwright_core.program.cexpr import ADD, PRIMARY, UNARY, Expr
from loopwright_core.program.cliterals import decimal, is_finite, storage_bits
from loopwright_core.program.cnames import C_KEYWORDS
from loopwright_core.program.program import Function, Phase, Program


class CLanguage(ABC):
    """Types, literals, functions and vector forms of one language, for one program."""

    keywords = C_KEYWORDS
    indent = "    "
    # DType name -> how the language writes it; `bool` is the value, memory has `bool_memory`.
    types: ClassVar[dict[str, str]] = {}
    bool_memory = "bool"

    def __init__(self, program: Program) -> None:
        self.program = program

    def prelude(self) -> list[str]:
        """Everything before the functions; called after they are printed."""
        return []

    @abstractmethod
    def parameters(self, phase: Phase) -> list[str]:
        """The declarations of the function's parameters, in order."""

    def signature(self, name: str, phase: Phase) -> str:
        """The function's head, up to its parameters' closing parenthesis."""
        return f"void {name}({', '.join(self.parameters(phase)) or 'void'})"

    def called_signature(self, function: Function) -> str:
        """The head of a function of values; `arguments` of the printer names its parameters."""
        fail(LoweringError, "this language has no functions", where=self.program.name)

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
        suffix = "" if abs(value) < 2**31 else self.int_suffix(dtype)  # C converts small ones
        if dtype.kind != "uint" and value == -(2 ** (dtype.bits - 1)) and dtype.bits >= 32:
            return Expr(f"-{-value - 1}{suffix} - 1", ADD)  # C has no negative literals
        return Expr(f"{value}{suffix}", UNARY if value < 0 else PRIMARY)

    def int_suffix(self, dtype: DType) -> str:
        """What follows an integer literal of that dtype."""
        unsigned = "U" if dtype.kind == "uint" and dtype.bits >= 32 else ""
        return unsigned + ("LL" if dtype.bits == 64 else "")

    def float_suffix(self, dtype: DType) -> str:
        """What follows a floating-point literal of that dtype."""
        return "f" if dtype.bits == 32 else ""

    def infinity(self, dtype: DType) -> Expr:
        """Positive infinity."""
        fail(LoweringError, f"this language has no infinity of {dtype}", where=self.program.name)

    def nan(self, dtype: DType) -> Expr:
        """A quiet NaN."""
        fail(LoweringError, f"this language has no NaN of {dtype}", where=self.program.name)

    def statement(self, node: UOp) -> list[str] | None:
        """The lines of a node that the language prints in a way of its own; None: the usual."""
        return None

    def math(self, node: UOp, *args: Expr) -> Expr:
        """SQRT, TRUNC, RINT, FMA and other functions a language has, of scalars."""
        fail(LoweringError, f"this language has no {node.op.name} of {node.dtype}")

    def bitcast(self, node: UOp, x: Expr) -> Expr:
        """BITCAST of a scalar between dtypes that the language represents differently."""
        fail(LoweringError, f"this language has no BITCAST to {node.dtype}")

    def special(self, node: UOp) -> Expr:
        """An id the launch supplies."""
        return Expr(str(node.arg[0]))

    def vector(self, node: UOp) -> Expr:
        """A value that is a vector or is made from one; not BROADCAST."""
        fail(
            LoweringError,
            f"this language has no {node.op.name} of vectors",
            where=self.program.name,
        )

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
        fail(LoweringError, f"this language has no {node.op.name}", where=self.program.name)

    def mask_type(self, node: UOp, value: Expr | None) -> str:
        """The type of a variable that holds a mask."""
        return self.type_name(node.dtype)

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
