"""FLOORDIV and MOD of floats: numpy.floor_divide and numpy.remainder, the remainder exact.

For |x| = a * 2**d in units of |y|'s last digit, the remainder is a * 2**d modulo b, b the digits
of y. 2**d modulo b comes by squaring in integers: a fixed number of steps for every exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose.build import (
    abs_,
    add,
    and_,
    bitcast,
    bits_of,
    cast,
    cmod,
    copy_sign,
    div,
    eq,
    ftoi,
    lt,
    mul,
    ne,
    or_,
    shl,
    shr,
    sub,
    trunc,
    where,
    xor,
)
from loopwright_lower.decompose.exponential import BINARY, power_of_two
from loopwright_lower.decompose.table import Emit, Rule, is_float, is_kept, keep

_U64 = dt.uint64


Modulo = Callable[[UOp, UOp], UOp]


def _modulo_64(m: UOp) -> Modulo:
    """a*b modulo m by integer division, for a, b < m < 2**24."""
    return lambda a, b: cmod(mul(a, b), m)


def _modulo_double(m: UOp) -> Modulo:
    """a*b modulo m in float64, for integers a, b < m < 2**24: products are exact."""
    inverse = div(1.0, m)

    def times(a: UOp, b: UOp) -> UOp:
        product = mul(a, b)
        rest = sub(product, mul(trunc(mul(product, inverse)), m))  # the quotient is off by one
        rest = where(lt(rest, 0), add(rest, m), rest)
        return where(lt(rest, m), rest, sub(rest, m))

    return times


def _modulo_53(m: UOp) -> Modulo:
    """a*b modulo m for a, b < m < 2**53.

    The quotient is guessed in float64, off by less than four; the remainder follows from
    products modulo 2**64, where it is small.
    """
    inverse = div(1.0, cast(m, dt.float64))
    two, four = shl(m, 1), shl(m, 2)

    def times(a: UOp, b: UOp) -> UOp:
        guess = mul(mul(cast(a, dt.float64), cast(b, dt.float64)), inverse)
        rest = sub(mul(a, b), mul(ftoi(guess, _U64), m))
        rest = where(lt(bitcast(rest, dt.int64), 0), add(rest, four), rest)
        for multiple in (four, two, m):
            rest = where(lt(rest, multiple), rest, sub(rest, multiple))
        return rest

    return times


def _digits_and_exponent(x: UOp) -> tuple[UOp, UOp]:
    """(a, k): x = a * 2**k * (smallest subnormal), a with its top digit set; x finite, >= 0."""
    form = BINARY[x.dtype]
    tiny = lt(x, math.ldexp(1.0, 1 - form.bias))
    lift = form.mantissa + 1
    raw = bits_of(where(tiny, mul(x, math.ldexp(1.0, lift)), x))
    exponent = cast(shr(raw, form.mantissa), dt.int64)
    digits = or_(cast(and_(raw, (1 << form.mantissa) - 1), _U64), 1 << form.mantissa)
    below = where(tiny, const(lift + 1, dt.int64), const(1, dt.int64))
    return digits, sub(exponent, below)


def fmod_magnitude(e: Emit, x: UOp, y: UOp) -> UOp:
    """|x| modulo |y| for finite x >= 0 and y > 0; elsewhere any value."""
    a, x_exponent = _digits_and_exponent(x)
    b, y_exponent = _digits_and_exponent(y)
    gap = sub(x_exponent, y_exponent)
    # Below 2**9 (float32) or 2**12 (float64); a negative gap is x < y, chosen at the end.
    steps, d_bits = (4, 9) if x.dtype is dt.float32 else (6, 12)
    d = and_(bitcast(where(lt(gap, 0), const(0, dt.int64), gap), _U64), (1 << d_bits) - 1)
    # The top bits of d alone give a power below b, which has all its digits.
    power = shl(const(1, _U64), shr(d, steps))
    if x.dtype is dt.float64:
        times = _modulo_53(b)
    elif e.has(dt.float64):
        a, b, power = (cast(v, dt.float64) for v in (a, b, power))
        times = _modulo_double(b)
    else:
        times = _modulo_64(b)
    for k in reversed(range(steps)):
        power = times(power, power)
        double = add(power, power)
        double = where(lt(double, b), double, sub(double, b))
        power = where(ne(and_(d, 1 << k), 0), double, power)
    rest = times(where(lt(a, b), a, sub(a, b)), power)
    return where(lt(x, y), x, _scaled(cast(rest, x.dtype), y_exponent))


def _scaled(value: UOp, exponent: UOp) -> UOp:
    """An integer value * 2**exponent * (smallest subnormal), which is exact."""
    dtype = value.dtype
    form = BINARY[dtype]
    unsigned = dt.unsigned(dtype.bits)
    least = 1 - form.bias - form.mantissa
    half = shr(add(exponent, least), 1)
    rest = sub(add(exponent, least), half)
    first = power_of_two(cast(bitcast(half, _U64), unsigned), dtype)
    second = power_of_two(cast(bitcast(rest, _U64), unsigned), dtype)
    return mul(mul(value, first), second)


def _is_whole_power(c: float) -> bool:
    """A power of two from 1 on, whose reciprocal is a normal number in float32 too."""
    return 1.0 <= c <= 2.0**100 and math.frexp(c)[0] == 0.5


def _fmod(e: Emit, x: UOp, y: UOp) -> UOp:
    """C's fmod: the sign of x; NaN for infinite x, zero y and NaN."""
    dtype = x.dtype
    if y.op is Op.CONST and _is_whole_power(abs(y.arg)):
        size = abs(y.arg)
        return sub(x, mul(trunc(mul(x, 1.0 / size)), size))
    a, b = abs_(x), abs_(y)
    ok = and_(lt(a, math.inf), lt(0, b))
    safe_a = where(ok, a, const(0.0, dtype))
    safe_b = where(and_(ok, lt(b, math.inf)), b, const(1.0, dtype))
    rest = where(lt(a, b), a, fmod_magnitude(e, safe_a, safe_b))
    # NaN operands fail every comparison but b's own.
    valid = and_(ok, eq(y, y))
    return where(valid, copy_sign(rest, x), const(math.nan, dtype))


