"""Attention, and what prepares its inputs."""

from __future__ import annotations

import math

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import dtype_of


def _heads(x: lw.Array, n: int | None) -> lw.Array:
    """(batch, heads, time, size) from an array that holds its heads side by side."""
    if x.ndim == 4:
        return x
    assert n is not None
    return lw.moveaxis(lw.reshape(x, (*x.shape[:2], n, -1)), 2, 1)


def _side_by_side(x: lw.Array) -> lw.Array:
    batch, n, time, size = x.shape
    return lw.reshape(lw.moveaxis(x, 1, 2), (batch, time, n * size))


def _shared(x: lw.Array, n: int) -> lw.Array:
    """Each head once for each of the queries' heads that share it."""
    return lw.repeat(x, n // x.shape[1], axis=1)


def _allowed(
    n_q: int,
    n_k: int,
    past: int,
    n_valid: lw.Array | None,
    window: tuple[int, int],
    is_causal: bool,
) -> lw.Array | None:
    """Which keys each query may see, (time, keys) or (batch, 1, time, keys); None: all of them."""
    key = lw.arange(n_k)
    allowed: lw.Array | None = None
    place = lw.expand_dims(lw.arange(n_q), axis=1) + past
    if n_valid is not None:
        count = lw.reshape(n_valid, (-1, 1, 1, 1))
        allowed = key < count
        if past == 0:
            place = lw.expand_dims(lw.arange(n_q), axis=1) + (count - n_q)
    rules = []
    if is_causal:
        rules.append(key <= place)
    if window[0] >= 0:
        rules.append(key >= place - window[0])
    if window[1] >= 0:
        rules.append(key <= place + window[1])
    for rule in rules:
        allowed = rule if allowed is None else lw.logical_and(allowed, rule)
    return allowed


@operator("Attention")
def attention(
    q: lw.Array,
    k: lw.Array,
    v: lw.Array,
    mask: lw.Array | None = None,
    past_key: lw.Array | None = None,
    past_value: lw.Array | None = None,
    n_valid: lw.Array | None = None,
    *,
    scale: float | None = None,
    is_causal: int = 0,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
    q_num_heads: int | None = None,
    kv_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
) -> tuple[lw.Array, ...]:
    """(result, keys and values with those of the past, the scores at some stage)."""
    is_flat = q.ndim == 3
    q, k, v = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    past = 0
    if past_key is not None and past_value is not None:
        past = past_key.shape[2]
        k, v = lw.concat([past_key, k], axis=2), lw.concat([past_value, v], axis=2)
    n_heads, n_q, size = q.shape[1:]
    root = math.sqrt(scale if scale is not None else 1 / math.sqrt(size))
    keys, values = _shared(k, n_heads), _shared(v, n_heads)
    scores = (q * root) @ lw.matrix_transpose(keys * root)
    stages = [scores]
    if softcap:
        scores = softcap * lw.tanh(scores / softcap)
    stages.append(scores)
    window = (left_window_size, right_window_size)
    allowed = _allowed(n_q, k.shape[2], past, n_valid, window, bool(is_causal))
    scores = _masked(scores, mask, allowed)
    stages.append(scores)
    wide = scores if softmax_precision is None else lw.astype(scores, dtype_of(softmax_precision))
    is_empty = lw.max(wide, axis=-1, keepdims=True) == -lw.inf
    weights = lw.where(is_empty, 0, lw.softmax(wide, axis=-1))
    weights = lw.astype(weights, scores.dtype)
    stages.append(weights)
    y = weights @ values
    return _side_by_side(y) if is_flat else y, k, v, stages[qk_matmul_output_mode]


def _masked(scores: lw.Array, mask: lw.Array | None, allowed: lw.Array | None) -> lw.Array:
    """Scores with the mask added; what must not be seen is minus infinity."""
    if mask is not None:
        n_missing = scores.shape[-1] - mask.shape[-1]
        widths = [(0, 0)] * (mask.ndim - 1) + [(0, n_missing)]
        if mask.dtype == lw.bool:
            mask = lw.pad(mask, widths, constant_values=False)
            scores = lw.where(mask, scores, -lw.inf)
        else:
            scores = scores + lw.pad(mask, widths, constant_values=-lw.inf)
    return scores if allowed is None else lw.where(allowed, scores, -lw.inf)


@operator("RotaryEmbedding")
def rotary_embedding(
    x: lw.Array,
    cos: lw.Array,
    sin: lw.Array,
    positions: lw.Array | None = None,
    *,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    interleaved: int = 0,
) -> lw.Array:
    """Pairs of elements turned by angles that grow with the position."""
    is_flat = x.ndim == 3
    heads = _heads(x, num_heads)
    n = rotary_embedding_dim or heads.shape[-1]
    turned, rest = heads[..., :n], heads[..., n:]
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = [lw.expand_dims(t, axis=1) for t in (cos, sin)]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., : n // 2], turned[..., n // 2 :]
    parts = [cos * first - sin * second, sin * first + cos * second]
    if interleaved:
        turned = lw.reshape(lw.stack(parts, axis=-1), turned.shape)
    else:
        turned = lw.concat(parts, axis=-1)
    y = lw.concat([turned, rest], axis=-1)
    return _side_by_side(y) if is_flat else y


@operator("LinearAttention")
def linear_attention(
    q: lw.Array,
    k: lw.Array,
    v: lw.Array,
    past: lw.Array | None = None,
    decay: lw.Array | None = None,
    beta: lw.Array | None = None,
    *,
    q_num_heads: int,
    kv_num_heads: int,
    chunk_size: int = 64,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[lw.Array, lw.Array]:
    """A state that every step decays and adds to; float32 inside."""
    dtype = q.dtype
    q, k, v = [lw.astype(x, lw.float32) for x in (q, k, v)]
    q, k, v = _heads(q, q_num_heads), _heads(k, kv_num_heads), _heads(v, kv_num_heads)
    scale = scale or 1 / math.sqrt(q.shape[-1])
    zeros = lw.zeros((*k.shape[:2], k.shape[-1], v.shape[-1]), dtype=lw.float32)
    state = zeros if past is None else lw.astype(past, lw.float32)
    fades = rates = None
    if update_rule.startswith("gated") and decay is not None:
        fades = lw.exp(_heads(lw.astype(decay, lw.float32), kv_num_heads))
    if update_rule.endswith("delta") and beta is not None:
        rates = _heads(lw.astype(beta, lw.float32), beta.shape[-1])
    outs = []
    for t in range(q.shape[2]):
        key, value = k[:, :, t, :, None], v[:, :, t, None, :]
        if fades is not None:
            state = state * fades[:, :, t, :, None]
        if rates is not None:
            known = lw.sum(state * key, axis=-2, keepdims=True)
            value = rates[:, :, t, :, None] * (value - known)
        state = state + key * value
        query = q[:, :, t, :, None] * scale
        outs.append(lw.sum(_shared(state, q_num_heads) * query, axis=-2))
    y = _side_by_side(lw.stack(outs, axis=2))
    return lw.astype(y, dtype), lw.astype(state, dtype if past is None else past.dtype)
