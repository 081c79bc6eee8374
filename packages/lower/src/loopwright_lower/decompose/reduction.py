"""x modulo pi/2 for SIN and COS, to more than working precision, for every finite x.

Moderate x: n*pi/2 subtracted in three fused steps (W. J. Cody and W. Waite, 1980). Others: the
bits of 2/pi that matter for x's exponent, times x's digits, in integers (M. H. Payne and
R. N. Hanek, SIGNUM 18, 1983). Both are computed and one is chosen: lanes do not branch.
"""

from __future__ import annotations

import math

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose import coefficients as co
from loopwright_lower.decompose.build import (
    add,
    and_,
    bitcast,
    bits_of,
    cast,
    ftoi,
    lt,
    mul,
    ne,
    or_,
    shl,
    shr,
    sub,
    where,
)
from loopwright_lower.decompose.double import Pair, fast_two_sum, two_product, two_sum
from loopwright_lower.decompose.exponential import BINARY, from_low_bits, nearest
from loopwright_lower.decompose.table import Emit

_U64 = dt.uint64
_LOW = 0xFFFFFFFF


def reduce_angle(e: Emit, x: UOp) -> tuple[UOp, Pair]:
    """(q, r) with x = q*pi/2 + r modulo 2*pi, |r| about pi/4 at most, for x >= 0; q is uint."""
    is_32 = x.dtype is dt.float32
    if e.has_fma:
        limit = co.CODY_WAITE_LIMIT_32 if is_32 else co.CODY_WAITE_LIMIT_64
        quick = _cody_waite(e, x)
    else:
        # Without a fused step the subtraction is exact only for n = 0.
        limit = 0.78
        quick = const(0, dt.unsigned(x.dtype.bits)), (x, const(0.0, x.dtype))
    # Every x from the limit on has at least this exponent.
    exponent = math.frexp(limit)[1] - 1
    exact = (_payne_hanek_32 if is_32 else _payne_hanek_64)(e, x, exponent)
    small = lt(x, limit)
    q = where(small, quick[0], exact[0])
    high = where(small, quick[1][0], exact[1][0])
    return q, (high, where(small, quick[1][1], exact[1][1]))


def _cody_waite(e: Emit, x: UOp) -> tuple[UOp, Pair]:
    """x - n*pi/2, pi/2 as the sum of three floats; the first step is exact."""
    first, second, third = co.HALF_PI_32 if x.dtype is dt.float32 else co.HALF_PI_64
    whole, n = nearest(e, x, 2 / math.pi)
    r = e.fma(whole, const(-first, x.dtype), x)
    product, product_rest = two_product(e, whole, const(-second, x.dtype))
    high, low = two_sum(r, product)
    return n, (high, add(low, e.fma(whole, const(-third, x.dtype), product_rest)))


