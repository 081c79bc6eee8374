"""Convolutions and pools by direct loops over every output element, for drawn options."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Host = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Windows:
    """What conv and pools have in common, per spatial axis."""

    spatial: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]

    def reach(self, axis: int) -> int:
        return (self.kernel[axis] - 1) * self.dilation[axis] + 1

    def sizes(self, ceil_mode: bool = False) -> tuple[int, ...]:
        """How many windows there are: in ceil mode also one that starts inside and sticks out."""
        out = []
        for axis, n in enumerate(self.spatial):
            low, high = self.pads[axis]
            starts = range(-low, n + high, self.stride[axis])
            fits = [s for s in starts if s + self.reach(axis) <= n + high]
            rest = starts[len(fits) :]
            sticks_out = fits[-1] + self.reach(axis) < n + high if fits else True
            out.append(len(fits) + (ceil_mode and sticks_out and bool(rest) and rest[0] < n))
        return tuple(out)

    def places(self, sizes: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], list[list[int]]]]:
        """Each window, and per axis the indices it covers; negative or too large: padding."""
        for place in itertools.product(*map(range, sizes)):
            yield (
                place,
                [
                    [p * s - lo + k * d for k in range(n)]
                    for p, s, (lo, _), d, n in zip(
                        place, self.stride, self.pads, self.dilation, self.kernel, strict=True
                    )
                ],
            )


def draw_windows(rng: random.Random, n_axes: int) -> Windows:
    """Windows that fit, every option away from its default half of the time."""
    spatial, kernel, stride, pads, dilation = [], [], [], [], []
    for _ in range(n_axes):
        n, k = rng.randint(1, 9 if n_axes < 3 else 5), rng.randint(1, 4)
        step = rng.choice([1, 1, 2, 3])
        low, high = rng.choice([(0, 0), (1, 1), (2, 0), (0, 3), (1, 2)])
        spread = rng.choice([1, 1, 2, 3])
        while (k - 1) * spread + 1 > n + low + high:
            k, spread = max(k - 1, 1), 1
        spatial.append(n), kernel.append(k), stride.append(step), dilation.append(spread)
        pads.append((low, high))
    return Windows(*[tuple(v) for v in (spatial, kernel, stride, pads, dilation)])  # type: ignore[arg-type]  # tuples of ints and of pairs


def conv_by_loops(x: Host, w: Host, windows: Windows, groups: int) -> Host:
    """x (N, C, spatial...), w (C_out, C / groups, kernel...); sums as NumPy's sum of the dtype."""
    sizes = windows.sizes()
    out = np.zeros((x.shape[0], w.shape[0], *sizes), x.dtype)
    per_group = w.shape[0] // groups
    for place, indices in windows.places(sizes):
        for taps in itertools.product(*[range(len(i)) for i in indices]):
            at = tuple(i[t] for i, t in zip(indices, taps, strict=True))
            if not all(0 <= a < n for a, n in zip(at, windows.spatial, strict=True)):
                continue
            for co in range(w.shape[0]):
                first = co // per_group * w.shape[1]
                part = x[(slice(None), slice(first, first + w.shape[1]), *at)]
                out[(slice(None), co, *place)] += (part * w[(co, slice(None), *taps)]).sum(1)
    return out


def pool_by_loops(
    x: Host, windows: Windows, ceil_mode: bool, count_include_pad: bool | None = None
) -> Host:
    """The mean of each window, or with count_include_pad=None its greatest element."""
    sizes = windows.sizes(ceil_mode)
    least: Any = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    out = np.full((*x.shape[:2], *sizes), least if count_include_pad is None else 0, x.dtype)
    for place, indices in windows.places(sizes):
        inside, counted = [], 1
        for axis, line in enumerate(indices):
            n, (low, high) = windows.spatial[axis], windows.pads[axis]
            inside.append([i for i in line if 0 <= i < n])
            counted *= (
                len([i for i in line if -low <= i < n + high])
                if count_include_pad
                else len(inside[-1])
            )
        cells = x[(slice(None), slice(None), *np.ix_(*inside))]
        axes = tuple(range(2, x.ndim))
        key = (slice(None), slice(None), *place)
        if count_include_pad is None:
            out[key] = np.max(cells, axis=axes, initial=least)
        else:
            out[key] = cells.sum(axes) / np.float64(counted)
    return out
