"""JAX on the CPU: each workload jitted, its result waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Run = Callable[[], Any]


def version() -> str:
    return str(jax.__version__)


def to_numpy(result: Any) -> Any:
    return np.asarray(result.astype(jnp.float32) if result.dtype == jnp.bfloat16 else result)


def _jitted(f: Callable[..., Any]) -> Callable[..., Run]:
    def make(*arrays: Any) -> Run:
        given = [jax.device_put(a) for a in arrays]
        g = jax.jit(f)
        return lambda: g(*given).block_until_ready()

    return make


def _bf16(a: Any, b: Any) -> Run:
    return _jitted(jnp.matmul)(*[t.view(jnp.bfloat16) for t in (a, b)])


def _int8(a: Any, b: Any) -> Any:
    return lax.dot(a, b, preferred_element_type=jnp.int32)


def _layer_norm(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * w + b


def _pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")


def _attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.swapaxes(-1, -2) / np.float32(np.sqrt(q.shape[-1]))
    return jax.nn.softmax(scores, -1) @ v


def _conv(stride: int, pad: int) -> Callable[..., Any]:
    def f(x: Any, w: Any) -> Any:
        return lax.conv_general_dilated(x, w, (stride, stride), [(pad, pad)] * 2)

    return f


WORKLOADS: dict[str, Callable[..., Run]] = {
    "sgemm_256": _jitted(jnp.matmul),
    "sgemm_512": _jitted(jnp.matmul),
    "sgemm_1024": _jitted(jnp.matmul),
    "sgemm_2048": _jitted(jnp.matmul),
    "sgemm_1024_At": _jitted(lambda a, b: a.T @ b),
    "sgemm_1024_Bt": _jitted(lambda a, b: a @ b.T),
    "bf16_matmul_1024": _bf16,
    "int8_matmul_1024": _jitted(_int8),
    "bmm_32x128": _jitted(jnp.matmul),
    "matvec_4096": _jitted(jnp.matmul),
    "dot_16M": _jitted(jnp.dot),
    "sum_axis0": _jitted(lambda x: x.sum(0)),
    "sum_axis1": _jitted(lambda x: x.sum(1)),
    "sum_all": _jitted(jnp.sum),
    "gelu_16M": _jitted(lambda x: jax.nn.gelu(x, approximate=True)),
    "exp_16M": _jitted(jnp.exp),
    "softmax": _jitted(lambda x: jax.nn.softmax(x, -1)),
    "layernorm": _jitted(_layer_norm),
    "conv3x3_64": _jitted(_conv(1, 1)),
    "conv7x7_s2": _jitted(_conv(2, 3)),
    "maxpool3_s2": _jitted(_pool),
    "transpose_4096": _jitted(lambda x: jnp.array(x.T)),
    "attention": _jitted(_attention),
    "cumsum_rows": _jitted(lambda x: jnp.cumsum(x, 1)),
    "argmax_rows": _jitted(lambda x: jnp.argmax(x, 1)),
    "small_matmul_64": _jitted(jnp.matmul),
    "small_add_16": _jitted(jnp.add),
}
