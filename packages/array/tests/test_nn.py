"""Softmax, normalisation, convolution and pooling against plain loops and formulas."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from array_oracle import oracle, same

import loopwright as lw
from loopwright_core.errors import LoopwrightError, ShapeError

X = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32)


def _softmax(x: np.ndarray[Any, Any], axis: int) -> np.ndarray[Any, Any]:
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis: int) -> None:
    """softmax sums to 1 along its axis, log_softmax is its logarithm."""
    want = _softmax(X, axis)
    np.testing.assert_allclose(oracle(lw.softmax(X, axis=axis)), want, rtol=1e-6)
    np.testing.assert_allclose(oracle(lw.log_softmax(X, axis=axis)), np.log(want), rtol=2e-6)


def test_softmax_of_small_floats_rounds_once() -> None:
    """float16 in, float16 out, computed in float32."""
    x = X.astype(np.float16)
    want = oracle(lw.softmax(lw.asarray(x.astype(np.float32)))).astype(np.float16)
    same(lw.softmax(lw.asarray(x)), want)


def test_logsumexp() -> None:
    """Finite values do not overflow; -inf, inf and nothing have their limits."""
    x = X * 300
    want = np.logaddexp.reduce(x.astype(np.float64), axis=1)
    np.testing.assert_allclose(oracle(lw.logsumexp(x, axis=1)), want, rtol=1e-6)
    same(lw.logsumexp(lw.full(3, -np.inf)), np.float64(-np.inf))
    same(lw.logsumexp(lw.asarray([1.0, np.inf])), np.float64(np.inf))
    same(lw.logsumexp(lw.zeros(0)), np.float64(-np.inf))


@pytest.mark.parametrize("axis", [-1, (1, 2), 0])
def test_layer_norm(axis: Any) -> None:
    """Mean 0 and variance 1 over the axes, then weight and bias of their shape."""
    x = X.astype(np.float64)
    axes = axis if isinstance(axis, tuple) else (axis,)
    shape = tuple(X.shape[a] for a in axes)
    weight = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    want = (x - mean) / np.sqrt(var + 1e-5)
    np.testing.assert_allclose(oracle(lw.layer_norm(X, axis=axis)), want, rtol=1e-4, atol=1e-6)
    lifted = weight if axes != (0,) else weight.reshape(2, 1, 1)
    got = oracle(lw.layer_norm(X, weight, weight, axis=axis))
    np.testing.assert_allclose(got, want * lifted + lifted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="weight has shape"):
        lw.layer_norm(X, np.ones(7, np.float32), axis=axis)


def test_one_hot() -> None:
    """A row of the identity; indices outside give zeros."""
    want = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]], np.float32)
    same(lw.one_hot(np.array([0, 2, -1, 5]), 3), want)
    same(lw.one_hot(np.array([0, 2, -1, 5]), 3, axis=0), want.T)


def _conv(x: Any, w: Any, stride: Any, pads: Any, dilation: Any, groups: int) -> Any:
    """Direct loops over every output element."""
    n = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    kernel = w.shape[2:]
    sizes = [
        (x.shape[2 + a] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in range(n)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    per_group = w.shape[0] // groups
    for co in range(w.shape[0]):
        first = co // per_group * w.shape[1]
        for place in itertools.product(*map(range, sizes)):
            cut = tuple(
                slice(p * s, p * s + d * (k - 1) + 1, d)
                for p, s, d, k in zip(place, stride, dilation, kernel, strict=True)
            )
            part = x[(slice(None), slice(first, first + w.shape[1]), *cut)]
            out[(slice(None), co, *place)] = (part * w[co]).reshape(len(x), -1).sum(1)
    return out


@pytest.mark.parametrize(
    ("spatial", "kernel", "stride", "pads", "dilation", "groups"),
    [
        ((7, 6), (3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ((7, 6), (3, 2), (2, 1), ((1, 2), (0, 1)), (1, 1), 2),
        ((7, 6), (3, 2), (1, 2), ((2, 2), (2, 2)), (2, 1), 4),
        ((7, 6), (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ((11,), (4,), (3,), ((2, 1),), (2,), 2),
        ((4, 5, 3), (2, 2, 2), (1, 2, 1), ((1, 0), (0, 0), (1, 1)), (1, 1, 1), 1),
    ],
)
def test_conv(
    spatial: Any, kernel: Any, stride: Any, pads: Any, dilation: Any, groups: int
) -> None:
    """Strides, paddings, dilations and groups in one to three dimensions, both layouts."""
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, (2, 4, *spatial)).astype(np.float32)
    w = rng.integers(-3, 4, (8, 4 // groups, *kernel)).astype(np.float32)
    want = _conv(x, w, stride, pads, dilation, groups).astype(np.float32)
    same(lw.conv(x, w, None, stride, pads, dilation, groups), want)
    last = (0, *range(2, x.ndim), 1)
    bias = np.arange(8, dtype=np.float32)
    got = lw.conv(x.transpose(last), w, bias, stride, pads, dilation, groups, layout="NHWC")
    same(got, want.transpose(last) + bias)


def test_conv_errors() -> None:
    """Wrong channels, ranks and layouts are refused with both shapes."""
    with pytest.raises(ShapeError, match="channels in 2 groups"):
        lw.conv(lw.zeros((1, 3, 5, 5)), lw.zeros((4, 1, 3, 3)), groups=2)
    with pytest.raises(ShapeError, match="1 to 3 spatial axes"):
        lw.conv(lw.zeros((3, 5)), lw.zeros((4, 3)))
    with pytest.raises(ShapeError, match="does not fit"):
        lw.conv(lw.zeros((1, 1, 2)), lw.zeros((1, 1, 3)))


@pytest.mark.parametrize(
    "settings",
    [
        {"groups": 1.5},
        {"groups": "a"},
        {"stride": 0},
        {"stride": "a"},
        {"padding": None},
        {"padding": 1.5},
        {"padding": (1, 2, 3)},
        {"padding": ((1, 2, 3), (1, 2))},
        {"padding": "same"},
        {"padding": -1},
        {"dilation": 0},
        {"layout": 3},
        {"layout": "NCW"},
        {"layout": "NHCW"},
    ],
    ids=str,
)
def test_wrong_settings(settings: Any) -> None:
    """What is no setting of a convolution is refused where it is given, by name."""
    with pytest.raises(LoopwrightError, match=next(iter(settings))):
        lw.conv(lw.zeros((1, 2, 5, 5)), lw.zeros((2, 2, 3, 3)), **settings)


def test_pools_refuse() -> None:
    """Kernels and flags that are none."""
    x = lw.zeros((1, 2, 5, 5))
    for settings in ({"kernel": 0}, {"kernel": 2, "ceil_mode": "yes"}, {"kernel": (2, 2, 2)}):
        with pytest.raises(LoopwrightError, match=r"kernel|ceil_mode"):
            lw.max_pool(x, **settings)
    with pytest.raises(LoopwrightError, match="count_include_pad"):
        lw.avg_pool(x, 2, count_include_pad=None)  # type: ignore[arg-type]


def test_pools() -> None:
    """Ceil mode counts only what lies inside the padding; max pools ignore padding."""
    line = np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5)
    same(lw.avg_pool(line, 2, 2, ceil_mode=True), np.array([[[1.5, 3.5, 5]]], np.float32))
    same(lw.max_pool(line, 2, 2, ceil_mode=True), np.array([[[2, 4, 5]]], np.float32))
    assert lw.avg_pool(lw.zeros((1, 1, 17)), 2, 2, 1, ceil_mode=True).shape == (1, 1, 9)
    same(lw.max_pool(-np.ones((1, 1, 3), np.float32), 3, 1, 1), -np.ones((1, 1, 3), np.float32))
    ones = np.ones((1, 1, 4, 4), np.float32)
    same(lw.avg_pool(ones, 3, 1, 1, count_include_pad=False), ones)
    corner = oracle(lw.avg_pool(ones, 3, 1, 1))[0, 0, 0, 0]
    assert corner == np.float32(4) / np.float32(9)
