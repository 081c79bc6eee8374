"""Resize: each axis on its own, as a product with the weights of its old elements."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import axes_of, ints


@dataclass(frozen=True)
class _Axis:
    """One axis: its size, the new one, the ratio of both, the part that is looked at."""

    n: int
    m: int
    scale: float
    part: tuple[float, float]

    def source(self, i: int, mode: str) -> float:
        """Where the new element i lies between the old ones."""
        exact = self.scale * self.n
        if mode == "align_corners":
            return 0.0 if exact == 1 else i * (self.n - 1) / (exact - 1)
        if mode == "asymmetric":
            return i / self.scale
        if mode == "tf_crop_and_resize":
            start, end = self.part
            if exact <= 1:
                return (start + end) / 2 * (self.n - 1)
            return (start + i * (end - start) / (exact - 1)) * (self.n - 1)
        middle = (i + 0.5) / self.scale - 0.5
        if mode == "pytorch_half_pixel":
            return middle if exact > 1 else -0.5
        if mode == "half_pixel_symmetric":
            return self.n / 2 * (1 - self.m / exact) + middle
        return middle


@dataclass(frozen=True)
class _Filter:
    """How old elements around a place are weighted."""

    mode: str
    nearest: str
    cubic: float
    antialias: bool
    exclude_outside: bool

    def taps(self, place: float, scale: float) -> list[tuple[int, float]]:
        """(old element, weight), which may lie outside."""
        if self.mode == "nearest":
            rounded = {
                "round_prefer_floor": math.ceil(place - 0.5),
                "round_prefer_ceil": math.floor(place + 0.5),
                "floor": math.floor(place),
                "ceil": math.ceil(place),
            }
            return [(rounded[self.nearest], 1.0)]
        shrink = min(scale, 1.0) if self.antialias else 1.0
        first = math.floor((-1 if self.mode == "linear" else -2) / shrink) + 1
        base = math.floor(place)
        taps = [
            (base + k, self._weight((base + k - place) * shrink)) for k in range(first, 2 - first)
        ]
        total = sum(weight for _, weight in taps)
        return [(at, weight / total) for at, weight in taps]

    def _weight(self, x: float) -> float:
        x, a = abs(x), self.cubic
        if self.mode == "linear":
            return max(1 - x, 0.0)
        if x <= 1:
            return ((a + 2) * x - (a + 3)) * x * x + 1
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _weights(axis: _Axis, how: _Filter, mode: str) -> tuple[np.ndarray, np.ndarray]:
    """A row of weights per new element, and which of these lie outside of the array."""
    weights = np.zeros((axis.m, axis.n))
    outside = np.zeros(axis.m, dtype=bool)
    for i in range(axis.m):
        place = axis.source(i, mode)
        outside[i] = not 0 <= place <= axis.n - 1
        taps = how.taps(place, axis.scale)
        if how.exclude_outside:
            taps = [(at, weight) for at, weight in taps if 0 <= at < axis.n]
            total = sum(weight for _, weight in taps)
            taps = [(at, weight / total) for at, weight in taps]
        for at, weight in taps:
            weights[i, min(max(at, 0), axis.n - 1)] += weight
    return weights, outside


def _axes(
    x: lw.Array,
    places: tuple[int, ...],
    roi: lw.Array | None,
    scales: list[float] | None,
    sizes: list[int] | None,
    policy: str,
) -> list[_Axis]:
    parts = [(0.0, 1.0)] * len(places)
    if roi is not None and roi.size:
        bounds = [float(v) for v in lw.reshape(roi, (-1,)).tolist()]
        parts = list(zip(bounds[: len(places)], bounds[len(places) :]))
    old = [x.shape[a] for a in places]
    if scales:
        return [_Axis(n, math.floor(n * s), s, p) for n, s, p in zip(old, scales, parts)]
    assert sizes is not None
    if policy == "stretch":
        return [_Axis(n, m, m / n, p) for n, m, p in zip(old, sizes, parts)]
    choose = min if policy == "not_larger" else max
    s = choose(m / n for n, m in zip(old, sizes))
    return [_Axis(n, math.floor(n * s + 0.5), s, p) for n, p in zip(old, parts)]


@operator("Resize")
def resize(
    x: lw.Array,
    roi: lw.Array | None = None,
    scales: lw.Array | None = None,
    sizes: lw.Array | None = None,
    *,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> lw.Array:
    how = _Filter(mode, nearest_mode, cubic_coeff_a, bool(antialias), bool(exclude_outside))
    places = axes_of(axes, x.ndim)
    given = [float(v) for v in scales.tolist()] if scales is not None else None
    new_sizes = ints(sizes) if sizes is not None else None
    found = _axes(x, places, roi, given, new_sizes, keep_aspect_ratio_policy)
    outside = np.zeros((1,) * x.ndim, dtype=bool)
    y = x
    for place, axis in zip(places, found):
        rows, is_out = _weights(axis, how, coordinate_transformation_mode)
        shape = [axis.m if a == place else 1 for a in range(x.ndim)]
        outside = outside | is_out.reshape(shape)
        if (rows.shape[0] == rows.shape[1]) and (rows == np.eye(axis.n)).all():
            continue
        if mode == "nearest":
            y = lw.take(y, lw.asarray(rows.argmax(axis=1)), axis=place)
        else:
            weights = lw.astype(lw.asarray(rows), x.dtype)
            y = lw.moveaxis(lw.moveaxis(y, place, -1) @ weights.T, -1, place)
    if coordinate_transformation_mode == "tf_crop_and_resize":
        y = lw.where(lw.asarray(outside), extrapolation_value, y)
    return y


@operator("Upsample")
def upsample(x: lw.Array, scales: lw.Array, *, mode: str = "nearest") -> lw.Array:
    """The older form of Resize."""
    how = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return resize(x, None, scales, mode=mode, **how)
