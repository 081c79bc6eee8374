"""The linear algebra functions of the array API standard, and its extension's products."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.errors import LoopwrightError

INTEGERS = [lw.int8, lw.int16, lw.int32, lw.int64, lw.uint8, lw.uint16, lw.uint32, lw.uint64]
REAL = [lw.float32, lw.float64]
NAMESPACES = [lw, lw.linalg]


def whole(shape: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose products and sums are exact in any order."""
    return np.random.default_rng([seed, len(shape)]).integers(-4, 5, shape).astype(np.float64)


def contracted(a: Any, b: Any) -> Any:
    """The product of two matrices by loops."""
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i, j, k in np.ndindex(a.shape[0], b.shape[1], a.shape[1]):
        out[i, j] += a[i, k] * b[k, j]
    return out


@pytest.mark.parametrize("xp", NAMESPACES)
def test_matmul_of_matrices_and_vectors(xp: Any) -> None:
    """A vector's missing axis is put in front of the left and behind the right, and taken away."""
    a, b, v, w = whole((3, 4), 1), whole((4, 2), 2), whole((3,), 3), whole((4,), 4)
    x, y = lw.asarray(a), lw.asarray(b)
    assert xp.matmul(x, y).numpy().tolist() == contracted(a, b).tolist()
    assert xp.matmul(lw.asarray(v), x).numpy().tolist() == contracted(v[None], a)[0].tolist()
    assert xp.matmul(x, lw.asarray(w)).numpy().tolist() == contracted(a, w[:, None])[:, 0].tolist()
    inner = xp.matmul(lw.asarray(w), lw.asarray(w))
    assert inner.shape == () and float(inner) == float(sum(w * w))
    assert (x @ y).numpy().tolist() == contracted(a, b).tolist()


@given(st.data())
def test_matmul_shapes(data: st.DataObject) -> None:
    """The axes before the last two broadcast; the contracted extents must be equal."""
    axes = st.lists(st.integers(0, 3), max_size=2).map(tuple)
    m, k, k2, n = (data.draw(st.integers(0, 3)) for _ in range(4))
    left, right = data.draw(axes), data.draw(axes)
    x, y = lw.zeros((*left, m, k)), lw.zeros((*right, k2, n))
    try:
        batch = np.broadcast_shapes(left, right)
    except ValueError:
        batch = None
    if batch is not None and k == k2:
        assert lw.matmul(x, y).shape == (*batch, m, n)
    else:
        with pytest.raises(LoopwrightError, match="matmul") as caught:
            lw.matmul(x, y)
        assert isinstance(caught.value, ValueError)


def test_matmul_of_batches_and_of_nothing() -> None:
    """Matrices pair up along the axes before; a sum over no elements is zero."""
    a, b = whole((2, 1, 3, 4), 1), whole((5, 4, 2), 2)
    got = lw.matmul(lw.asarray(a), lw.asarray(b))
    assert got.shape == (2, 5, 3, 2)
    for i, j in itertools.product(range(2), range(5)):
        assert got.numpy()[i, j].tolist() == contracted(a[i, 0], b[j]).tolist()
    assert lw.matmul(lw.ones((2, 0)), lw.ones((0, 3))).numpy().tolist() == [[0.0] * 3] * 2
    assert lw.matmul(lw.ones((0, 4)), lw.ones((4, 3))).numpy().shape == (0, 3)


@pytest.mark.parametrize("xp", NAMESPACES)
def test_matmul_refuses_numbers(xp: Any) -> None:
    """Arrays without axes have nothing to contract."""
    one, vector = lw.asarray(np.float64(2)), lw.ones((3,))
    for x, y in ((one, vector), (vector, one), (one, one)):
        with pytest.raises(LoopwrightError, match="matmul") as caught:
            xp.matmul(x, y)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["matmul", "tensordot", "vecdot"])
