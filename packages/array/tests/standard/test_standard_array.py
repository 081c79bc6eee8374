"""The array object of the array API standard: attributes, operators, conversions, indexing."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import LoopwrightError

INTEGERS = [lw.int8, lw.int16, lw.int32, lw.int64, lw.uint8, lw.uint16, lw.uint32, lw.uint64]
REAL = [lw.float32, lw.float64]
X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
ARITHMETIC = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
}
BITS = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
COMPARISONS = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}
IN_PLACE = {name: getattr(operator, f"i{name}") for name in (*ARITHMETIC, *BITS)}


def refused(kind: Any, function: Any, *args: Any) -> None:
    """The call is a LoopwrightError that is also NumPy's error."""
    with pytest.raises(LoopwrightError) as caught:
        function(*args)
    assert isinstance(caught.value, kind), type(caught.value).__mro__


def test_attributes() -> None:
    """dtype, device, ndim, shape, size, T and mT, of every rank that has them."""
    for shape in ((), (0,), (3,), (2, 3), (2, 0, 4)):
        x = lw.zeros(shape, dtype=lw.int16, device="cpu")
        assert (x.shape, x.ndim, x.size) == (shape, len(shape), math.prod(shape))
        assert isinstance(x.shape, tuple) and x.dtype == lw.int16 and x.device == "cpu"
    assert lw.asarray(X[0]).T.numpy().tolist() == X[0].T.tolist()
    assert lw.asarray(X).mT.numpy().tolist() == X.transpose(0, 2, 1).tolist()
    for shape in ((), (3,)):
        refused(ValueError, lambda s=shape: lw.zeros(s).mT)


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
def test_operators_on_numbers(name: str) -> None:
    """Array with array, with a number behind it and with one before it, as in plain Python."""
    op = (ARITHMETIC | COMPARISONS)[name]
    for dtype in (lw.int32, lw.float64):
        if name == "truediv" and dtype == lw.int32:
            continue
        a, b = [7, 2, 5, 9], [2, 3, 5, 1]
        x, y = lw.asarray(a, dtype=dtype), lw.asarray(b, dtype=dtype)
        results = [op(x, y), op(x, 3), op(3, x)]
        lw.evaluate(*results)
        wanted = [[op(i, j) for i, j in zip(a, b)], [op(i, 3) for i in a], [op(3, i) for i in a]]
        for got, want in zip(results, wanted):
            assert got.dtype == (lw.bool if name in COMPARISONS else dtype)
            assert got.numpy().tolist() == pytest.approx(want)


@pytest.mark.parametrize("name", BITS)
def test_operators_on_bits(name: str) -> None:
    """The same for integers, and for bools where that makes sense; floats are refused."""
    op = BITS[name]
    a, b = [12, 7, 1, 0], [3, 1, 2, 3]
    x, y = lw.asarray(a, dtype=lw.int16), lw.asarray(b, dtype=lw.int16)
    results = [op(x, y), op(x, 3), op(3, y)]
    wanted = [[op(i, j) for i, j in zip(a, b)], [op(i, 3) for i in a], [op(3, j) for j in b]]
    for got, want in zip(results, wanted):
        assert got.dtype == lw.int16 and got.numpy().tolist() == want
    if "shift" not in name:
        t, f = lw.asarray([True, False]), lw.asarray([True, True])
        assert op(t, f).dtype == lw.bool
        assert op(t, f).numpy().tolist() == [op(True, True), op(False, True)]
        assert op(t, True).numpy().tolist() == [op(True, True), op(False, True)]
    refused(TypeError, op, lw.ones((2,)), lw.ones((2,)))


@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place(name: str) -> None:
    """x op= y rebinds x to the result, in x's dtype and shape; who held the old value keeps it."""
    dtype = lw.int32 if name in BITS or name in ("floordiv", "mod", "pow") else lw.float64
    for other in (lw.asarray([2, 3, 1], dtype=dtype), 2):
        x = lw.asarray([6, 5, 4], dtype=dtype)
        before = x[...]
        want = (ARITHMETIC | BITS)[name](x, other).numpy().tolist()
        x = IN_PLACE[name](x, other)
        assert x.dtype == dtype and x.numpy().tolist() == want
        assert before.numpy().tolist() == [6, 5, 4]
    x = lw.zeros((3,), dtype=dtype)
    refused(ValueError, IN_PLACE[name], x, lw.ones((2, 3), dtype=dtype))


