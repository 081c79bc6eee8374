"""From random words to numbers, by steps that round alike on every device.

A multiply and an add are two roundings here, and no function of a device is called: the same key
gives the same bits wherever it is used.
"""

from __future__ import annotations

import math

import numpy as np

from loopwright import graph
from loopwright.api.dtypes import finfo
from loopwright.api.steps import MANTISSA, add, div, horner, mul, num, sub
from loopwright.api.threefry import Words, wide_word
from loopwright.promotion import accumulator
from loopwright_core.errors import ArgumentError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const


def _next(dtype: DType, value: float, is_up: bool) -> float:
    """The number of a dtype that follows one of its numbers, upwards or downwards."""
    goal = float(dtype.max if is_up else dtype.min)
    one, other = [np.asarray(v).astype(dtype.numpy) for v in (value, goal)]
    return float(np.nextafter(one, other))


def _rounded(value: float, dtype: DType, is_up: bool) -> float:
    """The number of a dtype that is nearest on one side of a value, or the value."""
    nearest = float(graph.constant(value, dtype).arg)
    if not math.isfinite(nearest):
        fail(ArgumentError, f"{dtype} cannot hold {value}", where="uniform", fix="use a wider one")
    is_beyond = nearest < value if is_up else nearest > value
    return _next(dtype, nearest, is_up) if is_beyond else nearest


def unit(words: Words, dtype: DType) -> UOp:
    """A number of [0, 1) in the accumulator of a dtype: a multiple of what it has below 1."""
    n_bits = 1 - round(math.log2(finfo(dtype).eps))
    word = wide_word(words) if dtype is dt.float64 else words[0]
    kept = graph.alu(Op.SHR, word, const(word.dtype.bits - n_bits, word.dtype))
    return _scaled(graph.cast(kept, accumulator(dtype)), -n_bits)


def _scaled(x: UOp, exponent: int) -> UOp:
    """x * 2**exponent."""
    return mul(x, num(math.ldexp(1.0, exponent), x))


def between(x: UOp, low: float, high: float, dtype: DType) -> UOp:
    """A number of [0, 1) stretched over [low, high) and rounded to a dtype.

    The ends hold for the numbers as they are given, not as the dtype would round them.
    Raises ArgumentError.
    """
    where = "uniform"
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        fail(ArgumentError, f"low={low}, high={high}", where=where, fix="give finite low <= high")
    first, last = _rounded(low, dtype, True), _rounded(high, dtype, False)
    if last >= high:
        last = _next(dtype, last, False)
    if low == high:
        last = first
    span = high - first
    if not first <= last or not abs(graph.constant(span, x.dtype).arg) < math.inf:
        fix = "give ends further apart, or another dtype" if first > last else "scale the result"
        fail(ArgumentError, f"{dtype} has no numbers from {low} up to {high}", where=where, fix=fix)
    if span != 1:
        x = mul(x, num(span, x))
    if first:
        x = add(num(first, x), x)
    x = graph.cast(x, dtype)
    return x if (first, span) == (0, 1) else graph.alu(Op.MIN, x, num(last, x))


# of the arc tangent: log(m) = 2s * (1 + s**2 / 3 + s**4 / 5 + ...) for s = (m - 1) / (m + 1)
_ATANH_TERMS = {dt.float32: 5, dt.float64: 11}
# of the sine up to a quarter of a turn
_SIN_TERMS = {dt.float32: 8, dt.float64: 12}


def _log(x: UOp) -> UOp:
    """The natural logarithm of a normal number above 0; Taylor's series of the arc tangent."""
    n, dtype = MANTISSA[x.dtype], dt.signed(x.dtype.bits)
    bits = graph.bitcast(x, dtype)
    # the significant part between the roots of 1/2 and 2, where the series is short
    middle = int(np.array(math.sqrt(0.5), x.dtype.numpy).view(dtype.numpy))
    exponent = graph.alu(Op.SHR, sub(bits, const(middle, dtype)), const(n, dtype))
    part = graph.bitcast(sub(bits, graph.alu(Op.SHL, exponent, const(n, dtype))), x.dtype)
    one = num(1, x)
    s = div(sub(part, one), add(part, one))
    series = horner(mul(s, s), [2 / (2 * k + 1) for k in range(_ATANH_TERMS[x.dtype])])
    return add(mul(graph.cast(exponent, x.dtype), num(math.log(2), x)), mul(s, series))


def _sine_terms(n: int) -> list[float]:
    """Taylor's coefficients of sin(pi * t) / t in powers of t**2."""
    terms, term = [], math.pi
    for k in range(n):
        terms.append(term)
        term *= -(math.pi * math.pi) / ((2 * k + 2) * (2 * k + 3))
    return terms


def standard_normal(radius: UOp, angle: UOp, wide: DType) -> UOp:
    """A normal variable of mean 0 and variance 1 from two words, in float32 or float64.

    Source: G. Box, M. Muller, "A note on the generation of random normal deviates", 1958; the
    sine over half a turn has the distribution of the cosine over a whole one.
    """
    bits = radius.dtype.bits
    share = graph.alu(Op.OR, radius, const(1, radius.dtype))  # of (0, 1]: its logarithm is finite
    share = _scaled(graph.cast(share, wide), -bits)
    turn = _scaled(graph.cast(graph.bitcast(angle, dt.signed(bits)), wide), -bits)
    sine = mul(turn, horner(mul(turn, turn), _sine_terms(_SIN_TERMS[wide])))
    return mul(graph.alu(Op.SQRT, mul(_log(share), num(-2, share))), sine)


def below(n: int, first: Words, more: Words) -> UOp:
    """An integer of 0 .. n-1 as uint64, for n up to 2**64: random bits as a fraction, times n.

    There are 2**32 random fractions for each integer at least, so that no integer's probability
    is off by more than 2**-32 of it.
    """
    word = wide_word(first)
    if n == 1 << 64:
        return word
    if n & (n - 1) == 0:
        return graph.alu(Op.SHR, word, const(65 - n.bit_length(), dt.uint64))
    low, high = [graph.cast(w, dt.uint64) for w in first]
    if n <= 1 << 32:
        part = _high(mul(low, const(n, dt.uint64)))
        return _high(add(mul(high, const(n, dt.uint64)), part))
    other = wide_word(more)
    bottom, top = mul(word, const(n, dt.uint64)), _high_product(other, n)
    joined = add(bottom, top)
    carry = graph.cast(graph.alu(Op.CMPLT, joined, bottom), dt.uint64)
    return add(_high_product(word, n), carry)


def _high(x: UOp) -> UOp:
    return graph.alu(Op.SHR, x, const(32, dt.uint64))


def _low(x: UOp) -> UOp:
    return graph.alu(Op.AND, x, const(0xFFFFFFFF, dt.uint64))


def _high_product(x: UOp, n: int) -> UOp:
    """The upper 64 bits of x * n, by halves of 32 bits."""
    n_low, n_high = const(n & 0xFFFFFFFF, dt.uint64), const(n >> 32, dt.uint64)
    x_low, x_high = _low(x), _high(x)
    crossed = add(mul(x_high, n_low), _high(mul(x_low, n_low)))
    other = add(mul(x_low, n_high), _low(crossed))
    return add(add(mul(x_high, n_high), _high(crossed)), _high(other))


def happens(probability: float, words: Words) -> UOp | bool:
    """True with that probability, in steps of 2**-64; a bool where there is no choice."""
    limit = int(probability * 2.0**64)
    if limit in (0, 1 << 64):
        return limit > 0
    return graph.alu(Op.CMPLT, wide_word(words), const(limit, dt.uint64))
