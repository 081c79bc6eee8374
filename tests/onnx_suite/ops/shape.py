"""Shapes: views, joins, and arrays made from sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import UnsupportedError, axes_of, dtype_of, ints, number, product


@operator("Constant")
def constant(**given: Any) -> lw.Array:
    ((name, value),) = given.items()
    if name == "value":
        return value
    if name in ("value_int", "value_ints"):
        return lw.asarray(value, dtype=lw.int64)
    if name in ("value_float", "value_floats"):
        return lw.asarray(value, dtype=lw.float32)
    raise UnsupportedError(f"a constant of kind {name}")


@operator("ConstantOfShape")
def constant_of_shape(shape: lw.Array, *, value: lw.Array | None = None) -> lw.Array:
    if value is None:
        return lw.zeros(tuple(ints(shape)), dtype=lw.float32)
    return lw.full(tuple(ints(shape)), number(value), dtype=value.dtype)


@operator("Shape")
def shape_of(x: lw.Array, *, start: int = 0, end: int | None = None) -> lw.Array:
    return lw.asarray(np.array(x.shape[start:end], dtype=np.int64))


@operator("Size")
def size_of(x: lw.Array) -> lw.Array:
    return lw.asarray(np.array(x.size, dtype=np.int64))


@operator("Reshape")
def reshape(x: lw.Array, shape: lw.Array, *, allowzero: int = 0) -> lw.Array:
    """0 stands for the old size there, unless `allowzero`."""
    sizes = ints(shape)
    if not allowzero:
        sizes = [x.shape[a] if n == 0 else n for a, n in enumerate(sizes)]
    return lw.reshape(x, tuple(sizes))


@operator("Flatten")
def flatten(x: lw.Array, *, axis: int = 1) -> lw.Array:
    axis = axis + x.ndim if axis < 0 else axis
    return lw.reshape(x, (product(x.shape[:axis]), product(x.shape[axis:])))


@operator("Transpose")
def transpose(x: lw.Array, *, perm: list[int] | None = None) -> lw.Array:
    return lw.permute_dims(x, tuple(perm or range(x.ndim)[::-1]))


@operator("Squeeze")
def squeeze(x: lw.Array, places: Any = None, *, axes: Any = None) -> lw.Array:
    given = axes if places is None else places
    return lw.squeeze(x, axis=None if given is None else axes_of(given, x.ndim))


@operator("Unsqueeze")
def unsqueeze(x: lw.Array, places: Any = None, *, axes: Any = None) -> lw.Array:
    given = axes if places is None else ints(places)
    return lw.expand_dims(x, axis=tuple(given))


@operator("Expand")
def expand(x: lw.Array, shape: lw.Array) -> lw.Array:
    return lw.broadcast_to(x, lw.broadcast_shapes(x.shape, tuple(ints(shape))))


@operator("Tile")
def tile(x: lw.Array, repeats: lw.Array) -> lw.Array:
    return lw.tile(x, tuple(ints(repeats)))


@operator("Concat")
def concat(*xs: lw.Array, axis: int) -> lw.Array:
    return lw.concat(list(xs), axis=axis)


@operator("Split")
def split(
    x: lw.Array,
    sizes: lw.Array | None = None,
    *,
    n_outputs: int,
    axis: int = 0,
    num_outputs: int | None = None,
    **old: Any,
) -> tuple[lw.Array, ...]:
    """Equal parts, the last one smaller, or parts of given sizes (once an attribute)."""
    n = x.shape[axis]
    if sizes is not None or "split" in old:
        counts = ints(sizes) if sizes is not None else old["split"]
    else:
        part = -(-n // (num_outputs or n_outputs))
        counts = [min(part, max(n - part * i, 0)) for i in range(n_outputs)]
    parts, start = [], 0
    for count in counts:
        parts.append(span(x, axis, start, start + count))
        start += count
    return tuple(parts)


def span(x: lw.Array, axis: int, start: int, stop: int) -> lw.Array:
    return x[(slice(None),) * (axis % x.ndim) + (slice(start, stop),)]


@operator("Pad")
def pad(
    x: lw.Array,
    pads: lw.Array | None = None,
    value: lw.Array | None = None,
    axes: lw.Array | None = None,
    *,
    mode: str = "constant",
) -> lw.Array:
    """Negative widths cut."""
    given = ints(pads)
    places = axes_of(axes, x.ndim)
    widths = [(0, 0)] * x.ndim
    for i, a in enumerate(places):
        widths[a] = (given[i], given[i + len(places)])
    grown = [(max(lo, 0), max(hi, 0)) for lo, hi in widths]
    if mode == "constant":
        x = lw.pad(x, grown, constant_values=0 if value is None else number(value))
    else:
        x = lw.pad(x, grown, mode=mode)
    for a, (lo, hi) in enumerate(widths):
        x = span(x, a, max(-lo, 0), x.shape[a] - max(-hi, 0))
    return x


@operator("CenterCropPad")
def center_crop_pad(x: lw.Array, shape: lw.Array, *, axes: Any = None) -> lw.Array:
    for a, n in zip(axes_of(axes, x.ndim), ints(shape)):
        extra = n - x.shape[a]
        if extra < 0:
            start = -extra // 2
            x = span(x, a, start, start + n)
        else:
            widths = [(0, 0)] * x.ndim
            widths[a] = (extra // 2, extra - extra // 2)
            x = lw.pad(x, widths)
    return x


@operator("DepthToSpace")
def depth_to_space(x: lw.Array, *, blocksize: int, mode: str = "DCR") -> lw.Array:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        x = lw.permute_dims(lw.reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = lw.permute_dims(lw.reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return lw.reshape(x, (n, c // b**2, h * b, w * b))


@operator("SpaceToDepth")
def space_to_depth(x: lw.Array, *, blocksize: int, mode: str = "DCR") -> lw.Array:
    n, c, h, w = x.shape
    b = blocksize
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    x = lw.permute_dims(lw.reshape(x, (n, c, h // b, b, w // b, b)), order)
    return lw.reshape(x, (n, c * b**2, h // b, w // b))


@operator("Range")
def arange(start: lw.Array, limit: lw.Array, delta: lw.Array) -> lw.Array:
    return lw.arange(number(start), number(limit), number(delta), dtype=start.dtype)


@operator("EyeLike")
def eye_like(x: lw.Array, *, k: int = 0, dtype: int | None = None) -> lw.Array:
    return lw.eye(*x.shape, k=k, dtype=x.dtype if dtype is None else dtype_of(dtype))


@operator("Trilu")
def triangle(x: lw.Array, k: lw.Array | None = None, *, upper: int = 1) -> lw.Array:
    return (lw.triu if upper else lw.tril)(x, k=0 if k is None else number(k))
