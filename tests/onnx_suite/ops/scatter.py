"""Writing by position: each element asks which updates are meant for it."""

from __future__ import annotations

import loopwright as lw
from onnx_suite.ops.indexing import unravel
from onnx_suite.registry import operator
from onnx_suite.values import UnsupportedError, along, product

# How equal places are joined, and what stands where no update is meant.
_JOINS = {"add": lw.sum, "mul": lw.prod, "max": lw.max, "min": lw.min}


def scatter(x: lw.Array, places: lw.Array, updates: lw.Array, reduction: str) -> lw.Array:
    """A vector with updates at places; where several meet, the last one is written.

    A mask of every element against every update: fused, it is one pass and no memory.
    """
    if places.size == 0:
        return x
    is_meant = lw.expand_dims(lw.arange(x.size), axis=1) == places
    if reduction == "none":
        last = lw.max(lw.where(is_meant, lw.arange(places.size), -1), axis=1)
        return lw.where(last < 0, x, updates[lw.maximum(last, 0)])
    if reduction not in _JOINS:
        raise UnsupportedError(f"reduction {reduction}")
    if reduction in ("add", "mul"):
        start = 0 if reduction == "add" else 1
        joined = _JOINS[reduction](lw.where(is_meant, updates, start), axis=1, dtype=x.dtype)
        return x + joined if reduction == "add" else x * joined
    spread = lw.where(is_meant, updates, lw.expand_dims(x, axis=1))
    joined = _JOINS[reduction](spread, axis=1)
    return lw.maximum(x, joined) if reduction == "max" else lw.minimum(x, joined)


@operator("ScatterElements", "Scatter")
def scatter_elements(
    x: lw.Array, indices: lw.Array, updates: lw.Array, *, axis: int = 0, reduction: str = "none"
) -> lw.Array:
    axis %= x.ndim
    index = lw.where(indices < 0, indices + x.shape[axis], indices)
    place = lw.zeros(indices.shape, dtype=lw.int64)
    for a, n in enumerate(indices.shape):
        position = index if a == axis else along(lw.arange(n), a, x.ndim)
        place = place * x.shape[a] + position
    return _flat_scatter(x, place, updates, reduction)


@operator("ScatterND")
def scatter_nd(
    x: lw.Array, indices: lw.Array, updates: lw.Array, *, reduction: str = "none"
) -> lw.Array:
    n_axes = indices.shape[-1]
    rest = x.shape[n_axes:]
    place = lw.zeros(indices.shape[:-1], dtype=lw.int64)
    for a, part in enumerate(lw.unstack(indices, axis=-1)):
        place = place * x.shape[a] + lw.where(part < 0, part + x.shape[a], part)
    inner = lw.arange(product(rest))
    place = lw.expand_dims(lw.reshape(place, (-1,)), axis=1) * product(rest) + inner
    return _flat_scatter(x, place, updates, reduction)


def _flat_scatter(x: lw.Array, place: lw.Array, updates: lw.Array, reduction: str) -> lw.Array:
    flat = [lw.reshape(v, (-1,)) for v in (x, place, updates)]
    return lw.reshape(scatter(*flat, reduction), x.shape)


@operator("TensorScatter")
def tensor_scatter(
    cache: lw.Array,
    update: lw.Array,
    starts: lw.Array | None = None,
    *,
    mode: str = "linear",
    axis: int = -2,
) -> lw.Array:
    """A span of the cache is replaced, per sample of the batch from a place of its own."""
    axis %= cache.ndim
    n, m = cache.shape[axis], update.shape[axis]
    first = lw.zeros((cache.shape[0],), dtype=lw.int64) if starts is None else starts
    ahead = along(lw.arange(n), axis, cache.ndim) - along(first, 0, cache.ndim)
    if mode == "circular":
        ahead = ahead % n
    is_new = lw.logical_and(ahead >= 0, ahead < m)
    source = lw.broadcast_to(lw.clip(ahead, 0, m - 1), cache.shape)
    return lw.where(is_new, lw.take_along_axis(update, source, axis=axis), cache)


@operator("MaxUnpool")
def max_unpool(
    x: lw.Array,
    indices: lw.Array,
    shape: lw.Array | None = None,
    *,
    kernel_shape: list[int],
    strides: list[int] | None = None,
    pads: list[int] | None = None,
) -> lw.Array:
    """Each value at its place in the unpooled array, zeros elsewhere.

    Places count within the size that strides and kernel give; a larger shape has zeros behind.
    """
    from onnx_suite.values import ints

    n = x.ndim - 2
    steps, borders = strides or [1] * n, pads or [0] * 2 * n
    sizes = list(x.shape[:2])
    for i in range(n):
        size = (x.shape[2 + i] - 1) * steps[i] + kernel_shape[i]
        sizes.append(size - borders[i] - borders[n + i])
    zeros = lw.zeros((product(sizes),), dtype=x.dtype)
    flat = [lw.reshape(v, (-1,)) for v in (indices, x)]
    result = lw.reshape(scatter(zeros, *flat, "none"), tuple(sizes))
    if shape is None or tuple(ints(shape)) == tuple(sizes):
        return result
    target = tuple(ints(shape))
    spread = unravel(flat[0], tuple(sizes))
    place = lw.zeros(flat[0].shape, dtype=lw.int64)
    for part, size in zip(spread, target):
        place = place * size + part
    zeros = lw.zeros((product(target),), dtype=x.dtype)
    return lw.reshape(scatter(zeros, place, flat[1], "none"), target)
