"""Special functions: the error function and the cube root."""

from __future__ import annotations

import math
from typing import Any

from loopwright import graph
from loopwright.api.elementwise import magnitude
from loopwright.api.steps import horner, num, unary, with_sign
from loopwright.array import Array
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

# Interpolation at Chebyshev nodes in 60 digits. _SMALL: erf(x) / x in x*x over [0, 1], to 1.4e-9
# and 2.5e-21. _TAIL: (1 + 2x) e**(x*x) erfc(x) in (x - 2) / (x + 2) over x >= 1, to 7e-9 and
# 1.8e-17; the form is that of Shepherd and Laframboise, 1981.
_SMALL_F32 = (
    1.12837916584835095,
    -0.37612626666720331,
    0.112835947151602177,
    -0.0268542120106264124,
    0.00518908742343397399,
    -0.000801686428716586953,
    0.0000787587506268548834,
)
_SMALL_F64 = (
    1.12837916709551257,
    -0.376126389031837524,
    0.112837916709551202,
    -0.0268661706451298408,
    0.00522397762542329831,
    -0.00085483270219348296,
    0.000120553329028887354,
    -0.0000149256475675193321,
    1.64620454414684189e-6,
    -1.63646421581676153e-7,
    1.4792401209404813e-8,
    -1.21645600572834501e-9,
    8.70904512905310669e-11,
    -4.23094582429533782e-12,
)
_TAIL_F32 = (
    1.27697838573616128,
    -0.0927639536616702611,
    -0.166030916918714006,
    0.164058314631239717,
    -0.054217248488678008,
    -0.00813801523595561163,
    0.0088646960339081679,
    0.00163411296053551782,
    -0.0025910071438200105,
    0.000584796193170059822,
)
_TAIL_F64 = (
    1.27697838155252872,
    -0.0927638265857458264,
    -0.166030397615288003,
    0.164051280033392114,
    -0.0542200009920773234,
    -0.00803401507841357278,
    0.00872265386852635022,
    0.0012713388329024748,
    -0.00145681347544059873,
    -0.000454339005391786748,
    0.00020635611561241383,
    0.000151037000155770031,
    -1.39476559418467314e-6,
    -0.0000366157429289078854,
    -0.000013881141150591917,
    5.38922056876484555e-6,
    3.81729387220562109e-6,
    -1.38543027146129755e-6,
    7.85525951298905974e-6,
    -0.0000103505666719284175,
    4.9026024312578583e-6,
    -8.24285016317710269e-7,
)


def _parts(x: UOp) -> tuple[UOp, UOp, UOp]:
    """erf(|x|) by the series (right for |x| <= 1), erfc(|x|) (right for |x| >= 1), |x| < 1."""
    single = x.dtype is dt.float32
    a = magnitude(x)
    square = graph.alu(Op.MUL, a, a)
    inner = graph.alu(Op.MUL, a, horner(square, _SMALL_F32 if single else _SMALL_F64))
    two = num(2, x)
    t = graph.alu(Op.DIV, graph.alu(Op.SUB, a, two), graph.alu(Op.ADD, a, two))
    scaled = horner(t, _TAIL_F32 if single else _TAIL_F64)
    decay = graph.alu(Op.EXP, graph.alu(Op.NEG, square))
    below = graph.alu(Op.ADD, num(1, x), graph.alu(Op.MUL, two, a))
    outer = graph.alu(Op.DIV, graph.alu(Op.MUL, decay, scaled), below)
    # beyond 30 nothing is left in either dtype; at infinity t is NaN
    outer = graph.where(graph.alu(Op.CMPLT, num(30, x), a), num(0, x), outer)
    return inner, outer, graph.alu(Op.CMPLT, a, num(1, x))


def erf_node(x: UOp) -> UOp:
    """erf in float32 or float64."""
    inner, outer, is_small = _parts(x)
    value = graph.where(is_small, inner, graph.alu(Op.SUB, num(1, x), outer))
    return with_sign(value, x)


def one_plus_erf_node(x: UOp) -> UOp:
    """1 + erf(x), keeping the small results of very negative x."""
    inner, outer, is_small = _parts(x)
    one, two = num(1, x), num(2, x)
    negative = graph.alu(Op.CMPLT, x, num(0, x))
    near = graph.alu(Op.ADD, one, with_sign(inner, x))
    far = graph.where(negative, outer, graph.alu(Op.SUB, two, outer))
    return graph.where(is_small, near, far)


def erf(x: Any, /) -> Array:
    """The error function."""
    return unary("erf", x, erf_node)


def _cbrt(x: UOp) -> UOp:
    """A guess that divides the exponent by 3, then Halley's steps; both ends are scaled away."""
    single = x.dtype is dt.float32
    unsigned = dt.unsigned(x.dtype.bits)
    a = magnitude(x)
    mantissa, bias = (23, 127) if single else (52, 1023)
    lift = 24 if single else 54  # a multiple of 3, so its cube root is a power of two
    tiny = graph.alu(Op.CMPLT, a, num(2.0 ** (lift - bias), x))
    huge = graph.alu(Op.CMPLT, num(2.0 ** (bias - 3), x), a)  # the guess cubed may overflow
    factor = graph.where(huge, num(2.0**-lift, x), num(1, x))
    factor = graph.where(tiny, num(2.0**lift, x), factor)
    scaled = graph.alu(Op.MUL, a, factor)
    third = graph.alu(Op.FLOORDIV, graph.bitcast(scaled, unsigned), graph.constant(3, unsigned))
    offset = int(((bias * 2 / 3) - 0.0450466) * 2**mantissa)
    y = graph.bitcast(graph.alu(Op.ADD, third, graph.constant(offset, unsigned)), x.dtype)
    for _ in range(2 if single else 3):
        cube = graph.alu(Op.MUL, graph.alu(Op.MUL, y, y), y)
        top = graph.alu(Op.SUB, scaled, cube)
        # y (s - y**3) / (2 y**3 + s), the divisor over 4 so that it cannot overflow
        half, quarter = (
            graph.alu(Op.MUL, cube, num(0.5, x)),
            graph.alu(Op.MUL, scaled, num(0.25, x)),
        )
        share = graph.alu(Op.DIV, top, graph.alu(Op.ADD, half, quarter))
        y = graph.alu(Op.ADD, y, graph.alu(Op.MUL, graph.alu(Op.MUL, y, num(0.25, x)), share))
    back = graph.where(huge, num(2.0 ** (lift // 3), x), num(1, x))
    back = graph.where(tiny, num(2.0 ** -(lift // 3), x), back)
    y = graph.alu(Op.MUL, y, back)
    regular = graph.alu(
        Op.AND,
        graph.alu(Op.CMPLT, num(0, x), a),
        graph.alu(Op.CMPLT, a, num(math.inf, x)),
    )
    return graph.where(regular, with_sign(y, x), x)


def cbrt(x: Any, /) -> Array:
    """The cube root."""
    return unary("cbrt", x, _cbrt)
