"""Sums and other reductions, and running ones."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from loopwright import graph
from loopwright.api.arguments import flag, integer, number
from loopwright.api.axes import many_axes, one_axis, reduced_axes
from loopwright.api.dtypes import operand
from loopwright.array import Array
from loopwright.extents import DynamicSize
from loopwright.extents import number as count
from loopwright.promotion import accumulator, as_dtype, widened_sum
from loopwright_core.errors import ArgumentError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

Axis: TypeAlias = int | tuple[int, ...] | None


def keep(node: UOp, old: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> UOp:
    """The reduced axes put back with size 1."""
    if keepdims is False or not flag(keepdims, "keepdims", "a reduction"):
        return node
    return graph.reshape(node, tuple([1 if a in axes else n for a, n in enumerate(old)]))


def total(combine: str, node: UOp, axes: tuple[int, ...], dtype: DType) -> UOp:
    """The reduction in the accumulator of a dtype, rounded to it once."""
    wide = graph.cast(graph.cast(node, dtype), accumulator(dtype))
    return graph.cast(graph.reduce(combine, axes, wide), dtype)


def _sum_like(name: str, combine: str, x: Any, axis: Axis, dtype: Any, keepdims: bool) -> Array:
    x = operand(name, x)
    axes = reduced_axes(axis, x.ndim, name)
    found = widened_sum(x.dtype) if dtype is None else as_dtype(dtype, name)
    if found.is_bool:
        combine = "or" if combine == "add" else "and"
    node = total(combine, x._uop, axes, found)
    return Array(keep(node, x.shape, axes, keepdims), x.device)


def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The sum over axes; integers widen to 64 bits, small floats are summed in float32."""
    return _sum_like("sum", "add", x, axis, dtype, keepdims)


def prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The product over axes; integers widen to 64 bits."""
    return _sum_like("prod", "mul", x, axis, dtype, keepdims)


def _extreme(name: str, x: Any, axis: Axis, keepdims: bool) -> Array:
    x = operand(name, x)
    axes = reduced_axes(axis, x.ndim, name)
    refuse_nothing(name, x.shape, axes)
    combine = name
    if x.dtype.is_bool:
        combine = "or" if name == "max" else "and"
    node = graph.reduce(combine, axes, x._uop)
    return Array(keep(node, x.shape, axes, keepdims), x.device)


def refuse_nothing(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Raise ShapeError where a reduced axis is empty, as NumPy does even where no result is."""
    if any(shape[a] == 0 for a in axes):
        fail(
            ShapeError,
            f"{name} of an empty axis has no value: shape {shape}, axes {axes}",
            fix="check the size first",
        )


def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The largest element; NaN where there is one. Raises ShapeError for an empty axis."""
    return _extreme("max", x, axis, keepdims)


def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The smallest element; NaN where there is one. Raises ShapeError for an empty axis."""
    return _extreme("min", x, axis, keepdims)


def _moments(name: str, x: Any, axis: Axis) -> tuple[Array, tuple[int, ...], DType, UOp, int]:
    """The operand, its axes, the result's dtype, the values in the accumulator, their count.

    Unlike those of NumPy's other reductions, the axes here must exist in a 0-d array too.
    """
    x = operand(name, x)
    axes = many_axes(axis, x.ndim, name)
    dtype = x.dtype if x.dtype.is_float else dt.float64
    wide = graph.cast(x._uop, accumulator(dtype))
    return x, axes, dtype, wide, math.prod([x.shape[a] for a in axes])


