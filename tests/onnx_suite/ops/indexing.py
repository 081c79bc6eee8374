"""Reading by position: slices, gathers, sorting."""

from __future__ import annotations

from typing import Any

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import along, axes_of, ints, number, product


@operator("Slice")
def slice_(x: lw.Array, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> lw.Array:
    first = ints(starts)
    places = axes_of(axes, x.ndim) if axes is not None else range(len(first))
    strides = ints(steps) if steps is not None else [1] * len(first)
    key: list[Any] = [slice(None)] * x.ndim
    for a, start, stop, step in zip(places, first, ints(ends), strides):
        n = x.shape[a]
        if step < 0:  # an end before the array is -n - 1 or less, and no position from its end
            start = min(start, n - 1)
            key[a] = slice(start, None if stop < -n else stop, step)
        else:
            key[a] = slice(start, stop, step)
    return x[tuple(key)]


@operator("Gather")
def gather(x: lw.Array, indices: lw.Array, *, axis: int = 0) -> lw.Array:
    return x[(slice(None),) * (axis % x.ndim) + (indices,)]


@operator("GatherElements")
def gather_elements(x: lw.Array, indices: lw.Array, *, axis: int = 0) -> lw.Array:
    """The index's shape may be smaller than the array's in the other axes."""
    axis %= x.ndim
    key = [slice(None) if a == axis else slice(0, n) for a, n in enumerate(indices.shape)]
    return lw.take_along_axis(x[tuple(key)], indices, axis=axis)


@operator("GatherND")
def gather_nd(x: lw.Array, indices: lw.Array, *, batch_dims: int = 0) -> lw.Array:
    parts = lw.unstack(indices, axis=-1)
    n = indices.ndim - 1
    batch = [along(lw.arange(x.shape[a]), a, n) for a in range(batch_dims)]
    return x[(*batch, *parts)]


@operator("OneHot")
def one_hot(indices: lw.Array, depth: lw.Array, values: lw.Array, *, axis: int = -1) -> lw.Array:
    n = int(number(depth))
    places = lw.astype(indices, lw.int64)
    places = lw.where(places < 0, places + n, places)
    is_hot = lw.one_hot(places, n, axis=axis, dtype=lw.bool)
    return lw.where(is_hot, values[1], values[0])


@operator("Compress")
def compress(x: lw.Array, condition: lw.Array, *, axis: int | None = None) -> lw.Array:
    """What follows the condition's end is left out."""
    if axis is None:
        x, axis = lw.reshape(x, (-1,)), 0
    return lw.take(x, lw.nonzero(condition)[0], axis=axis)


@operator("NonZero")
def nonzero(x: lw.Array) -> lw.Array:
    return lw.stack(list(lw.nonzero(x)))


@operator("TopK")
def top_k(
    x: lw.Array, k: lw.Array, *, axis: int = -1, largest: int = 1, sorted: int = 1
) -> tuple[lw.Array, lw.Array]:
    order = lw.argsort(x, axis=axis, descending=bool(largest), stable=True)
    key = (slice(None),) * (axis % x.ndim) + (slice(0, number(k)),)
    return lw.take_along_axis(x, order[key], axis=axis), order[key]


@operator("Unique")
def unique(x: lw.Array, *, sorted: int = 1, axis: int | None = None) -> tuple[lw.Array, ...]:
    """(values, their first places, where each element's value is, counts).

    Slices along an axis are numbered by their elements' order, one element after the other.
    """
    rows = lw.reshape(x, (-1, 1)) if axis is None else lw.moveaxis(x, axis, 0)
    flat = lw.reshape(rows, (rows.shape[0], -1))
    names = lw.zeros((flat.shape[0],), dtype=lw.int64)
    for column in range(flat.shape[1]):
        part = lw.unique_inverse(flat[:, column])
        names = lw.unique_inverse(names * part.values.shape[0] + part.inverse_indices)
        names = names.inverse_indices
    found = lw.unique_all(names)
    order = lw.arange(found.values.shape[0]) if sorted else lw.argsort(found.indices)
    places = lw.argsort(order)
    first = found.indices[order]
    values = lw.take(lw.reshape(x, (-1,)) if axis is None else x, first, axis=axis or 0)
    return values, first, places[found.inverse_indices], found.counts[order]


@operator("ReverseSequence")
def reverse_sequence(
    x: lw.Array, lengths: lw.Array, *, batch_axis: int = 1, time_axis: int = 0
) -> lw.Array:
    n = along(lengths, batch_axis, x.ndim)
    time = along(lw.arange(x.shape[time_axis]), time_axis, x.ndim)
    source = lw.where(time < n, n - 1 - time, time)
    return lw.take_along_axis(x, lw.broadcast_to(source, x.shape), axis=time_axis)


def unravel(flat: lw.Array, sizes: tuple[int, ...]) -> list[lw.Array]:
    """A position per axis from positions in row-major order."""
    return [flat // product(sizes[a + 1 :]) % n for a, n in enumerate(sizes)]