def test_dtypes_of_products(name: str) -> None:
    """The dtype is the promoted one, of small integers too: they wrap at their own width."""
    arguments: dict[str, Any] = {"axes": 1} if name == "tensordot" else {}
    for group in (INTEGERS[:4], INTEGERS[4:], REAL):
        for a, b in itertools.product(group, repeat=2):
            want = group[max(group.index(a), group.index(b))]
            x, y = lw.ones((3,), dtype=a), lw.ones((3,), dtype=b)
            assert getattr(lw, name)(x, y, **arguments).dtype == want
    x = lw.asarray(np.full(3, 100, np.int8))
    assert int(getattr(lw, name)(x, x, **arguments)) == (30000 + 128) % 256 - 128


@pytest.mark.parametrize("xp", NAMESPACES)
def test_matrix_transpose(xp: Any) -> None:
    """The last two axes change places; fewer than two are an error."""
    a = whole((2, 3, 4))
    got = xp.matrix_transpose(lw.asarray(a))
    assert got.shape == (2, 4, 3) and got.numpy().tolist() == a.transpose(0, 2, 1).tolist()
    assert lw.asarray(a).mT.numpy().tolist() == got.numpy().tolist()
    assert xp.matrix_transpose(lw.zeros((0, 2, 3))).shape == (0, 3, 2)
    for shape in ((), (3,)):
        with pytest.raises(LoopwrightError) as caught:
            xp.matrix_transpose(lw.zeros(shape))
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("xp", NAMESPACES)
def test_tensordot(xp: Any) -> None:
    """A number of axes, or the two lists of those that are summed over."""
    a, b = whole((2, 3, 4), 1), whole((3, 4, 5), 2)
    flat = contracted(a.reshape(2, 12), b.reshape(12, 5))
    x, y = lw.asarray(a), lw.asarray(b)
    assert xp.tensordot(x, y).numpy().tolist() == flat.tolist()
    assert xp.tensordot(x, y, axes=((1, 2), (0, 1))).numpy().tolist() == flat.tolist()
    assert xp.tensordot(x, y, axes=((-1, -2), (1, 0))).numpy().tolist() == flat.tolist()
    one = xp.tensordot(x, lw.asarray(b.transpose(1, 2, 0)), axes=1)
    assert one.shape == (2, 3, 5, 3)
    assert xp.tensordot(x, y, axes=0).shape == (2, 3, 4, 3, 4, 5)
    first = xp.tensordot(lw.asarray(whole((2,), 5)), lw.asarray(whole((3,), 6)), axes=0)
    assert first.numpy().tolist() == np.outer(whole((2,), 5), whole((3,), 6)).tolist()
    assert xp.tensordot(lw.ones((2, 0)), lw.ones((0, 3)), axes=1).numpy().tolist() == [[0] * 3] * 2
    for axes in (1, ((1,), (2,)), ((0, 1), (0,)), ((3,), (0,)), 4, -1):
        with pytest.raises(LoopwrightError, match=r"tensordot|axis|axes"):
            xp.tensordot(x, y, axes=axes)


@pytest.mark.parametrize("xp", NAMESPACES)
def test_vecdot(xp: Any) -> None:
    """The product of vectors along one axis, the others broadcast."""
    a, b = whole((2, 1, 4), 1), whole((3, 4), 2)
    got = xp.vecdot(lw.asarray(a), lw.asarray(b))
    assert got.shape == (2, 3)
    want = [[sum(p * q for p, q in zip(a[i, 0], b[j])) for j in range(3)] for i in range(2)]
    assert got.numpy().tolist() == want
    c = whole((4, 3), 3)
    along = xp.vecdot(lw.asarray(c), lw.asarray(c), axis=-2)
    assert along.numpy().tolist() == [sum(v * v for v in column) for column in c.T.tolist()]
    assert xp.vecdot(lw.ones((2, 0)), lw.ones((2, 0))).numpy().tolist() == [0.0, 0.0]
    with pytest.raises(LoopwrightError) as caught:
        xp.vecdot(lw.ones((3,)), lw.ones((4,)))
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LoopwrightError):
        xp.vecdot(lw.ones((3,)), lw.ones((3,)), axis=-2)
    with pytest.raises(LoopwrightError):
        xp.vecdot(lw.asarray(np.float64(1)), lw.ones((3,)))


