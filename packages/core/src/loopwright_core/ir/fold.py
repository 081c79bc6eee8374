"""Algebra that never changes a value, one law a row.

The laws hold for every input of every dtype they name: integers wrap, -0.0, infinities and NaN
stay what they are. So there is no x * 0, x - x or reassociation of floats here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.affine import number as wrapped_const
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import BINARY, COMMUTATIVE, UNARY, Op
from loopwright_core.ir.pattern import Pat, Rule, Rules, constant, number, select, var
from loopwright_core.ir.rewrite import Stats, rewrite
from loopwright_core.ir.uop import UOp, const
from loopwright_core.oracle.alu import apply
from loopwright_core.oracle.alu import constant as scalar_of

# Their last bit is the device's own, so they are computed there.
_NOT_FOLDED = frozenset({Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.POW, Op.BITCAST})
ROUND = (Op.TRUNC, Op.RINT)


def _in_order(ops: Iterable[Op]) -> tuple[Op, ...]:
    return tuple(sorted(ops, key=lambda op: op.value))


FOLDED_UNARY = _in_order((UNARY | {Op.CAST}) - _NOT_FOLDED)
FOLDED_BINARY = _in_order(BINARY - _NOT_FOLDED)
# Where Python's integers, wrapped, are what the interpreter computes.
_WRAPPED: dict[Op, Callable[[int, int], int]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
}


def is_int(dtype: DType) -> bool:
    return dtype.is_int


def is_bool(dtype: DType) -> bool:
    return dtype.is_bool


def is_float(dtype: DType) -> bool:
    return dtype.is_float


def is_exact(dtype: DType) -> bool:
    """Integers and bool: no NaN, so equal is identical."""
    return not dtype.is_float


def is_number(dtype: DType) -> bool:
    """Integers and floats."""
    return not dtype.is_bool


def evaluate(op: Op, dtype: DType, *src: UOp) -> UOp:
    """The CONST that an op on CONSTs gives, by the interpreter's own arithmetic."""
    if dtype.is_int and op in _WRAPPED:
        return wrapped_const(_WRAPPED[op](src[0].arg, src[1].arg), dtype)
    value = apply(op, dtype, [s.dtype for s in src], [scalar_of(s) for s in src])[()]
    return const(float(value) if dtype.is_float else value.item(), dtype)


def _fold_constants(root: UOp) -> UOp | None:
    """op(constants) --> constant"""
    return evaluate(root.op, root.dtype, *root.src) if root.dtype.lanes == 1 else None


def _constant_right(root: UOp) -> UOp | None:
    """c + x --> x + c"""
    c, x = root.src
    return root.replace((x, c)) if x.op is not Op.CONST else None


def holds(outer: DType, inner: DType) -> bool:
    """Whether a cast from `inner` to `outer` keeps every value."""
    a, b = inner.scalar, outer.scalar
    if a is b or a.is_bool:
        return True
    if b.is_bool:
        return False
    if a.is_float:
        return b.is_float and b.bits > a.bits  # each wider float holds the narrower ones
    if b.is_float:
        return (a.bits - (a.kind != "uint")) <= _PRECISION[b] and (a.bits <= 16 or b.bits >= 32)
    return bool(b.min <= a.min and a.max <= b.max)


# Bits of the significand: integers of that many bits are exact.
_PRECISION = {
    dt.float8_e4m3fn: 4,
    dt.float8_e5m2: 3,
    dt.float16: 11,
    dt.bfloat16: 8,
    dt.float32: 24,
    dt.float64: 53,
}


def _cast_cast(root: UOp, x: UOp) -> UOp | None:
    """cast(cast(x, b), c) --> cast(x, c)  where b holds x, or b and c are integers, c no wider"""
    a, b, c = x.dtype.scalar, root.src[0].dtype.scalar, root.dtype.scalar
    if a.is_bool and c.kind == "index":  # cast(bool, index) is a condition, this is a value
        return None
    if holds(b, a):
        # float to integer saturates where integer to integer wraps
        if b.is_float and not a.is_float and c.is_int and not holds(c, a):
            return None
    elif not (a.is_int and b.is_int and c.is_int and c.bits <= b.bits):
        return None
    return x if a is c else UOp(Op.CAST, root.dtype, (x,))


