"""Convolution, pooling, padding and normalisation over drawn shapes and options.

LOOPWRIGHT_LONG=1 draws ten times as many.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
from windows import conv_by_loops, draw_windows, pool_by_loops

import loopwright as lw

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
N_DRAWN = 100 if LONG else 10
LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def checked(found: list[tuple[str, lw.Array, Any]]) -> None:
    """Evaluate together; each is exactly what stands beside it, NaN as NaN."""
    lw.evaluate(*[x for _, x, _ in found])
    for name, x, want in found:
        assert (x.shape, x.dtype.numpy) == (want.shape, want.dtype), name
        np.testing.assert_array_equal(x.numpy(), want, err_msg=name)


def short(rng: random.Random, values: tuple[Any, ...]) -> Any:
    """One number for all axes where they are equal, half of the time."""
    return values[0] if len(set(values)) == 1 and rng.random() < 0.5 else values


def whole(rng: random.Random, dtype: str, *shape: int) -> Any:
    """Small whole numbers: their sums are exact in any order."""
    host = np.random.default_rng(rng.randrange(2**32))
    return host.integers(0 if dtype.startswith("u") else -3, 4, shape).astype(dtype)


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_conv(n_axes: int) -> None:
    """Every option in both layouts, with and without bias, integers in their own dtype."""
    found = []
    for seed in range(N_DRAWN):
        rng = random.Random(f"conv {n_axes} {seed}")
        windows, groups = draw_windows(rng, n_axes), rng.choice([1, 1, 2, 3])
        n_in, n_out = groups * rng.randint(1, 3), groups * rng.randint(1, 3)
        dtype = rng.choice(["float32", "float32", "float64", "int8", "uint16", "int64"])
        x = whole(rng, dtype, rng.randint(1, 3), n_in, *windows.spatial)
        w = whole(rng, dtype, n_out, n_in // groups, *windows.kernel)
        bias = whole(rng, dtype, n_out) if rng.random() < 0.5 else None
        want = conv_by_loops(x, w, windows, groups)
        if bias is not None:
            want = want + bias.reshape(n_out, *[1] * n_axes)
        layout = rng.choice([*LAYOUTS[n_axes], "NCHW", "NHWC"])
        given = x
        if layout.endswith("C"):
            given, want = np.moveaxis(x, 1, -1), np.moveaxis(want, 1, -1)
        pads: Any = windows.pads
        if all(low == high for low, high in pads) and rng.random() < 0.5:
            pads = short(rng, tuple(low for low, _ in pads))
        stride, dilation = short(rng, windows.stride), short(rng, windows.dilation)
        got = lw.conv(given, w, bias, stride, pads, dilation, groups, layout)
        found.append((f"{seed} {windows} {groups} {layout}", got, want))
    checked(found)


@pytest.mark.parametrize("n_axes", [1, 2, 3])
def test_pools(n_axes: int) -> None:
    """Ceil mode, dilation, padding counted or not; strides that default to the kernel."""
    found = []
    for seed in range(N_DRAWN):
        rng = random.Random(f"pool {n_axes} {seed}")
        windows, ceil_mode = draw_windows(rng, n_axes), rng.random() < 0.5
        shape = (rng.randint(1, 2), rng.randint(1, 3), *windows.spatial)
        dtype = rng.choice(["float32", "float64", "int8", "uint8"])
        x = whole(rng, dtype, *shape)
        settings: dict[str, Any] = {
            "stride": short(rng, windows.stride),
            "padding": windows.pads,
            "dilation": short(rng, windows.dilation),
            "ceil_mode": ceil_mode,
        }
        if windows.stride == windows.kernel and rng.random() < 0.7:
            del settings["stride"]
        kernel = short(rng, windows.kernel)
        name = f"{seed} {windows} {ceil_mode}"
        got = lw.max_pool(x, kernel, **settings)
        found.append((name, got, pool_by_loops(x, windows, ceil_mode)))
        if dtype == "float64":
            counts = rng.random() < 0.5
            mean = lw.avg_pool(x, kernel, **settings, count_include_pad=counts)
            with np.errstate(all="ignore"):
                found.append((name, mean, pool_by_loops(x, windows, ceil_mode, counts)))
    checked(found)


def test_pads() -> None:
    """Every mode as NumPy's, over drawn shapes and widths, also wider than the array."""
    found = []
    for seed in range(N_DRAWN):
        rng = random.Random(f"pad {seed}")
        shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 3)))
        x = whole(rng, rng.choice(["float32", "int16", "uint8"]), *shape)
        widths: Any = [(rng.randint(0, 9), rng.randint(0, 4)) for _ in shape]
        widths = rng.choice([widths, widths[0], widths[0][0]])
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
            found.append((f"{seed} {mode}", lw.pad(x, widths, mode), np.pad(x, widths, mode)))
        fills = [(rng.randint(0, 5), rng.randint(0, 5)) for _ in shape]
        want = np.pad(x, widths, constant_values=fills)
        found.append((f"{seed} fills", lw.pad(x, widths, constant_values=fills), want))
    checked(found)


def near(name: str, x: lw.Array, want: Any, loose: float = 4.0) -> None:
    """Within some roundings of the dtype at the size of the largest element."""
    got = x.numpy()
    assert got.shape == want.shape, name
    eps = np.finfo(got.dtype).eps
    np.testing.assert_allclose(got, want, rtol=loose * eps, atol=loose * eps, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_and_its_kind(dtype: str) -> None:
    """softmax, log_softmax, logsumexp over any axes of drawn shapes."""
    for seed in range(N_DRAWN // 4):
        rng = random.Random(f"softmax {seed}")
        shape = tuple(rng.randint(1, 9) for _ in range(rng.randint(1, 4)))
        x = np.random.default_rng(seed).normal(size=shape).astype(dtype) * 3
        axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
        axis: Any = tuple(axes) if len(axes) > 1 else axes[0] - rng.choice([0, len(shape)])
        wide = x.astype(np.longdouble)
        high = wide.max(axis=axis, keepdims=True)
        total = np.exp(wide - high).sum(axis=axis, keepdims=True)
        near("softmax", lw.softmax(x, axis=axis), np.exp(wide - high) / total, 16)
        near("log_softmax", lw.log_softmax(x, axis=axis), wide - high - np.log(total), 64)
        summed = lw.logsumexp(x, axis=axis, keepdims=True)
        near("logsumexp", summed, high + np.log(total), 16)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_norm(dtype: str) -> None:
    """Over drawn axes, with and without weight and bias."""
    for seed in range(N_DRAWN // 4):
        rng = random.Random(f"layer norm {seed}")
        host = np.random.default_rng(seed)
        shape = tuple(rng.randint(2, 9) for _ in range(rng.randint(1, 4)))
        x = host.normal(size=shape).astype(dtype)
        axes = tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))
        inner = tuple(shape[a] for a in axes)
        weight, bias = [
            host.normal(size=inner).astype(dtype) if rng.random() < 0.5 else None for _ in range(2)
        ]
        wide = x.astype(np.longdouble)
        apart = wide - wide.mean(axes, keepdims=True)
        want = apart / np.sqrt((apart**2).mean(axes, keepdims=True) + 1e-3)
        lifted = [n if a in axes else 1 for a, n in enumerate(shape)]
        want = want if weight is None else want * weight.reshape(lifted)
        want = want if bias is None else want + bias.reshape(lifted)
        axis: Any = axes if len(axes) > 1 else axes[0]
        near("layer_norm", lw.layer_norm(x, weight, bias, axis, 1e-3), want, 64)