def _opposite(rest: UOp, y: UOp) -> UOp:
    """The remainder is not zero and its sign is not y's."""
    return and_(ne(rest, 0), xor(lt(y, 0), lt(rest, 0)))


def mod_float(e: Emit, node: UOp) -> UOp:
    """x % y --> fmod, plus y where the signs differ; a zero takes y's sign."""
    x, y = node.src
    rest = _fmod(e, x, y)
    turned = where(_opposite(rest, y), add(rest, y), rest)
    zero = copy_sign(const(0.0, x.dtype), y)
    return where(eq(rest, 0), zero, turned)


def floordiv_float(e: Emit, node: UOp) -> UOp:
    """x // y --> (x - fmod) / y made an integer; x/0 at zero, NaN for infinite x."""
    x, y = node.src
    rest = _fmod(e, x, y)
    quotient = div(sub(x, rest), y)
    quotient = where(_opposite(rest, y), sub(quotient, 1.0), quotient)
    whole = trunc(quotient)
    down = where(lt(quotient, whole), sub(whole, 1.0), whole)
    down = where(lt(0.5, sub(quotient, down)), add(down, 1.0), down)
    plain = div(x, y)
    zero = copy_sign(const(0.0, x.dtype), plain)
    down = where(eq(quotient, 0), zero, down)
    return where(eq(y, 0), plain, down)


remainder_rules: tuple[Rule, ...] = (
    Rule("target_has_float_division", (Op.FLOORDIV, Op.MOD), is_kept, keep),
    Rule("mod_float", (Op.MOD,), is_float, mod_float),
    Rule("floordiv_float", (Op.FLOORDIV,), is_float, floordiv_float),
)
