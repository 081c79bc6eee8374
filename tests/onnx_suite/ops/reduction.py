"""Sums and other reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import axes_of

Reduce = Callable[..., lw.Array]


def _sum(x: lw.Array, **how: Any) -> lw.Array:
    return lw.sum(x, dtype=x.dtype, **how)


def _prod(x: lw.Array, **how: Any) -> lw.Array:
    return lw.prod(x, dtype=x.dtype, **how)


def _sum_square(x: lw.Array, **how: Any) -> lw.Array:
    return _sum(x * x, **how)


def _l1(x: lw.Array, **how: Any) -> lw.Array:
    return _sum(lw.abs(x), **how)


def _l2(x: lw.Array, **how: Any) -> lw.Array:
    return lw.sqrt(_sum_square(x, **how))


def _log_sum(x: lw.Array, **how: Any) -> lw.Array:
    return lw.log(_sum(x, **how))


def _extreme(function: Reduce, is_max: bool) -> Reduce:
    """Of nothing the largest is the least value there is, and the other way round."""

    def reduce(x: lw.Array, *, axis: Any, keepdims: bool) -> lw.Array:
        if any(x.shape[a] == 0 for a in axis):
            kept = [1 if a in axis else n for a, n in enumerate(x.shape)]
            sizes = [n for a, n in enumerate(kept) if keepdims or a not in axis]
            return lw.full(tuple(sizes), _limit(x, is_max), dtype=x.dtype)
        return function(x, axis=axis, keepdims=keepdims)

    return reduce


def _limit(x: lw.Array, is_max: bool) -> Any:
    if x.dtype == lw.bool:
        return not is_max
    if lw.isdtype(x.dtype, "integral"):
        return lw.iinfo(x.dtype).min if is_max else lw.iinfo(x.dtype).max
    return -lw.inf if is_max else lw.inf


def _enter(name: str, function: Reduce, is_noop_plain: bool = True) -> None:
    """`noop_with_empty_axes` skips the reduction, not what is done to each element around it."""

    def reduce(
        x: lw.Array,
        axes: Any = None,
        *,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> lw.Array:
        given = None if axes is None else axes_of(axes, x.ndim)
        if not given and noop_with_empty_axes:
            return x if is_noop_plain else function(x, axis=(), keepdims=bool(keepdims))
        places = given or axes_of(None, x.ndim)
        return function(x, axis=places, keepdims=bool(keepdims))

    def named(x: lw.Array, axis: Any = None, **how: Any) -> lw.Array:
        return reduce(x, how.pop("axes", axis), **how)

    operator(name)(named)


for _name, _function, _is_plain in (
    ("ReduceSum", _sum, True),
    ("ReduceProd", _prod, True),
    ("ReduceMean", lw.mean, True),
    ("ReduceMax", _extreme(lw.max, True), True),
    ("ReduceMin", _extreme(lw.min, False), True),
    ("ReduceSumSquare", _sum_square, False),
    ("ReduceL1", _l1, False),
    ("ReduceL2", _l2, False),
    ("ReduceLogSum", _log_sum, False),
    ("ReduceLogSumExp", lw.logsumexp, False),
):
    _enter(_name, _function, _is_plain)


@operator("ArgMax")
def argmax(
    x: lw.Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> lw.Array:
    return _arg(lw.argmax, x, axis, keepdims, select_last_index)


@operator("ArgMin")
def argmin(
    x: lw.Array, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0
) -> lw.Array:
    return _arg(lw.argmin, x, axis, keepdims, select_last_index)


def _arg(function: Reduce, x: lw.Array, axis: int, keepdims: int, is_last: int) -> lw.Array:
    if is_last:
        place = function(lw.flip(x, axis=axis), axis=axis, keepdims=bool(keepdims))
        return x.shape[axis] - 1 - place
    return function(x, axis=axis, keepdims=bool(keepdims))
