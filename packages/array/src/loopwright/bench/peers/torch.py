"""PyTorch on the CPU, into memory that is there already wherever it takes `out`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

Run = Callable[[], Any]
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
torch.set_grad_enabled(False)


def version() -> str:
    return str(torch.__version__)


def to_numpy(result: Any) -> Any:
    return (result.float() if result.dtype is torch.bfloat16 else result).numpy()


def _tensors(f: Callable[..., Run]) -> Callable[..., Run]:
    return lambda *arrays: f(*[torch.from_numpy(a) for a in arrays])


def _into(f: Callable[..., Any], shape: Any, dtype: Any = torch.float32) -> Run:
    out = torch.empty(shape, dtype=dtype)
    return lambda: f(out)


def _matmul(a: Any, b: Any) -> Run:
    shape = (*a.shape[:-1], *((b.shape[-1],) if b.ndim > 1 else ()))
    return _into(lambda out: torch.matmul(a, b, out=out), shape, a.dtype)


def _bf16(a: Any, b: Any) -> Run:
    wide = [torch.from_numpy(t.view(np.int16)).view(torch.bfloat16) for t in (a, b)]
    return _matmul(*wide)


def _int8(a: Any, b: Any) -> Run:
    return lambda: torch._int_mm(a, b)


def _attention(q: Any, k: Any, v: Any) -> Run:
    q, k, v = [t.unsqueeze(0) for t in (q, k, v)]
    return lambda: F.scaled_dot_product_attention(q, k, v)[0]


def _transpose(x: Any) -> Run:
    return _into(lambda out: out.copy_(x.T), x.shape[::-1])


WORKLOADS: dict[str, Callable[..., Run]] = {
    "sgemm_256": _tensors(_matmul),
    "sgemm_512": _tensors(_matmul),
    "sgemm_1024": _tensors(_matmul),
    "sgemm_2048": _tensors(_matmul),
    "sgemm_1024_At": _tensors(lambda a, b: _matmul(a.T, b)),
    "sgemm_1024_Bt": _tensors(lambda a, b: _matmul(a, b.T)),
    "bf16_matmul_1024": _bf16,
    "int8_matmul_1024": _tensors(_int8),
    "bmm_32x128": _tensors(_matmul),
    "matvec_4096": _tensors(_matmul),
    "dot_16M": _tensors(lambda x, y: lambda: torch.dot(x, y)),
    "sum_axis0": _tensors(lambda x: lambda: torch.sum(x, 0)),
    "sum_axis1": _tensors(lambda x: lambda: torch.sum(x, 1)),
    "sum_all": _tensors(lambda x: lambda: torch.sum(x)),
    "gelu_16M": _tensors(lambda x: lambda: F.gelu(x, approximate="tanh")),
    "exp_16M": _tensors(lambda x: _into(lambda out: torch.exp(x, out=out), x.shape)),
    "softmax": _tensors(lambda x: _into(lambda out: torch.softmax(x, -1, out=out), x.shape)),
    "layernorm": _tensors(lambda x, w, b: lambda: F.layer_norm(x, x.shape[-1:], w, b, 1e-5)),
    "conv3x3_64": _tensors(lambda x, w: lambda: F.conv2d(x, w, padding=1)),
    "conv7x7_s2": _tensors(lambda x, w: lambda: F.conv2d(x, w, stride=2, padding=3)),
    "maxpool3_s2": _tensors(lambda x: lambda: F.max_pool2d(x, 3, 2)),
    "transpose_4096": _tensors(_transpose),
    "attention": _tensors(_attention),
    "cumsum_rows": _tensors(lambda x: _into(lambda out: torch.cumsum(x, 1, out=out), x.shape)),
    "argmax_rows": _tensors(lambda x: lambda: torch.argmax(x, 1)),
    "small_matmul_64": _tensors(_matmul),
    "small_add_16": _tensors(lambda a, b: _into(lambda out: torch.add(a, b, out=out), a.shape)),
}
