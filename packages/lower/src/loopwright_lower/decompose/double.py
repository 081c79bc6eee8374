"""Exact sums and products of two floats as a pair (high, low), high + low being the true value."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose.build import add, mul, neg, sub
from loopwright_lower.decompose.table import Emit

Pair = tuple[UOp, UOp]


def fast_two_sum(a: UOp, b: UOp) -> Pair:
    """a + b, where |a| >= |b| or a is 0. Source: Dekker 1971."""
    high = add(a, b)
    return high, sub(b, sub(high, a))


def two_sum(a: UOp, b: UOp) -> Pair:
    """a + b, whichever is larger. Source: Knuth, TAOCP 2, 4.2.2."""
    high = add(a, b)
    part = sub(high, a)
    return high, add(sub(a, sub(high, part)), sub(b, part))


def two_product(e: Emit, a: UOp, b: UOp) -> Pair:
    """a * b, one fused operation or Dekker's split into halves (no factor near overflow)."""
    high = mul(a, b)
    if e.has_fma:
        return high, UOp(Op.FMA, a.dtype, (a, b, neg(high)))
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    rest = add(add(sub(mul(ah, bh), high), mul(ah, bl)), mul(al, bh))
    return high, add(rest, mul(al, bl))


def _halves(x: UOp) -> Pair:
    scaled = mul(x, 134217729.0 if x.dtype is dt.float64 else 4097.0)  # 2**27 + 1, 2**12 + 1
    high = sub(scaled, sub(scaled, x))
    return high, sub(x, high)


def times(e: Emit, a: Pair, b: Pair) -> Pair:
    """The product of two pairs, its relative error a few units of the square of the precision."""
    high, low = two_product(e, a[0], b[0])
    return high, add(low, e.fma(a[0], b[1], mul(a[1], b[0])))


def polynomial(e: Emit, x: UOp, coefficients: Sequence[float]) -> UOp:
    """c0 + c1*x + c2*x**2 + ..., by Horner's rule."""
    result = const(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        result = e.fma(result, x, const(c, x.dtype))
    return result
