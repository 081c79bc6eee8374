"""Elementwise functions that are a few IR ops: arithmetic, comparison, logic, bits, rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loopwright import graph
from loopwright.api.dtypes import operand
from loopwright.array import Array
from loopwright.promotion import (
    check,
    common,
    common_float,
    float_dtype,
    is_weak,
    joint_device,
    joint_shape,
    number,
    unify,
)
from loopwright_core.errors import DTypeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

Builder = Callable[[UOp, UOp], UOp]


def _refuse(name: str, dtype: DType, wanted: str, fix: str) -> None:
    fail(DTypeError, f"{name} takes {wanted}, not {dtype}", fix=fix)


def _binary(
    name: str,
    op: Op | Builder,
    x1: Any,
    x2: Any,
    *,
    dtype: DType | None = None,
    no_bool: str = "",
    bool_op: Op | None = None,
    ints_only: bool = False,
) -> Array:
    """An op over two promoted operands; `no_bool` says what to do instead on bool."""
    (a, b), found, device = unify(name, (x1, x2), dtype)
    if found.is_bool and no_bool:
        _refuse(name, found, "numbers", no_bool)
    if ints_only and not (found.is_int or found.is_bool):
        _refuse(name, found, "integers", "convert with lw.astype")
    if found.is_bool and bool_op is not None:
        op = bool_op
    return Array(graph.alu(op, a, b) if isinstance(op, Op) else op(a, b), device)


def add(x1: Any, x2: Any, /) -> Array:
    """x1 + x2; of bool: or."""
    return _binary("add", Op.ADD, x1, x2, bool_op=Op.OR)


def subtract(x1: Any, x2: Any, /) -> Array:
    """x1 - x2."""
    return _binary("subtract", Op.SUB, x1, x2, no_bool="use ^ on bool")


def multiply(x1: Any, x2: Any, /) -> Array:
    """x1 * x2; of bool: and."""
    return _binary("multiply", Op.MUL, x1, x2, bool_op=Op.AND)


def divide(x1: Any, x2: Any, /) -> Array:
    """x1 / x2; integers become float64."""
    operands = check("divide", (x1, x2))
    dtype = common("divide", operands)
    dtype = dtype if dtype.is_float else dt.float64
    return _binary("divide", Op.DIV, *operands, dtype=dtype)


def _whole(name: str, op: Op, x1: Any, x2: Any) -> Array:
    operands = check(name, (x1, x2))
    dtype = common(name, operands)
    return _binary(name, op, *operands, dtype=dt.int8 if dtype.is_bool else dtype)


def floor_divide(x1: Any, x2: Any, /) -> Array:
    """x1 // x2, rounded down; integers by zero give 0."""
    return _whole("floor_divide", Op.FLOORDIV, x1, x2)


def remainder(x1: Any, x2: Any, /) -> Array:
    """x1 % x2 with the sign of x2; integers by zero give 0."""
    return _whole("remainder", Op.MOD, x1, x2)


def maximum(x1: Any, x2: Any, /) -> Array:
    """The larger of the two; NaN where either is NaN."""
    return _binary("maximum", Op.MAX, x1, x2, bool_op=Op.OR)


def minimum(x1: Any, x2: Any, /) -> Array:
    """The smaller of the two; NaN where either is NaN."""
    return _binary("minimum", Op.MIN, x1, x2, bool_op=Op.AND)


def _not(node: UOp) -> UOp:
    return graph.alu(Op.XOR, node, const(True, dt.bool_))


def _less_equal(a: UOp, b: UOp) -> UOp:
    if a.dtype.is_float:  # not (b < a) is wrong where either is NaN
        return graph.alu(Op.OR, graph.alu(Op.CMPLT, a, b), graph.alu(Op.CMPEQ, a, b))
    return _not(graph.alu(Op.CMPLT, b, a))


