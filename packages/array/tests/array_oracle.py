"""Lazy arrays through the level-1 interpreter: what kernels are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopwright as lw
from loopwright.memory import to_numpy
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.oracle.tensor import eval_tensor

# NumPy's counterparts of functions of two arrays that give the same bits.
BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "copysign": np.copysign,
}


def oracle(x: lw.Array) -> np.ndarray[Any, Any]:
    """The array's values, interpreted; no empty node may be left in the graph to be computed."""
    buffers = {}
    for node in x._uop.toposort():
        if node.op is Op.BUFFER:
            buffers[node.arg.slot] = np.ascontiguousarray(to_numpy(node))
        if 0 in shape_of(node):
            assert node.op in (Op.EXPAND, Op.RESHAPE), f"empty {node!r} would become a kernel"
    return eval_tensor(x._uop, buffers)


def same(x: lw.Array, expected: Any) -> None:
    """Equal shape, dtype and values; NaN equals NaN, -0.0 differs from 0.0."""
    want = np.asarray(expected)
    got = oracle(x)
    assert x.shape == want.shape == got.shape
    assert x.dtype.numpy == want.dtype == got.dtype, f"{x.dtype} {got.dtype}, not {want.dtype}"
    if x.dtype.is_float:
        a, b = got.astype(np.float64), want.astype(np.float64)
        np.testing.assert_array_equal(a, b)
        zeros = (a == 0) & (b == 0)
        np.testing.assert_array_equal(np.signbit(a[zeros]), np.signbit(b[zeros]))
    else:
        np.testing.assert_array_equal(got, want)


def ulps(got: np.ndarray[Any, Any], exact: Any, dtype: Any) -> float:
    """The largest distance from float64 or exact values in units in the last place of a dtype."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        got = np.asarray(got, np.float64)
        exact = np.asarray(exact, np.float64)
        rounded = exact.astype(dtype)
    both = np.isfinite(rounded.astype(np.float64)) & np.isfinite(got)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got[~both], rounded.astype(np.float64)[~both])
    unit = np.spacing(np.abs(rounded[both])).astype(np.float64)
    return float(np.max(np.abs(got[both] - exact[both]) / unit, initial=0.0))