def _window(x: UOp, n_words: int, least: int) -> list[UOp]:
    """The bits of 2/pi from weight 2 on, relative to x's last digit: `n_words`, first is highest.

    Words are as wide as x. The table starts with the zeros that x = 2**least needs; the place of
    the first word is looked up bit by bit, which takes a select a word and bit.
    """
    form, raw = BINARY[x.dtype], bits_of(x)
    bits, word = x.dtype.bits, raw.dtype
    lowest = form.bias + least
    drop = sub(shr(raw, form.mantissa), lowest)
    place, shift = shr(drop, bits.bit_length() - 1), and_(drop, bits - 1)
    steps = ((2 * form.bias - lowest) // bits).bit_length()
    table = _table(bits, (1 << steps) + n_words, 2 + form.mantissa - least)
    chosen = [const(w, word) for w in table]
    for k in reversed(range(steps)):
        bit = ne(and_(place, 1 << k), 0)
        keep = n_words + (1 << k)
        chosen = [_choose(bit, chosen[i + (1 << k)], chosen[i]) for i in range(keep)]
    back = sub(const(bits - 1, word), shift)
    return [or_(shl(chosen[i], shift), shr(shr(chosen[i + 1], 1), back)) for i in range(n_words)]


def _choose(bit: UOp, a: UOp, b: UOp) -> UOp:
    return a if a is b else where(bit, a, b)


def _table(word_bits: int, n_words: int, n_zeros: int) -> list[int]:
    """`n_zeros` zero bits, then those of 2/pi, as words; zeros again behind the last known bit."""
    length = word_bits * n_words
    known = n_zeros + co.TWO_OVER_PI_BITS
    bits = co.TWO_OVER_PI << max(length - known, 0) >> max(known - length, 0)
    mask = (1 << word_bits) - 1
    return [(bits >> (length - (k + 1) * word_bits)) & mask for k in range(n_words)]


def _digits(x: UOp) -> UOp:
    form, raw = BINARY[x.dtype], bits_of(x)
    return or_(and_(raw, (1 << form.mantissa) - 1), 1 << form.mantissa)


def _quarter(top: UOp) -> tuple[UOp, UOp]:
    """Turns of pi/2 in a 32-bit word with two bits before the point: the nearest, and the rest."""
    q = shr(add(top, 1 << 29), 30)
    return q, sub(top, shl(q, 30))


def _times_half_pi(e: Emit, pair: Pair, dtype: DType) -> Pair:
    """(high + low) * pi/2 in units of the fraction's word (its last bit counts 2**-30, 2**-62)."""
    c0, c1, _ = co.HALF_PI_32 if dtype is dt.float32 else co.HALF_PI_64
    first, second = math.ldexp(c0, 2 - dtype.bits), math.ldexp(c1, 2 - dtype.bits)
    high, rest = two_product(e, pair[0], const(first, dtype))
    low = e.fma(pair[0], const(second, dtype), mul(pair[1], first))
    return high, add(rest, low)


def _payne_hanek_32(e: Emit, x: UOp, least: int) -> tuple[UOp, Pair]:
    """24 digits times 96 bits of 2/pi, modulo 4: 62 bits of fraction."""
    m = _digits(x)
    a, b, c = _window(x, 3, least)
    wide = cast(m, _U64)
    middle = add(mul(wide, cast(b, _U64)), shr(mul(wide, cast(c, _U64)), 32))
    top = add(mul(m, a), cast(shr(middle, 32), dt.uint32))
    q, rest = _quarter(top)
    fraction = bitcast(rest, dt.int32)
    high = cast(fraction, dt.float32)
    cut = cast(sub(fraction, ftoi(high, dt.int32)), dt.float32)
    # Signed conversions are what hardware has: the last bit of 62 is let go.
    below = cast(bitcast(shr(cast(middle, dt.uint32), 1), dt.int32), dt.float32)
    # After cancellation `high` may have fewer digits than what follows.
    pair = fast_two_sum(high, e.fma(below, const(2.0**-31, dt.float32), cut))
    return q, _times_half_pi(e, pair, dt.float32)


def _payne_hanek_64(e: Emit, x: UOp, least: int) -> tuple[UOp, Pair]:
    """53 digits times 192 bits of 2/pi, modulo 4: 126 bits of fraction, in 32-bit limbs."""
    m = _digits(x)
    m_low, m_high = and_(m, _LOW), shr(m, 32)
    limbs: list[UOp] = []
    for word in reversed(_window(x, 3, least)):
        limbs += [and_(word, _LOW), shr(word, 32)]
    low_products = [mul(m_low, limb) for limb in limbs]
    high_products = [mul(m_high, limb) for limb in limbs[:-1]]
    columns: list[UOp] = []
    carry = const(0, _U64)
    for k in range(1, 6):
        total = add(and_(low_products[k], _LOW), shr(low_products[k - 1], 32))
        total = add(total, and_(high_products[k - 1], _LOW))
        if k > 1:
            total = add(total, shr(high_products[k - 2], 32))
        total = add(total, carry)
        columns.append(and_(total, _LOW))
        carry = shr(total, 32)
    _, c2, c3, c4, c5 = columns
    q, rest = _quarter(c5)
    # `rest` is signed and wraps; half the range of a limb added makes it one.
    first = from_low_bits(add(rest, 1 << 31), dt.float64, 2.0**31)
    second, third, fourth = (from_low_bits(c, dt.float64) for c in (c4, c3, c2))
    high, low = fast_two_sum(mul(first, 2.0**32), second)
    tail = e.fma(fourth, const(2.0**-64, dt.float64), mul(third, 2.0**-32))
    return q, _times_half_pi(e, fast_two_sum(high, add(low, tail)), dt.float64)
