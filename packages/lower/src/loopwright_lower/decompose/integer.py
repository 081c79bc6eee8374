"""Integers and bool: division that rounds down, shifts of any amount, powers, logic."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose.build import (
    add,
    and_,
    bitcast,
    cdiv,
    cmod,
    eq,
    lt,
    mul,
    ne,
    neg,
    not_,
    or_,
    shl,
    shr,
    sub,
    where,
    xor,
)
from loopwright_lower.decompose.table import Emit, Rule, is_bool_src, is_int


def _divisor(node: UOp) -> int | None:
    """The second source where it is a constant."""
    b = node.src[1]
    return int(b.arg) if b.op is Op.CONST else None


def _int_by_constant(e: Emit, node: UOp) -> bool:
    return is_int(e, node) and node.src[1].op is Op.CONST


def _log2(n: int) -> int | None:
    return n.bit_length() - 1 if n > 0 and n & (n - 1) == 0 else None


def floordiv_constant(e: Emit, node: UOp) -> UOp:
    """x // c --> one shift, or a division that rounds to zero and one correction."""
    x, c = node.src[0], _divisor(node)
    assert c is not None
    if c == 0:
        return const(0, node.dtype)
    if c == -1:
        return neg(x)
    k = _log2(c)
    if k is not None:
        return x if k == 0 else shr(x, k)
    quotient = cdiv(x, c)
    if node.dtype.kind == "uint":
        return quotient
    rest = sub(x, mul(quotient, c))
    too_high = lt(rest, 0) if c > 0 else lt(0, rest)
    return where(too_high, sub(quotient, 1), quotient)


def mod_constant(e: Emit, node: UOp) -> UOp:
    """x % c --> one mask, or a remainder that rounds to zero and one correction."""
    x, c = node.src[0], _divisor(node)
    assert c is not None
    if c in (0, 1, -1):
        return const(0, node.dtype)
    if _log2(c) is not None:
        return and_(x, c - 1)
    rest = cmod(x, c)
    if node.dtype.kind == "uint":
        return rest
    wrong = lt(rest, 0) if c > 0 else lt(0, rest)
    return where(wrong, add(rest, c), rest)


def floordiv_int(e: Emit, node: UOp) -> UOp:
    """x // y --> x div (y or 1), rounded down; 0 where y is 0, -x where y is -1."""
    x, y = node.src
    is_zero = eq(y, 0)
    if node.dtype.kind == "uint":
        return where(is_zero, 0, cdiv(x, where(is_zero, 1, y)))
    is_minus_one = eq(y, -1)
    safe = where(or_(is_zero, is_minus_one), 1, y)
    quotient = cdiv(x, safe)
    rest = sub(x, mul(quotient, safe))
    too_high = and_(ne(rest, 0), lt(xor(rest, safe), 0))
    down = where(too_high, sub(quotient, 1), quotient)
    return where(is_zero, 0, where(is_minus_one, neg(x), down))


def mod_int(e: Emit, node: UOp) -> UOp:
    """x % y --> x rem (y or 1), plus y where the signs differ; y in 0, -1 divides by 1: 0."""
    x, y = node.src
    if node.dtype.kind == "uint":
        return cmod(x, where(eq(y, 0), 1, y))
    safe = where(or_(eq(y, 0), eq(y, -1)), 1, y)
    rest = cmod(x, safe)
    wrong = and_(ne(rest, 0), lt(xor(rest, safe), 0))
    return where(wrong, add(rest, safe), rest)


def shift_constant(e: Emit, node: UOp) -> UOp:
    """x << c, x >> c --> the hardware's shift, or what is left when every bit went out."""
    x, c, bits = node.src[0], _divisor(node), node.dtype.bits
    assert c is not None
    if c == 0:
        return x
    if node.op is Op.SHL:
        return shl(x, c) if 0 < c < bits else const(0, node.dtype)
    if 0 < c < bits:
        return shr(x, c)
    return const(0, node.dtype) if node.dtype.kind == "uint" else shr(x, bits - 1)


def _in_width(amount: UOp) -> UOp:
    """Amount < bits, where a negative amount counts as huge."""
    return lt(bitcast(amount, dt.unsigned(amount.dtype.bits)), amount.dtype.bits)


