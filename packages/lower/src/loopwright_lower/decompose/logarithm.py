"""LOG: n*ln 2 + log(m) for x = m * 2**n with m between sqrt(1/2) and sqrt(2)."""

from __future__ import annotations

import math

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose import coefficients as co
from loopwright_lower.decompose.build import (
    add,
    and_,
    bitcast,
    bits_of,
    div,
    eq,
    float_bits,
    lt,
    mul,
    shr,
    sub,
    where,
)
from loopwright_lower.decompose.double import polynomial
from loopwright_lower.decompose.exponential import BINARY, from_low_bits
from loopwright_lower.decompose.table import Emit, Rule, is_float


def split(x: UOp, subnormals: bool = True) -> tuple[UOp, UOp]:
    """(m, n) of a positive finite x = m * 2**n, sqrt(1/2) <= m < sqrt(2); both floats."""
    dtype = x.dtype
    form = BINARY[dtype]
    tiny = lt(x, math.ldexp(1.0, 1 - form.bias))
    if subnormals:
        x = where(tiny, mul(x, math.ldexp(1.0, form.mantissa + 1)), x)
    root = float_bits(math.sqrt(0.5), dtype)
    # Both parts of 1 * 2**n come out whole: m's bits from `root` on, and n + bias above them.
    moved = add(bits_of(x), (form.bias << form.mantissa) - root)
    m = bitcast(add(and_(moved, (1 << form.mantissa) - 1), root), dtype)
    n = from_low_bits(shr(moved, form.mantissa), dtype, form.bias)
    if subnormals:
        n = sub(n, where(tiny, const(form.mantissa + 1, dtype), const(0.0, dtype)))
    return m, n


def log_float(e: Emit, node: UOp) -> UOp:
    """log(x) --> n*ln 2 + log(m); NaN below zero, -inf at zero."""
    x = node.src[0]
    m, n = split(x)
    value = (_log_32 if x.dtype is dt.float32 else _log_64)(e, sub(m, 1.0), n)
    positive = where(lt(x, math.inf), value, x)
    other = where(eq(x, 0), const(-math.inf, x.dtype), const(math.nan, x.dtype))
    return where(lt(0, x), positive, other)


def _log_32(e: Emit, f: UOp, n: UOp) -> UOp:
    """f - f**2/2 + f**3*P(f), with n*ln 2 added smallest part first."""
    square = mul(f, f)
    tail = mul(mul(square, f), polynomial(e, f, co.LOG_32))
    tail = e.fma(n, const(co.LN2_LOW_32, f.dtype), tail)
    tail = e.fma(square, const(-0.5, f.dtype), tail)
    return e.fma(n, const(co.LN2_HIGH_32, f.dtype), add(f, tail))


def _log_64(e: Emit, f: UOp, n: UOp) -> UOp:
    """f - (f**2/2 - s*(f**2/2 + R(s**2))) with s = f / (2 + f), R of the series of atanh.

    Source: the reduction that P. T. P. Tang gives in TOMS 16 (1990), p. 378.
    """
    s = div(f, add(f, 2.0))
    z = mul(s, s)
    half_square = mul(mul(f, 0.5), f)
    series = mul(z, polynomial(e, z, co.LOG_64))
    low = e.fma(s, add(half_square, series), mul(n, co.LN2_LOW_64))
    inner = sub(sub(half_square, low), f)
    return sub(mul(n, co.LN2_HIGH_64), inner)


logarithm_rules: tuple[Rule, ...] = (Rule("log_float", (Op.LOG,), is_float, log_float),)
