"""Inverse trigonometry: asin, acos, atan, atan2."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.elementwise import magnitude
from loopwright.api.steps import (
    add,
    binary,
    div,
    equal,
    head,
    horner,
    less,
    mul,
    num,
    sub,
    unary,
    with_sign,
)
from loopwright.array import Array
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

_PI = Fraction("3.141592653589793238462643383279502884197169399375105820974944")
# Interpolation at Chebyshev nodes in 60 digits of (f(s) / s - 1) / z in z = s*s.
_ASIN_F32 = (  # error 2**-29.8
    0.166666663374,
    0.075000945435,
    0.0445994015285,
    0.0311006627355,
    0.0171492383577,
    0.0336908472028,
)
_ASIN_F64 = (  # error 2**-61.8
    0.166666666666666665915,
    0.0750000000000011775096,
    0.0446428571425518929019,
    0.030381944475532339993,
    0.0223721574435072224186,
    0.0173528165403254949945,
    0.013963780012203569641,
    0.0115664596121216685678,
    0.00962184297010028101775,
    0.00931956079476744629567,
    0.00304487990945567739589,
    0.0195545133361233789491,
    -0.0192416717467430406538,
    0.0296120112649551203603,
)
_ATAN_F32 = (  # error 2**-33.5
    -0.333333332792,
    0.199999772482,
    -0.142841506297,
    0.110713545712,
    -0.086245982152,
    0.0504793743204,
)
_ATAN_F64 = (  # error 2**-62.3
    -0.333333333333333332168,
    0.199999999999998043277,
    -0.142857142856597777564,
    0.111111111051505878938,
    -0.0909090875325911294235,
    0.0769229636804229711831,
    -0.0666642476020052014176,
    0.058789275544738067649,
    -0.0523044364068694770701,
    0.045515447340221616522,
    -0.0345693150633260898128,
    0.0162843750500433944442,
)


def _pi(share: Fraction, like: UOp) -> tuple[UOp, UOp]:
    """A share of pi as the nearest number of the dtype and what that one lacks."""
    exact = _PI * share
    upper = Fraction(float(like.dtype.numpy.type(float(exact))))
    return num(upper, like), num(exact - upper, like)


def _beside_one(a: UOp) -> tuple[UOp, UOp, UOp]:
    """For a in [1/2, 1]: s = sqrt((1 - a) / 2) as head + rest, and asin(s) - s.

    Source: asin(a) = pi/2 - 2 asin(s), acos(a) = 2 asin(s), the half-angle formula.
    """
    z = mul(sub(num(1, a), a), num(0.5, a))
    s = graph.alu(Op.SQRT, z)
    upper = head(s)
    rest = div(sub(z, mul(upper, upper)), add(s, upper))
    rest = graph.where(equal(s, num(0, a)), s, rest)
    return upper, rest, mul(s, mul(z, horner(z, _asin_terms(a))))


def _asin_terms(x: UOp) -> tuple[float, ...]:
    return _ASIN_F32 if x.dtype is dt.float32 else _ASIN_F64


def _asin(x: UOp) -> UOp:
    a = magnitude(x)
    z = mul(a, a)
    near = add(a, mul(a, mul(z, horner(z, _asin_terms(x)))))
    upper, rest, more = _beside_one(a)
    two = num(2, x)
    half, lost = _pi(Fraction(1, 2), x)
    # half - 2 upper is exact: upper ends in zeros
    far = sub(sub(half, mul(two, upper)), sub(mul(two, add(rest, more)), lost))
    return with_sign(graph.where(less(a, num(0.5, x)), near, far), x)


def asin(x: Any, /) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x; NaN outside [-1, 1]."""
    return unary("asin", x, lambda v: _inside(v, _asin(v)))


def _inside(x: UOp, value: UOp) -> UOp:
    """The value, NaN where |x| > 1 and where x is NaN."""
    a, one = magnitude(x), num(1, x)
    inside = graph.alu(Op.OR, less(a, one), equal(a, one))
    return graph.where(inside, value, num(math.nan, x))


def _acos(x: UOp) -> UOp:
    a = magnitude(x)
    z = mul(x, x)
    half, lost = _pi(Fraction(1, 2), x)
    bent = mul(x, mul(z, horner(z, _asin_terms(x))))
    near = sub(half, sub(x, sub(lost, bent)))
    upper, rest, more = _beside_one(a)
    two = num(2, x)
    right = mul(two, add(upper, add(rest, more)))
    pi, pi_lost = _pi(Fraction(1), x)
    left = sub(pi, sub(right, pi_lost))
    far = graph.where(less(x, num(0, x)), left, right)
    return graph.where(less(a, num(0.5, x)), near, far)


