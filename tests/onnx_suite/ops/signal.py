"""Fourier transforms as products with their matrices, and windows."""

from __future__ import annotations

import math

import numpy as np

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import dtype_of, number


def _cosine_window(
    size: lw.Array, weights: tuple[float, ...], periodic: int, dtype: int
) -> lw.Array:
    n = int(number(size))
    angle = lw.arange(n, dtype=lw.float64) * (2 * math.pi / (n if periodic else n - 1))
    total = lw.zeros((n,), dtype=lw.float64)
    for k, weight in enumerate(weights):
        total = total + (-1) ** k * weight * lw.cos(k * angle)
    return lw.astype(total, dtype_of(dtype))


@operator("HannWindow")
def hann(size: lw.Array, *, periodic: int = 1, output_datatype: int = 1) -> lw.Array:
    return _cosine_window(size, (0.5, 0.5), periodic, output_datatype)


@operator("HammingWindow")
def hamming(size: lw.Array, *, periodic: int = 1, output_datatype: int = 1) -> lw.Array:
    return _cosine_window(size, (25 / 46, 21 / 46), periodic, output_datatype)


@operator("BlackmanWindow")
def blackman(size: lw.Array, *, periodic: int = 1, output_datatype: int = 1) -> lw.Array:
    return _cosine_window(size, (0.42, 0.5, 0.08), periodic, output_datatype)


def transform(x: lw.Array, n: int, inverse: int = 0) -> tuple[lw.Array, lw.Array]:
    """Real and imaginary parts of the transform along the axis before the last, cut or padded."""
    m = min(x.shape[-2], n)
    angle = 2 * np.pi / n * (np.arange(m)[:, None] * np.arange(n) % n) * (1 if inverse else -1)
    share = 1 / n if inverse else 1
    c, s = [lw.astype(lw.asarray(f(angle) * share), x.dtype) for f in (np.cos, np.sin)]
    real = x[..., :m, 0]
    if x.shape[-1] == 1:
        return real @ c, real @ s
    imag = x[..., :m, 1]
    return real @ c - imag @ s, real @ s + imag @ c


@operator("DFT")
def fourier(
    x: lw.Array,
    length: lw.Array | None = None,
    axis_input: lw.Array | None = None,
    *,
    opset: int,
    axis: int | None = None,
    inverse: int = 0,
    onesided: int = 0,
) -> lw.Array:
    """The last axis is (real,) or (real, imaginary)."""
    if axis_input is not None:
        axis = number(axis_input)
    place = ((1 if opset < 20 else -2) if axis is None else axis) % x.ndim
    n = x.shape[place] if length is None else int(number(length))
    line = lw.moveaxis(x, place, -2)
    if onesided and inverse:  # the other half is the mirror image, its imaginary part negated
        n = 2 * (line.shape[-2] - 1) if length is None else n
        rest = lw.flip(line[..., 1 : n - line.shape[-2] + 1, :], axis=-2)
        line = lw.concat([line, rest * lw.asarray([1, -1], dtype=x.dtype)], axis=-2)
    parts = transform(line, n, inverse)
    y = lw.stack(parts[:1] if onesided and inverse else parts, axis=-1)
    if onesided and not inverse:
        y = y[..., : n // 2 + 1, :]
    return lw.moveaxis(y, -2, place)


@operator("STFT")
def short_fourier(
    x: lw.Array,
    step: lw.Array,
    window: lw.Array | None = None,
    length: lw.Array | None = None,
    *,
    onesided: int = 1,
) -> lw.Array:
    n = int(number(length)) if length is not None else window.shape[0]
    frames = lw.sliding_window_view(x, n, axis=1)[:, :: int(number(step))]
    frames = lw.moveaxis(frames, -1, -2)
    if window is not None:
        frames = frames * lw.expand_dims(window, axis=-1)
    y = lw.stack(transform(frames, n), axis=-1)
    return y[..., : n // 2 + 1, :] if onesided else y


@operator("MelWeightMatrix")
def mel_weights(
    n_bins: lw.Array,
    dft_length: lw.Array,
    rate: lw.Array,
    lower: lw.Array,
    upper: lw.Array,
    *,
    output_datatype: int = 1,
) -> lw.Array:
    """Triangles between neighbouring frequencies that are evenly spaced on the mel scale."""
    n, size = int(number(n_bins)), int(number(dft_length))
    ends = [2595 * math.log10(1 + number(f) / 700) for f in (lower, upper)]
    mels = ends[0] + np.arange(n + 2) * (ends[1] - ends[0]) / (n + 2)
    bins = (size + 1) * (700 * (10 ** (mels / 2595) - 1)) // number(rate)
    low, middle, high = [lw.asarray(bins[i : i + n]) for i in range(3)]
    row = lw.expand_dims(lw.arange(size // 2 + 1, dtype=lw.float64), axis=1)
    up = lw.where(middle > low, (row - low) / lw.maximum(middle - low, 1), row == middle)
    down = (high - row) / lw.maximum(high - middle, 1)
    inside = lw.where(row <= middle, up, lw.where(row < high, down, 0))
    return lw.astype(lw.where(row < low, 0, inside), dtype_of(output_datatype))