def test_unary_operators() -> None:
    """abs, +, - and ~."""
    x = lw.asarray([-3, 0, 4], dtype=lw.int16)
    assert abs(x).numpy().tolist() == [3, 0, 4] and abs(x).dtype == lw.int16
    assert (+x).numpy().tolist() == [-3, 0, 4] and (-x).numpy().tolist() == [3, 0, -4]
    assert (~x).numpy().tolist() == [2, -1, -5]
    assert (~lw.asarray([True, False])).numpy().tolist() == [False, True]
    refused(TypeError, operator.invert, lw.ones((2,)))


def test_matmul_operators() -> None:
    """@ from both sides and in place; numbers are refused."""
    a = lw.asarray([[1, 2], [3, 4]])
    assert (a @ a).numpy().tolist() == [[7, 10], [15, 22]]
    x = a[...]
    x @= a
    assert x.numpy().tolist() == [[7, 10], [15, 22]] and a.numpy().tolist() == [[1, 2], [3, 4]]
    assert a.__rmatmul__(lw.asarray([[0, 1], [1, 0]])).numpy().tolist() == [[3, 4], [1, 2]]
    refused((TypeError, ValueError), operator.matmul, a, 2)


def test_python_numbers_are_weak() -> None:
    """A number takes the array's dtype where its kind allows; else it is promoted or refused."""
    for dtype in (*INTEGERS, *REAL):
        assert (lw.ones((2,), dtype=dtype) + 1).dtype == dtype
    for dtype in REAL:
        assert (lw.ones((2,), dtype=dtype) * 2.5).dtype == dtype
    refused(OverflowError, operator.add, lw.ones((2,), dtype=lw.int8), 300)
    refused(OverflowError, operator.add, lw.ones((2,), dtype=lw.uint8), -1)


def test_conversions_of_one_number() -> None:
    """bool, int, float, complex and index of arrays without axes."""
    assert bool(lw.asarray(2.5)) is True and bool(lw.asarray(0)) is False
    assert int(lw.asarray(-2.9)) == -2 and float(lw.asarray(3)) == 3.0
    assert complex(lw.asarray(1.5)) == 1.5 + 0j
    assert operator.index(lw.asarray(7)) == 7 and [10, 11, 12][lw.asarray(1)] == 11
    assert bool(lw.asarray(math.nan)) is True
    assert math.isinf(float(lw.asarray(math.inf)))
    refused(TypeError, operator.index, lw.asarray(1.0))
    refused(OverflowError, int, lw.asarray(math.inf))
    refused(ValueError, int, lw.asarray(math.nan))
    many = lw.asarray([1, 2])
    for convert in (bool, int, float, complex, operator.index):
        refused((TypeError, ValueError), convert, many)


def test_namespace_and_devices() -> None:
    """`__array_namespace__` of this and older versions, to_device, and DLPack's own methods."""
    x = lw.asarray([1.0, 2.0])
    assert x.__array_namespace__() is lw
    for version in ("2021.12", "2022.12", "2023.12", "2024.12"):
        assert x.__array_namespace__(api_version=version) is lw
    refused(ValueError, lambda: x.__array_namespace__(api_version="1999.12"))
    assert x.to_device("cpu").numpy().tolist() == [1.0, 2.0]
    refused(RuntimeError, x.to_device, "nowhere")
    kind, number = x.__dlpack_device__()
    assert (int(kind), number) == (1, 0)


def test_dlpack() -> None:
    """NumPy takes the memory over, old protocol and new, copied or not."""
    x = lw.asarray([[1, 2], [3, 4]], dtype=lw.int16)
    assert np.from_dlpack(x).tolist() == [[1, 2], [3, 4]]
    assert x.__dlpack__() is not None
    assert x.__dlpack__(max_version=(1, 0), dl_device=(1, 0), copy=True) is not None
    assert x.__dlpack__(max_version=(1, 1), stream=None, copy=False) is not None
    refused(BufferError, lambda: x.__dlpack__(copy=False))  # it cannot say "read-only"
    for version in (None, (1, 0)):
        refused(BufferError, lambda v=version: x.__dlpack__(dl_device=(2, 0), max_version=v))
    for shape in ((), (0,), (2, 0, 3)):
        assert np.from_dlpack(lw.zeros(shape)).shape == shape
    assert np.from_dlpack(lw.permute_dims(x, (1, 0))).tolist() == [[1, 3], [2, 4]]


