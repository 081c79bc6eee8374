"""The creation functions of the array API standard."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.errors import LoopwrightError

INTEGERS = [lw.int8, lw.int16, lw.int32, lw.int64, lw.uint8, lw.uint16, lw.uint32, lw.uint64]
REAL = [lw.float32, lw.float64]
SHAPES: list[Any] = [(), (0,), (3,), (2, 0, 3), (2, 3), 4]
FILLED = {"zeros": 0, "ones": 1}


def sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else shape


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["empty", "zeros", "ones"])
def test_arrays_of_a_shape(name: str, shape: Any) -> None:
    """empty, zeros and ones take a number or a tuple, and make float64 where no dtype is given."""
    x = getattr(lw, name)(shape)
    assert x.shape == sizes(shape) and x.dtype == lw.float64
    assert x.numpy().shape == sizes(shape)
    if name in FILLED:
        assert (x.numpy() == FILLED[name]).all()
    for dtype in (lw.bool, lw.uint8, lw.int64, lw.float32):
        y = getattr(lw, name)(shape, dtype=dtype, device="cpu")
        assert y.dtype == dtype and y.device == "cpu"
        if name in FILLED:
            assert (y.numpy() == FILLED[name]).all()


@pytest.mark.parametrize("name", ["empty_like", "zeros_like", "ones_like"])
def test_arrays_like_another(name: str) -> None:
    """Shape, dtype and device are the other's, unless they are given."""
    for dtype in (lw.bool, lw.int16, lw.float32):
        for shape in ((), (0, 2), (3, 2)):
            x = lw.zeros(shape, dtype=dtype)
            y = getattr(lw, name)(x)
            assert (y.shape, y.dtype, y.device) == (shape, dtype, x.device)
            z = getattr(lw, name)(x, dtype=lw.float64)
            assert (z.shape, z.dtype) == (shape, lw.float64)
            if name != "empty_like":
                assert (z.numpy() == (name == "ones_like")).all()


def test_full() -> None:
    """The dtype is the default one of the number's kind, or as given."""
    for value, dtype in ((True, lw.bool), (3, lw.int64), (2.5, lw.float64)):
        x = lw.full((2, 3), value)
        assert x.dtype == dtype and x.numpy().tolist() == [[value] * 3] * 2
    assert lw.full((), math.nan).dtype == lw.float64
    assert lw.full(3, 7, dtype=lw.float32).numpy().tolist() == [7.0] * 3
    assert lw.full((0, 2), 1).numpy().shape == (0, 2)
    for value in (0.0, -0.0, math.inf, -math.inf):
        got = float(lw.full((1,), value).numpy()[0])
        assert got == value and math.copysign(1, got) == math.copysign(1, value)


def test_full_like() -> None:
    """The dtype is the other array's, whatever the number's kind."""
    x = lw.zeros((2, 3), dtype=lw.float32)
    assert lw.full_like(x, 3).dtype == lw.float32
    assert lw.full_like(x, 3).numpy().tolist() == [[3.0] * 3] * 2
    assert lw.full_like(x, 3, dtype=lw.int8).dtype == lw.int8
    assert lw.full_like(lw.zeros((0,), dtype=lw.bool), True).shape == (0,)


STEPS = st.integers(-7, 7).filter(bool)


@given(st.integers(-20, 20), st.integers(-20, 20), STEPS)
def test_arange_of_integers(start: int, stop: int, step: int) -> None:
    """The integers of Python's range, in the default dtype; one argument is the stop."""
    x = lw.arange(start, stop, step)
    assert x.dtype == lw.int64 and x.numpy().tolist() == list(range(start, stop, step))
    assert lw.arange(abs(stop)).numpy().tolist() == list(range(abs(stop)))
    assert lw.arange(start, stop=stop).shape == (max(stop - start, 0),)


@given(st.integers(-40, 40), st.integers(-40, 40), STEPS)
def test_arange_of_floats(start: int, stop: int, step: int) -> None:
    """ceil((stop - start) / step) numbers from start on, float64 where any argument is a float."""
    a, b, s = start / 4, stop / 4, step / 4
    x = lw.arange(a, b, s)
    count = max(math.ceil((b - a) / s), 0)
    assert x.dtype == lw.float64 and x.shape == (count,)
    assert x.numpy().tolist() == [a + i * s for i in range(count)]


def test_arange_with_a_dtype_and_without_a_step() -> None:
    """dtype= decides; a step of zero is refused."""
    for dtype in (*INTEGERS, *REAL):
        x = lw.arange(2, 9, 3, dtype=dtype)
        assert x.dtype == dtype and x.numpy().tolist() == [2, 5, 8]
    with pytest.raises(LoopwrightError):
        lw.arange(0, 3, 0)


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 12), st.booleans())
def test_linspace(start: int, stop: int, num: int, endpoint: bool) -> None:
    """num numbers at equal distances from start, up to stop where it is one of them."""
    x = lw.linspace(start, stop, num, endpoint=endpoint)
    assert x.dtype == lw.float64 and x.shape == (num,)
    got = x.numpy().tolist()
    gaps = num - 1 if endpoint else num
    want = [start + (stop - start) * i / gaps if gaps else float(start) for i in range(num)]
    assert got == pytest.approx(want, abs=1e-14)
    if num:
        assert got[0] == start
    if endpoint and num > 1:
        assert got[-1] == stop


