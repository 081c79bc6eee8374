"""float16, bfloat16 and float8 where a target only stores them: conversions bit by bit.

Arithmetic widens to float32, computes there and rounds back once. For + - * / sqrt that equals
direct rounding, because float32 has more than twice the digits of each of these formats plus two.
Source: S. A. Figueroa, When is double rounding innocuous?, SIGNUM 30 (1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose.build import (
    add,
    and_,
    bitcast,
    bits_of,
    cast,
    eq,
    float_bits,
    is_nan,
    lt,
    mul,
    ne,
    neg,
    or_,
    shl,
    shr,
    sub,
    where,
    xor,
)
from loopwright_lower.decompose.minmax import choice
from loopwright_lower.decompose.table import Emit, Rule


@dataclass(frozen=True, slots=True)
class Format:
    """A binary float: stored mantissa bits, exponent bias, and whether its top exponent is inf."""

    mantissa: int
    bias: int
    has_inf: bool = True


FORMATS: dict[DType, Format] = {
    dt.float16: Format(10, 15),
    dt.bfloat16: Format(7, 127),
    dt.float8_e5m2: Format(2, 15),
    dt.float8_e4m3fn: Format(3, 7, has_inf=False),
}
_WIDE = {dt.float32: Format(23, 127), dt.float64: Format(52, 1023)}


def widen(e: Emit, x: UOp) -> UOp:
    """The float32 of equal value; NaN and the sign of zero are kept."""
    dtype = x.dtype
    if x.op is Op.CONST:
        return const(float(np.float64(x.arg).astype(dtype.numpy)), dt.float32)
    if e.casts_directly(dtype):
        return cast(x, dt.float32)
    small, bits = FORMATS[dtype], dtype.bits
    raw = cast(bits_of(x), dt.uint32)
    if dtype is dt.bfloat16:
        return bitcast(shl(raw, 16), dt.float32)
    up = 23 - small.mantissa
    magnitude = and_(raw, (1 << (bits - 1)) - 1)
    moved = shl(magnitude, up)
    rebias = (127 - small.bias) << 23
    # A subnormal takes an implicit one to be a float32, which is then subtracted: exact.
    least = math.ldexp(1.0, 1 - small.bias)
    shifted = bitcast(add(moved, rebias + (1 << 23)), dt.float32)
    subnormal = bits_of(sub(shifted, least))
    number = where(lt(magnitude, 1 << small.mantissa), subnormal, add(moved, rebias))
    if small.has_inf:
        top = ((1 << (bits - 1)) - 1) >> small.mantissa << small.mantissa
        number = where(lt(magnitude, top), number, or_(moved, 0x7F800000))
    else:
        number = where(eq(magnitude, (1 << (bits - 1)) - 1), const(0x7FC00000, dt.uint32), number)
    sign = shl(and_(raw, 1 << (bits - 1)), 32 - bits)
    return bitcast(or_(number, sign), dt.float32)


def narrow(e: Emit, x: UOp, dtype: DType) -> UOp:
    """A float32 or float64 rounded once, ties to even, to a storage float."""
    if x.op is Op.CONST:
        return const(float(round_once(float(x.arg), dtype)), dtype)
    if x.dtype is dt.float32 and e.casts_directly(dtype):
        return cast(x, dtype)
    small, wide, bits = FORMATS[dtype], _WIDE[x.dtype], dtype.bits
    raw = bits_of(x)
    magnitude = and_(raw, (1 << (x.dtype.bits - 1)) - 1)
    down = wide.mantissa - small.mantissa
    last = and_(shr(magnitude, down), 1)
    rounded = shr(add(add(magnitude, (1 << (down - 1)) - 1), last), down)
    if wide.bias != small.bias:
        rounded = sub(rounded, (wide.bias - small.bias) << small.mantissa)
        # Adding a power of two whose last digit is the format's smallest subnormal rounds there.
        magic = math.ldexp(1.0, wide.mantissa - small.mantissa + 1 - small.bias)
        aligned = bits_of(add(bitcast(magnitude, x.dtype), magic))
        subnormal = sub(aligned, float_bits(magic, x.dtype))
        least = (wide.bias - small.bias + 1) << wide.mantissa
        limit = _infinity(dtype) if small.has_inf else (1 << (bits - 1)) - 1
        number = where(lt(limit, rounded), limit, rounded)
        number = where(lt(magnitude, least), subnormal, number)
    else:
        number = rounded
    if small.has_inf:  # else NaN is above the limit, and the limit is NaN
        quiet = _infinity(dtype) | (1 << (small.mantissa - 1))
        number = where(is_nan(x), const(quiet, raw.dtype), number)
    sign = and_(shr(raw, x.dtype.bits - bits), 1 << (bits - 1))
    return bitcast(cast(or_(number, sign), dt.unsigned(bits)), dtype)


def _infinity(dtype: DType) -> int:
    mantissa = FORMATS[dtype].mantissa
    return ((1 << (dtype.bits - 1)) - 1) >> mantissa << mantissa


def round_once(value: float, dtype: DType) -> float:
    """A Python float in a storage format, without a second rounding on the way."""
    if not math.isfinite(value) or value == 0.0:
        return float(np.float32(value).astype(dtype.numpy))
    small = FORMATS[dtype]
    exponent = max(math.frexp(value)[1] - 1, 1 - small.bias)
    step = math.ldexp(1.0, exponent - small.mantissa)
    exact = round(value / step) * step  # round() of a float ties to even
    with np.errstate(over="ignore"):
        return float(np.float64(exact).astype(dtype.numpy))


def int_to_float32_odd(x: UOp) -> UOp:
    """An integer in float32, its last bit standing for all that was cut off: rounds once later.

    A value with at least two digits more than the final format and such a sticky last bit rounds
    to the same result as the integer itself.
    """
    is_signed = x.dtype.kind == "int"
    bits = x.dtype.bits
    unsigned = dt.unsigned(bits)
    magnitude = bitcast(x, unsigned)
    negative = lt(x, 0)
    if is_signed:
        magnitude = where(negative, bitcast(neg(x), unsigned), magnitude)
    scale = const(1.0, dt.float32)
    for cut, over in ((8, 24),) if bits == 32 else ((20, 44), (10, 34), (10, 24)):
        sticky = cast(ne(and_(magnitude, (1 << cut) - 1), 0), unsigned)
        big = lt((1 << over) - 1, magnitude)
        magnitude = where(big, or_(shr(magnitude, cut), sticky), magnitude)
        scale = where(big, mul(scale, float(1 << cut)), scale)
    value = mul(cast(magnitude, dt.float32), scale)
    return where(negative, neg(value), value) if is_signed else value


def cast_to_soft(e: Emit, node: UOp) -> UOp:
    """cast(x, float16) --> one rounding from float32, float64 or an integer's sticky float32."""
    x, dtype = node.src[0], node.dtype
    source = x.dtype
    if source.is_bool:
        return where(x, const(1.0, dtype), const(0.0, dtype))
    if source.kind == "float":
        return narrow(e, widen(e, x) if e.is_soft(source) else x, dtype)
    if source is dt.index:
        x = cast(x, dt.int64)
    if x.dtype.bits < 32:
        return narrow(e, cast(x, dt.float32), dtype)
    return narrow(e, int_to_float32_odd(x), dtype)