def _reciprocal(x: UOp, c: UOp) -> UOp | None:
    """x / 2**k --> x * 2**-k"""
    value = float(scalar_of(c))
    if not math.isfinite(value) or abs(math.frexp(value)[0]) != 0.5:
        return None
    inverse = const(1.0 / value, c.dtype)
    exact = float(scalar_of(inverse)) == 1.0 / value and abs(1.0 / value) >= _SMALLEST[c.dtype]
    return UOp(Op.MUL, x.dtype, (x, inverse)) if exact else None


# Least normal numbers: targets may flush a constant below them.
_SMALLEST = {
    dt.float8_e4m3fn: 2.0**-6,
    dt.float8_e5m2: 2.0**-14,
    dt.float16: 2.0**-14,
    dt.bfloat16: 2.0**-126,
    dt.float32: 2.0**-126,
    dt.float64: 2.0**-1022,
}


def _join(outer: Op, inner: Op) -> Callable[..., UOp]:
    """(x op c) op d --> x op (c op d)"""

    def join(x: UOp, c: UOp, d: UOp) -> UOp:
        return UOp(outer, x.dtype, (x, evaluate(inner, x.dtype, c, d)))

    return join


def _false(x: UOp) -> UOp:
    return const(False, dt.bool_.vec(x.dtype.lanes))


def _true(x: UOp) -> UOp:
    return const(True, dt.bool_.vec(x.dtype.lanes))


def _zero(x: UOp) -> UOp:
    return const(0, x.dtype)


def _not(x: UOp) -> UOp:
    return UOp(Op.CMPNE, x.dtype, (x, _true(x)))


def _is_extreme(which: str) -> Callable[[UOp], bool]:
    """Whether an integer or bool constant is its dtype's least or largest value."""
    return lambda u: not u.dtype.is_float and u.arg == getattr(u.dtype, which)


x, y, a, b = var("x"), var("y"), var("a"), var("b")
n, m = var("x", is_int), var("y", is_int)  # integers
p, q, r = var("x", is_bool), var("y", is_bool), var("r", is_bool)
f = var("x", is_float)
c, d = constant("c"), constant("d")
lowest, highest = c.when(_is_extreme("min")), c.when(_is_extreme("max"))