def _compare(name: str, op: Op | Builder, x1: Any, x2: Any, *, swap: bool = False) -> Array:
    """A comparison; a Python int beyond the integer dtype has a known answer, as in NumPy."""
    operands = check(name, (x1, x2))
    dtype = common(name, operands)
    for place, value in enumerate(operands):
        other = operands[1 - place]
        if not (isinstance(other, Array) and is_weak(value) and dtype.is_int):
            continue
        low, high = int(dtype.min), int(dtype.max)
        if low <= value <= high:
            continue
        if name in ("equal", "not_equal"):
            answer = name == "not_equal"
        else:
            answer = (name.startswith("less")) == ((value > high) == (place == 1))
        return Array(graph.full(other.shape, const(answer, dt.bool_)), other.device)
    if dtype.is_bool and name not in ("equal", "not_equal"):
        dtype = dt.uint8  # order is defined on numbers
    (a, b), _, device = unify(name, operands, dtype)
    if swap:
        a, b = b, a
    return Array(graph.alu(op, a, b) if isinstance(op, Op) else op(a, b), device)


def equal(x1: Any, x2: Any, /) -> Array:
    """x1 == x2."""
    return _compare("equal", Op.CMPEQ, x1, x2)


def not_equal(x1: Any, x2: Any, /) -> Array:
    """x1 != x2."""
    return _compare("not_equal", Op.CMPNE, x1, x2)


def less(x1: Any, x2: Any, /) -> Array:
    """x1 < x2."""
    return _compare("less", Op.CMPLT, x1, x2)


def greater(x1: Any, x2: Any, /) -> Array:
    """x1 > x2."""
    return _compare("greater", Op.CMPLT, x1, x2, swap=True)


def less_equal(x1: Any, x2: Any, /) -> Array:
    """x1 <= x2."""
    return _compare("less_equal", _less_equal, x1, x2)


def greater_equal(x1: Any, x2: Any, /) -> Array:
    """x1 >= x2."""
    return _compare("greater_equal", _less_equal, x1, x2, swap=True)


def bitwise_and(x1: Any, x2: Any, /) -> Array:
    """x1 & x2."""
    return _binary("bitwise_and", Op.AND, x1, x2, ints_only=True)


def bitwise_or(x1: Any, x2: Any, /) -> Array:
    """x1 | x2."""
    return _binary("bitwise_or", Op.OR, x1, x2, ints_only=True)


def bitwise_xor(x1: Any, x2: Any, /) -> Array:
    """x1 ^ x2."""
    return _binary("bitwise_xor", Op.XOR, x1, x2, ints_only=True)


def _shift(name: str, op: Op, x1: Any, x2: Any) -> Array:
    operands = check(name, (x1, x2))
    dtype = common(name, operands)
    dtype = dt.int8 if dtype.is_bool else dtype
    return _binary(name, op, *operands, dtype=dtype, ints_only=True)


