"""Loopwright: each workload jitted, NumPy arrays in and out."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any

import ml_dtypes
import numpy as np

import loopwright as lw

Run = Callable[[], Any]


def version() -> str:
    return installed("loopwright")


def to_numpy(result: Any) -> Any:
    found = np.asarray(result)
    return found.astype(np.float32) if found.dtype == ml_dtypes.bfloat16 else found


def _jitted(f: Callable[..., Any]) -> Callable[..., Run]:
    def make(*arrays: Any) -> Run:
        g = lw.jit(f)
        return lambda: g(*arrays)

    return make


def _bf16(a: Any, b: Any) -> Run:
    return _jitted(lw.matmul)(*[t.view(ml_dtypes.bfloat16) for t in (a, b)])


def _int8(a: Any, b: Any) -> Any:
    return lw.matmul(lw.astype(a, lw.int32), lw.astype(b, lw.int32))


def _attention(q: Any, k: Any, v: Any) -> Any:
    return lw.softmax(q @ k.mT / q.shape[-1] ** 0.5, axis=-1) @ v


WORKLOADS: dict[str, Callable[..., Run]] = {
    "sgemm_256": _jitted(lw.matmul),
    "sgemm_512": _jitted(lw.matmul),
    "sgemm_1024": _jitted(lw.matmul),
    "sgemm_2048": _jitted(lw.matmul),
    "sgemm_1024_At": _jitted(lambda a, b: a.mT @ b),
    "sgemm_1024_Bt": _jitted(lambda a, b: a @ b.mT),
    "bf16_matmul_1024": _bf16,
    "int8_matmul_1024": _jitted(_int8),
    "bmm_32x128": _jitted(lw.matmul),
    "matvec_4096": _jitted(lw.matmul),
    "dot_16M": _jitted(lambda x, y: lw.sum(x * y)),
    "sum_axis0": _jitted(lambda x: lw.sum(x, axis=0)),
    "sum_axis1": _jitted(lambda x: lw.sum(x, axis=1)),
    "sum_all": _jitted(lw.sum),
    "gelu_16M": _jitted(lambda x: lw.gelu(x, approximate="tanh")),
    "exp_16M": _jitted(lw.exp),
    "softmax": _jitted(lw.softmax),
    "layernorm": _jitted(lw.layer_norm),
    "conv3x3_64": _jitted(lambda x, w: lw.conv(x, w, padding=1)),
    "conv7x7_s2": _jitted(lambda x, w: lw.conv(x, w, stride=2, padding=3)),
    "maxpool3_s2": _jitted(lambda x: lw.max_pool(x, 3, 2)),
    "transpose_4096": _jitted(lambda x: lw.asarray(x.mT, copy=True)),
    "attention": _jitted(_attention),
    "cumsum_rows": _jitted(lambda x: lw.cumulative_sum(x, axis=1)),
    "argmax_rows": _jitted(lambda x: lw.argmax(x, axis=1)),
    "small_matmul_64": _jitted(lw.matmul),
    "small_add_16": _jitted(lw.add),
}
