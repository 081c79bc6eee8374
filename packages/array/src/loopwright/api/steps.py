"""Steps that float functions are composed of, in one dtype, float32 or float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from loopwright import graph
from loopwright.api.dtypes import operand
from loopwright.api.elementwise import sign_mask
from loopwright.array import Array
from loopwright.promotion import accumulator, check, common_float, float_dtype, unify
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

MANTISSA = {dt.float32: 23, dt.float64: 52}


def num(value: float | Fraction, like: UOp) -> UOp:
    """A number in another node's dtype."""
    return graph.constant(float(value), like.dtype)


def add(a: UOp, b: UOp) -> UOp:
    """a + b."""
    return graph.alu(Op.ADD, a, b)


def sub(a: UOp, b: UOp) -> UOp:
    """a - b."""
    return graph.alu(Op.SUB, a, b)


def mul(a: UOp, b: UOp) -> UOp:
    """a * b."""
    return graph.alu(Op.MUL, a, b)


def div(a: UOp, b: UOp) -> UOp:
    """a / b."""
    return graph.alu(Op.DIV, a, b)


def less(a: UOp, b: UOp) -> UOp:
    """a < b."""
    return graph.alu(Op.CMPLT, a, b)


def equal(a: UOp, b: UOp) -> UOp:
    """a == b."""
    return graph.alu(Op.CMPEQ, a, b)


def horner(x: UOp, coefficients: Sequence[float]) -> UOp:
    """The polynomial with these coefficients, the constant one first."""
    value = num(coefficients[-1], x)
    for coefficient in coefficients[-2::-1]:
        value = add(mul(value, x), num(coefficient, x))
    return value


def with_sign(value: UOp, x: UOp) -> UOp:
    """|value| with the sign of x."""
    bits, rest, _ = sign_mask(value)
    other, _, sign = sign_mask(x)
    joined = graph.alu(Op.OR, graph.alu(Op.AND, bits, rest), graph.alu(Op.AND, other, sign))
    return graph.bitcast(joined, x.dtype)


def head(x: UOp) -> UOp:
    """x cut to the upper half of its significant bits: products of two heads are exact."""
    half = (MANTISSA[x.dtype] + 1) // 2
    unsigned = dt.unsigned(x.dtype.bits)
    keep = ((1 << x.dtype.bits) - 1) ^ ((1 << (half + 1)) - 1)
    bits = graph.alu(Op.AND, graph.bitcast(x, unsigned), graph.constant(keep, unsigned))
    return graph.bitcast(bits, x.dtype)


def unary(name: str, x: Any, build: Callable[[UOp], UOp]) -> Array:
    """A float function, computed in float32 at least and rounded once."""
    x = operand(name, x)
    dtype = float_dtype(x.dtype)
    node = graph.cast(graph.cast(x._uop, dtype), accumulator(dtype))
    return Array(graph.cast(build(node), dtype), x.device)


def binary(name: str, x1: Any, x2: Any, build: Callable[[UOp, UOp], UOp]) -> Array:
    """A float function of two operands, computed in float32 at least and rounded once."""
    operands = check(name, (x1, x2))
    dtype = common_float(name, operands)
    (a, b), _, device = unify(name, operands, dtype)
    wide = accumulator(dtype)
    return Array(graph.cast(build(graph.cast(a, wide), graph.cast(b, wide)), dtype), device)
