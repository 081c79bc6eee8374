"""Powers and roots."""

from __future__ import annotations

from typing import Any

from loopwright import graph
from loopwright.api.dtypes import operand
from loopwright.array import Array
from loopwright.promotion import check, common, float_dtype, is_weak, unify
from loopwright_core.errors import ArgumentError, DTypeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

# x*x*x rounds twice, as well as a good pow; longer products round too often.
_LONGEST_FLOAT_PRODUCT = 3


def sqrt(x: Any, /) -> Array:
    """The square root, correctly rounded."""
    x = operand("sqrt", x)
    node = graph.cast(x._uop, float_dtype(x.dtype))
    return Array(graph.alu(Op.SQRT, node), x.device)


def reciprocal(x: Any, /) -> Array:
    """1 / x, of floats."""
    x = operand("reciprocal", x)
    if not x.dtype.is_float:
        fail(DTypeError, f"reciprocal takes floats, not {x.dtype}", fix="write 1 / x")
    return Array(graph.alu(Op.DIV, const(1, x.dtype), x._uop), x.device)


def pow(x1: Any, x2: Any, /) -> Array:
    """x1 ** x2; integers stay exact and wrap.

    Raises ArgumentError for an integer to a negative constant; computed negative exponents of
    integers give 0, but 1 and -1 keep their powers.
    """
    operands = check("pow", (x1, x2))
    dtype = common("pow", operands)
    if dtype.is_bool:
        dtype = dt.int8
    exponent = _constant(operands[1])
    if exponent is not None and isinstance(operands[0], Array):
        found = _constant_power(operands[0], exponent, dtype, is_weak(operands[1]))
        if found is not None:
            return found
    (a, b), _, device = unify("pow", operands, dtype)
    return Array(graph.alu(Op.POW, a, b) if dtype.is_float else _integer_power(a, b), device)


def _constant(value: Any) -> int | float | None:
    """The exponent as a number, where it is one constant of shape ()."""
    if not isinstance(value, Array):
        return value  # type: ignore[no-any-return]  # a Python number
    node = value._uop
    return node.arg if node.op is Op.CONST else None


def _constant_power(x: Array, exponent: int | float, dtype: dt.DType, weak: bool) -> Array | None:
    node = graph.cast(x._uop, dtype)
    if not dtype.is_float:
        if exponent < 0:
            fail(
                ArgumentError,
                "integers to negative integer powers are no integers",
                where="pow",
                fix="convert the base with lw.astype to a float dtype",
            )
        if weak:
            graph.constant(exponent, dtype, "pow")  # in range, or it raises
        return Array(repeated_product(node, int(exponent)), x.device)
    if exponent == 0.5 and not isinstance(exponent, bool):
        # pow(-inf, 0.5) is inf and pow(-0.0, 0.5) is 0.0, but NumPy answers with sqrt's
        return Array(graph.alu(Op.SQRT, node), x.device)
    if exponent == -1:
        return Array(graph.alu(Op.DIV, const(1, dtype), node), x.device)
    if exponent in range(_LONGEST_FLOAT_PRODUCT + 1):
        return Array(repeated_product(node, int(exponent)), x.device)
    return None


def repeated_product(node: UOp, n: int) -> UOp:
    """node ** n by squaring, n >= 0."""
    if n == 0:
        return graph.full(graph.shape(node), const(1, node.dtype))
    while not n & 1:
        node, n = graph.alu(Op.MUL, node, node), n >> 1
    result = node
    while n := n >> 1:
        node = graph.alu(Op.MUL, node, node)
        if n & 1:
            result = graph.alu(Op.MUL, result, node)
    return result


def _integer_power(base: UOp, exponent: UOp) -> UOp:
    """base ** exponent modulo 2**bits: the product of base**(2**k) over the exponent's set bits."""
    dtype = base.dtype
    zero, one = const(0, dtype), const(1, dtype)
    result: UOp = one
    factor = base
    for bit in range(dtype.bits):
        shifted = graph.alu(Op.SHR, exponent, const(bit, dtype)) if bit else exponent
        is_set = graph.alu(Op.CMPNE, graph.alu(Op.AND, shifted, one), zero)
        taken = factor if result is one else graph.alu(Op.MUL, result, factor)
        result = graph.where(is_set, taken, result)
        factor = graph.alu(Op.MUL, factor, factor)
    if dtype.kind == "uint":
        return result
    is_fraction = graph.alu(
        Op.AND,
        graph.alu(Op.CMPLT, exponent, zero),
        graph.alu(Op.CMPNE, graph.alu(Op.MAX, base, graph.alu(Op.NEG, base)), one),
    )
    return graph.where(is_fraction, zero, result)