def test_outer() -> None:
    """Every product of two vectors' elements; other ranks are refused."""
    a, b = whole((3,), 1), whole((4,), 2)
    got = lw.linalg.outer(lw.asarray(a), lw.asarray(b))
    assert got.numpy().tolist() == [[p * q for q in b.tolist()] for p in a.tolist()]
    assert lw.linalg.outer(lw.ones((0,)), lw.ones((2,))).shape == (0, 2)
    assert lw.linalg.outer(lw.ones((2,), dtype=lw.int8), lw.ones((2,), dtype=lw.int16)).dtype == (
        lw.int16
    )
    with pytest.raises(LoopwrightError):
        lw.linalg.outer(lw.ones((2, 2)), lw.ones((2,)))


def test_cross() -> None:
    """Perpendicular to both, along any axis of three, the others broadcast."""
    a, b = whole((2, 3), 1), whole((2, 3), 2)

    def by_hand(u: Any, v: Any) -> list[float]:
        return [
            u[1] * v[2] - u[2] * v[1],
            u[2] * v[0] - u[0] * v[2],
            u[0] * v[1] - u[1] * v[0],
        ]

    want = [by_hand(u, v) for u, v in zip(a.tolist(), b.tolist())]
    assert lw.linalg.cross(lw.asarray(a), lw.asarray(b)).numpy().tolist() == want
    first = lw.linalg.cross(lw.asarray(a.T.copy()), lw.asarray(b.T.copy()), axis=0)
    assert first.numpy().T.tolist() == want
    assert lw.linalg.cross(lw.asarray(a), lw.asarray(b[0])).shape == (2, 3)
    with pytest.raises(LoopwrightError) as caught:
        lw.linalg.cross(lw.ones((2,)), lw.ones((2,)))
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LoopwrightError):
        lw.linalg.cross(lw.ones((3,)), lw.ones((3,)), axis=1)


@pytest.mark.parametrize("offset", [-4, -2, -1, 0, 1, 3, 5])
def test_diagonal_and_trace(offset: int) -> None:
    """The diagonals of stacks of matrices, above and below, and their sums."""
    a = whole((2, 3, 4))
    want = [[m[i, i + offset] for i in range(3) if 0 <= i + offset < 4] for m in (a[0], a[1])]
    got = lw.linalg.diagonal(lw.asarray(a), offset=offset)
    assert got.shape == (2, len(want[0])) and got.numpy().tolist() == want
    assert lw.linalg.trace(lw.asarray(a), offset=offset).numpy().tolist() == [sum(w) for w in want]


def test_dtypes_of_traces_and_ranks_that_have_none() -> None:
    """A trace is a sum: small integers become the default one; vectors have no diagonal."""
    assert lw.linalg.trace(lw.ones((2, 2), dtype=lw.int8)).dtype == lw.int64
    assert lw.linalg.trace(lw.ones((2, 2), dtype=lw.uint8)).dtype == lw.uint64
    assert lw.linalg.trace(lw.ones((2, 2), dtype=lw.float32)).dtype == lw.float32
    assert lw.linalg.trace(lw.ones((2, 2), dtype=lw.int8), dtype=lw.float64).dtype == lw.float64
    assert lw.linalg.trace(lw.ones((0, 0))).numpy().tolist() == 0.0
    for name in ("diagonal", "trace"):
        with pytest.raises(LoopwrightError):
            getattr(lw.linalg, name)(lw.ones((3,)))


