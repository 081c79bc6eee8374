"""EXP: 2**n * exp(r), n the nearest integer to x / ln 2, exp(r) a polynomial."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose import coefficients as co
from loopwright_lower.decompose.build import (
    add,
    bitcast,
    bits_of,
    float_bits,
    lt,
    mul,
    or_,
    shl,
    shr,
    sub,
    where,
)
from loopwright_lower.decompose.double import polynomial
from loopwright_lower.decompose.table import Emit, Rule, is_float, is_kept, keep


@dataclass(frozen=True, slots=True)
class Binary:
    """What the formulas need of a float format.

    magic: adding it leaves a number's nearest integer in the low bits of the sum.
    low, high: exp(low) rounds to 0, exp(high) to infinity.
    ln2_high: few enough digits that its product with any exponent is exact.
    """

    mantissa: int
    bias: int
    magic: float
    low: float
    high: float
    ln2_high: float
    ln2_low: float
    exp_tail: tuple[float, ...]


BINARY: dict[DType, Binary] = {
    dt.float32: Binary(
        23, 127, 1.5 * 2**23, -104.0, 89.0, co.LN2_HIGH_32, co.LN2_LOW_32, co.EXP_32
    ),
    dt.float64: Binary(
        52, 1023, 1.5 * 2**52, -746.0, 710.0, co.LN2_HIGH_64, co.LN2_LOW_64, co.EXP_64
    ),
}


def clamp(x: UOp, low: float | None, high: float | None) -> UOp:
    """x held between two bounds; NaN stays. A correctness condition: beyond them n overflows."""
    if low is not None:
        x = where(lt(x, low), low, x)
    return x if high is None else where(lt(high, x), high, x)


def nearest(e: Emit, x: UOp, factor: float) -> tuple[UOp, UOp]:
    """The nearest integer n to x*factor: as a float, and in the low bits of an unsigned; no FTOI.

    The bits above the format's mantissa but one belong to the constant that was added.
    """
    form = BINARY[x.dtype]
    total = e.fma(x, const(factor, x.dtype), const(form.magic, x.dtype))
    return sub(total, form.magic), bits_of(total)


def from_low_bits(n: UOp, dtype: DType, offset: float = 0.0) -> UOp:
    """An unsigned below 2**mantissa as a float, less `offset`: without a conversion op."""
    magic = math.ldexp(1.0, BINARY[dtype].mantissa)
    return sub(bitcast(or_(n, float_bits(magic, dtype)), dtype), magic + offset)


def power_of_two(n: UOp, dtype: DType) -> UOp:
    """2**n, n in the low bits of an unsigned, in the range of normal numbers."""
    form = BINARY[dtype]
    return bitcast(add(shl(n, form.mantissa), form.bias << form.mantissa), dtype)


def scale(x: UOp, n: UOp) -> UOp:
    """x * 2**n for n an unsigned that wraps; subnormal results round once, large ones overflow."""
    half = bitcast(shr(bitcast(n, dt.signed(n.dtype.bits)), 1), n.dtype)
    first = mul(x, power_of_two(half, x.dtype))
    return mul(first, power_of_two(sub(n, half), x.dtype))


def exp_parts(e: Emit, x: UOp) -> tuple[UOp, UOp]:
    """(p, n) with exp(x) = p * 2**n, for x clamped; n as `nearest` gives it."""
    form, dtype = BINARY[x.dtype], x.dtype
    whole, n = nearest(e, x, co.LOG2_E)
    r = e.fma(whole, const(-form.ln2_high, dtype), x)
    r = e.fma(whole, const(-form.ln2_low, dtype), r)
    tail = polynomial(e, r, form.exp_tail)
    if e.has_fma:
        one = const(1.0, dtype)
        return e.fma(r, e.fma(r, tail, one), one), n
    return add(e.fma(mul(r, r), tail, r), 1.0), n


def exp_float(e: Emit, node: UOp) -> UOp:
    """exp(x) --> p * 2**(n-k) * 2**k, k with the sign of x: only the last product rounds."""
    x = node.src[0]
    form, dtype = BINARY[x.dtype], x.dtype
    bounded = clamp(x, form.low, form.high)
    p, n = exp_parts(e, bounded)
    negative = lt(bounded, 0)
    k = (form.bias + 1) // 2
    bias = where(
        negative,
        const((form.bias + k) << form.mantissa, n.dtype),
        const((form.bias - k) << form.mantissa, n.dtype),
    )
    first = mul(p, bitcast(add(shl(n, form.mantissa), bias), dtype))
    second = where(negative, const(math.ldexp(1.0, -k), dtype), const(math.ldexp(1.0, k), dtype))
    return mul(first, second)


exponential_rules: tuple[Rule, ...] = (
    Rule("target_has_function", (Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.POW), is_kept, keep),
    Rule("exp_float", (Op.EXP,), is_float, exp_float),
)
