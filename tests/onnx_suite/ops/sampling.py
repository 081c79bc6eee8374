"""Sampling at places that are values: grids, regions, deformed windows."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import ints

Taps = list[tuple[lw.Array, lw.Array]]  # (position along one axis, weight)


def _linear(place: lw.Array) -> Taps:
    base = lw.floor(place)
    share = place - base
    return [(base, 1 - share), (base + 1, share)]


def _cubic(place: lw.Array) -> Taps:
    a = -0.75
    base = lw.floor(place)
    taps = []
    for k in range(-1, 3):
        x = lw.abs(place - (base + k))
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        taps.append((base + k, near if k in (0, 1) else far))
    return taps


def _reflect(place: lw.Array, low: float, high: float) -> lw.Array:
    """Between two mirrors."""
    span = high - low
    if span == 0:
        return lw.full(place.shape, low, dtype=place.dtype)
    ahead = lw.remainder(place - low, 2 * span)
    return low + lw.where(ahead > span, 2 * span - ahead, ahead)


def sample(x: lw.Array, taps: list[Taps], outside: str, is_aligned: bool) -> lw.Array:
    """The weighted sum over all taps of x (N, C, spatial...); places are (N, anything...)."""
    total: lw.Array | None = None
    sizes = x.shape[2:]
    lead = taps[0][0][0].ndim - 1
    batch = lw.reshape(lw.arange(x.shape[0]), (-1, *[1] * lead))
    rows = lw.moveaxis(x, 1, -1)
    for choice in itertools.product(*taps):
        weight = reduce(lw.multiply, [w for _, w in choice])
        key = []
        for (place, _), n in zip(choice, sizes):
            if outside == "zeros":
                is_in = lw.logical_and(place >= 0, place <= n - 1)
                weight = lw.where(is_in, weight, 0)
            elif outside == "reflection":
                ends = (0.0, n - 1.0) if is_aligned else (-0.5, n - 0.5)
                place = _reflect(place, *ends)
            key.append(lw.astype(lw.clip(place, 0, n - 1), lw.int64))
        part = rows[(batch, *key)] * lw.expand_dims(weight, axis=-1)
        total = part if total is None else total + part
    assert total is not None
    return lw.moveaxis(total, -1, 1)


@operator("GridSample")
def grid_sample(
    x: lw.Array,
    grid: lw.Array,
    *,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: int = 0,
) -> lw.Array:
    """A grid's last axis is (x, y, z), from -1 to 1 over the array."""
    taps = []
    for i, n in enumerate(x.shape[2:]):
        place = grid[..., x.ndim - 3 - i]
        place = (place + 1) / 2 * (n - 1) if align_corners else ((place + 1) * n - 1) / 2
        if padding_mode == "border" and mode != "cubic":
            place = lw.clip(place, 0, n - 1)
        elif padding_mode == "reflection" and mode != "cubic":
            ends = (0.0, n - 1.0) if align_corners else (-0.5, n - 0.5)
            place = lw.clip(_reflect(place, *ends), 0, n - 1)
        if mode == "nearest":
            taps.append([(lw.round(place), lw.ones(place.shape, dtype=x.dtype))])
        else:
            taps.append(_cubic(place) if mode in ("cubic", "bicubic") else _linear(place))
    return sample(x, taps, padding_mode, bool(align_corners))


@operator("AffineGrid")
def affine_grid(theta: lw.Array, size: lw.Array, *, align_corners: int = 0) -> lw.Array:
    sizes = ints(size)[2:]
    lines = []
    for n in sizes:
        edge = 1.0 if align_corners else 1 - 1 / n
        lines.append(lw.asarray(np.linspace(-edge, edge, n), dtype=theta.dtype))
    grid = lw.meshgrid(*lines, indexing="ij")
    ones = lw.ones(tuple(sizes), dtype=theta.dtype)
    points = lw.reshape(lw.stack([*grid[::-1], ones], axis=-1), (-1, len(sizes) + 1))
    moved = lw.matmul(points, lw.matrix_transpose(theta))
    return lw.reshape(moved, (theta.shape[0], *sizes, len(sizes)))


@operator("RoiAlign")
def roi_align(
    x: lw.Array,
    regions: lw.Array,
    batch: lw.Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> lw.Array:
    """Means or maxima over `sampling_ratio`² samples in each cell of each region."""
    is_half = coordinate_transformation_mode == "half_pixel"
    ends = regions * spatial_scale - (0.5 if is_half else 0)
    axes = []
    for low, high, n_cells in ((1, 3, output_height), (0, 2, output_width)):
        start, length = ends[:, low], ends[:, high] - ends[:, low]
        length = length if is_half else lw.maximum(length, 1)
        counts = [sampling_ratio or int(v) for v in np.ceil(np.asarray(length) / n_cells)]
        n = n_cells * max(counts)
        steps = (lw.arange(n, dtype=regions.dtype) + 0.5) / n
        if len(set(counts)) > 1:
            raise NotImplementedError("regions with different numbers of samples")
        axes.append((lw.expand_dims(start, 1) + lw.expand_dims(length, 1) * steps, counts[0]))
    (ys, n_y), (xs, n_x) = axes
    weighted = []
    for places, n, at in ((ys, x.shape[2], -1), (xs, x.shape[3], -2)):
        is_in = lw.logical_and(places >= -1, places <= n)
        inside = lw.clip(places, 0, n - 1)
        base = lw.minimum(lw.floor(inside), n - 2) if n > 1 else lw.zeros_like(inside)
        share = inside - base
        taps = [(base, lw.where(is_in, 1 - share, 0)), (base + 1, lw.where(is_in, share, 0))]
        weighted.append([tuple(lw.expand_dims(v, axis=at) for v in tap) for tap in taps])
    chosen = lw.take(x, batch, axis=0)
    cells = (regions.shape[0], x.shape[1], output_height, n_y, output_width, n_x)
    if mode == "avg":
        y = sample(chosen, weighted, "border", False)
        return lw.mean(lw.reshape(y, cells), axis=(3, 5))
    parts = []
    for tap_y, tap_x in itertools.product(*weighted):
        parts.append(sample(chosen, [[tap_y], [tap_x]], "border", False))
    return lw.max(lw.reshape(reduce(lw.maximum, parts), cells), axis=(3, 5))
