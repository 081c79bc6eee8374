"""Products are not reassociated so that they leave a float's range: x * 0.1 summed at 3e38."""

from __future__ import annotations

import math

import numpy as np
import pytest
from asts import buffer, op, reduce, sink

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from support.trap_runs import check, legal

DTYPES = (dt.float32, dt.float64, dt.float16, dt.bfloat16)


def scaled_sum(dtype: DType, n: int) -> UOp:
    """sum(x * 1/n) along rows."""
    x = op(Op.MUL, buffer(0, 3, n, dtype=dtype), const(1 / n, dtype))
    return sink((buffer(1, 3, dtype=dtype), reduce(x, "add", 1)))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_scaled_sums_of_large_numbers(dtype: DType, target: str) -> None:
    """A sum of x * 0.1 stays finite where the sum of x would not, under every way to sum."""
    big = float(np.finfo(dtype.numpy).max) * 0.9
    ast = scaled_sum(dtype, 10)
    steps = {
        "cpu": ("", "UNROLL k 5", "UPCAST k 4", "VECTOR k 4", "TILE k 4", "THREAD k 2"),
        "cuda": ("", "UNROLL k 5", "UPCAST k 2", "GROUP k 4", "GROUPTOP k 2", "SPLITK k 3"),
    }[target]
    for opts in legal(ast, target, steps):
        check(ast, opts, target, lambda slot, a: np.full(a.shape, big, a.dtype), rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_means_and_products_of_large_numbers(dtype: DType) -> None:
    """What NumPy gives finite is finite here: factors stay where the user put them."""
    info = lw.finfo(dtype)
    big = float(info.max) * 0.75
    x = lw.asarray(np.full((4, 10), big).astype(dtype.numpy))
    tenth = lw.astype(x * 0.1, dtype)
    wide = np.asarray((x * 0.1).numpy()).astype(np.float64)
    np.testing.assert_allclose(
        lw.sum(tenth, axis=1).numpy().astype(np.float64), wide.sum(axis=1), rtol=0.02
    )
    assert np.isfinite(((x * 0.1) * 2.0).numpy().astype(np.float64)).all()
    assert np.isfinite((x * 0.1 + x * 0.1).numpy().astype(np.float64)).all()
    overflows = ((x * 2.0) * 0.1).numpy().astype(np.float64)
    assert np.isinf(overflows).all(), "a product that overflows stays infinite, too"


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_factors_around_reduces(dtype: DType) -> None:
    """A factor inside a sum, a maximum or a matrix product is not moved out of it, nor in."""
    big = float(np.finfo(dtype.numpy).max) * 0.9
    x = np.full((8, 8), big, dtype.numpy)
    a = lw.asarray(x)
    eye = lw.asarray(np.full((8, 8), 1 / 16, dtype.numpy))
    assert np.isfinite(lw.sum(a * (1 / 16), axis=0).numpy()).all()
    assert np.isfinite((a @ eye).numpy()).all()
    assert np.isfinite(lw.max(a * 0.5, axis=0).numpy()).all()
    with np.errstate(over="ignore"):
        assert math.isinf(float((lw.sum(a, axis=0) * (1 / 16)).numpy()[0]))
        assert np.isinf(((a * 4.0) * 0.125).numpy()).all()
    small = lw.asarray(np.full(8, np.finfo(dtype.numpy).tiny, dtype.numpy))
    assert not ((small * 1e-20) * 1e20).numpy().any(), "underflow stays what it is"