KEYS: list[Any] = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    (-2, -3, -4),
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    (slice(None), slice(2, 0, -1)),
    (slice(None), slice(5, 9)),
    (..., 1),
    (0, ..., slice(None, None, 2)),
    (None, ...),
    (slice(None), None, 1),
    (..., None),
    ...,
    (),
    (1, slice(-100, 100), slice(-1, None, -2)),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading_at_a_key(key: Any) -> None:
    """Integers, slices, an ellipsis and new axes, as Python's sequences count."""
    got, want = lw.asarray(X)[key], X[key]
    assert got.shape == want.shape and got.dtype == lw.int32
    assert got.numpy().tolist() == want.tolist()


def test_reading_with_masks_and_integer_arrays() -> None:
    """A mask of all axes gives one axis; integer arrays index, alone and beside integers."""
    x = lw.asarray(X)
    mask = X % 5 == 0
    assert x[lw.asarray(mask)].numpy().tolist() == X[mask].tolist()
    assert x[lw.asarray(np.zeros_like(mask))].shape == (0,)
    rows, columns = np.array([1, 0, 1]), np.array([2, -1, 0])
    assert x[lw.asarray(rows), lw.asarray(columns)].numpy().tolist() == X[rows, columns].tolist()
    assert x[0, lw.asarray(columns)].numpy().tolist() == X[0, columns].tolist()
    assert x[:, lw.asarray(columns)].numpy().tolist() == X[:, columns].tolist()


def test_masks_without_axes() -> None:
    """A mask of no axes picks all or nothing of a new axis, wherever it stands."""
    for is_picked in (True, False):
        mask = np.array(is_picked)
        number = lw.asarray(np.float32(3))[lw.asarray(mask)]
        assert number.numpy().tolist() == [3.0] * is_picked
        keys: list[Any] = [mask, (mask, 0), (0, mask), (slice(None), mask), (..., mask, 1)]
        keys += [(mask, mask), (mask, np.array([1])), (slice(None), mask, np.array([2]))]
        for key in (*keys, is_picked):
            given = tuple(key) if isinstance(key, tuple) else (key,)
            ours = tuple(lw.asarray(k) if isinstance(k, np.ndarray) else k for k in given)
            got, want = lw.asarray(X)[ours], X[key]
            assert got.shape == want.shape and got.numpy().tolist() == want.tolist(), key


@pytest.mark.parametrize("shape", [(3,), (2, 2), (1, 3), (2, 1), (2, 3, 1), (2, 3, 4, 1)])
def test_masks_of_other_sizes(shape: tuple[int, ...]) -> None:
    """A mask has exactly the sizes of the axes it indexes, in reading and in writing."""
    x = lw.asarray(X)
    mask = lw.asarray(np.ones(shape, bool))
    refused(IndexError, operator.getitem, x, mask)
    refused(IndexError, operator.setitem, x, mask, 0)
    refused(IndexError, operator.getitem, lw.asarray(X[None]), (0, mask))


def test_keys_that_do_not_fit() -> None:
    """Beyond the ends, too many, two ellipses, floats, and masks of another shape."""
    x = lw.asarray(X)
    for key in (2, -3, (0, 3), (0, 0, 0, 0), (..., ...), lw.asarray(0.5)):
        refused(IndexError, operator.getitem, x, key)
    for key in (1.0, "a"):
        refused((IndexError, TypeError), operator.getitem, x, key)
    refused(ValueError, operator.getitem, x, slice(None, None, 0))
    pair = (lw.asarray(np.array([0, 1])), lw.asarray(np.array([0, 1, 2])))
    refused(IndexError, operator.getitem, x, pair)
    refused(IndexError, operator.getitem, lw.asarray(np.float32(1)), 0)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_writing_at_a_key(key: Any) -> None:
    """x[key] = v broadcasts v and casts nothing but numbers; older views keep what they had."""
    for value in (-7, np.int32(-5)):
        x, host = lw.asarray(X), X.copy()
        old = x[...]
        x[key] = lw.asarray(value) if isinstance(value, np.generic) else value
        host[key] = value
        assert x.numpy().tolist() == host.tolist() and x.dtype == lw.int32
        assert old.numpy().tolist() == X.tolist()


def test_writing_through_masks_and_what_is_refused() -> None:
    """A mask is a where; values that do not broadcast and places that are not there are errors."""
    x = lw.asarray(X)
    x[lw.asarray(X % 2 == 0)] = 0
    assert x.numpy().tolist() == np.where(X % 2 == 0, 0, X).tolist()
    x[:, 1, :] = lw.asarray(np.arange(4, dtype=np.int32))
    assert x.numpy()[:, 1].tolist() == [[0, 1, 2, 3]] * 2
    refused(ValueError, operator.setitem, x, 0, lw.zeros((2, 4), dtype=lw.int32))
    refused(IndexError, operator.setitem, x, 2, 0)
