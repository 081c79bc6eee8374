"""Exponentials, logarithms, trigonometry: IR ops, and what is composed from them accurately.

The compositions below work in the operand's dtype (float32 for the small floats) with
compensated steps, so that targets without float64 keep the accuracy too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from loopwright import graph
from loopwright.api.dtypes import operand
from loopwright.api.elementwise import magnitude
from loopwright.api.steps import MANTISSA, add, binary, head, mul, num, sub, unary
from loopwright.array import Array
from loopwright.promotion import float_dtype
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

# 1/ln 2, 1/ln 10, ln 2 and log10(2) to 60 digits.
_INV_LN2 = Fraction("1.442695040888963407359924681001892137426645954152985934135449")
_INV_LN10 = Fraction("0.434294481903251827651128918916605082294397005803666566114454")
LN2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680")
_LOG10_2 = Fraction("0.301029995663981195213738894724493026768189881462108541310427")


def _op(name: str, op: Op, x: Any) -> Array:
    x = operand(name, x)
    return Array(graph.alu(op, graph.cast(x._uop, float_dtype(x.dtype))), x.device)


def exp(x: Any, /) -> Array:
    """e ** x."""
    return _op("exp", Op.EXP, x)


def log(x: Any, /) -> Array:
    """The natural logarithm."""
    return _op("log", Op.LOG, x)


def sin(x: Any, /) -> Array:
    """The sine, x in radians."""
    return _op("sin", Op.SIN, x)


def cos(x: Any, /) -> Array:
    """The cosine, x in radians."""
    return _op("cos", Op.COS, x)


def tanh(x: Any, /) -> Array:
    """The hyperbolic tangent."""
    return _op("tanh", Op.TANH, x)


def tan(x: Any, /) -> Array:
    """The tangent, x in radians."""
    return unary("tan", x, lambda v: graph.alu(Op.DIV, graph.alu(Op.SIN, v), graph.alu(Op.COS, v)))


def round_to(value: Fraction, bits: int) -> Fraction:
    """The nearest number of so many significant bits."""
    shift = bits - math.frexp(float(value))[1]
    scale = Fraction(2) ** shift
    return Fraction(round(value * scale)) / scale


def times(node: UOp, factor: Fraction) -> UOp:
    """node * factor, rounded about once: both are cut in halves whose products are exact."""
    half = (MANTISSA[node.dtype] + 1) // 2
    high = round_to(factor, half)
    upper = head(node)
    lower = sub(node, upper)
    small = add(mul(upper, num(factor - high, node)), mul(lower, num(factor, node)))
    product = add(mul(upper, num(high, node)), small)
    finite = graph.alu(Op.CMPLT, magnitude(node), num(math.inf, node))
    return graph.where(finite, product, node)  # inf - inf above; the factors are positive


def _split(x: UOp) -> tuple[UOp, UOp]:
    """The exponent as a float, and the mantissa in [sqrt(1/2), sqrt(2)), of positive numbers."""
    mantissa = MANTISSA[x.dtype]
    signed = dt.signed(x.dtype.bits)
    bias = (1 << (x.dtype.bits - mantissa - 2)) - 1
    tiny = graph.alu(Op.CMPLT, x, num(Fraction(2) ** (1 - bias), x))
    scaled = graph.where(tiny, mul(x, num(Fraction(2) ** (mantissa + 1), x)), x)
    # Adding the distance from sqrt(1/2) to 1 carries into the exponent from sqrt(2) on.
    half = int(math.sqrt(0.5) * 2 ** (mantissa + 1)) - (1 << mantissa)
    offset = graph.constant((1 << mantissa) - half, signed)
    raised = graph.alu(Op.ADD, graph.bitcast(scaled, signed), offset)
    exponent = graph.alu(Op.SHR, raised, graph.constant(mantissa, signed))
    fraction = graph.alu(Op.AND, raised, graph.constant((1 << mantissa) - 1, signed))
    rebuilt = graph.alu(Op.ADD, fraction, graph.constant(((bias - 1) << mantissa) + half, signed))
    number = graph.cast(graph.alu(Op.SUB, exponent, graph.constant(bias, signed)), x.dtype)
    number = sub(number, graph.where(tiny, num(mantissa + 1, x), num(0, x)))
    return number, graph.bitcast(rebuilt, x.dtype)


def _with_ends(x: UOp, value: UOp) -> UOp:
    """A logarithm's value for positive numbers, and what it is at 0, below, at inf and NaN."""
    plain = graph.alu(
        Op.AND,
        graph.alu(Op.CMPLT, num(0, x), x),
        graph.alu(Op.CMPLT, x, num(math.inf, x)),
    )
    below = graph.where(graph.alu(Op.CMPLT, x, num(0, x)), num(math.nan, x), x)
    end = graph.where(graph.alu(Op.CMPEQ, x, num(0, x)), num(-math.inf, x), below)
    return graph.where(plain, value, end)