def cast_from_soft(e: Emit, node: UOp) -> UOp:
    """cast(x, T) of a storage float --> as from float32; to bool: any bit but the sign."""
    x = node.src[0]
    if node.dtype.is_bool:
        return ne(and_(bits_of(x), (1 << (x.dtype.bits - 1)) - 1), 0)
    return e.op(Op.CAST, node.dtype, widen(e, x))


def compute_wide(e: Emit, node: UOp) -> UOp:
    """op(a, b) in a storage float --> round(op(widen(a), widen(b)))."""
    wide = e.op(node.op, dt.float32, *(widen(e, s) for s in node.src))
    return narrow(e, wide, node.dtype)


def compare_wide(e: Emit, node: UOp) -> UOp:
    """a < b of storage floats --> the same of their float32 values."""
    a, b = node.src
    return UOp(node.op, dt.bool_, (widen(e, a), widen(e, b)))


def minmax_soft(e: Emit, node: UOp) -> UOp:
    """max(a, b) of storage floats --> compared wide, chosen narrow."""
    a, b = node.src
    wide = UOp(node.op, dt.float32, (widen(e, a), widen(e, b)))
    condition, chosen, _ = choice(wide)
    first, second = (a, b) if chosen is widen(e, a) else (b, a)
    return UOp(Op.WHERE, node.dtype, (condition, first, second))


def neg_soft(e: Emit, node: UOp) -> UOp:
    """-x of a storage float --> its sign bit flipped."""
    raw = bits_of(node.src[0])
    return bitcast(xor(raw, 1 << (node.dtype.bits - 1)), node.dtype)


def _is_soft(e: Emit, node: UOp) -> bool:
    return e.is_soft(node.dtype)


def _from_soft(e: Emit, node: UOp) -> bool:
    return e.is_soft(node.src[0].dtype)


_COMPUTED = (
    *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.FLOORDIV, Op.MOD, Op.POW),
    *(Op.SQRT, Op.TRUNC, Op.RINT, Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH),
)

small_float_rules: tuple[Rule, ...] = (
    Rule("cast_to_storage_float", (Op.CAST,), _is_soft, cast_to_soft),
    Rule("cast_from_storage_float", (Op.CAST,), _from_soft, cast_from_soft),
    Rule("storage_float_computes_wide", _COMPUTED, _is_soft, compute_wide),
    Rule(
        "storage_float_compares_wide",
        tuple(sorted(COMPARE, key=repr)),
        _from_soft,
        compare_wide,
    ),
    Rule("storage_float_minmax", (Op.MAX, Op.MIN), _is_soft, minmax_soft),
    Rule("storage_float_neg", (Op.NEG,), _is_soft, neg_soft),
)
