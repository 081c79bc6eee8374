"""How a reduce or a scan joins two partial results: one row per combine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

Values = tuple[UOp, ...]


@dataclass(frozen=True)
class Combine:
    """`merge(earlier, later)` of two partial results, each `n_values` values.

    `identity(dtypes)` leaves any partial result as it is under `merge`. Every row is associative
    (floats: up to rounding), so partial results may be joined in any grouping that keeps order.
    `append`, where there is one, is a cheaper merge of results whose positions all lie before
    those of the others; the earlier ones then start from the identity at the first position.
    """

    name: str
    n_values: int
    identity: Callable[[tuple[DType, ...]], Values]
    merge: Callable[[Values, Values], Values]
    append: Callable[[Values, Values], Values] | None = None


def _binary(name: str, op: Op, identity: Callable[[DType], bool | int | float]) -> Combine:
    return Combine(
        name,
        1,
        lambda dtypes: (const(identity(dtypes[0]), dtypes[0]),),
        lambda a, b: (UOp(op, a[0].dtype, (a[0], b[0])),),
    )


def _ones(dtype: DType) -> bool | int:
    """All bits set: the identity of and."""
    if dtype.is_bool:
        return True
    return dtype.max if dtype.kind == "uint" else -1  # type: ignore[return-value]


def _bool(op: Op, a: UOp, b: UOp) -> UOp:
    return UOp(op, dt.bool_.vec(a.dtype.lanes), (a, b))


def _arg(name: str, is_max: bool) -> Combine:
    """(value, index): the first extreme wins, a NaN beats every number."""

    def identity(dtypes: tuple[DType, ...]) -> Values:
        value, position = dtypes
        worst = value.min if is_max else value.max
        return const(worst, value), const(position.max, position)

    def beats(a: UOp, b: UOp) -> UOp:
        better = _bool(Op.CMPLT, a, b) if is_max else _bool(Op.CMPLT, b, a)
        if not a.dtype.is_float:
            return better
        a_number, b_nan = _bool(Op.CMPEQ, a, a), _bool(Op.CMPNE, b, b)
        return _bool(Op.OR, better, _bool(Op.AND, a_number, b_nan))

    def taken(take: UOp, a: Values, b: Values) -> Values:
        return tuple([UOp(Op.WHERE, x.dtype, (take, y, x)) for x, y in zip(a, b, strict=True)])

    def merge(a: Values, b: Values) -> Values:
        (av, ai), (bv, bi) = a, b
        ties = _bool(Op.CMPEQ, av, bv)
        if av.dtype.is_float:
            a_nan, b_nan = _bool(Op.CMPNE, av, av), _bool(Op.CMPNE, bv, bv)
            ties = _bool(Op.OR, ties, _bool(Op.AND, a_nan, b_nan))
        first = _bool(Op.AND, ties, _bool(Op.CMPLT, bi, ai))
        return taken(_bool(Op.OR, beats(av, bv), first), a, b)

    def append(a: Values, b: Values) -> Values:
        return taken(beats(a[0], b[0]), a, b)

    return Combine(name, 2, identity, merge, append)


def _f(op: Op, *src: UOp) -> UOp:
    return UOp(op, src[-1].dtype, src)


def _welford_identity(dtypes: tuple[DType, ...]) -> Values:
    return tuple(const(0, d) for d in dtypes)


def _welford_merge(a: Values, b: Values) -> Values:
    """(count, mean, sum of squared deviations); Chan, Golub and LeVeque 1983."""
    (an, am, aq), (bn, bm, bq) = a, b
    n = _f(Op.ADD, an, bn)
    delta = _f(Op.SUB, bm, am)
    zero = const(0, n.dtype)
    share = _f(Op.WHERE, _bool(Op.CMPEQ, n, zero), zero, _f(Op.DIV, bn, n))
    mean = _f(Op.ADD, am, _f(Op.MUL, delta, share))
    cross = _f(Op.MUL, _f(Op.MUL, delta, delta), _f(Op.MUL, an, share))
    return n, mean, _f(Op.ADD, _f(Op.ADD, aq, bq), cross)


def _logsumexp_identity(dtypes: tuple[DType, ...]) -> Values:
    return const(float("-inf"), dtypes[0]), const(0, dtypes[1])


def _logsumexp_merge(a: Values, b: Values) -> Values:
    """(maximum, sum of exp(x - maximum)); a side that is all -inf adds nothing."""
    (am, asum), (bm, bsum) = a, b
    m = _f(Op.MAX, am, bm)

    def scaled(part_max: UOp, part_sum: UOp) -> UOp:
        same = _bool(Op.CMPEQ, part_max, m)
        factor = _f(Op.EXP, _f(Op.SUB, part_max, m))
        return _f(Op.WHERE, same, part_sum, _f(Op.MUL, part_sum, factor))

    return m, _f(Op.ADD, scaled(am, asum), scaled(bm, bsum))


COMBINES: dict[str, Combine] = {
    c.name: c
    for c in (
        _binary("add", Op.ADD, lambda d: 0),
        _binary("mul", Op.MUL, lambda d: 1),
        _binary("max", Op.MAX, lambda d: d.min),
        _binary("min", Op.MIN, lambda d: d.max),
        _binary("and", Op.AND, _ones),
        _binary("or", Op.OR, lambda d: 0),
        _binary("xor", Op.XOR, lambda d: 0),
        _arg("argmax", True),
        _arg("argmin", False),
        Combine("welford", 3, _welford_identity, _welford_merge),
        Combine("logsumexp", 2, _logsumexp_identity, _logsumexp_merge),
    )
}
