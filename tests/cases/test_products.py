"""Matrix products at the ends of their sizes, over views, under reductions, and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, exact, whole

SIZES = [(1, 1, 1), (3, 1, 5), (1, 7, 1), (1, 5, 4), (4, 5, 1), (2, 0, 3), (0, 3, 2), (16, 16, 16)]
SIZES += [(17, 19, 23), (8, 33, 9), (33, 64, 65)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [dt.int16, dt.bfloat16, dt.float32], ids=str)
def test_layouts(dtype: DType, size: tuple[int, int, int]) -> None:
    """Plain and transposed operands, and a sum over the result: whole numbers, exact."""
    m, k, n = size
    x, y = whole(dtype, (m, k), 1, 2), whole(dtype, (k, n), 2, 2)
    wide = (x.astype(np.float64) @ y.astype(np.float64)).astype(dtype.numpy)
    a, b = array(x), array(y)
    at, bt = array(np.ascontiguousarray(x.T)).T, array(np.ascontiguousarray(y.T)).T
    items: list[tuple[str, lw.Array, Any]] = [("nn", a @ b, wide), ("tn", at @ b, wide)]
    items += [("nt", a @ bt, wide), ("tt", at @ bt, wide)]
    if dtype.bits == 32:
        items += [("sum", lw.sum(a @ b, axis=0), wide.sum(axis=0))]
        items += [("plus", a @ b + lw.sum(b, axis=0), wide + y.sum(axis=0))]
    for name, got, want in items:
        exact(name, got, want, zeros=False)


def test_vectors_and_batches() -> None:
    """A vector on either side, two vectors, and broadcast batches."""
    v = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    w = np.array([1, 2, 3], np.float32)
    all_exact(
        [
            ("batch @ vector", array(v) @ array(w), v @ w),
            ("vector @ batch", array(w) @ array(v).mT, w @ np.swapaxes(v, 1, 2)),
            ("vectors", array(w) @ array(w), np.asarray(w @ w)),
            ("batches", array(v) @ array(v).mT, v @ np.swapaxes(v, 1, 2)),
            (
                "broadcast",
                array(v[:, None]) @ array(v[None]).mT,
                v[:, None] @ np.swapaxes(v[None], 2, 3),
            ),
            ("reversed", array(v)[:, ::-1] @ array(w)[::-1], v[:, ::-1] @ w[::-1]),
        ]
    )


def test_chain_of_thirty_three() -> None:
    """1x1 matrices multiplied one after another."""
    mats = [array(np.full((1, 1), 1 + i % 2, np.float64)) for i in range(33)]
    y = mats[0]
    for m in mats[1:]:
        y = y @ m
    exact("chain", y, np.full((1, 1), 2.0**16))


def plain_conv(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Direct sums over windows, in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), *padding))
    n, _, h, v = x.shape
    co, cg, kh, kw = w.shape
    oh = (h - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (v - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, co, oh, ow))
    for o in range(co):
        first = o // (co // groups) * cg
        for i in range(kh):
            for j in range(kw):
                rows = slice(i * dilation[0], i * dilation[0] + (oh - 1) * stride[0] + 1, stride[0])
                columns = slice(
                    j * dilation[1], j * dilation[1] + (ow - 1) * stride[1] + 1, stride[1]
                )
                part = x[:, first : first + cg, rows, columns]
                out[:, o] += np.einsum("nchw,c->nhw", part, w[o, :, i, j].astype(np.float64))
    return out


@pytest.mark.parametrize(
    ("co", "groups", "kernel", "stride", "pad", "dilation"),
    [
        (6, 2, (3, 3), (1, 1), 1, (1, 1)),
        (4, 4, (5, 5), (1, 1), 2, (1, 1)),
        (8, 4, (1, 1), (1, 1), 0, (1, 1)),
        (4, 1, (7, 5), (1, 1), 0, (1, 1)),
        (4, 2, (2, 3), (3, 2), 0, (2, 1)),
        (3, 1, (3, 3), (2, 2), 1, (2, 2)),
    ],
)
def test_convolutions(
    co: int, groups: int, kernel: Any, stride: Any, pad: int, dilation: Any
) -> None:
    """Groups, depthwise, 1x1, strides, dilation, padding, on odd sizes: exact on whole numbers."""
    x = whole(dt.float32, (2, 4, 7, 5), 1)
    w = whole(dt.float32, (co, 4 // groups, *kernel), 2)
    got = lw.conv(array(x), array(w), stride=stride, padding=pad, dilation=dilation, groups=groups)
    want = plain_conv(x, w, stride, ((pad, pad), (pad, pad)), dilation, groups)
    exact("conv", got, want.astype(np.float32), zeros=False)


def test_average_pool_at_the_end() -> None:
    """Windows that overhang divide by what they cover; none starts in the right padding."""
    five = array(np.arange(1, 6, dtype=np.float32).reshape(1, 1, 5))
    got = lw.avg_pool(five, 2, 2, ceil_mode=True)
    exact("5 by 2", got, np.array([[[1.5, 3.5, 5.0]]], np.float32))
    ones = array(np.ones((1, 1, 17), np.float32))
    assert lw.avg_pool(ones, 2, 2, padding=1, ceil_mode=True).shape == (1, 1, 9)
    three = array(np.array([[[1, 2, 3]]], np.float32))
    got = lw.avg_pool(three, 3, 2, padding=1, count_include_pad=False)
    exact("no pads", got, np.array([[[1.5, 2.5]]], np.float32))
