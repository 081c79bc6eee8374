"""Products of matrices and vectors against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from array_oracle import same

import loopwright as lw
from loopwright_core.errors import AxisError, DTypeError, ShapeError


def _whole(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(len(shape))
    low = 0 if np.dtype(dtype).kind in "ub" else -3
    return rng.integers(low, 4, shape).astype(dtype)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((5, 2, 3), (3,)),
        ((2, 0), (0, 3)),
        ((0, 3), (3, 2)),
        ((1, 1), (1, 1)),
    ],
)
def test_matmul_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """Vectors, matrices, broadcast batches, and nothing to sum over."""
    x, y = _whole(a), _whole(b)
    same(lw.matmul(lw.asarray(x), lw.asarray(y)), np.matmul(x, y))
    same(lw.asarray(x) @ y, x @ y)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, np.bool_, float])
def test_matmul_dtypes(dtype: Any) -> None:
    """Integers keep their dtype and wrap, bool is any-of-both, small floats round once."""
    x, y = _whole((3, 40), dtype), _whole((40, 5), dtype)
    if dtype == np.int8:
        x, y = x * 30, y * 30
    want = x @ y
    if dtype == np.float16:
        want = (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)
    same(lw.asarray(x) @ lw.asarray(y), want)


def test_bfloat16_accumulates_in_float32() -> None:
    """4096 ones sum to 4096 in bfloat16."""
    x = lw.ones((1, 4096), dtype=lw.bfloat16)
    assert lw.astype(x @ x.mT, lw.float32).dtype is lw.float32
    same(lw.astype(x @ x.mT, lw.float32), np.array([[4096]], np.float32))


def test_vecdot_and_tensordot() -> None:
    """Broadcasting, pairs of axes, and the outer product."""
    x = _whole((2, 3, 4))
    a = lw.asarray(x)
    same(lw.vecdot(a, x[0]), np.vecdot(x, x[0]))
    same(lw.vecdot(a, x[:1], axis=1), np.vecdot(x, x[:1], axis=1))
    same(lw.tensordot(a, x, axes=([1, 2], [1, 2])), np.tensordot(x, x, axes=([1, 2], [1, 2])))
    same(lw.tensordot(a, x.transpose(1, 2, 0), axes=2), np.tensordot(x, x.transpose(1, 2, 0), 2))
    y = np.abs(x) + 1
    same(lw.tensordot(y[0], y[0, 0], axes=0), np.tensordot(y[0], y[0, 0], axes=0))


def test_errors_name_both_shapes() -> None:
    """Inner sizes that differ, and numbers, are refused with what to do."""
    with pytest.raises(ShapeError, match=r"\(2, 3\) @ \(2, 3\).*is 3.*is 2"):
        lw.zeros((2, 3)) @ lw.zeros((2, 3))
    with pytest.raises(ShapeError, match="use \\* for numbers"):
        lw.matmul(lw.asarray(1.0), lw.zeros(3))
    with pytest.raises(ShapeError, match="vecdot"):
        lw.vecdot(lw.zeros(3), lw.zeros(4))


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.float32, np.bool_])
def test_outer(dtype: Any) -> None:
    """All products of two vectors, empty ones too; other shapes are refused."""
    x, y = _whole((3,), dtype), _whole((4,), dtype)
    same(lw.linalg.outer(lw.asarray(x), y), np.linalg.outer(x, y))
    assert lw.linalg.outer(lw.ones(0), lw.ones(2)).shape == (0, 2)
    with pytest.raises(ShapeError, match="two vectors"):
        lw.linalg.outer(lw.ones((2, 2)), lw.ones(2))


@pytest.mark.parametrize(
    ("a", "b", "axis"),
    [((3,), (3,), -1), ((5, 3), (3,), -1), ((3, 4), (3, 4), 0), ((2, 3, 1), (2, 3, 4), 1)],
)
def test_cross(a: tuple[int, ...], b: tuple[int, ...], axis: int) -> None:
    """Vectors of three along any axis, the rest broadcast."""
    x, y = _whole(a, np.int32), _whole(b, np.int32) + 1
    same(lw.linalg.cross(lw.asarray(x), y, axis=axis), np.linalg.cross(x, y, axis=axis))


def test_cross_of_nothing_and_of_what_does_not_fit() -> None:
    """No vectors give none; pairs, other axes and bool are refused."""
    assert lw.linalg.cross(lw.ones((0, 3)), lw.ones(3)).shape == (0, 3)
    with pytest.raises(ShapeError, match="both must be 3"):
        lw.linalg.cross(lw.ones(2), lw.ones(2))
    with pytest.raises(AxisError):
        lw.linalg.cross(lw.ones(3), lw.ones(3), axis=1)
    with pytest.raises(DTypeError):
        lw.linalg.cross(lw.ones(3, dtype=lw.bool), lw.ones(3, dtype=lw.bool))


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 4), (0, 3), (3, 0), (2, 0, 0)])
@pytest.mark.parametrize("offset", [0, 1, -1, 2, -3, 9, -9])
def test_diagonal_and_trace(shape: tuple[int, ...], offset: int) -> None:
    """Diagonals beside the main one, of stacks and of nothing; the sum widens integers."""
    x = _whole(shape, np.int16)
    a = lw.asarray(x)
    want = np.diagonal(x, offset, -2, -1)
    same(lw.linalg.diagonal(a, offset=offset), want)
    same(lw.linalg.trace(a, offset=offset), np.sum(want, axis=-1))
    same(lw.linalg.trace(a, offset=offset, dtype=lw.float32), np.sum(want, -1, np.float32))


def test_diagonal_of_a_vector_is_refused() -> None:
    """Both functions need two axes."""
    for f in (lw.linalg.diagonal, lw.linalg.trace):
        with pytest.raises(ShapeError, match="needs two axes"):
            f(lw.ones(3))