def acos(x: Any, /) -> Array:
    """The angle in [0, pi] whose cosine is x; NaN outside [-1, 1]."""
    return unary("acos", x, lambda v: _inside(v, _acos(v)))


def _octant(smaller: UOp, larger: UOp) -> tuple[UOp, UOp]:
    """atan(smaller / larger) in [0, pi/4], short of pi/4 where that is beyond pi/8; where it is.

    Source: atan(r) = pi/4 + atan((r - 1) / (r + 1)).
    """
    beyond = less(mul(larger, num(math.tan(math.pi / 8), larger)), smaller)
    top = graph.where(beyond, sub(smaller, larger), smaller)
    below = graph.where(beyond, add(smaller, larger), larger)
    t = div(top, below)
    z = mul(t, t)
    terms = _ATAN_F32 if t.dtype is dt.float32 else _ATAN_F64
    bent = mul(t, mul(z, horner(z, terms)))
    if t.dtype is dt.float64:
        # What rounding took from the difference and the sum moves the quotient by a last place.
        from_top = sub(smaller, add(top, larger))
        from_below = sub(smaller, sub(below, larger))
        lost = div(sub(from_top, mul(t, from_below)), below)
        bent = add(bent, graph.where(beyond, lost, num(0, t)))
    return add(t, bent), beyond


def _atan(x: UOp) -> UOp:
    a, one = magnitude(x), num(1, x)
    is_steep = less(one, a)
    angle, beyond = _octant(graph.where(is_steep, one, a), graph.where(is_steep, a, one))
    zero = num(0, x)
    half, half_lost = _pi(Fraction(1, 2), x)
    quarter, quarter_lost = _pi(Fraction(1, 4), x)
    base = graph.where(is_steep, half, zero)
    lost = graph.where(is_steep, half_lost, zero)
    base, lost = graph.where(beyond, quarter, base), graph.where(beyond, quarter_lost, lost)
    signed = graph.where(is_steep, graph.alu(Op.NEG, angle), angle)
    return with_sign(add(base, add(signed, lost)), x)


def atan(x: Any, /) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x."""
    return unary("atan", x, _atan)


def _atan2(y: UOp, x: UOp) -> UOp:
    a, b = magnitude(y), magnitude(x)
    is_steep = less(b, a)
    smaller, larger = graph.alu(Op.MIN, a, b), graph.alu(Op.MAX, a, b)
    zero, one = num(0, x), num(1, x)
    # 0/0 is the angle 0, inf/inf that of 1/1; the sum of two huge sides must not overflow
    both = equal(smaller, num(math.inf, x))
    smaller = graph.where(both, one, smaller)
    larger = graph.where(graph.alu(Op.OR, both, equal(larger, zero)), one, larger)
    is_huge = less(num(float(np.finfo(x.dtype.numpy).max) / 4, x), larger)
    shrink = graph.where(is_huge, num(0.25, x), one)
    angle, beyond = _octant(mul(smaller, shrink), mul(larger, shrink))
    # the angle from the positive x-axis: so many eighths of a turn, plus or minus the octant's
    eighths = graph.where(beyond, one, zero)
    eighths = graph.where(is_steep, sub(num(2, x), eighths), eighths)
    signed = graph.where(is_steep, graph.alu(Op.NEG, angle), angle)
    signed_bits = graph.bitcast(x, dt.signed(x.dtype.bits))
    is_left = less(signed_bits, graph.constant(0, signed_bits.dtype))
    eighths = graph.where(is_left, sub(num(4, x), eighths), eighths)
    signed = graph.where(is_left, graph.alu(Op.NEG, signed), signed)
    three = equal(eighths, num(3, x))
    one_eighth, three_eighths = _pi(Fraction(1, 4), x), _pi(Fraction(3, 4), x)
    base, lost = [
        graph.where(three, thrice, mul(eighths, once))  # times 0, 1, 2, 4 is exact
        for once, thrice in zip(one_eighth, three_eighths, strict=True)
    ]
    return with_sign(add(base, add(signed, lost)), y)


def atan2(x1: Any, x2: Any, /) -> Array:
    """The angle of the point (x2, x1), y before x, in [-pi, pi]; signed zeros choose the side."""
    return binary("atan2", x1, x2, _atan2)
