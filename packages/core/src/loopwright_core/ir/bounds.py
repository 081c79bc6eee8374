"""Interval analysis of integer expressions: what values a node can take, from its sources'."""

from __future__ import annotations

from collections.abc import Callable

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable

Interval = tuple[int, int]

# No program computes an index beyond 64 bits; bounds stop growing well behind that.
_HUGE = 2**127


def dtype_range(dtype: DType) -> Interval:
    """The values a dtype can hold; 0..1 for bool, those of int64 for index and floats."""
    if dtype.is_bool:
        return 0, 1
    if not dtype.is_int:
        dtype = dt.int64
    return int(dtype.min), int(dtype.max)


def bounds(u: UOp) -> Interval:
    """The smallest and largest value, both included. An empty loop counts as the value 0."""
    found: Interval | None = u._bounds
    if found is not None:
        return found
    stack = [u]
    while stack:
        top = stack[-1]
        if top._bounds is not None:
            stack.pop()
            continue
        missing = [s for s in top.src if s._bounds is None] if top.op in _RULES else ()
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        top._bounds = found = _interval(top)
    assert found is not None
    return found


def _interval(u: UOp) -> Interval:
    full = dtype_range(u.dtype)
    rule = _RULES.get(u.op)
    if rule is None or not (u.dtype.is_int or u.dtype.is_bool):
        return full
    lo, hi = rule(u, *[s._bounds for s in u.src])
    # Index arithmetic is exact; a fixed width may wrap, then anything is possible.
    if u.dtype.kind == "index":
        return (lo if lo > -_HUGE else -_HUGE), (hi if hi < _HUGE else _HUGE)
    return (lo, hi) if full[0] <= lo and hi <= full[1] else full


def _const(u: UOp) -> Interval:
    return int(u.arg), int(u.arg)


def _var(u: UOp) -> Interval:
    return u.arg.lo, u.arg.hi


def _dim(u: UOp) -> Interval:
    return 0, max(u.arg.max_size - 1, 0)


def _range(u: UOp, extent: Interval) -> Interval:
    return 0, max(extent[1] - 1, 0)


def _special(u: UOp) -> Interval:
    size = u.arg[1]
    if isinstance(size, Variable):
        size = size.hi
    elif isinstance(size, UOp):
        size = bounds(size)[1]
    return 0, max(int(size) - 1, 0)


def _add(u: UOp, a: Interval, b: Interval) -> Interval:
    if u.dtype.is_bool:
        return max(a[0], b[0]), max(a[1], b[1])
    return a[0] + b[0], a[1] + b[1]


def _sub(u: UOp, a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _mul(u: UOp, a: Interval, b: Interval) -> Interval:
    corners = (a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1])
    return min(corners), max(corners)


def _neg(u: UOp, a: Interval) -> Interval:
    return -a[1], -a[0]


def _divisors(d: Interval) -> list[int]:
    """The divisors at which a quotient is extreme; 0 apart, since x // 0 is 0."""
    lo, hi = d
    return [x for x in {lo, hi, -1, 1} if lo <= x <= hi and x]


