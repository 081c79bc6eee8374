"""Numba: loops written by hand for each workload, in parallel, with fastmath."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

Run = Callable[[], Any]
numba.set_num_threads(int(os.environ.get("NUMBA_NUM_THREADS", "1")))
kernel = numba.njit(parallel=True, fastmath=True)
prange = numba.prange


def version() -> str:
    return str(numba.__version__)


def to_numpy(result: Any) -> Any:
    return np.asarray(result)


@kernel
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for i in prange(x.shape[0]):
        total += x[i] * y[i]
    return total


@kernel
def _sum_all(x):  # type: ignore[no-untyped-def]
    total = np.float32(0)
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j]
    return total


@kernel
def _sum_axis1(x, out):  # type: ignore[no-untyped-def]
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total
    return out


@kernel
def _sum_axis0(x, out):  # type: ignore[no-untyped-def]
    n = 256
    for block in prange(x.shape[1] // n):
        part = np.zeros(n, np.float32)
        for i in range(x.shape[0]):
            for j in range(n):
                part[j] += x[i, block * n + j]
        out[block * n : block * n + n] = part
    return out


@kernel
def _gelu(x, out):  # type: ignore[no-untyped-def]
    for i in prange(x.shape[0]):
        v = x[i]
        inner = np.float32(0.7978845608) * (v + np.float32(0.044715) * v * v * v)
        out[i] = np.float32(0.5) * v * (np.float32(1) + math.tanh(inner))
    return out


@kernel
def _exp(x, out):  # type: ignore[no-untyped-def]
    for i in prange(x.shape[0]):
        out[i] = math.exp(x[i])
    return out


@kernel
def _softmax(x, out):  # type: ignore[no-untyped-def]
    for i in prange(x.shape[0]):
        top = np.float32(-np.inf)
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            out[i, j] = math.exp(x[i, j] - top)
            total += out[i, j]
        for j in range(x.shape[1]):
            out[i, j] /= total
    return out


@kernel
def _layer_norm(x, w, b, out):  # type: ignore[no-untyped-def]
    n = np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / n
        square = np.float32(0)
        for j in range(x.shape[1]):
            d = x[i, j] - mean
            square += d * d
        scale = np.float32(1) / math.sqrt(square / n + np.float32(1e-5))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * scale * w[j] + b[j]
    return out


@kernel
def _max_pool(x, out):  # type: ignore[no-untyped-def]
    for plane in prange(x.shape[0] * x.shape[1]):
        n, c = plane // x.shape[1], plane % x.shape[1]
        for i in range(out.shape[2]):
            for j in range(out.shape[3]):
                top = np.float32(-np.inf)
                for a in range(3):
                    for b in range(3):
                        top = max(top, x[n, c, 2 * i + a, 2 * j + b])
                out[n, c, i, j] = top
    return out


@kernel
def _transpose(x, out):  # type: ignore[no-untyped-def]
    n = 32
    for block in prange(x.shape[0] // n):
        for other in range(x.shape[1] // n):
            for i in range(block * n, block * n + n):
                for j in range(other * n, other * n + n):
                    out[i, j] = x[j, i]
    return out


@kernel
def _cumsum(x, out):  # type: ignore[no-untyped-def]
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
            out[i, j] = total
    return out


@kernel
def _argmax(x, out):  # type: ignore[no-untyped-def]
    for i in prange(x.shape[0]):
        best, place = x[i, 0], 0
        for j in range(1, x.shape[1]):
            if x[i, j] > best:
                best, place = x[i, j], j
        out[i] = place
    return out


@numba.njit
def _add(a, b, out):  # type: ignore[no-untyped-def]
    for i in range(a.shape[0]):
        out[i] = a[i] + b[i]
    return out


def _into(
    f: Any, shape: Callable[[Any], tuple[int, ...]], dtype: Any = np.float32
) -> Callable[..., Run]:
    def make(*arrays: Any) -> Run:
        out = np.empty(shape(arrays[0].shape), dtype)
        return lambda: f(*arrays, out)

    return make


def _same(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


def _pooled(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (*shape[:2], (shape[2] - 3) // 2 + 1, (shape[3] - 3) // 2 + 1)


WORKLOADS: dict[str, Callable[..., Run]] = {
    "dot_16M": lambda x, y: lambda: _dot(x, y),
    "sum_all": lambda x: lambda: _sum_all(x),
    "sum_axis0": _into(_sum_axis0, lambda s: s[1:]),
    "sum_axis1": _into(_sum_axis1, lambda s: s[:1]),
    "gelu_16M": _into(_gelu, _same),
    "exp_16M": _into(_exp, _same),
    "softmax": _into(_softmax, _same),
    "layernorm": _into(_layer_norm, _same),
    "maxpool3_s2": _into(_max_pool, _pooled),
    "transpose_4096": _into(_transpose, lambda s: s[::-1]),
    "cumsum_rows": _into(_cumsum, _same),
    "argmax_rows": _into(_argmax, lambda s: s[:1], np.int64),
    "small_add_16": _into(_add, _same),
}
