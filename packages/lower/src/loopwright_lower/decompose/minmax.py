"""MAX and MIN as a comparison and a choice."""

from __future__ import annotations

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_lower.decompose.build import is_nan, lt, or_, where
from loopwright_lower.decompose.table import Emit, Rule, is_float, is_int


def _beats(node: UOp, a: UOp, b: UOp) -> UOp:
    """a wins over b: above it for MAX, below it for MIN; never with a NaN."""
    return lt(b, a) if node.op is Op.MAX else lt(a, b)


def minmax_int(e: Emit, node: UOp) -> UOp:
    """max(a, b) --> where(a beats b, a, b)."""
    a, b = node.src
    return where(_beats(node, a, b), a, b)


def _is_number(x: UOp) -> bool:
    return x.op is Op.CONST and x.arg == x.arg


def choice(node: UOp) -> tuple[UOp, UOp, UOp]:
    """max(a, b) of floats as where(condition, one, other): a NaN in the one is asked for, a NaN in
    the other loses no comparison, so wins."""
    a, b = node.src
    if _is_number(b):
        return _beats(node, b, a), b, a
    if _is_number(a):
        return _beats(node, a, b), a, b
    return or_(_beats(node, a, b), is_nan(a)), a, b


def minmax_float(e: Emit, node: UOp) -> UOp:
    """max(a, b) --> where(a is NaN, a, where(a beats b, a, b)): many processors have the inner
    choice as one instruction."""
    a, b = node.src
    if _is_number(a) or _is_number(b):
        return where(*choice(node))
    return where(is_nan(a), a, where(_beats(node, a, b), a, b))


def _kept_float(e: Emit, node: UOp) -> bool:
    return is_float(e, node) and node.op in e.target.ops


minmax_rules: tuple[Rule, ...] = (
    Rule("target_has_float_minmax", (Op.MAX, Op.MIN), _kept_float, lambda e, node: node),
    Rule("minmax_int", (Op.MAX, Op.MIN), is_int, minmax_int),
    Rule("minmax_float", (Op.MAX, Op.MIN), is_float, minmax_float),
)
