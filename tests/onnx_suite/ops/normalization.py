"""Normalizations."""

from __future__ import annotations

from typing import Any

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import channels, dtype_of


def _normal(x: lw.Array, axes: tuple[int, ...], epsilon: float) -> lw.Array:
    mean = lw.mean(x, axis=axes, keepdims=True)
    return (x - mean) / lw.sqrt(lw.var(x, axis=axes, keepdims=True) + epsilon)


@operator("BatchNormalization")
def batch_norm(
    x: lw.Array,
    scale: lw.Array,
    bias: lw.Array,
    mean: lw.Array,
    variance: lw.Array,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
) -> Any:
    """In training with the statistics of this batch, and the running ones moved towards them."""

    def apply(mean: lw.Array, variance: lw.Array) -> lw.Array:
        m, v, s, b = [channels(p, x.ndim) for p in (mean, variance, scale, bias)]
        return lw.astype((x - m) / lw.sqrt(v + epsilon) * s + b, x.dtype)

    if not training_mode:
        return apply(mean, variance)
    axes = tuple([a for a in range(x.ndim) if a != 1])
    now, spread = lw.mean(x, axis=axes), lw.var(x, axis=axes)
    moved = [
        old * momentum + new * (1 - momentum) for old, new in ((mean, now), (variance, spread))
    ]
    return apply(now, spread), *moved


@operator("InstanceNormalization")
def instance_norm(
    x: lw.Array, scale: lw.Array, bias: lw.Array, *, epsilon: float = 1e-5
) -> lw.Array:
    normal = _normal(x, tuple(range(2, x.ndim)), epsilon)
    return normal * channels(scale, x.ndim) + channels(bias, x.ndim)


@operator("GroupNormalization")
def group_norm(
    x: lw.Array,
    scale: lw.Array,
    bias: lw.Array,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    **_: int,
) -> lw.Array:
    grouped = lw.reshape(x, (x.shape[0], num_groups, -1))
    normal = lw.reshape(_normal(grouped, (2,), epsilon), x.shape)
    return normal * channels(scale, x.ndim) + channels(bias, x.ndim)


@operator("LayerNormalization")
def layer_norm(
    x: lw.Array,
    scale: lw.Array,
    bias: lw.Array | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> tuple[lw.Array, ...]:
    axes = tuple(range(axis % x.ndim, x.ndim))
    w = lw.astype(x, dtype_of(stash_type))
    y = lw.astype(_normal(w, axes, epsilon), x.dtype) * scale
    y = y if bias is None else y + bias
    mean = lw.mean(w, axis=axes, keepdims=True)
    return y, mean, 1 / lw.sqrt(lw.var(w, axis=axes, keepdims=True) + epsilon)


@operator("RMSNormalization")
def rms_norm(
    x: lw.Array, scale: lw.Array, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> lw.Array:
    axes = tuple(range(axis % x.ndim, x.ndim))
    w = lw.astype(x, dtype_of(stash_type))
    w = w / lw.sqrt(lw.mean(w * w, axis=axes, keepdims=True) + epsilon)
    return lw.astype(w, x.dtype) * scale


@operator("MeanVarianceNormalization")
def mean_variance_norm(x: lw.Array, *, axes: tuple[int, ...] = (0, 2, 3)) -> lw.Array:
    return _normal(x, tuple(axes), 1e-9)


@operator("LpNormalization")
def lp_norm(x: lw.Array, *, axis: int = -1, p: int = 2) -> lw.Array:
    """Where everything is zero, so is the result."""
    size = lw.sum(lw.abs(x) ** p, axis=axis, keepdims=True) ** (1 / p)
    return lw.where(size == 0, 0, x / size)


@operator("LRN")
def local_response_norm(
    x: lw.Array, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> lw.Array:
    before = (size - 1) // 2
    widths = [(before, size - 1 - before) if a == 1 else (0, 0) for a in range(x.ndim)]
    spans = lw.sliding_window_view(lw.pad(x * x, widths), size, axis=1)
    return x / (bias + alpha / size * lw.sum(spans, axis=-1)) ** beta
