"""POW of floats: 2**(y * log2|x|) with the logarithm in more than working precision.

The special cases are those of C's pow (ISO C, annex F.10.4.4), which NumPy follows.
"""

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
    cast,
    div,
    eq,
    float_bits,
    lt,
    mul,
    ne,
    neg,
    or_,
    rint,
    sqrt,
    sub,
    trunc,
    where,
)
from loopwright_lower.decompose.double import Pair, fast_two_sum, polynomial, times, two_product
from loopwright_lower.decompose.exponential import (
    BINARY,
    clamp,
    exp_parts,
    nearest,
    power_of_two,
    scale,
)
from loopwright_lower.decompose.logarithm import split
from loopwright_lower.decompose.table import Emit, Rule, is_float


def _log2_pair(e: Emit, x: UOp) -> Pair:
    """log2 of a positive finite number to about twice the precision.

    With s = (m-1)/(m+1): log m = s * (2 + 2/3*z + z**2*Q(z)), z = s**2; the first two terms
    and s carry their rounding errors along.
    """
    dtype = x.dtype
    is_32 = dtype is dt.float32
    m, n = split(x)
    f = sub(m, 1.0)
    g = add(m, 1.0)
    g_rest = sub(m, sub(g, 1.0))
    s = div(f, g)
    product, product_rest = two_product(e, s, g)
    s_rest = div(sub(sub(sub(f, product), product_rest), mul(s, g_rest)), g)
    z, z_rest = times(e, (s, s_rest), (s, s_rest))
    third = co.TWO_THIRDS_32 if is_32 else co.TWO_THIRDS_64
    t, t_rest = times(e, (z, z_rest), (const(third[0], dtype), const(third[1], dtype)))
    tail = mul(mul(z, z), polynomial(e, z, co.ATANH_32 if is_32 else co.ATANH_64))
    a, a_rest = fast_two_sum(t, tail)
    b, b_rest = fast_two_sum(const(2.0, dtype), a)
    log_m = times(e, (s, s_rest), (b, add(b_rest, add(a_rest, t_rest))))
    scale_ = co.LOG2_E_32 if is_32 else co.LOG2_E_64
    high, low = times(e, log_m, (const(scale_[0], dtype), const(scale_[1], dtype)))
    total, rest = fast_two_sum(n, high)
    return fast_two_sum(total, add(rest, low))


def _exp2_log2(e: Emit, size: UOp, y: UOp) -> UOp:
    """size**y for 0 <= size, |y| finite, in the precision of the operands' own dtype."""
    dtype = size.dtype
    limit = 220.0 if dtype is dt.float32 else 1200.0
    high, low = _log2_pair(e, size)
    high = where(eq(size, 0), const(-math.inf, dtype), high)
    high = where(lt(size, math.inf), high, size)
    product, rest = two_product(e, y, high)
    rest = e.fma(y, low, rest)
    bounded = clamp(product, -limit, limit)
    rest = where(eq(product, bounded), rest, const(0.0, dtype))
    whole = rint(bounded)
    r = add(sub(bounded, whole), rest)
    p, n = exp_parts(e, mul(r, math.log(2)))
    # r*ln 2 is about half an octave: n is -1, 0 or 1 and adds to the integer part.
    _, shift = nearest(e, whole, 1.0)
    magic = float_bits(BINARY[dtype].magic, dtype)
    return scale(p, sub(add(n, shift), 2 * magic % (1 << dtype.bits)))


def _exp2_log2_wide(e: Emit, size: UOp, y: UOp) -> UOp:
    """The same for float32 operands through float64, where one rounding is left to the end."""
    x, y = cast(size, dt.float64), cast(y, dt.float64)
    m, n = split(x, subnormals=False)  # a float32 subnormal is a normal float64
    s = div(sub(m, 1.0), add(m, 1.0))
    logarithm = e.fma(s, polynomial(e, mul(s, s), co.POW_LOG2), n)
    logarithm = where(eq(x, 0), const(-math.inf, dt.float64), logarithm)
    logarithm = where(lt(x, math.inf), logarithm, x)
    bounded = clamp(mul(y, logarithm), -200.0, 200.0)
    whole, k = nearest(e, bounded, 1.0)
    value = polynomial(e, sub(bounded, whole), co.POW_EXP2)
    return cast(mul(value, power_of_two(k, dt.float64)), dt.float32)


def pow_float(e: Emit, node: UOp) -> UOp:
    """x ** y --> +-2**(y*log2|x|), the sign by y's parity; NaN for x < 0 and y no integer."""
    x, y = node.src
    dtype = x.dtype
    size = abs_(x)
    # Beyond it every power but that of 1 overflows or vanishes; infinity * log2(1) would be NaN.
    largest = 2.0**40 if dtype is dt.float32 else 2.0**70
    finite_y = clamp(y, -largest, largest)
    wide = dtype is dt.float32 and e.has(dt.float64)
    value = (_exp2_log2_wide if wide else _exp2_log2)(e, size, finite_y)
    whole = eq(trunc(y), y)
    half = mul(y, 0.5)
    odd = and_(whole, ne(trunc(half), half))
    below = lt(bitcast(x, dt.signed(dtype.bits)), 0)  # -0 too
    value = where(and_(below, odd), neg(value), value)
    undefined = and_(and_(lt(x, 0), lt(-math.inf, x)), ne(trunc(y), y))
    value = where(undefined, const(math.nan, dtype), value)
    return where(or_(eq(y, 0), eq(x, 1)), const(1.0, dtype), value)


def _by_constant(e: Emit, node: UOp) -> bool:
    y = node.src[1]
    return is_float(e, node) and y.op is Op.CONST and y.arg in (0.0, 1.0, 2.0, -1.0, 0.5)


def pow_constant(e: Emit, node: UOp) -> UOp:
    """x ** c for c in 0, 1, 2, -1, 1/2 --> one correctly rounded operation."""
    x, c = node.src[0], node.src[1].arg
    if c == 0.0:
        return const(1.0, node.dtype)
    if c == 1.0:
        return x
    if c == 2.0:
        return mul(x, x)
    if c == -1.0:
        return div(1.0, x)
    # pow(-0, 1/2) is +0 and pow(-inf, 1/2) is inf, unlike the square root.
    root = sqrt(add(x, 0.0))
    return where(eq(x, -math.inf), const(math.inf, node.dtype), root)


def _by_small_integer(e: Emit, node: UOp) -> bool:
    y = node.src[1]
    if node.dtype is not dt.float32 or y.op is not Op.CONST or not e.has(dt.float64):
        return False
    return bool(abs(y.arg) <= 16 and y.arg == int(y.arg))


def pow_small_integer(e: Emit, node: UOp) -> UOp:
    """x ** n of float32, |n| <= 16 --> products in float64, whose errors the cast swallows."""
    square, n = cast(node.src[0], dt.float64), int(node.src[1].arg)
    result, left = const(1.0, dt.float64), abs(n)
    while left:
        if left & 1:
            result = mul(result, square) if result.op is not Op.CONST else square
        left >>= 1
        if left:
            square = mul(square, square)
    return cast(div(1.0, result) if n < 0 else result, dt.float32)


power_rules: tuple[Rule, ...] = (
    Rule("pow_constant", (Op.POW,), _by_constant, pow_constant),
    Rule("pow_small_integer", (Op.POW,), _by_small_integer, pow_small_integer),
    Rule("pow_float", (Op.POW,), is_float, pow_float),
)
