"""NumPy, into memory that is there already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Run = Callable[[], Any]


def version() -> str:
    return np.__version__


def to_numpy(result: Any) -> Any:
    return np.asarray(result)


def _into(f: Callable[..., Any], shape: tuple[int, ...], dtype: Any = np.float32) -> Run:
    out = np.empty(shape, dtype)
    return lambda: f(out)


def _matmul(a: Any, b: Any) -> Run:
    return _into(lambda out: np.matmul(a, b, out=out), (*a.shape[:-1], *b.shape[1:][-1:]))


def _batched(a: Any, b: Any) -> Run:
    return _into(lambda out: np.matmul(a, b, out=out), (*a.shape[:-1], b.shape[-1]))


def _sum(axis: int | None) -> Callable[[Any], Run]:
    return lambda x: lambda: np.sum(x, axis=axis)


def _gelu(x: Any) -> Run:
    def run(out: Any) -> Any:
        np.multiply(x, x, out=out)
        out *= x
        out *= 0.044715
        out += x
        out *= 0.7978845608028654
        np.tanh(out, out=out)
        out += 1
        out *= x
        out *= 0.5
        return out

    return _into(run, x.shape)


def _softmax_into(x: Any, out: Any) -> Any:
    np.subtract(x, x.max(-1, keepdims=True), out=out)
    np.exp(out, out=out)
    out /= out.sum(-1, keepdims=True)
    return out


def _softmax(x: Any) -> Run:
    return _into(lambda out: _softmax_into(x, out), x.shape)


def _layer_norm(x: Any, w: Any, b: Any) -> Run:
    def run(out: Any) -> Any:
        np.subtract(x, x.mean(-1, keepdims=True), out=out)
        out /= np.sqrt(np.mean(out * out, -1, keepdims=True) + np.float32(1e-5))
        out *= w
        out += b
        return out

    return _into(run, x.shape)


def _attention(q: Any, k: Any, v: Any) -> Run:
    scores = np.empty((*q.shape[:-1], k.shape[-2]), np.float32)
    scale = np.float32(1 / np.sqrt(q.shape[-1]))

    def run(out: Any) -> Any:
        np.matmul(q, k.swapaxes(-1, -2), out=scores)
        np.multiply(scores, scale, out=scores)
        return np.matmul(_softmax_into(scores, scores), v, out=out)

    return _into(run, q.shape)


def _transpose(x: Any) -> Run:
    def run(out: Any) -> Any:
        np.copyto(out, x.T)
        return out

    return _into(run, x.shape[::-1])


WORKLOADS: dict[str, Callable[..., Run]] = {
    "sgemm_256": _matmul,
    "sgemm_512": _matmul,
    "sgemm_1024": _matmul,
    "sgemm_2048": _matmul,
    "sgemm_1024_At": lambda a, b: _matmul(a.T, b),
    "sgemm_1024_Bt": lambda a, b: _matmul(a, b.T),
    "bmm_32x128": _batched,
    "matvec_4096": _matmul,
    "dot_16M": lambda x, y: lambda: np.dot(x, y),
    "sum_axis0": _sum(0),
    "sum_axis1": _sum(1),
    "sum_all": _sum(None),
    "gelu_16M": _gelu,
    "exp_16M": lambda x: _into(lambda out: np.exp(x, out=out), x.shape),
    "softmax": _softmax,
    "layernorm": _layer_norm,
    "transpose_4096": _transpose,
    "attention": _attention,
    "cumsum_rows": lambda x: _into(lambda out: np.cumsum(x, 1, out=out), x.shape),
    "argmax_rows": lambda x: _into(lambda out: np.argmax(x, 1, out=out), x.shape[:1], np.int64),
    "small_matmul_64": _matmul,
    "small_add_16": lambda a, b: _into(lambda out: np.add(a, b, out=out), a.shape),
}