def shl_int(e: Emit, node: UOp) -> UOp:
    """x << n --> 0 where n reaches the width."""
    x, n = node.src
    ok = _in_width(n)
    return where(ok, shl(x, where(ok, n, 0)), 0)


def shr_int(e: Emit, node: UOp) -> UOp:
    """x >> n --> the sign in every bit (0 for unsigned) where n reaches the width."""
    x, n = node.src
    ok = _in_width(n)
    if node.dtype.kind == "uint":
        return where(ok, shr(x, where(ok, n, 0)), 0)
    return shr(x, where(ok, n, node.dtype.bits - 1))


def pow_int_constant(e: Emit, node: UOp) -> UOp:
    """x ** c --> multiplications by squaring; c < 0: 1/x rounded to zero, 0 where x is 0."""
    x, c = node.src[0], _divisor(node)
    assert c is not None
    if c < 0:
        return _negative_power(x, const(c & 1, node.dtype))
    result: UOp | None = None
    square = x
    # Bits above the width square to 0 or 1 for every base: they cannot change the product.
    while c:
        if c & 1:
            result = square if result is None else mul(result, square)
        c >>= 1
        if c:
            square = mul(square, square)
    return const(1, node.dtype) if result is None else result


def _negative_power(x: UOp, odd: UOp) -> UOp:
    """x ** n for n < 0: 1 where x is 1; -1 or 1, by n's parity, where x is -1; else 0."""
    sign = where(ne(odd, 0), const(-1, x.dtype), const(1, x.dtype))
    return where(eq(x, 1), 1, where(eq(x, -1), sign, const(0, x.dtype)))


def pow_int(e: Emit, node: UOp) -> UOp:
    """x ** n --> a product of the squares that n's bits name, modulo 2**bits."""
    x, n = node.src
    unsigned = node.dtype.kind == "uint"
    n_bits = node.dtype.bits - (0 if unsigned else 1)
    result, square = const(1, node.dtype), x
    for k in range(n_bits):
        bit = ne(and_(n, 1 << k), 0)
        result = where(bit, mul(result, square), result)
        if k + 1 < n_bits:
            square = mul(square, square)
    if unsigned:
        return result
    return where(lt(n, 0), _negative_power(x, and_(n, 1)), result)


def _is_bool(e: Emit, node: UOp) -> bool:
    return node.dtype.kind == "bool"


def bool_compare(e: Emit, node: UOp) -> UOp:
    """a == b, a != b, a < b of bool --> logic, which masks of any width have."""
    a, b = node.src
    if node.op is Op.CMPNE:
        return xor(a, b)
    return not_(xor(a, b)) if node.op is Op.CMPEQ else and_(not_(a), b)


def _kept_int(e: Emit, node: UOp) -> bool:
    return is_int(e, node) and node.op in e.target.ops


integer_rules: tuple[Rule, ...] = (
    # Constants first: two instructions beat a division even where the target has FLOORDIV.
    Rule("floordiv_constant", (Op.FLOORDIV,), _int_by_constant, floordiv_constant),
    Rule("mod_constant", (Op.MOD,), _int_by_constant, mod_constant),
    Rule("shift_constant", (Op.SHL, Op.SHR), _int_by_constant, shift_constant),
    Rule("pow_int_constant", (Op.POW,), _int_by_constant, pow_int_constant),
    Rule(
        "target_has_int_op",
        (Op.FLOORDIV, Op.MOD, Op.SHL, Op.SHR, Op.POW, Op.MAX, Op.MIN),
        _kept_int,
        lambda e, node: node,
    ),
    Rule("floordiv_int", (Op.FLOORDIV,), is_int, floordiv_int),
    Rule("mod_int", (Op.MOD,), is_int, mod_int),
    Rule("shl_int", (Op.SHL,), is_int, shl_int),
    Rule("shr_int", (Op.SHR,), is_int, shr_int),
    Rule("pow_int", (Op.POW,), is_int, pow_int),
    Rule("bool_add_is_or", (Op.ADD, Op.MAX), _is_bool, lambda e, node: or_(*node.src)),
    Rule("bool_mul_is_and", (Op.MUL, Op.MIN), _is_bool, lambda e, node: and_(*node.src)),
    Rule("bool_compare", tuple(sorted(COMPARE, key=repr)), is_bool_src, bool_compare),
)
