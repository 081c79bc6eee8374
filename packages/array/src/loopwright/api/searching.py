"""Positions, tests over axes, and what needs the host: nonzero, sort, unique."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from loopwright import graph
from loopwright.api.arguments import flag
from loopwright.api.axes import one_axis, reduced_axes
from loopwright.api.dtypes import astype, operand
from loopwright.api.elementwise import bitwise_invert, equal
from loopwright.api.statistical import Axis, keep, refuse_nothing
from loopwright.array import Array, from_host
from loopwright.promotion import SMALL_FLOATS, check, common, joint_device
from loopwright_core.errors import ArgumentError, OutOfBoundsError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp


def _position(name: str, x: Any, axis: int | None, keepdims: bool) -> Array:
    """One pass over (value, index) pairs: the first extreme wins, NaN before any number."""
    x = operand(name, x)
    node, old = x._uop, x.shape
    if axis is None or (x.ndim == 0 and isinstance(axis, int) and axis in (0, -1)):
        axes = tuple(range(x.ndim))
        node, place = graph.reshape(node, (x.size,)), 0
    else:
        place = one_axis(axis, x.ndim, name)
        axes = (place,)
    refuse_nothing(name, old, axes)
    if node.dtype.is_bool:
        node = graph.cast(node, dt.uint8)
    sizes = graph.shape(node)
    if 0 in sizes:
        found = graph.empty(tuple([n for a, n in enumerate(sizes) if a != place]), dt.int64)
    else:
        # As many positions as values fit a vector where both are as wide.
        width = dt.int32 if sizes[place] <= dt.int32.max else dt.int64
        pair = graph.reduce(name, (place,), node, graph.iota(sizes, place, width))
        found = graph.cast(UOp(Op.ITEM, width, (pair,), 1), dt.int64)
    return Array(keep(found, old, axes, keepdims), x.device)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the largest element is, int64; None: in the flattened array."""
    return _position("argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest element is, int64; None: in the flattened array."""
    return _position("argmin", x, axis, keepdims)


def _test(name: str, combine: str, x: Any, axis: Axis, keepdims: bool) -> Array:
    x = operand(name, x)
    axes = reduced_axes(axis, x.ndim, name)
    node = graph.reduce(combine, axes, graph.cast(x._uop, dt.bool_))
    return Array(keep(node, x.shape, axes, keepdims), x.device)


def any(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether at least one element is not zero; of nothing False."""
    return _test("any", "or", x, axis, keepdims)


def all(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """Whether no element is zero; of nothing True."""
    return _test("all", "and", x, axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not zero, int64."""
    x = operand("count_nonzero", x)
    axes = reduced_axes(axis, x.ndim, "count_nonzero")
    counted = graph.cast(graph.cast(x._uop, dt.bool_), dt.int64)
    return Array(keep(graph.reduce("add", axes, counted), x.shape, axes, keepdims), x.device)


def _host(x: Array, values: Any) -> Array:
    """What NumPy computed, back on the array's device."""
    return from_host(np.asarray(values), x.device, False)


def _sortable(x: Array) -> np.ndarray[Any, Any]:
    """The elements as NumPy orders them with NaN last: small floats as float32."""
    values = x.numpy()
    return values.astype(np.float32) if x.dtype in SMALL_FLOATS else values


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """The indices of elements that are not zero; evaluated on the host."""
    x = operand("nonzero", x)
    if x.ndim == 0:
        fail(ShapeError, "nonzero of a 0-d array", fix="reshape it to one axis")
    return tuple([_host(x, i.astype(np.int64)) for i in np.nonzero(x.numpy())])


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis, NaN last; evaluated on the host."""
    x = operand("sort", x)
    order = argsort(x, axis=axis, descending=descending).numpy()
    return _host(x, np.take_along_axis(x.numpy(), order, axis=axis))


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The stable order of elements along an axis; evaluated on the host."""
    x = operand("argsort", x)
    place = one_axis(axis, x.ndim, "argsort")
    descending = flag(descending, "descending", "argsort")
    values = _sortable(x)
    if not descending:
        return _host(x, np.argsort(values, axis=place, kind="stable").astype(np.int64))
    # a stable descending order is the reversed stable order of the reversed axis
    flipped = np.flip(values, axis=place)
    order = np.flip(np.argsort(flipped, axis=place, kind="stable"), axis=place)
    return _host(x, (x.shape[place] - 1 - order).astype(np.int64))


def _sorter(sorter: Any, n: int) -> Any:
    order = operand("searchsorted", sorter)
    if order.shape != (n,) or not order.dtype.is_int:
        fail(
            ArgumentError,
            f"sorter is an array of shape {order.shape}, {order.dtype}",
            where="searchsorted",
            fix=f"give the {n} positions that lw.argsort gives",
        )
    if n and not 0 <= int(order.numpy().min()) <= int(order.numpy().max()) < n:
        fail(OutOfBoundsError, f"sorter holds positions outside 0..{n - 1}", where="searchsorted")
    return order.numpy()


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """Where x2 would be inserted into the sorted x1; evaluated on the host."""
    a, b = operand("searchsorted", x1), operand("searchsorted", x2)
    if not isinstance(side, str) or side not in ("left", "right"):
        fail(ArgumentError, f"side={side!r}", where="searchsorted", fix="use 'left' or 'right'")
    if a.ndim != 1:
        fail(ShapeError, f"searchsorted in an array of shape {a.shape}", fix="give a sorted line")
    order = None if sorter is None else _sorter(sorter, a.size)
    left = "left" if side == "left" else "right"
    found = np.searchsorted(_sortable(a), _sortable(b), side=left, sorter=order)  # type: ignore[call-overload]  # side is checked
    return _host(b, np.asarray(found, np.int64))


# Sets of so many elements are compared with one by one; larger ones are sorted on the host.
_MAX_COMPARED = 64


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element of x1 is one of x2's; NaN is none. `invert`: whether it is not.

    More than 64 elements of x2 evaluate on the host.
    """
    values = check("isin", (x1, x2))
    invert = flag(invert, "invert", "isin")
    device = joint_device("isin", values)
    a, b = values
    if isinstance(b, Array) and b.size > _MAX_COMPARED:
        dtype = common("isin", values)
        wide = dt.float32 if dtype in SMALL_FLOATS else dtype
        left, right = [astype(v, wide).numpy() for v in values]
        return from_host(np.asarray(np.isin(left, right, invert=invert)), device, False)
    if isinstance(a, Array):
        a = Array(graph.reshape(a._uop, (*a.shape, 1)), a.device)
    if isinstance(b, Array):
        b = Array(graph.reshape(b._uop, (b.size,)), b.device)
    found = any(equal(a, b), axis=-1)
    return bitwise_invert(found) if invert else found


class UniqueAll(NamedTuple):
    """What unique_all gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What unique_counts gives."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What unique_inverse gives."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAll:
    """The different elements, where each is first, the way back, and counts; on the host."""
    x = operand("unique_all", x)
    values, *rest = np.unique_all(_sortable(x))
    return UniqueAll(*[_host(x, part) for part in (values.astype(x.dtype.numpy), *rest)])


def unique_counts(x: Any, /) -> UniqueCounts:
    """The different elements and how often each occurs; evaluated on the host."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The different elements and the index of each original one; evaluated on the host."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """The different elements; evaluated on the host."""
    return unique_all(x).values
