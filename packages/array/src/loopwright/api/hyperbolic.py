"""Hyperbolic functions and their inverses; tanh is an IR op and lives with the exponentials."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from loopwright import graph
from loopwright.api.elementwise import magnitude
from loopwright.api.exponential import LN2, log1p_node, times
from loopwright.api.steps import add, div, horner, less, mul, num, sub, unary, with_sign
from loopwright.array import Array
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

# e / 2 to 60 digits.
_HALF_E = Fraction("1.359140914229522617680143735676331248878623546849979810983450")
# Interpolation at Chebyshev nodes in 60 digits of (f(s) / s - 1) / z in z = s*s.
_SINH_F32 = (  # error 2**-32.2
    0.166666666468,
    0.00833333967592,
    0.000198381019687,
    2.80628025823e-6,
)
_SINH_F64 = (  # error 2**-61.3
    0.166666666666666667013,
    0.00833333333333329935524,
    0.000198412698413241979165,
    0.0000027557319191381816996,
    2.5052117695907823572e-8,
    1.60576796238016377463e-10,
    7.74617859301882748918e-13,
)
_ASINH_F32 = (  # error 2**-32.3
    -0.166666665728,
    0.0749997289396,
    -0.0446300219435,
    0.0301561786193,
    -0.0205267934682,
    0.00993650430924,
)
_ASINH_F64 = (  # error 2**-62.8
    -0.166666666666666666075,
    0.0749999999999991994767,
    -0.044642857142677226775,
    0.0303819444285136829119,
    -0.0223721583557362618735,
    0.0173527441556904025194,
    -0.0139644833233513266013,
    0.0115474759262574049526,
    -0.00972571614415168816076,
    0.00818236764637779006315,
    -0.00647460084663590270168,
    0.0041383581314025196521,
    -0.00149883584999574733309,
)
_ATANH_F32 = (  # error 2**-31.5
    0.333333334373,
    0.199999593362,
    0.142882860428,
    0.110508303952,
    0.0975194086574,
    0.0409162307182,
    0.156291653819,
)
_ATANH_F64 = (  # error 2**-62.8
    0.333333333333333333705,
    0.199999999999999331154,
    0.14285714285734208984,
    0.111111111087742454532,
    0.0909090923407645581925,
    0.076923024262985384248,
    0.0666679262425516057637,
    0.0588029659396222903875,
    0.0528673699531569841082,
    0.0456935407180026963331,
    0.0546826524963792640804,
    -0.00578364592051989163567,
    0.163668412410419459265,
    -0.184506277834816660678,
    0.226537991072539641038,
)


def _odd(a: UOp, single: tuple[float, ...], double: tuple[float, ...]) -> UOp:
    """The odd function of these terms near 0."""
    z = mul(a, a)
    return add(a, mul(a, mul(z, horner(z, single if a.dtype is dt.float32 else double))))


def _half_exp(a: UOp) -> UOp:
    """e**a / 2 for a >= 0, as e**(a - 1) * (e / 2): it overflows only where the result does."""
    return times(graph.alu(Op.EXP, sub(a, num(1, a))), _HALF_E)


def _sinh(x: UOp) -> UOp:
    a = magnitude(x)
    grown = _half_exp(a)
    far = sub(grown, div(num(0.25, x), grown))
    value = graph.where(less(a, num(1, x)), _odd(a, _SINH_F32, _SINH_F64), far)
    return with_sign(value, x)


def sinh(x: Any, /) -> Array:
    """The hyperbolic sine."""
    return unary("sinh", x, _sinh)


def _cosh(x: UOp) -> UOp:
    grown = _half_exp(magnitude(x))
    return add(grown, div(num(0.25, x), grown))


def cosh(x: Any, /) -> Array:
    """The hyperbolic cosine."""
    return unary("cosh", x, _cosh)


def _log_twice(a: UOp) -> UOp:
    """log(2 a) where 2 a may overflow."""
    return add(graph.alu(Op.LOG, a), num(LN2, a))


def _is_large(a: UOp) -> UOp:
    """Whether a*a + 1 is a*a in this dtype."""
    return less(num(2.0**13 if a.dtype is dt.float32 else 2.0**28, a), a)


def _asinh(x: UOp) -> UOp:
    a, one = magnitude(x), num(1, x)
    square = mul(a, a)
    root = graph.alu(Op.SQRT, add(one, square))
    middle = log1p_node(add(a, div(square, add(one, root))))
    value = graph.where(_is_large(a), _log_twice(a), middle)
    near = _odd(a, _ASINH_F32, _ASINH_F64)
    return with_sign(graph.where(less(a, num(0.5, x)), near, value), x)


def asinh(x: Any, /) -> Array:
    """The number whose hyperbolic sine is x."""
    return unary("asinh", x, _asinh)


def _acosh(x: UOp) -> UOp:
    one = num(1, x)
    t = sub(x, one)
    root = graph.alu(Op.SQRT, mul(t, add(t, num(2, x))))
    value = graph.where(_is_large(x), _log_twice(x), log1p_node(add(t, root)))
    return graph.where(less(x, one), num(math.nan, x), value)


def acosh(x: Any, /) -> Array:
    """The number >= 0 whose hyperbolic cosine is x; NaN below 1."""
    return unary("acosh", x, _acosh)


def _atanh(x: UOp) -> UOp:
    a = magnitude(x)
    ratio = div(add(a, a), sub(num(1, x), a))
    far = mul(num(0.5, x), log1p_node(ratio))  # beyond 1 the ratio is below -1: NaN
    value = graph.where(less(a, num(0.5, x)), _odd(a, _ATANH_F32, _ATANH_F64), far)
    return with_sign(value, x)


def atanh(x: Any, /) -> Array:
    """The number whose hyperbolic tangent is x; infinite at -1 and 1, NaN beyond."""
    return unary("atanh", x, _atanh)
