"""SIN and COS: both polynomials on r = x modulo pi/2, one chosen by the quadrant."""

from __future__ import annotations

import math

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose import coefficients as co
from loopwright_lower.decompose.build import (
    abs_,
    add,
    and_,
    bitcast,
    bits_of,
    lt,
    mul,
    ne,
    neg,
    shl,
    sub,
    where,
    xor,
)
from loopwright_lower.decompose.double import Pair, polynomial
from loopwright_lower.decompose.reduction import reduce_angle
from loopwright_lower.decompose.table import Emit, Rule, is_float


def _both(e: Emit, r: Pair) -> Pair:
    """sin and cos of high + low, |high + low| at most about pi/4."""
    high, low = r
    dtype = high.dtype
    is_32 = dtype is dt.float32
    z = mul(high, high)
    half = mul(z, 0.5)
    near_one = sub(const(1.0, dtype), half)
    tail = polynomial(e, z, co.SIN_32 if is_32 else co.SIN_64)
    sine = add(high, e.fma(mul(z, high), tail, mul(low, near_one)))
    rounding = sub(sub(const(1.0, dtype), near_one), half)
    tail = polynomial(e, z, co.COS_32 if is_32 else co.COS_64)
    rest = e.fma(mul(z, z), tail, neg(mul(high, low)))
    return sine, add(near_one, add(rounding, rest))


def sin_cos(e: Emit, node: UOp) -> UOp:
    """sin(x), cos(x) --> +-sin(r) or +-cos(r) by the quadrant of |x|; NaN for infinity."""
    x = node.src[0]
    size = abs_(x)
    q, r = reduce_angle(e, size)
    sine, cosine = _both(e, r)
    is_sine = node.op is Op.SIN
    odd = ne(and_(q, 1), 0)
    value = where(odd, cosine, sine) if is_sine else where(odd, sine, cosine)
    top = x.dtype.bits - 1
    turned = q if is_sine else add(q, 1)
    flip = shl(and_(turned, 2), top - 1)
    if is_sine:
        flip = xor(flip, and_(bits_of(x), 1 << top))
    value = bitcast(xor(bits_of(value), flip), x.dtype)
    return where(lt(size, math.inf), value, const(math.nan, x.dtype))


trigonometric_rules: tuple[Rule, ...] = (
    Rule("sin_cos_by_quadrant", (Op.SIN, Op.COS), is_float, sin_cos),
)
