"""Short names for the primitive ops, so that a rule reads like its formula.

Every function takes sources that are already primitive and returns one primitive node; a Python
number beside a node becomes a constant of the node's dtype.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

Operand: TypeAlias = UOp | int | float


def lift(value: Operand, like: UOp) -> UOp:
    """The node itself, or the number as a constant of `like`'s dtype."""
    return value if isinstance(value, UOp) else const(value, like.dtype)


def _pair(op: Op, a: Operand, b: Operand) -> UOp:
    if not isinstance(a, UOp):
        assert isinstance(b, UOp)
        a = const(a, b.dtype)
    elif not isinstance(b, UOp):
        b = const(b, a.dtype)
    return UOp(op, a.dtype, (a, b))


def _test(op: Op, a: Operand, b: Operand) -> UOp:
    if not isinstance(a, UOp):
        assert isinstance(b, UOp)
        a = const(a, b.dtype)
    elif not isinstance(b, UOp):
        b = const(b, a.dtype)
    return UOp(op, dt.bool_, (a, b))


def add(a: Operand, b: Operand) -> UOp:
    return _pair(Op.ADD, a, b)


def sub(a: Operand, b: Operand) -> UOp:
    return _pair(Op.SUB, a, b)


def mul(a: Operand, b: Operand) -> UOp:
    return _pair(Op.MUL, a, b)


def div(a: Operand, b: Operand) -> UOp:
    return _pair(Op.DIV, a, b)


def cdiv(a: Operand, b: Operand) -> UOp:
    return _pair(Op.CDIV, a, b)


def cmod(a: Operand, b: Operand) -> UOp:
    return _pair(Op.CMOD, a, b)


def and_(a: Operand, b: Operand) -> UOp:
    return _pair(Op.AND, a, b)


def or_(a: Operand, b: Operand) -> UOp:
    return _pair(Op.OR, a, b)


def xor(a: Operand, b: Operand) -> UOp:
    return _pair(Op.XOR, a, b)


def shl(a: UOp, b: Operand) -> UOp:
    return _pair(Op.CSHL, a, b)


def shr(a: UOp, b: Operand) -> UOp:
    return _pair(Op.CSHR, a, b)


def lt(a: Operand, b: Operand) -> UOp:
    return _test(Op.CMPLT, a, b)


def eq(a: Operand, b: Operand) -> UOp:
    return _test(Op.CMPEQ, a, b)


def ne(a: Operand, b: Operand) -> UOp:
    return _test(Op.CMPNE, a, b)


def not_(a: UOp) -> UOp:
    """Not, of a bool."""
    return UOp(Op.XOR, dt.bool_, (a, const(True, dt.bool_)))


def is_nan(x: UOp) -> UOp:
    return UOp(Op.CMPNE, dt.bool_, (x, x))


def neg(x: UOp) -> UOp:
    return UOp(Op.NEG, x.dtype, (x,))


def sqrt(x: UOp) -> UOp:
    return UOp(Op.SQRT, x.dtype, (x,))


def trunc(x: UOp) -> UOp:
    return UOp(Op.TRUNC, x.dtype, (x,))


def rint(x: UOp) -> UOp:
    return UOp(Op.RINT, x.dtype, (x,))


def where(condition: UOp, a: Operand, b: Operand) -> UOp:
    if not isinstance(a, UOp):
        assert isinstance(b, UOp)
        a = const(a, b.dtype)
    elif not isinstance(b, UOp):
        b = const(b, a.dtype)
    return UOp(Op.WHERE, a.dtype, (condition, a, b))


def cast(x: UOp, dtype: DType) -> UOp:
    """A conversion that is exact, rounds to nearest, or wraps: never float to int."""
    return x if x.dtype is dtype else UOp(Op.CAST, dtype, (x,))


def ftoi(x: UOp, dtype: DType) -> UOp:
    """Float to int; the caller has made sure that it is in range."""
    return UOp(Op.FTOI, dtype, (x,))


def bitcast(x: UOp, dtype: DType) -> UOp:
    return x if x.dtype is dtype else UOp(Op.BITCAST, dtype, (x,))


def bits_of(x: UOp) -> UOp:
    """A float's bits as the unsigned integer of its width."""
    return bitcast(x, dt.unsigned(x.dtype.bits))


def abs_(x: UOp) -> UOp:
    """A float without its sign."""
    return bitcast(and_(bits_of(x), (1 << (x.dtype.bits - 1)) - 1), x.dtype)


def copy_sign(magnitude: UOp, sign: UOp) -> UOp:
    """`magnitude`, which is not negative, with the sign bit of `sign`."""
    top = and_(bits_of(sign), 1 << (sign.dtype.bits - 1))
    return bitcast(or_(bits_of(magnitude), top), magnitude.dtype)


def float_bits(value: float, dtype: DType) -> int:
    """The bit pattern of `value` in float32 or float64."""
    if dtype is dt.float32:
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])