def bitwise_left_shift(x1: Any, x2: Any, /) -> Array:
    """x1 << x2; by the width or more: 0."""
    return _shift("bitwise_left_shift", Op.SHL, x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Array:
    """x1 >> x2, keeping the sign; by the width or more: 0, of negatives -1."""
    return _shift("bitwise_right_shift", Op.SHR, x1, x2)


def bitwise_invert(x: Any, /) -> Array:
    """~x; of bool: not."""
    x = operand("bitwise_invert", x)
    if x.dtype.is_float:
        _refuse("bitwise_invert", x.dtype, "integers and bool", "convert with lw.astype")
    ones = True if x.dtype.is_bool else x.dtype.max if x.dtype.kind == "uint" else -1
    return Array(graph.alu(Op.XOR, x._uop, const(ones, x.dtype)), x.device)


def truth(x: Any, name: str) -> Array:
    """Whether each element is anything but zero."""
    x = operand(name, x)
    return Array(graph.cast(x._uop, dt.bool_), x.device)


def logical_and(x1: Any, x2: Any, /) -> Array:
    """Both are anything but zero."""
    return bitwise_and(truth(x1, "logical_and"), truth(x2, "logical_and"))


def logical_or(x1: Any, x2: Any, /) -> Array:
    """One or both are anything but zero."""
    return bitwise_or(truth(x1, "logical_or"), truth(x2, "logical_or"))


def logical_xor(x1: Any, x2: Any, /) -> Array:
    """Exactly one is anything but zero."""
    return bitwise_xor(truth(x1, "logical_xor"), truth(x2, "logical_xor"))


def logical_not(x: Any, /) -> Array:
    """Is zero."""
    return bitwise_invert(truth(x, "logical_not"))


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """x1 where the condition holds, x2 elsewhere; the other one never leaks."""
    test = truth(condition, "where")
    operands = check("where", (x1, x2))
    dtype = common("where", operands)
    sizes = joint_shape(
        "where", [v.shape if isinstance(v, Array) else () for v in (test, *operands)]
    )
    device = joint_device("where", (test, *operands))
    a, b = [
        graph.expand(graph.cast(v._uop, dtype), sizes)
        if isinstance(v, Array)
        else number(v, dtype, "where")
        for v in operands
    ]
    return Array(graph.where(graph.expand(test._uop, sizes), a, b), device)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """x limited to [min, max]; NaN stays NaN.

    A Python int that no element of an integer array lies beyond limits nothing, in range or not.
    """
    x = operand("clip", x)
    if x.dtype.is_int:
        low, high = x.dtype.min, x.dtype.max
        min = None if type(min) is int and min <= low else min
        max = None if type(max) is int and max >= high else max
    given = [v for v in (min, max) if v is not None]
    joint = common("clip", check("clip", (x, *given)))  # of all three, as NumPy's is
    x = Array(graph.cast(x._uop, joint), x.device)
    if min is not None:
        x = maximum(x, min)
    return x if max is None else minimum(x, max)


def positive(x: Any, /) -> Array:
    """x itself."""
    x = operand("positive", x)
    if x.dtype.is_bool:
        _refuse("positive", x.dtype, "numbers", "use x itself")
    return Array(x._uop, x.device)


def negative(x: Any, /) -> Array:
    """-x; unsigned integers wrap."""
    x = operand("negative", x)
    if x.dtype.is_bool:
        _refuse("negative", x.dtype, "numbers", "use ~ on bool")
    return Array(graph.alu(Op.NEG, x._uop), x.device)


def sign_mask(node: UOp) -> tuple[UOp, UOp, UOp]:
    """A float's bits as an unsigned integer, all bits but the sign, the sign bit alone."""
    unsigned = dt.unsigned(node.dtype.bits)
    sign = 1 << (node.dtype.bits - 1)
    return graph.bitcast(node, unsigned), const(sign - 1, unsigned), const(sign, unsigned)


def magnitude(node: UOp) -> UOp:
    """A float without its sign bit."""
    bits, rest, _ = sign_mask(node)
    return graph.bitcast(graph.alu(Op.AND, bits, rest), node.dtype)


def abs(x: Any, /) -> Array:
    """|x|; the most negative integer stays itself, as it wraps."""
    x = operand("abs", x)
    if x.dtype.is_float:
        return Array(magnitude(x._uop), x.device)
    if x.dtype.kind == "int":
        return Array(graph.alu(Op.MAX, x._uop, graph.alu(Op.NEG, x._uop)), x.device)
    return Array(x._uop, x.device)


def sign(x: Any, /) -> Array:
    """-1, 0 or 1; NaN stays NaN."""
    x = operand("sign", x)
    if x.dtype.is_bool:
        _refuse("sign", x.dtype, "numbers", "bool has no sign")
    node, dtype = x._uop, x.dtype
    zero, one = const(0, dtype), const(1, dtype)
    rest = node if dtype.is_float else zero
    if dtype.is_float:
        rest = graph.where(graph.alu(Op.CMPEQ, node, zero), zero, node)
    if dtype.kind != "uint":
        rest = graph.where(graph.alu(Op.CMPLT, node, zero), const(-1, dtype), rest)
    return Array(graph.where(graph.alu(Op.CMPLT, zero, node), one, rest), x.device)


def signbit(x: Any, /) -> Array:
    """Whether the sign bit is set; -0.0 has it."""
    x = operand("signbit", x)
    if not x.dtype.is_float:
        _refuse("signbit", x.dtype, "floats", "compare integers with 0")
    bits = graph.bitcast(x._uop, dt.signed(x.dtype.bits))
    return Array(graph.alu(Op.CMPLT, bits, const(0, bits.dtype)), x.device)


def copysign(x1: Any, x2: Any, /) -> Array:
    """|x1| with the sign of x2."""
    operands = check("copysign", (x1, x2))
    (a, b), dtype, device = unify("copysign", operands, common_float("copysign", operands))
    bits, rest, _ = sign_mask(a)
    other, _, sign_bit = sign_mask(b)
    joined = graph.alu(Op.OR, graph.alu(Op.AND, bits, rest), graph.alu(Op.AND, other, sign_bit))
    return Array(graph.bitcast(joined, dtype), device)


def square(x: Any, /) -> Array:
    """x * x; of bool int8."""
    x = operand("square", x)
    if x.dtype.is_bool:  # as NumPy
        return Array(graph.cast(x._uop, dt.int8), x.device)
    return multiply(x, x)


def _rounded(name: str, x: Any, build: Callable[[UOp], UOp]) -> Array:
    x = operand(name, x)
    return Array(build(x._uop) if x.dtype.is_float else x._uop, x.device)


def _floor(node: UOp) -> UOp:
    whole, one = graph.alu(Op.TRUNC, node), const(1, node.dtype)
    return graph.where(graph.alu(Op.CMPLT, node, whole), graph.alu(Op.SUB, whole, one), whole)


def _ceil(node: UOp) -> UOp:
    whole, one = graph.alu(Op.TRUNC, node), const(1, node.dtype)
    return graph.where(graph.alu(Op.CMPLT, whole, node), graph.alu(Op.ADD, whole, one), whole)


def floor(x: Any, /) -> Array:
    """Rounded down; integers as they are."""
    return _rounded("floor", x, _floor)


def ceil(x: Any, /) -> Array:
    """Rounded up; integers as they are."""
    return _rounded("ceil", x, _ceil)


def trunc(x: Any, /) -> Array:
    """Rounded toward zero; integers as they are."""
    return _rounded("trunc", x, lambda node: graph.alu(Op.TRUNC, node))


def round(x: Any, /) -> Array:
    """Rounded to the nearest whole number, ties to even; integers as they are, bool in float16."""
    x = operand("round", x)
    if x.dtype.is_bool:
        return Array(graph.cast(x._uop, float_dtype(x.dtype)), x.device)
    return _rounded("round", x, lambda node: graph.alu(Op.RINT, node))


def isnan(x: Any, /) -> Array:
    """Is not a number."""
    x = operand("isnan", x)
    if not x.dtype.is_float:
        return Array(graph.full(x.shape, const(False, dt.bool_)), x.device)
    return Array(graph.alu(Op.CMPNE, x._uop, x._uop), x.device)


def isinf(x: Any, /) -> Array:
    """Is plus or minus infinity."""
    x = operand("isinf", x)
    if not x.dtype.is_float or x.dtype is dt.float8_e4m3fn:  # it has no infinity
        return Array(graph.full(x.shape, const(False, dt.bool_)), x.device)
    inf = const(float("inf"), x.dtype)
    return Array(graph.alu(Op.CMPEQ, magnitude(x._uop), inf), x.device)


def isfinite(x: Any, /) -> Array:
    """Is neither NaN nor infinity."""
    x = operand("isfinite", x)
    if not x.dtype.is_float:
        return Array(graph.full(x.shape, const(True, dt.bool_)), x.device)
    if x.dtype is dt.float8_e4m3fn:
        return Array(graph.alu(Op.CMPEQ, x._uop, x._uop), x.device)
    inf = const(float("inf"), x.dtype)
    return Array(graph.alu(Op.CMPLT, magnitude(x._uop), inf), x.device)