def _log(x: UOp, inverse: Fraction, of_two: Fraction) -> UOp:
    """To the base of which 1/ln and the logarithm of 2 are given.

    The mantissa's logarithm stays in two parts: only the last sum rounds at full weight.
    """
    is_single = MANTISSA[x.dtype] == 23
    exponent, mantissa = _split(x)
    # log(1 + f) = f - f**2/2 + s * (f**2/2 + sum of 2/(2k+1) * s**2k) with s = f / (2 + f).
    f = sub(mantissa, num(1, x))
    bend = mul(mul(f, f), num(0.5, x))
    s = graph.alu(Op.DIV, f, add(f, num(2, x)))
    square, series = mul(s, s), num(0, x)
    for k in range(5 if is_single else 10, 0, -1):
        series = mul(add(series, num(Fraction(2, 2 * k + 1), x)), square)
    upper = head(sub(f, bend))
    lower = add(sub(sub(f, upper), bend), mul(s, add(bend, series)))
    # The coarse factors are short enough for exact products.
    factor = round_to(inverse, (MANTISSA[x.dtype] + 1) // 2)
    step = round_to(of_two, 16 if is_single else 42)
    whole, part = mul(exponent, num(step, x)), mul(upper, num(factor, x))
    small = mul(add(upper, lower), num(inverse - factor, x))
    small = add(small, mul(lower, num(factor, x)))
    small = add(small, mul(exponent, num(of_two - step, x)))
    value = add(whole, part)
    lost = add(sub(whole, value), part)  # exact: the whole is 0 or the larger
    return _with_ends(x, add(value, add(lost, small)))


def log10(x: Any, /) -> Array:
    """The logarithm to base 10."""
    return unary("log10", x, lambda v: _log(v, _INV_LN10, _LOG10_2))


def log2(x: Any, /) -> Array:
    """The logarithm to base 2; exact for powers of 2."""
    return unary("log2", x, lambda v: _log(v, _INV_LN2, Fraction(1)))


def _power_of_two(n: UOp, like: UOp) -> UOp:
    """2 ** n for whole n within the dtype's normal exponents, given as a float."""
    mantissa = MANTISSA[like.dtype]
    signed = dt.signed(like.dtype.bits)
    bias = (1 << (like.dtype.bits - mantissa - 2)) - 1
    biased = graph.alu(Op.ADD, graph.cast(n, signed), graph.constant(bias, signed))
    bits = graph.alu(Op.SHL, biased, graph.constant(mantissa, signed))
    return graph.bitcast(bits, like.dtype)


def _exp2(x: UOp) -> UOp:
    """2**n * e**(r ln 2) with r in [-1/2, 1/2]; the scaling in two steps reaches subnormals."""
    mantissa = MANTISSA[x.dtype]
    low, high = (-152, 130) if mantissa == 23 else (-1080, 1026)
    bound = graph.alu(Op.MIN, graph.alu(Op.MAX, x, num(low, x)), num(high, x))
    n = graph.alu(Op.RINT, bound)
    r = sub(bound, n)
    value = graph.alu(Op.EXP, times(r, LN2))
    first = graph.alu(Op.TRUNC, mul(n, num(0.5, x)))
    return mul(mul(value, _power_of_two(first, x)), _power_of_two(sub(n, first), x))


def exp2(x: Any, /) -> Array:
    """2 ** x; exact for whole x."""
    return unary("exp2", x, _exp2)


def log1p_node(x: UOp) -> UOp:
    """log(u) + (what 1 + x lost in rounding to u) / u; the loss by Knuth's two-sum."""
    one = num(1, x)
    u = add(one, x)
    back = sub(u, one)
    lost = add(sub(one, sub(u, back)), sub(x, back))
    log_u = graph.alu(Op.LOG, u)
    plain = graph.alu(
        Op.OR,
        graph.alu(Op.CMPEQ, lost, num(0, x)),
        graph.alu(Op.CMPEQ, u, num(math.inf, x)),
    )
    value = graph.where(plain, log_u, add(log_u, graph.alu(Op.DIV, lost, u)))
    return graph.where(graph.alu(Op.CMPEQ, x, num(0, x)), x, value)


def log1p(x: Any, /) -> Array:
    """log(1 + x), accurate near 0."""
    return unary("log1p", x, log1p_node)


def _expm1(x: UOp) -> UOp:
    """2**n * (e**r - 1) + (2**n - 1) with r = x - n ln 2 and a Taylor sum for e**r - 1."""
    is_single = MANTISSA[x.dtype] == 23
    terms, top, low = (9, 127, -40) if is_single else (15, 1023, -80)
    n = graph.alu(Op.RINT, mul(x, num(_INV_LN2, x)))
    n = graph.alu(Op.MIN, graph.alu(Op.MAX, n, num(low, x)), num(top, x))
    coarse = round_to(LN2, 12 if is_single else 32)  # n * coarse is exact
    most, rest = sub(x, mul(n, num(coarse, x))), mul(n, num(LN2 - coarse, x))
    r = sub(most, rest)
    r_lost = sub(sub(most, r), rest)
    tail = num(Fraction(1, math.factorial(terms)), x)
    for k in range(terms - 1, 1, -1):
        tail = add(mul(tail, r), num(Fraction(1, math.factorial(k)), x))
    bent = add(mul(mul(r, r), tail), mul(r_lost, add(r, num(1, x))))
    power = _power_of_two(n, x)
    # The leading parts nearly cancel for n = 1: their sum keeps what it lost (Knuth's two-sum).
    base, line = sub(power, num(1, x)), mul(power, r)
    value = add(base, line)
    back = sub(value, base)
    lost = add(sub(base, sub(value, back)), sub(line, back))
    value = add(value, add(lost, mul(power, bent)))
    # Beyond the reduction's range the exponential itself is the answer: inf, NaN, or -1.
    edge = math.log(2) * (top - 1)
    inside = graph.alu(
        Op.AND,
        graph.alu(Op.CMPLT, num(low * 0.69, x), x),
        graph.alu(Op.CMPLT, x, num(edge, x)),
    )
    value = graph.where(inside, value, sub(graph.alu(Op.EXP, x), num(1, x)))
    return graph.where(graph.alu(Op.CMPEQ, x, num(0, x)), x, value)


def expm1(x: Any, /) -> Array:
    """e**x - 1, accurate near 0."""
    return unary("expm1", x, _expm1)


def sigmoid_node(x: UOp) -> UOp:
    """1 / (1 + e**-x), written so that neither side overflows or loses small results."""
    e = graph.alu(Op.EXP, graph.alu(Op.NEG, magnitude(x)))
    negative = graph.alu(Op.CMPLT, x, num(0, x))
    return graph.alu(Op.DIV, graph.where(negative, e, num(1, x)), add(num(1, x), e))


def sigmoid(x: Any, /) -> Array:
    """1 / (1 + e**-x)."""
    return unary("sigmoid", x, lambda v: _nan_through(v, sigmoid_node(v)))


def _nan_through(x: UOp, value: UOp) -> UOp:
    return graph.where(graph.alu(Op.CMPEQ, x, x), value, x)


def _logaddexp(a: UOp, b: UOp) -> UOp:
    larger = graph.alu(Op.MAX, a, b)
    apart = graph.alu(Op.NEG, magnitude(sub(a, b)))
    value = add(larger, log1p_node(graph.alu(Op.EXP, apart)))
    return graph.where(graph.alu(Op.CMPEQ, a, b), add(a, num(LN2, a)), value)


def logaddexp(x1: Any, x2: Any, /) -> Array:
    """log(e**x1 + e**x2)."""
    return binary("logaddexp", x1, x2, _logaddexp)


def _hypot(a: UOp, b: UOp) -> UOp:
    """The larger side times sqrt(1 + ratio**2): no overflow on the way."""
    a, b = magnitude(a), magnitude(b)
    larger, smaller = graph.alu(Op.MAX, a, b), graph.alu(Op.MIN, a, b)
    ratio = graph.alu(Op.DIV, smaller, larger)
    value = mul(larger, graph.alu(Op.SQRT, add(num(1, a), mul(ratio, ratio))))
    value = graph.where(graph.alu(Op.CMPEQ, smaller, num(0, a)), larger, value)
    inf = num(math.inf, a)
    has_inf = graph.alu(Op.OR, graph.alu(Op.CMPEQ, a, inf), graph.alu(Op.CMPEQ, b, inf))
    return graph.where(has_inf, inf, value)


def hypot(x1: Any, x2: Any, /) -> Array:
    """sqrt(x1**2 + x2**2) without overflow on the way."""
    return binary("hypot", x1, x2, _hypot)
