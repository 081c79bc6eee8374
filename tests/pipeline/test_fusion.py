"""Fusion through to running kernels: how many there are, how much text, and that they are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw

Function = Callable[..., Any]


def softmax(x: Any) -> Any:
    xp = x.__array_namespace__()
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def log_softmax(x: Any) -> Any:
    xp = x.__array_namespace__()
    shifted = x - xp.max(x, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))


def rms_norm(x: Any, w: Any) -> Any:
    xp = x.__array_namespace__()
    return x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * w


def unit(x: Any) -> Any:
    xp = x.__array_namespace__()
    return x / xp.sqrt(xp.sum(x * x))


def standardise(x: Any) -> Any:
    xp = x.__array_namespace__()
    mean = xp.mean(x, axis=(0, 1), keepdims=True)
    return (x - mean) / xp.sqrt(xp.mean((x - mean) ** 2, axis=(0, 1), keepdims=True))


def dense(x: Any, w: Any, b: Any) -> Any:
    xp = x.__array_namespace__()
    h = x @ w + b
    return h * 0.5 * (1 + xp.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))


def relu_matmul_sum(x: Any, w: Any) -> Any:
    xp = x.__array_namespace__()
    return xp.sum(xp.maximum(x @ w, 0), axis=1)


def reduce_of_reduce(x: Any) -> Any:
    xp = x.__array_namespace__()
    return xp.max(xp.sqrt(xp.sum(x * x, axis=1)))


def centre_columns(x: Any) -> Any:
    xp = x.__array_namespace__()
    return x - xp.mean(x, axis=0)


def softmax_of_matmul(x: Any, w: Any) -> Any:
    return softmax(x @ w)


def attention(q: Any, k: Any, v: Any) -> Any:
    return softmax(q @ k.mT) @ v


def sum_of_products(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a @ b + c @ d


def five_views_of_exp(x: Any) -> Any:
    e = x.__array_namespace__().exp(x)
    return e[1:-1, 1:-1] + e[:-2, 1:-1] + e[2:, 1:-1] + e[1:-1, :-2] + e[1:-1, 2:]


CASES: list[tuple[Function, list[tuple[int, ...]], int]] = [
    (softmax, [(37, 53)], 1),
    (log_softmax, [(37, 53)], 1),
    (rms_norm, [(37, 53), (53,)], 1),
    (unit, [(37, 53)], 1),
    (standardise, [(37, 53)], 1),
    (dense, [(37, 53), (53, 41), (41,)], 1),
    (relu_matmul_sum, [(37, 53), (53, 41)], 1),
    (reduce_of_reduce, [(37, 53)], 1),
    (centre_columns, [(37, 53)], 2),
    (softmax_of_matmul, [(37, 53), (53, 41)], 2),
    (attention, [(37, 16), (53, 16), (53, 16)], 3),
    (five_views_of_exp, [(37, 53)], 2),
    (sum_of_products, [(37, 53), (53, 41), (37, 16), (16, 41)], 1),  # too small for a launch more
    (sum_of_products, [(130, 110), (110, 120), (130, 110), (110, 120)], 2),
    (sum_of_products, [(130, 110), (110, 120), (130, 53), (53, 120)], 2),
]


@pytest.mark.parametrize(("f", "shapes", "n"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_kernel_counts(f: Function, shapes: list[tuple[int, ...]], n: int) -> None:
    """Each expression becomes so many kernels, and what they compute is NumPy's in float64."""
    rng = np.random.default_rng(1)
    host = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    y = f(*[lw.asarray(h, device="cpu") for h in host])
    assert len(lw.kernels(y)) == n
    want = f(*[h.astype(np.float64) for h in host])
    np.testing.assert_allclose(y.numpy(), want, rtol=2e-5, atol=2e-5)


def test_chain_reads_each_input_once() -> None:
    """Ten operations on two inputs are one kernel that loads each input's element once."""
    x = lw.asarray(np.linspace(1, 2, 101), device="cpu")
    y = lw.asarray(np.linspace(2, 3, 101), device="cpu")
    z = x
    for _ in range(3):
        z = (z * y + x) / y
    z = z - x
    with lw.options(schedule="none"):
        (kernel,) = lw.kernels(z)
    body = kernel.source[kernel.source.index(f"void {kernel.name}") :]
    assert body.count("A[") == 1 and body.count("B[") == 1
    want = x.numpy()
    for _ in range(3):
        want = (want * y.numpy() + x.numpy()) / y.numpy()
    np.testing.assert_array_equal(z.numpy(), want - x.numpy())


def shrinking(u: Any) -> Any:
    return (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25


def interior(u: Any) -> Any:
    xp = u.__array_namespace__()
    rows = xp.concat([u[1:-1, :1], shrinking(u), u[1:-1, -1:]], axis=1)
    return xp.concat([u[:1], rows, u[-1:]], axis=0)


@pytest.mark.parametrize("step", [shrinking, interior])
def test_jacobi_text_is_linear(step: Function) -> None:
    """Forty Jacobi steps: at most forty kernels, and text that grows no faster than the steps."""
    lengths = []
    with lw.options(schedule="none"):
        for n_steps in (10, 20, 40):
            u = lw.asarray(np.zeros((100, 90), np.float32), device="cpu")
            for _ in range(n_steps):
                u = step(u)
            kernels = lw.kernels(u)
            assert len(kernels) <= n_steps
            lengths.append(sum(len(k.source) for k in kernels))
    assert lengths[2] <= 2.5 * lengths[1] <= 2.5 * 2.5 * lengths[0]


def test_jacobi_is_right() -> None:
    """Forty steps give NumPy's bits: each operation rounds to float32 in both."""
    start = np.random.default_rng(0).standard_normal((64, 50)).astype(np.float32)
    lazy, want = lw.asarray(start, device="cpu"), start
    for _ in range(40):
        lazy = interior(lazy)
        new = want.copy()
        around = want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:]
        new[1:-1, 1:-1] = around * np.float32(0.25)
        want = new
    np.testing.assert_array_equal(lazy.numpy(), want)


def test_outputs_of_one_evaluation() -> None:
    """Several outputs, some operands of others, some needing all of another, come out right."""
    x = np.random.default_rng(0).standard_normal((23, 17))
    a = lw.asarray(x, device="cpu")
    y = lw.exp(a) * a
    z = y - lw.max(y, axis=0)
    total, running = lw.sum(z, axis=1), lw.cumulative_sum(y, axis=1)
    joined = lw.concat([y, z], axis=0)
    lw.evaluate(joined, total, z, running, y)
    want_y = np.exp(x) * x
    want_z = want_y - want_y.max(axis=0)
    np.testing.assert_allclose(y.numpy(), want_y, rtol=1e-14)
    np.testing.assert_allclose(z.numpy(), want_z, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(total.numpy(), want_z.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(running.numpy(), want_y.cumsum(axis=1), rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(joined.numpy(), np.concatenate([y.numpy(), z.numpy()]))
