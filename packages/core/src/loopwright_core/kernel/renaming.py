"""Whether two values differ in the names of their dims only, and which dim stands for which."""

from __future__ import annotations

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp


def renaming(a: UOp, b: UOp) -> dict[str, str] | None:
    """The dims of `b` by those of `a` in the same places, or None where more than names differs."""
    names: dict[str, str] = {}
    stack, seen = [(a, b)], set()
    while stack:
        pair = stack.pop()
        if pair in seen:
            continue
        seen.add(pair)
        x, y = pair
        if x.op is Op.DIM and y.op is Op.DIM:
            if names.setdefault(x.arg.name, y.arg.name) != y.arg.name or x.arg.size != y.arg.size:
                return None
        elif x.op is not y.op or x.arg != y.arg or len(x.src) != len(y.src):
            return None
        else:
            stack.extend(zip(x.src, y.src, strict=True))
    return names if len(set(names.values())) == len(names) else None