def test_vector_norm() -> None:
    """Every order from 0 to infinity, along one axis, several, or all, by its definition."""
    a = whole((2, 3, 4))
    for order in (0, 1, 2, 3, 0.5, -1.5, float("inf"), -float("inf")):
        x = np.abs(a) + 1 if order == -1.5 else a

        def by_hand(values: Any, order: Any = order) -> float:
            sizes = [abs(v) for v in values]
            if order == 0:
                return float(sum(v != 0 for v in sizes))
            if abs(order) == float("inf"):
                return float(max(sizes) if order > 0 else min(sizes))
            return float(sum(v**order for v in sizes) ** (1 / order))

        got = lw.linalg.vector_norm(lw.asarray(x), axis=1, ord=order)
        want = [[by_hand(x[i, :, j]) for j in range(4)] for i in range(2)]
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
        whole_array = lw.linalg.vector_norm(lw.asarray(x), ord=order)
        assert whole_array.shape == ()
        np.testing.assert_allclose(float(whole_array), by_hand(x.ravel()), rtol=1e-14)
    assert lw.linalg.vector_norm(lw.asarray(a), axis=(0, -1), keepdims=True).shape == (1, 3, 1)
    assert lw.linalg.vector_norm(lw.ones((3,), dtype=lw.float32)).dtype == lw.float32
    assert float(lw.linalg.vector_norm(lw.zeros((0,)))) == 0.0
    with pytest.raises(LoopwrightError, match="fro"):
        lw.linalg.vector_norm(lw.ones((3,)), ord="fro")
    with pytest.raises(LoopwrightError, match="3"):
        lw.linalg.vector_norm(lw.ones((3,)), axis=3)


def test_matrix_norm() -> None:
    """Frobenius, and the extremes of sums down columns and along rows; the rest is refused."""
    a = whole((2, 3, 4))
    columns, rows = np.abs(a).sum(axis=1), np.abs(a).sum(axis=2)
    want = {
        "fro": [sum(v * v for v in m.ravel().tolist()) ** 0.5 for m in a],
        1: [max(c) for c in columns.tolist()],
        -1: [min(c) for c in columns.tolist()],
        float("inf"): [max(r) for r in rows.tolist()],
        -float("inf"): [min(r) for r in rows.tolist()],
    }
    for order, values in want.items():
        got = lw.linalg.matrix_norm(lw.asarray(a), ord=order)
        np.testing.assert_allclose(got.numpy(), values, rtol=1e-15)
        kept = lw.linalg.matrix_norm(lw.asarray(a), ord=order, keepdims=True)
        assert kept.shape == (2, 1, 1)
    for order in (2, -2, "nuc"):
        with pytest.raises(LoopwrightError, match="singular values"):
            lw.linalg.matrix_norm(lw.asarray(a), ord=order)
    for order in (3, "frob"):
        with pytest.raises(LoopwrightError, match="no norm"):
            lw.linalg.matrix_norm(lw.asarray(a), ord=order)
    with pytest.raises(LoopwrightError):
        lw.linalg.matrix_norm(lw.ones((3,)))


def test_matrix_power() -> None:
    """Any number of factors, none too; stacks of matrices; no inverse, no rectangles."""
    a = np.random.default_rng(3).integers(-2, 3, (2, 3, 3))
    want = np.broadcast_to(np.eye(3, dtype=a.dtype), a.shape)
    for n in range(8):
        got = lw.linalg.matrix_power(lw.asarray(a), n)
        assert got.dtype == lw.int64 and got.numpy().tolist() == want.tolist()
        want = np.array([contracted(w, m) for w, m in zip(want, a)])
    with pytest.raises(LoopwrightError, match="inverse"):
        lw.linalg.matrix_power(lw.asarray(a), -1)
    with pytest.raises(LoopwrightError):
        lw.linalg.matrix_power(lw.ones((2, 3)), 2)
    with pytest.raises(LoopwrightError):
        lw.linalg.matrix_power(lw.ones((3,)), 2)
