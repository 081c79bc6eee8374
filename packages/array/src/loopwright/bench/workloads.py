"""What is measured: each workload's inputs, its amount of work, and its result in float64.

This file, the worker and the peers run under any Python that has NumPy: a peer may live in an
environment of its own, without Loopwright.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Host: TypeAlias = Any  # a NumPy array
MIB = 1 << 20


@dataclass(frozen=True)
class Workload:
    """`shapes`: of the inputs. `dtype`: of their elements; bfloat16 comes as the bits in uint16.
    `flops`, `read`, `written`: work of one call, and the bytes it must move. `unit`: what the table
    tells: GFLOP/s, GB/s or us. `reference`: the result from float64 inputs. `tolerance`: the
    largest error allowed, relative to the largest magnitude of the reference."""

    name: str
    unit: str
    shapes: tuple[tuple[int, ...], ...]
    reference: Callable[..., Host]
    flops: int = 0
    read: int = 0
    written: int = 0
    dtype: str = "float32"
    tolerance: float = 1e-5

    def inputs(self) -> list[Host]:
        """The operands, the same in every process."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        if self.dtype == "int8":
            return [rng.integers(-128, 128, s, np.int8) for s in self.shapes]
        drawn = [rng.standard_normal(s, np.float32) for s in self.shapes]
        if self.dtype == "bfloat16":  # rounded towards zero
            return [(d.view(np.uint32) >> 16).astype(np.uint16) for d in drawn]
        return drawn

    def expected(self) -> Host:
        """The result in float64."""
        wide = []
        for given in self.inputs():
            if self.dtype == "bfloat16":
                given = (given.astype(np.uint32) << 16).view(np.float32)
            wide.append(given.astype(np.float64))
        return self.reference(*wide)


def _matmul(name: str, n: int, reference: Callable[..., Host] = np.matmul) -> Workload:
    return Workload(name, "GFLOP/s", ((n, n), (n, n)), reference, flops=2 * n**3)


def _stream(
    name: str, shapes: tuple[tuple[int, ...], ...], reference: Callable[..., Host], written: int
) -> Workload:
    read = 4 * sum(int(np.prod(s)) for s in shapes)
    return Workload(name, "GB/s", shapes, reference, read=read, written=written, tolerance=1e-4)


def gelu(x: Host) -> Host:
    """The form with tanh."""
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def softmax(x: Host) -> Host:
    """Along the last axis."""
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Host, w: Host, b: Host) -> Host:
    """Along the last axis, eps 1e-5."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * w + b


def conv(x: Host, w: Host, stride: int, pad: int) -> Host:
    """NCHW, by patches in columns and one product."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    patches = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    patches = patches[:, :, ::stride, ::stride]
    return np.einsum("nchwij,ocij->nohw", patches, w, optimize=True)


def max_pool(x: Host) -> Host:
    """3 x 3 windows, stride 2."""
    patches = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return patches[:, :, ::2, ::2].max((-1, -2))


def attention(q: Host, k: Host, v: Host) -> Host:
    """softmax(Q K^T / sqrt(d)) V for each head."""
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


_SQUARE, _ROWS, _LONG = (4096, 4096), (4096, 1024), (1 << 24,)
_IMAGE, _POOLED = (8, 64, 112, 112), (8, 64, 55, 55)
_HEADS = (8, 512, 64)

WORKLOADS = (
    _matmul("sgemm_256", 256),
    _matmul("sgemm_512", 512),
    _matmul("sgemm_1024", 1024),
    _matmul("sgemm_2048", 2048),
    _matmul("sgemm_1024_At", 1024, lambda a, b: a.T @ b),
    _matmul("sgemm_1024_Bt", 1024, lambda a, b: a @ b.T),
    Workload(
        "bf16_matmul_1024",
        "GFLOP/s",
        ((1024, 1024), (1024, 1024)),
        np.matmul,
        flops=2 << 30,
        dtype="bfloat16",
        tolerance=1e-2,
    ),
    Workload(
        "int8_matmul_1024",
        "GFLOP/s",
        ((1024, 1024), (1024, 1024)),
        np.matmul,
        flops=2 << 30,
        dtype="int8",
        tolerance=0.0,
    ),
    Workload(
        "bmm_32x128", "GFLOP/s", ((32, 128, 128), (32, 128, 128)), np.matmul, flops=64 * 128**3
    ),
    _stream("matvec_4096", (_SQUARE, (4096,)), np.matmul, 4 * 4096),
    _stream("dot_16M", (_LONG, _LONG), lambda x, y: np.asarray(np.dot(x, y)), 4),
    _stream("sum_axis0", (_SQUARE,), lambda x: x.sum(0), 4 * 4096),
    _stream("sum_axis1", (_SQUARE,), lambda x: x.sum(1), 4 * 4096),
    _stream("sum_all", (_SQUARE,), lambda x: np.asarray(x.sum()), 4),
    _stream("gelu_16M", (_LONG,), gelu, 64 * MIB),
    _stream("exp_16M", (_LONG,), np.exp, 64 * MIB),
    _stream("softmax", (_ROWS,), softmax, 16 * MIB),
    _stream("layernorm", (_ROWS, (1024,), (1024,)), layer_norm, 16 * MIB),
    Workload(
        "conv3x3_64",
        "GFLOP/s",
        ((1, 64, 56, 56), (64, 64, 3, 3)),
        lambda x, w: conv(x, w, 1, 1),
        flops=2 * 64 * 64 * 9 * 56 * 56,
    ),
    Workload(
        "conv7x7_s2",
        "GFLOP/s",
        ((8, 3, 224, 224), (64, 3, 7, 7)),
        lambda x, w: conv(x, w, 2, 3),
        flops=2 * 8 * 64 * 3 * 49 * 112 * 112,
    ),
    _stream("maxpool3_s2", (_IMAGE,), max_pool, 4 * int(np.prod(_POOLED))),
    _stream("transpose_4096", (_SQUARE,), lambda x: x.T, 64 * MIB),
    Workload(
        "attention", "GFLOP/s", (_HEADS, _HEADS, _HEADS), attention, flops=4 * 8 * 512 * 512 * 64
    ),
    _stream("cumsum_rows", (_SQUARE,), lambda x: np.cumsum(x, 1), 64 * MIB),
    _stream("argmax_rows", (_SQUARE,), lambda x: x.argmax(1), 8 * 4096),
    Workload("small_matmul_64", "us", ((64, 64), (64, 64)), np.matmul),
    Workload("small_add_16", "us", ((16,), (16,)), np.add),
)
BY_NAME = {w.name: w for w in WORKLOADS}
