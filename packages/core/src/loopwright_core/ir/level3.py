"""Index arithmetic as hardware integers: every index node in int32 or int64, C's division."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.affine import number
from loopwright_core.ir.bounds import bounds
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, rebuild


def to_int(u: UOp, dtype: DType) -> UOp:
    """`u` with every node of dtype index in `dtype`; `width(u)` says which one is wide enough.

    FLOORDIV and MOD become CDIV and CMOD, shifted or corrected where the dividend may be negative.
    """
    return to_ints((u,), dtype)[0]


def to_ints(roots: tuple[UOp, ...], dtype: DType) -> tuple[UOp, ...]:
    """`to_int` of several roots in one walk."""

    def change(old: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if old.dtype is dt.index:
            return _typed(old, src, dtype)
        if old.op is Op.CAST and old.src[0].dtype is dt.index and old.dtype is dtype:
            return src[0]
        return None

    return tuple(rebuild(roots, change))


def _typed(old: UOp, src: tuple[UOp, ...], dtype: DType) -> UOp:
    op = old.op
    if op is Op.CONST:
        return number(old.arg, dtype)
    if op is Op.CAST and src[0].dtype is dtype:
        return src[0]
    if op is Op.FLOORDIV or op is Op.MOD:
        return _division(old, src[0], src[1], dtype)
    if op is Op.ADD and src[1].op is Op.CONST and src[1].arg < 0:
        return UOp(Op.SUB, dtype, (src[0], number(-src[1].arg, dtype)))
    if op is Op.ADD and src[1].op is Op.MUL and _is_negative(src[1].src[1]):
        return UOp(Op.SUB, dtype, (src[0], _times(src[1].src[0], -src[1].src[1].arg, dtype)))
    if op is Op.ADD and src[1].op is Op.NEG:
        return UOp(Op.SUB, dtype, (src[0], src[1].src[0]))
    if op is Op.MUL and src[1].op is Op.CONST and src[1].arg == -1:
        return UOp(Op.NEG, dtype, (src[0],))
    return UOp(op, dtype, src, old.arg)


def _is_negative(u: UOp) -> bool:
    return u.op is Op.CONST and u.arg < 0


def _times(x: UOp, k: int, dtype: DType) -> UOp:
    return x if k == 1 else UOp(Op.MUL, dtype, (x, number(k, dtype)))


def _division(old: UOp, x: UOp, d: UOp, dtype: DType) -> UOp:
    """x // d or x % d, rounded down, in CDIV and CMOD."""
    is_div = old.op is Op.FLOORDIV
    lo, hi = bounds(old.src[0])
    dlo, dhi = bounds(old.src[1])
    raw = Op.CDIV if is_div else Op.CMOD
    if dlo > 0 and lo >= 0:
        return UOp(raw, dtype, (x, d))
    if dlo == dhi and dlo > 0:
        steps = -(lo // dlo)
        if hi + steps * dlo <= int(dtype.max):  # (x + s*d) // d - s with a dividend >= 0
            shifted = UOp(Op.ADD, dtype, (x, number(steps * dlo, dtype)))
            result = UOp(raw, dtype, (shifted, d))
            return UOp(Op.SUB, dtype, (result, number(steps, dtype))) if is_div else result
    return corrected(is_div, x, d, dtype, d_may_be_zero=dlo <= 0 <= dhi)


def corrected(is_div: bool, x: UOp, d: UOp, dtype: DType, d_may_be_zero: bool) -> UOp:
    """Division rounded down from division rounded to zero, for any signs; by 0 it is 0."""
    zero, one = number(0, dtype), number(1, dtype)
    divisor = d
    is_zero = UOp(Op.CMPEQ, dt.bool_, (d, zero))
    if d_may_be_zero:
        divisor = UOp(Op.WHERE, dtype, (is_zero, one, d))
    r = UOp(Op.CMOD, dtype, (x, divisor))
    signs = UOp(
        Op.CMPNE,
        dt.bool_,
        (UOp(Op.CMPLT, dt.bool_, (r, zero)), UOp(Op.CMPLT, dt.bool_, (divisor, zero))),
    )
    off = UOp(Op.AND, dt.bool_, (UOp(Op.CMPNE, dt.bool_, (r, zero)), signs))
    if is_div:
        q = UOp(Op.CDIV, dtype, (x, divisor))
        result = UOp(Op.WHERE, dtype, (off, UOp(Op.SUB, dtype, (q, one)), q))
    else:
        result = UOp(Op.WHERE, dtype, (off, UOp(Op.ADD, dtype, (r, divisor)), r))
    return UOp(Op.WHERE, dtype, (is_zero, zero, result)) if d_may_be_zero else result