def mean(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """The arithmetic mean; of integers in float64; of nothing NaN."""
    x, axes, dtype, wide, n = _moments("mean", x, axis)
    node = _mean(wide, axes, n)
    return Array(keep(graph.cast(node, dtype), x.shape, axes, keepdims), x.device)


def _mean(wide: UOp, axes: tuple[int, ...], n: int) -> UOp:
    return graph.alu(Op.DIV, graph.reduce("add", axes, wide), count(n, wide.dtype))


def variance(x: Array, axes: tuple[int, ...], wide: UOp, divisor: UOp) -> tuple[UOp, UOp]:
    """(x - mean, mean of its square), the mean subtracted first: no cancellation."""
    n = math.prod([x.shape[a] for a in axes])
    kept = keep(_mean(wide, axes, n), x.shape, axes, True)
    apart = graph.alu(Op.SUB, wide, graph.expand(kept, x.shape))
    squares = graph.reduce("add", axes, graph.alu(Op.MUL, apart, apart))
    return apart, graph.alu(Op.DIV, squares, divisor)


def _divisor(n: Any, correction: float, dtype: DType) -> UOp:
    if type(n) is not DynamicSize:
        return const(n - correction if n > correction else 0.0, dtype)
    less = graph.alu(Op.SUB, count(n, dtype), const(correction, dtype))
    return graph.alu(Op.MAX, less, const(0, dtype))


def _spread(name: str, x: Any, axis: Axis, correction: float, keepdims: bool, root: bool) -> Array:
    x, axes, dtype, wide, n = _moments(name, x, axis)
    correction = number(correction, "correction", name)
    _, node = variance(x, axes, wide, _divisor(n, correction, wide.dtype))
    if root:
        node = graph.alu(Op.SQRT, node)
    return Array(keep(graph.cast(node, dtype), x.shape, axes, keepdims), x.device)


def var(x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance: squared distances from the mean over (n - correction)."""
    return _spread("var", x, axis, correction, keepdims, False)


def std(x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation: the square root of the variance."""
    return _spread("std", x, axis, correction, keepdims, True)


def _cumulative(
    name: str, combine: str, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Array:
    x = operand(name, x)
    if x.ndim == 0:
        fail(ShapeError, f"{name} of a 0-d array", fix="reshape it to one axis")
    if axis is None:
        if x.ndim > 1:
            fail(ArgumentError, f"{name} of shape {x.shape} needs an axis", fix="give axis=")
        axis = 0
    place = one_axis(axis, x.ndim, name)
    found = widened_sum(x.dtype) if dtype is None else as_dtype(dtype, name)
    if found.is_bool:
        fail(DTypeError, f"{name} in bool is not defined", fix="give an integer dtype")
    wide = graph.cast(graph.cast(x._uop, found), _running_dtype(combine, found, x.device))
    if flag(include_initial, "include_initial", name):
        widths = [(0, 0)] * x.ndim
        widths[place] = (0, 1)
        wide = graph.pad(wide, widths, const(0 if combine == "add" else 1, wide.dtype))
    node = graph.scan(combine, place, wide, exclusive=include_initial)
    return Array(graph.cast(node, found), x.device)


def _running_dtype(combine: str, dtype: DType, device: str) -> DType:
    """What a running value is kept in.

    A sum of float32 is one chain of additions, whose error grows with its length: it is kept in
    float64 wherever the device has that.
    """
    if combine == "add" and dtype is dt.float32:
        from loopwright_core.plugin.loader import registry

        if dt.float64 in registry().device(device).target.arith:
            return dt.float64
    return accumulator(dtype)


def cumulative_sum(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """The running sum along an axis, with the leading 0 if asked for.

    Small floats are summed in float32, float32 in float64 where the device has it.
    """
    return _cumulative("cumulative_sum", "add", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any,
    /,
    *,
    axis: int | None = None,
    dtype: Any = None,
    include_initial: bool = False,
) -> Array:
    """The running product along an axis, with the leading 1 if asked for."""
    return _cumulative("cumulative_prod", "mul", x, axis, dtype, include_initial)


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Array:
    """Differences of neighbours along an axis, n times."""
    from loopwright.api.elementwise import not_equal, subtract
    from loopwright.api.manipulation import concat

    y = operand("diff", x)
    y = Array(y._uop, y.device)  # with n=0 too, writing into the result leaves x alone
    place = one_axis(axis, y.ndim, "diff")
    n = integer(n, "n", "diff")
    if n < 0:
        fail(ArgumentError, f"n={n} is negative", where="diff")
    if prepend is not None:
        y = concat([prepend, y], axis=place)
    if append is not None:
        y = concat([y, append], axis=place)
    key: tuple[Any, ...] = (slice(None),) * place
    for _ in range(n):
        step = not_equal if y.dtype.is_bool else subtract
        y = step(y[(*key, slice(1, None))], y[(*key, slice(None, -1))])
    return y
