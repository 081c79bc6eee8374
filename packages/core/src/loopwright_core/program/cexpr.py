"""Pieces of C-family expressions: text with the precedence that decides about parentheses."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright_core.ir.ops import Op

# C's precedence levels, tightest binding highest.
PRIMARY, UNARY, MUL, ADD, SHIFT, COMPARE, EQUAL = 15, 14, 13, 12, 11, 10, 9
BIT_AND, BIT_XOR, BIT_OR, AND, OR, TERNARY, ASSIGN = 8, 7, 6, 5, 4, 3, 2

# op: (symbol, its level, what the left operand must reach, what the right one must).
# Shifts, bit operations and comparisons of comparisons get parentheses that C does not need:
# few readers know those levels by heart, and compilers warn.
BINARY: dict[Op, tuple[str, int, int, int]] = {
    Op.ADD: ("+", ADD, ADD, MUL),
    Op.SUB: ("-", ADD, ADD, MUL),
    Op.MUL: ("*", MUL, MUL, UNARY),
    Op.DIV: ("/", MUL, MUL, UNARY),
    Op.CDIV: ("/", MUL, MUL, UNARY),
    Op.CMOD: ("%", MUL, MUL, UNARY),
    Op.CSHL: ("<<", SHIFT, UNARY, UNARY),
    Op.CSHR: (">>", SHIFT, UNARY, UNARY),
    Op.CMPLT: ("<", COMPARE, ADD, ADD),
    Op.CMPEQ: ("==", EQUAL, ADD, ADD),
    Op.CMPNE: ("!=", EQUAL, ADD, ADD),
    Op.AND: ("&", BIT_AND, UNARY, UNARY),
    Op.XOR: ("^", BIT_XOR, UNARY, UNARY),
    Op.OR: ("|", BIT_OR, UNARY, UNARY),
}
# The same for operands that are truth values.
LOGICAL: dict[Op, tuple[str, int, int, int]] = {
    Op.AND: ("&&", AND, AND, AND),
    Op.MUL: ("&&", AND, AND, AND),
    Op.OR: ("||", OR, EQUAL, EQUAL),
    Op.ADD: ("||", OR, EQUAL, EQUAL),
    Op.XOR: ("!=", EQUAL, ADD, ADD),
    Op.CMPNE: ("!=", EQUAL, ADD, ADD),
    Op.CMPEQ: ("==", EQUAL, ADD, ADD),
    Op.CMPLT: ("<", COMPARE, ADD, ADD),
}


@dataclass(slots=True)
class Expr:
    """Text and its precedence.

    mask: bits per lane where it is a vector of 0 / -1 that stands for truth values, else 0.
    splat: a vector all lanes of which are this scalar expression; `text` is then the scalar's.
    """

    text: str
    level: int = PRIMARY
    mask: int = 0
    is_splat: bool = False

    def at(self, level: int) -> str:
        """The text, in parentheses unless it binds at least that tightly."""
        return self.text if self.level >= level else f"({self.text})"


def binary(row: tuple[str, int, int, int], a: Expr, b: Expr) -> Expr:
    """`a symbol b` with the parentheses that its row asks for."""
    symbol, level, left, right = row
    if symbol == "||":  # a chain of one operator needs none
        left = OR if a.level == OR else EQUAL
        right = OR if b.level == OR else EQUAL
    text = f"{a.at(left)} {symbol} {b.at(right)}"
    return Expr(text, level)


def call(function: str, *args: Expr) -> Expr:
    """`function(args)`."""
    return Expr(f"{function}({', '.join([a.text for a in args])})")


def cast(type_name: str, x: Expr) -> Expr:
    """`(type)x`."""
    return Expr(f"({type_name}){x.at(UNARY)}", UNARY)


def wrap(line: str, width: int = 100) -> list[str]:
    """A statement cut at spaces into lines of at most `width`, where it has the spaces."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    lines = []
    while len(line) > width:
        cut = line.rfind(", ", len(indent), width)
        cut = cut + 1 if cut > width // 2 else line.rfind(" ", len(indent), width + 1)
        if cut <= len(indent):
            cut = line.find(" ", width)
            if cut < 0:
                break
        lines.append(line[:cut].rstrip())
        line = indent + line[cut + 1 :]
    return [*lines, line]