arithmetic_rules = Rules(
    Rule("fold_unary", Pat(FOLDED_UNARY, Pat(Op.CONST), name="root"), _fold_constants),
    Rule(  # op(c, d) = its value
        "fold_binary",
        Pat(FOLDED_BINARY, Pat(Op.CONST), Pat(Op.CONST), name="root"),
        _fold_constants,
    ),
    Rule("mul_one", x * 1, lambda x: x),  # x*1 = x
    Rule("mul_zero_int", n * 0, _zero),  # n*0 = 0; for floats NaN and signs forbid it
    Rule("add_zero_int", n + 0, lambda x: x),  # n+0 = n; -0.0 + 0.0 is 0.0
    Rule("add_negative_zero", f + -0.0, lambda x: x),  # x + -0.0 = x
    Rule("sub_zero", var("x", is_number) - 0, lambda x: x),  # x-0 = x
    Rule("sub_self_int", n - n, _zero),  # n-n = 0
    Rule("zero_sub_int", 0 - n, lambda x: UOp(Op.NEG, x.dtype, (x,))),  # 0-n = -n
    Rule("div_one", x / 1, lambda x: x),  # x/1 = x
    Rule("div_power_of_two", f / c, _reciprocal),  # x/2**k = x * 2**-k
    Rule("floordiv_one_int", n // 1, lambda x: x),  # n//1 = n
    Rule("floordiv_zero_int", n // 0, _zero),  # n//0 = 0
    Rule("mod_one_int", n % 1, _zero),  # n%1 = 0
    Rule("mod_zero_int", n % 0, _zero),  # n%0 = 0
    Rule("neg_neg", Pat(Op.NEG, -x), lambda x: x),  # -(-x) = x
    Rule("add_neg", x + -y, lambda x, y: UOp(Op.SUB, x.dtype, (x, y))),  # x + -y = x - y
    Rule("sub_neg", x - -y, lambda x, y: UOp(Op.ADD, x.dtype, (x, y))),  # x - -y = x + y
    Rule("neg_mul_neg", -x * -y, lambda x, y: UOp(Op.MUL, x.dtype, (x, y))),  # -x * -y = x*y
    Rule("add_add_int", (n + c) + d, _join(Op.ADD, Op.ADD)),  # (n+c)+d = n+(c+d)
    Rule("sub_add_int", (n - c) + d, lambda x, c, d: _sum(x, d, c)),  # (n-c)+d = n+(d-c)
    Rule("add_sub_int", (n + c) - d, lambda x, c, d: _sum(x, c, d)),  # (n+c)-d = n+(c-d)
    Rule("mul_mul_int", (n * c) * d, _join(Op.MUL, Op.MUL)),  # (n*c)*d = n*(c*d)
    Rule("max_self", x.max(x), lambda x: x),  # max(x, x) = x
    Rule("min_self", x.min(x), lambda x: x),  # min(x, x) = x
    Rule("max_max", x.max(c).max(d), _join(Op.MAX, Op.MAX)),  # max(max(x, c), d)
    Rule("min_min", x.min(c).min(d), _join(Op.MIN, Op.MIN)),  # min(min(x, c), d)
    Rule("max_lowest", x.max(lowest), lambda x, c: x),  # max(n, least) = n
    Rule("min_highest", x.min(highest), lambda x, c: x),  # min(n, largest) = n
    Rule("max_highest", x.max(highest), lambda x, c: c),  # max(n, largest) = largest
    Rule("min_lowest", x.min(lowest), lambda x, c: c),  # min(n, least) = least
    Rule(
        "round_rounded", Pat((Op.TRUNC, Op.RINT), Pat((Op.TRUNC, Op.RINT), name="x")), lambda x: x
    ),
    Rule(  # an integer as a float is whole
        "round_int",
        Pat(ROUND, Pat(Op.CAST, Pat(dtype=is_exact), name="x")),
        lambda x: x,
    ),
)


def _sum(x: UOp, c: UOp, d: UOp) -> UOp:
    """x + (c - d), wrapping."""
    return UOp(Op.ADD, x.dtype, (x, evaluate(Op.SUB, x.dtype, c, d)))


bit_rules = Rules(
    Rule("and_self", Pat(Op.AND, x, x), lambda x: x),  # x & x = x
    Rule("or_self", Pat(Op.OR, x, x), lambda x: x),  # x | x = x
    Rule("xor_self", x ^ x, _zero),  # x ^ x = 0
    Rule("and_zero", x & 0, _zero),  # x & 0 = 0, False for bool
    Rule("or_zero", x | 0, lambda x: x),  # x | 0 = x
    Rule("xor_zero", x ^ 0, lambda x: x),  # x ^ 0 = x
    Rule("and_ones", x & c.when(lambda u: _is_ones(u)), lambda x, c: x),  # x & 11..1 = x
    Rule("or_ones", x | c.when(lambda u: _is_ones(u)), lambda x, c: c),  # x | 11..1 = 11..1
    Rule("xor_true", p ^ True, _not),  # p ^ True = not p
    Rule("and_and", (x & c) & d, _join(Op.AND, Op.AND)),  # (x & c) & d = x & (c & d)
    Rule("or_or", (x | c) | d, _join(Op.OR, Op.OR)),  # (x | c) | d = x | (c | d)
    Rule("xor_xor", (x ^ c) ^ d, _join(Op.XOR, Op.XOR)),  # (x ^ c) ^ d = x ^ (c ^ d)
    Rule("and_not", p & p.ne(True), _false),  # p & not p = False
    Rule("or_not", p | p.ne(True), _true),  # p | not p = True
    Rule("shift_zero", Pat((Op.SHL, Op.SHR), x, number(0)), lambda x: x),  # x << 0 = x
    Rule("add_bool", p + q, lambda x, y: UOp(Op.OR, x.dtype, (x, y))),  # + of bool is or
    Rule("mul_bool", p * q, lambda x, y: UOp(Op.AND, x.dtype, (x, y))),  # * of bool is and
    Rule("max_bool", p.max(q), lambda x, y: UOp(Op.OR, x.dtype, (x, y))),  # max of bool is or
    Rule("min_bool", p.min(q), lambda x, y: UOp(Op.AND, x.dtype, (x, y))),  # min of bool is and
)


def _is_ones(u: UOp) -> bool:
    """Whether every bit of an integer or bool constant is set."""
    return bool(u.arg == (u.dtype.max if u.dtype.kind in ("uint", "bool") else -1))


def _compare(op: Op) -> Callable[..., UOp]:
    return lambda x, y: UOp(op, dt.bool_.vec(x.dtype.lanes), (x, y))


compare_rules = Rules(
    Rule("lt_self", Pat(Op.CMPLT, x, x), _false),  # x < x is False, also for NaN
    Rule("eq_self", Pat(Op.CMPEQ, e := var("x", is_exact), e), _true),  # n == n; NaN forbids it
    Rule("ne_self", Pat(Op.CMPNE, e, e), _false),  # n != n is False
    Rule("lt_lowest", x < lowest, lambda x, c: _false(x)),  # n < least is False
    Rule("highest_lt", Pat(Op.CMPLT, highest, x), lambda x, c: _false(x)),  # largest < n is False
    Rule("eq_true", p.eq(True), lambda x: x),  # (p == True) = p
    Rule("ne_false", p.ne(False), lambda x: x),  # (p != False) = p
    Rule("eq_false", p.eq(False), _not),  # (p == False) = not p
    Rule("not_not", p.ne(True).ne(True), lambda x: x),  # not not p = p
    Rule("not_eq", x.eq(y).ne(True), _compare(Op.CMPNE)),  # not (x == y) = x != y
    Rule("not_ne", Pat(Op.CMPNE, x, y).ne(True), _compare(Op.CMPEQ)),  # not (x != y) = x == y
    Rule("bool_as_number_ne", p.cast().ne(0), lambda x: x),  # (cast(p) != 0) = p
    Rule("bool_as_number_eq", p.cast().eq(0), _not),  # (cast(p) == 0) = not p
)

select_rules = Rules(
    Rule("where_true", select(number(True), a, b), lambda a, b: a),  # where(True, a, b) = a
    Rule("where_false", select(number(False), a, b), lambda a, b: b),  # where(False, a, b) = b
    Rule("where_same", select(p, a, a), lambda x, a: a),  # where(p, a, a) = a
    Rule(  # where(not p, a, b) = where(p, b, a)
        "where_not",
        select(p.ne(True), a, b),
        lambda x, a, b: UOp(Op.WHERE, a.dtype, (x, b, a)),
    ),
    Rule(  # where(p, where(p, a, b), y) = where(p, a, y)
        "where_where_true",
        select(p, select(p, a, b), y),
        lambda x, a, b, y: UOp(Op.WHERE, a.dtype, (x, a, y)),
    ),
    Rule(  # where(p, a, where(p, b, y)) = where(p, a, y)
        "where_where_false",
        select(p, a, select(p, b, y)),
        lambda x, a, b, y: UOp(Op.WHERE, a.dtype, (x, a, y)),
    ),
    Rule(  # where(p, q, False) = p & q
        "where_and",
        select(p, q, number(False)),
        lambda x, y: UOp(Op.AND, x.dtype, (x, y)),
    ),
    Rule(  # where(p, True, q) = p | q
        "where_or",
        select(p, number(True).typed(is_bool), q),
        lambda x, y: UOp(Op.OR, x.dtype, (x, y)),
    ),
)

cast_rules = Rules(
    Rule(  # cast(x, dtype of x) = x
        "cast_same",
        Pat(Op.CAST, x, name="root"),
        lambda root, x: x if x.dtype is root.dtype else None,
    ),
    Rule("cast_cast", Pat(Op.CAST, x.cast(), name="root"), _cast_cast),
)

order_rules = Rules(
    Rule(  # c + x = x + c: one form for equal values
        "constant_right",
        Pat(_in_order(COMMUTATIVE), Pat(Op.CONST), Pat(), name="root", ordered=True),
        _constant_right,
    ),
)

fold_rules = arithmetic_rules + bit_rules + compare_rules + select_rules + cast_rules + order_rules


def fold(root: UOp, stats: Stats | None = None) -> UOp:
    """The graph with every law applied until none applies; each value stays what it was."""
    return rewrite(root, fold_rules, stats=stats)
