"""A graph of UOps as text: one line a node, numbered, sources before users."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp, Variable, toposort

_INFIX = {
    Op.ADD: "+",
    Op.SUB: "-",
    Op.MUL: "*",
    Op.DIV: "/",
    Op.FLOORDIV: "//",
    Op.MOD: "%",
    Op.CDIV: "/c",
    Op.CMOD: "%c",
    Op.AND: "&",
    Op.OR: "|",
    Op.XOR: "^",
    Op.SHL: "<<",
    Op.SHR: ">>",
    Op.CMPLT: "<",
    Op.CMPEQ: "==",
    Op.CMPNE: "!=",
}
_TIGHT = frozenset({"*", "/", "//", "%", "/c", "%c"})
_NAMED = frozenset({Op.DIM, Op.RANGE, Op.VAR, Op.CONST, Op.SPECIAL})
# A formula longer than this is cut, so that a line stays a line.
_MAX_FORMULA = 2000


def show(roots: UOp | Iterable[UOp]) -> str:
    """Every node below the roots, one a line: `%3 float32 = ADD %1 %2`.

    Constants, dims and variables stand where they are used; a line per node, in a fixed order.
    """
    return show_list(listed(roots))


def listed(roots: UOp | Iterable[UOp]) -> list[UOp]:
    """The nodes that `show` lists: node n of them is its `%n`."""
    order = toposort((roots,) if isinstance(roots, UOp) else tuple(roots))
    return [u for u in order if u.op not in _NAMED] or order


def show_list(nodes: Iterable[UOp]) -> str:
    """These nodes in this order, each by its number; a source that is not listed is spelled out."""
    number: dict[UOp, int] = {}
    lines: list[str] = []
    depth = 0
    for u in nodes:
        number[u] = len(number)
        if u.op in (Op.END, Op.ENDIF):
            depth = max(depth - 1, 0)
        words = [u.op.name, *[_operand(s, number) for s in u.src]]
        arg = show_arg(u.arg)
        if arg:
            words.append(f"[{arg}]")
        lines.append(f"{'  ' * depth}%{number[u]} {u.dtype} = {' '.join(words)}")
        if u.op in (Op.RANGE, Op.IF):
            depth += 1
    return "\n".join(lines)


def _operand(u: UOp, number: dict[UOp, int]) -> str:
    found = number.get(u)
    return f"%{found}" if found is not None else formula(u)


def show_arg(arg: Any) -> str:
    """A node's arg as short text; empty for None."""
    if arg is None:
        return ""
    if isinstance(arg, Buffer):
        return f"{arg.slot}: {'x'.join(map(show_arg, arg.shape)) or 'scalar'}"
    if isinstance(arg, Variable):
        return arg.name
    if isinstance(arg, Enum):
        return arg.name
    if isinstance(arg, tuple):
        inner = ", ".join(map(show_arg, arg))
        return f"({inner})"
    if is_dataclass(arg) and not isinstance(arg, type):
        return " ".join([show_arg(getattr(arg, f.name)) for f in fields(arg)])
    if isinstance(arg, float | bool | int | str | DType):
        return str(arg)
    return repr(arg)


def _leaf(u: UOp) -> str | None:
    """How a node without operands of interest reads in a formula; None for others."""
    op = u.op
    if op is Op.CONST:
        return str(u.arg)
    if op in (Op.DIM, Op.RANGE, Op.VAR):
        return str(getattr(u.arg, "name", None) or f"r{show_arg(u.arg)}")
    if op is Op.SPECIAL:
        return str(u.arg[0])
    if op is Op.BUFFER:
        return f"buffer{u.arg.slot}"
    return None


def formula(u: UOp) -> str:
    """An expression on one line, `i*24 + j*3 + k`; cut where it is very long."""
    text: dict[UOp, tuple[str, int]] = {}  # the text, and how tightly it binds
    for node in toposort((u,), lambda n: _leaf(n) is None):
        leaf = _leaf(node)
        if leaf is not None:
            text[node] = leaf, 3 if not leaf.startswith("-") else 2
            continue
        parts = [text[s] for s in node.src]
        sign = _INFIX.get(node.op)
        if sign is not None and len(parts) == 2:
            level = 2 if sign in _TIGHT else 1 if sign in ("+", "-") else 0
            gap = "" if sign in ("*", "//", "%", "/") else " "
            left, right = [_bracketed(p, level + i) for i, p in enumerate(parts)]
            line = f"{left}{gap}{sign}{gap}{right}"
        else:
            level = 3
            args = [p[0] for p in parts]
            extra = show_arg(node.arg)
            if node.op in (Op.CAST, Op.BITCAST):
                extra = node.dtype.name
            line = f"{node.op.name.lower()}({', '.join([*args, *([extra] if extra else [])])})"
        if len(line) > _MAX_FORMULA:
            line, level = f"{node.op.name.lower()}(...)", 3
        text[node] = line, level
    return text[u][0]


def _bracketed(part: tuple[str, int], level: int) -> str:
    return part[0] if part[1] >= level else f"({part[0]})"
