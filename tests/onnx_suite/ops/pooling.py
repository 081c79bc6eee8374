"""Pools over windows and over everything."""

from __future__ import annotations

from typing import Any

import loopwright as lw
from onnx_suite.ops.indexing import unravel
from onnx_suite.ops.linear import padding
from onnx_suite.registry import operator
from onnx_suite.values import is_float, product


def _windows(x: lw.Array, how: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a pool as arguments of Loopwright's pools."""
    kernel = how["kernel_shape"]
    n = len(kernel)
    steps, apart = how.get("strides") or [1] * n, how.get("dilations") or [1] * n
    around = padding(
        x.shape[2:], kernel, steps, apart, how.get("auto_pad", "NOTSET"), how.get("pads")
    )
    return {
        "kernel": tuple(kernel),
        "stride": tuple(steps),
        "padding": tuple(around),
        "dilation": tuple(apart),
        "ceil_mode": bool(how.get("ceil_mode", 0)),
    }


@operator("MaxPool")
def max_pool(
    x: lw.Array, *, n_outputs: int, storage_order: int = 0, **how: Any
) -> lw.Array | tuple[lw.Array, lw.Array]:
    """The second result: where in the whole array each largest element lies."""
    pool = _windows(x, how)
    y = lw.max_pool(x, **pool)
    if n_outputs == 1:
        return y
    n = x.ndim - 2
    least = -lw.inf if is_float(x) else lw.iinfo(x.dtype).min
    padded = lw.pad(x, [(0, 0), (0, 0), *pool["padding"]], constant_values=least)
    reach = [(k - 1) * d + 1 for k, d in zip(pool["kernel"], pool["dilation"])]
    spans = lw.sliding_window_view(padded, tuple(reach), axis=tuple(range(2, 2 + n)))
    steps = tuple([slice(0, m * s, s) for m, s in zip(y.shape[2:], pool["stride"])])
    inner = tuple([slice(None, None, d) for d in pool["dilation"]])
    spans = spans[(slice(None), slice(None), *steps, *inner)]
    sizes = spans.shape[2 + n :]
    inside = unravel(lw.argmax(lw.reshape(spans, (*y.shape, product(sizes))), axis=-1), sizes)
    place = lw.zeros(y.shape, dtype=lw.int64)
    order = range(n) if storage_order == 0 else range(n)[::-1]
    for i in order:
        grid = lw.reshape(lw.arange(y.shape[2 + i]), (-1, *[1] * (n - 1 - i)))
        position = grid * pool["stride"][i] + inside[i] * pool["dilation"][i]
        place = place * x.shape[2 + i] + position - pool["padding"][i][0]
    outer = lw.reshape(lw.arange(product(x.shape[:2])), (*x.shape[:2], *[1] * n))
    return y, outer * product(x.shape[2:]) + place


@operator("AveragePool")
def average_pool(x: lw.Array, *, count_include_pad: int = 0, **how: Any) -> lw.Array:
    return lw.avg_pool(x, **_windows(x, how), count_include_pad=bool(count_include_pad))


@operator("LpPool")
def lp_pool(x: lw.Array, *, p: int = 2, **how: Any) -> lw.Array:
    pool = _windows(x, how)
    mean = lw.avg_pool(lw.abs(x) ** p, **pool, count_include_pad=True)
    return (mean * product(pool["kernel"])) ** (1 / p)


def _everything(x: lw.Array) -> dict[str, Any]:
    return {"axis": tuple(range(2, x.ndim)), "keepdims": True}


@operator("GlobalAveragePool")
def global_average_pool(x: lw.Array) -> lw.Array:
    return lw.mean(x, **_everything(x))


@operator("GlobalMaxPool")
def global_max_pool(x: lw.Array) -> lw.Array:
    return lw.max(x, **_everything(x))