def _floordiv(u: UOp, a: Interval, d: Interval) -> Interval:
    found = [x // m for m in _divisors(d) for x in a]
    if d[0] <= 0 <= d[1]:
        found.append(0)
    return min(found), max(found)


def _mod(u: UOp, a: Interval, d: Interval) -> Interval:
    if d[0] == d[1] and d[0]:
        m = d[0]
        if a[0] // m == a[1] // m:
            return min(a[0] % m, a[1] % m), max(a[0] % m, a[1] % m)
    hi = max(d[1] - 1, 0)
    lo = min(d[0] + 1, 0)
    if a[0] >= 0 and lo == 0:
        hi = min(hi, a[1])
    if a[1] <= 0 and hi == 0:
        lo = max(lo, a[0])
    return lo, hi


def truncated(a: int, b: int) -> int:
    """a / b rounded to zero.

    >>> truncated(-7, 2), truncated(7, -2)
    (-3, -3)
    """
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _cdiv(u: UOp, a: Interval, d: Interval) -> Interval:
    found = [
        truncated(x, m) for m in _divisors(d) for x in (*a, *((0,) if a[0] < 0 < a[1] else ()))
    ]
    if d[0] <= 0 <= d[1]:
        found.append(0)
    return min(found), max(found)


def _cmod(u: UOp, a: Interval, d: Interval) -> Interval:
    m = max(abs(d[0]), abs(d[1]), 1) - 1
    return max(min(a[0], 0), -m), min(max(a[1], 0), m)


def _max(u: UOp, a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), max(a[1], b[1])


def _min(u: UOp, a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), min(a[1], b[1])


def _where(u: UOp, c: Interval, a: Interval, b: Interval) -> Interval:
    if c[0]:
        return a
    if not c[1]:
        return b
    return min(a[0], b[0]), max(a[1], b[1])


def _cast(u: UOp, a: Interval) -> Interval:
    if u.dtype.is_bool:
        return (1, 1) if a[0] > 0 or a[1] < 0 else (0, 1) if a != (0, 0) else (0, 0)
    return dtype_range(dt.int64) if u.src[0].dtype.is_float else a


def _cmplt(u: UOp, a: Interval, b: Interval) -> Interval:
    if not u.src[0].dtype.is_float:
        if a[1] < b[0]:
            return 1, 1
        if a[0] >= b[1]:
            return 0, 0
    return 0, 1


def _cmpeq(u: UOp, a: Interval, b: Interval) -> Interval:
    if not u.src[0].dtype.is_float:
        if a[0] == a[1] == b[0] == b[1]:
            return 1, 1
        if a[1] < b[0] or b[1] < a[0]:
            return 0, 0
    return 0, 1


def _cmpne(u: UOp, a: Interval, b: Interval) -> Interval:
    lo, hi = _cmpeq(u, a, b)
    return 1 - hi, 1 - lo


def _and(u: UOp, a: Interval, b: Interval) -> Interval:
    if u.dtype.is_bool:
        return min(a[0], b[0]), min(a[1], b[1])
    if a[0] >= 0 or b[0] >= 0:
        return 0, min(x[1] for x in (a, b) if x[0] >= 0)
    return dtype_range(u.dtype)


def _or(u: UOp, a: Interval, b: Interval) -> Interval:
    if u.dtype.is_bool:
        return max(a[0], b[0]), max(a[1], b[1])
    if a[0] >= 0 and b[0] >= 0:
        return max(a[0], b[0]), (1 << max(a[1], b[1]).bit_length()) - 1
    return dtype_range(u.dtype)


def _lanes(u: UOp, *src: Interval) -> Interval:
    return min(s[0] for s in src), max(s[1] for s in src)


_RULES: dict[Op, Callable[..., Interval]] = {
    Op.CONST: _const,
    Op.VAR: _var,
    Op.DIM: _dim,
    Op.RANGE: _range,
    Op.SPECIAL: _special,
    Op.ADD: _add,
    Op.SUB: _sub,
    Op.MUL: _mul,
    Op.NEG: _neg,
    Op.FLOORDIV: _floordiv,
    Op.MOD: _mod,
    Op.CDIV: _cdiv,
    Op.CMOD: _cmod,
    Op.MAX: _max,
    Op.MIN: _min,
    Op.WHERE: _where,
    Op.CAST: _cast,
    Op.CMPLT: _cmplt,
    Op.CMPEQ: _cmpeq,
    Op.CMPNE: _cmpne,
    Op.AND: _and,
    Op.OR: _or,
    Op.BROADCAST: _lanes,
    Op.VECTORIZE: _lanes,
}


def interval_of(u: UOp, operands: list[Interval]) -> Interval:
    """The bounds of a node whose operands lie in these intervals, by the rule of its op alone."""
    return _RULES[u.op](u, *operands)


def width(u: UOp) -> DType:
    """int32 where every value computed on the way to `u` fits it, else int64."""

    def inside(node: UOp) -> bool:
        return node.op in _RULES and not node.dtype.is_float

    for node in u.toposort(inside):
        if inside(node) and node.dtype.is_int:
            lo, hi = bounds(node)
            if lo < -(2**31) or hi >= 2**31:
                return dt.int64
    return dt.int32