def test_linspace_dtypes_and_counts() -> None:
    """float32 where asked for; a negative count is refused."""
    assert lw.linspace(0, 1, 5, dtype=lw.float32).dtype == lw.float32
    assert lw.linspace(0.0, 1.0, num=3).numpy().tolist() == [0.0, 0.5, 1.0]
    with pytest.raises(LoopwrightError) as caught:
        lw.linspace(0, 1, -1)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LoopwrightError, match="endpoint"):
        lw.linspace(0, 1, 3, endpoint="no")  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("columns", [None, 0, 2, 4])
def test_eye(rows: int, columns: int | None) -> None:
    """Ones on the k-th diagonal, which may lie outside."""
    n = rows if columns is None else columns
    for k in (-4, -1, 0, 2, 5):
        want = [[float(j == i + k) for j in range(n)] for i in range(rows)]
        x = lw.eye(rows, columns, k=k)
        assert x.shape == (rows, n) and x.dtype == lw.float64
        assert x.numpy().tolist() == want
    assert lw.eye(rows, columns, dtype=lw.bool).dtype == lw.bool


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str) -> None:
    """Of the last two axes of any stack: what lies below, or above, the k-th diagonal."""
    a = np.arange(1, 25, dtype=np.int32).reshape(2, 3, 4)
    for k in (-5, -3, -1, 0, 1, 4, 6):
        got = getattr(lw, name)(lw.asarray(a), k=k)
        want = a.copy()
        for _, i, j in np.ndindex(a.shape):
            if (j - i > k) if name == "tril" else (j - i < k):
                want[:, i, j] = 0
        assert got.dtype == lw.int32 and got.numpy().tolist() == want.tolist()
    assert getattr(lw, name)(lw.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(LoopwrightError) as caught:
        getattr(lw, name)(lw.ones((3,)))
    assert isinstance(caught.value, ValueError)


def test_meshgrid() -> None:
    """Cartesian or matrix indexing of vectors, and of single numbers."""
    x, y, z = lw.arange(3), lw.arange(2), lw.arange(4)
    for indexing, shape in (("xy", (2, 3, 4)), ("ij", (3, 2, 4))):
        grids = lw.meshgrid(x, y, z, indexing=indexing)
        assert isinstance(grids, (list, tuple)) and [g.shape for g in grids] == [shape] * 3
        order = (1, 0, 2) if indexing == "xy" else (0, 1, 2)
        for at in np.ndindex(shape):
            assert [int(g.numpy()[at]) for g in grids] == [at[order.index(k)] for k in range(3)]
    (alone,) = lw.meshgrid(x)
    assert alone.numpy().tolist() == [0, 1, 2]
    assert [g.shape for g in lw.meshgrid(lw.zeros((0,)), y)] == [(2, 0)] * 2
    with pytest.raises(LoopwrightError, match="yx"):
        lw.meshgrid(x, y, indexing="yx")


def test_asarray_of_python_numbers() -> None:
    """Nested sequences: the default dtype of their kind, floats where they are mixed."""
    for given_, dtype in (
        (True, lw.bool),
        (3, lw.int64),
        (2.5, lw.float64),
        ([True, False], lw.bool),
        ([[1, 2], [3, 4]], lw.int64),
        ((1, 2.5), lw.float64),
        ([], lw.float64),
    ):
        x = lw.asarray(given_)
        assert x.dtype == dtype and x.numpy().tolist() == np.array(given_).tolist()
    assert lw.asarray([1, 2], dtype=lw.float32).dtype == lw.float32
    with pytest.raises(LoopwrightError) as caught:
        lw.asarray([[1, 2], [3]])
    assert isinstance(caught.value, ValueError)
    with pytest.raises(LoopwrightError) as caught:
        lw.asarray([2**70])
    assert isinstance(caught.value, (OverflowError, TypeError))


def test_asarray_copies_or_not() -> None:
    """copy=False shares or fails, copy=True never shares, None shares where it can."""
    host = np.arange(4.0)
    shared, snapshot = lw.asarray(host, copy=False), lw.asarray(host, copy=True)
    either = lw.asarray(host)
    host[0] = 9.0
    assert shared.numpy()[0] == 9.0 and either.numpy()[0] == 9.0
    assert snapshot.numpy()[0] == 0.0
    with pytest.raises(LoopwrightError) as caught:
        lw.asarray(host, dtype=lw.float32, copy=False)
    assert isinstance(caught.value, ValueError)
    x = lw.asarray([1.0, 2.0])
    assert lw.asarray(x, copy=False).numpy().tolist() == [1.0, 2.0]
    assert lw.asarray(x, dtype=lw.int32).dtype == lw.int32


class Shared:
    """An array that another library would hand over."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **how: Any) -> Any:
        return self.values.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()


def test_from_dlpack() -> None:
    """Memory of another library, shared or copied, in each dtype."""
    for dtype in (np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64):
        values = np.arange(6).astype(dtype).reshape(2, 3)
        x = lw.from_dlpack(Shared(values))
        assert x.dtype.numpy == dtype and x.numpy().tolist() == values.tolist()
    host = np.arange(4.0)
    shared, snapshot = lw.from_dlpack(Shared(host)), lw.from_dlpack(Shared(host), copy=True)
    host[1] = 7.0
    assert shared.numpy()[1] == 7.0 and snapshot.numpy()[1] == 1.0
    assert lw.from_dlpack(Shared(host), device="cpu", copy=False).device == "cpu"
    assert lw.from_dlpack(lw.arange(3)).numpy().tolist() == [0, 1, 2]
    with pytest.raises(AttributeError):
        lw.from_dlpack([1, 2])
