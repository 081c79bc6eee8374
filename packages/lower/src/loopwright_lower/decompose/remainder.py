"""FLOORDIV and MOD of floats: numpy.floor_divide and numpy.remainder, the remainder exact.

For |x| = a * 2**d in units of |y|'s last digit, the remainder is a * 2**d modulo b, b the digits
of y. 2**d modulo b comes by squaring in integers: a fixed number of steps for every exponent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose.build import (
    abs_,
    add,
    and_,
    bitcast,
    bits_of,
    cast,
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


def _times_modulo(a: UOp, b: UOp, m: Modulus) -> UOp:
    """a*b modulo m, for a, b < m < 2**24 in 32-bit integers, 2**53 in 64-bit ones.

    The quotient is guessed in floats, off by less than four; the remainder follows from products
    modulo 2**32 or 2**64, where it is small.
    """
    unsigned, signed = a.dtype, dt.signed(a.dtype.bits)
    floats = [cast(bitcast(v, signed), m.inverse.dtype) for v in (a, b)]
    guess = mul(mul(floats[0], floats[1]), m.inverse)
    quotient = bitcast(ftoi(guess, signed), unsigned)
    rest = sub(mul(a, b), mul(quotient, m.value))
    rest = where(lt(bitcast(rest, signed), 0), add(rest, m.four), rest)
    for multiple in (m.four, m.two, m.value):
        rest = where(lt(rest, multiple), rest, sub(rest, multiple))
    return rest


@dataclass(frozen=True, slots=True)
class Modulus:
    """An integer with all its digits, its multiples, and its reciprocal."""

    value: UOp
    two: UOp
    four: UOp
    inverse: UOp


def _modulus(value: UOp, dtype: DType) -> Modulus:
    inverse = div(1.0, cast(bitcast(value, dt.signed(dtype.bits)), dtype))
    return Modulus(value, shl(value, 1), shl(value, 2), inverse)


def _digits_and_exponent(x: UOp) -> tuple[UOp, UOp]:
    """(a, k): x = a * 2**k * (smallest subnormal), a with its top digit set; x finite, >= 0."""
    form, signed = BINARY[x.dtype], dt.signed(x.dtype.bits)
    tiny = lt(x, math.ldexp(1.0, 1 - form.bias))
    lift = form.mantissa + 1
    raw = bits_of(where(tiny, mul(x, math.ldexp(1.0, lift)), x))
    exponent = bitcast(shr(raw, form.mantissa), signed)
    digits = or_(and_(raw, (1 << form.mantissa) - 1), 1 << form.mantissa)
    below = where(tiny, const(lift + 1, signed), const(1, signed))
    return digits, sub(exponent, below)


def fmod_magnitude(x: UOp, y: UOp) -> UOp:
    """|x| modulo |y| for finite x >= 0 and y > 0; elsewhere any value."""
    a, x_exponent = _digits_and_exponent(x)
    b, y_exponent = _digits_and_exponent(y)
    gap = sub(x_exponent, y_exponent)
    # Below 2**9 (float32) or 2**12 (float64); a negative gap is x < y, chosen at the end.
    steps, d_bits = (4, 9) if x.dtype is dt.float32 else (6, 12)
    d = bitcast(where(lt(gap, 0), 0, gap), a.dtype)
    d = and_(d, (1 << d_bits) - 1)
    # The top bits of d alone give a power below b, which has all its digits.
    power = shl(const(1, a.dtype), shr(d, steps))
    modulus = _modulus(b, x.dtype)
    for k in reversed(range(steps)):
        power = _times_modulo(power, power, modulus)
        double = add(power, power)
        double = where(lt(double, b), double, sub(double, b))
        power = where(ne(and_(d, 1 << k), 0), double, power)
    rest = _times_modulo(where(lt(a, b), a, sub(a, b)), power, modulus)
    value = cast(bitcast(rest, y_exponent.dtype), x.dtype)
    return where(lt(x, y), x, _scaled(value, y_exponent))


def _scaled(value: UOp, exponent: UOp) -> UOp:
    """An integer value * 2**exponent * (smallest subnormal), which is exact."""
    dtype = value.dtype
    form = BINARY[dtype]
    unsigned = dt.unsigned(dtype.bits)
    total = add(exponent, 1 - form.bias - form.mantissa)
    half = shr(total, 1)
    first = power_of_two(bitcast(half, unsigned), dtype)
    second = power_of_two(bitcast(sub(total, half), unsigned), dtype)
    return mul(mul(value, first), second)


def _is_whole_power(c: float) -> bool:
    """A power of two from 1 on, whose reciprocal is a normal number in float32 too."""
    return 1.0 <= c <= 2.0**100 and math.frexp(c)[0] == 0.5


def _fmod(x: UOp, y: UOp) -> UOp:
    """C's fmod: the sign of x; NaN for infinite x, zero y and NaN."""
    dtype = x.dtype
    if y.op is Op.CONST and _is_whole_power(abs(y.arg)):
        size = abs(y.arg)
        return sub(x, mul(trunc(mul(x, 1.0 / size)), size))
    a, b = abs_(x), abs_(y)
    ok = and_(lt(a, math.inf), lt(0, b))
    safe_a = where(ok, a, const(0.0, dtype))
    safe_b = where(and_(ok, lt(b, math.inf)), b, const(1.0, dtype))
    rest = where(lt(a, b), a, fmod_magnitude(safe_a, safe_b))
    # NaN operands fail every comparison but b's own.
    valid = and_(ok, eq(y, y))
    return where(valid, copy_sign(rest, x), const(math.nan, dtype))


def _opposite(rest: UOp, y: UOp) -> UOp:
    """The remainder is not zero and its sign is not y's."""
    return and_(ne(rest, 0), xor(lt(y, 0), lt(rest, 0)))


def mod_float(e: Emit, node: UOp) -> UOp:
    """x % y --> fmod, plus y where the signs differ; a zero takes y's sign."""
    x, y = node.src
    rest = _fmod(x, y)
    turned = where(_opposite(rest, y), add(rest, y), rest)
    zero = copy_sign(const(0.0, x.dtype), y)
    return where(eq(rest, 0), zero, turned)


def floordiv_float(e: Emit, node: UOp) -> UOp:
    """x // y --> (x - fmod) / y made an integer; x/0 at zero, NaN for infinite x."""
    x, y = node.src
    rest = _fmod(x, y)
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
