"""Making arrays against NumPy, and what is refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from array_oracle import oracle, same

import loopwright as lw
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConstantRangeError,
    DeviceError,
    DTypeError,
)


@pytest.mark.parametrize(
    "text",
    [
        "arange(5)",
        "arange(2, 9, 2)",
        "arange(9, 2, -3)",
        "arange(0, 1, 0.1)",
        "arange(5.)",
        "arange(0, 0)",
        "linspace(0, 1, 7)",
        "linspace(3, -2, 5, endpoint=False)",
        "linspace(1, 1, 1)",
        "linspace(0, 1, 0)",
        "eye(3)",
        "eye(3, 4, k=1)",
        "eye(2, 5, k=-1)",
        "zeros((2, 3))",
        "ones(3)",
        "full((2,), 7)",
        "full((2, 0), 7.5)",
        "full((), True)",
        "asarray([[1, 2], [3, 4]])",
        "asarray([1, 2.5])",
        "asarray([])",
        "asarray(3)",
        "asarray(True)",
        "asarray(2.5)",
    ],
)
def test_as_numpy(text: str) -> None:
    """Values and default dtypes are NumPy's."""
    same(eval(f"lw.{text}", {"lw": lw}), eval(f"np.{text}", {"np": np}))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64", "float16", "float32"])
def test_ranges_in_a_given_dtype(dtype: str) -> None:
    """arange steps in the dtype it is asked for, as NumPy's does."""
    same(lw.arange(1, 9, 2, dtype=dtype), np.arange(1, 9, 2, dtype=dtype))
    if dtype.startswith("float"):
        same(lw.arange(0, 1, 0.1, dtype=dtype), np.arange(0, 1, 0.1, dtype=dtype))


def test_wide_ranges_do_not_wrap() -> None:
    """arange in int64 multiplies in 64 bits."""
    same(lw.arange(11) * 10**9, np.arange(11) * 10**9)
    same(lw.arange(2**62, 2**62 + 3), np.arange(2**62, 2**62 + 3))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing: Any) -> None:
    """Both orders of the first two axes."""
    parts = (np.arange(3), np.arange(4.0), np.arange(2))
    for a, b in zip(
        lw.meshgrid(*parts, indexing=indexing), np.meshgrid(*parts, indexing=indexing), strict=True
    ):
        same(a, b)


def test_likes() -> None:
    """The *_like functions take shape and dtype from their array unless told otherwise."""
    x = lw.asarray(np.zeros((2, 3), np.int16))
    same(lw.ones_like(x), np.ones((2, 3), np.int16))
    same(lw.zeros_like(x, dtype=lw.float32), np.zeros((2, 3), np.float32))
    same(lw.full_like(x, 7), np.full((2, 3), 7, np.int16))


def test_sharing() -> None:
    """Memory is shared until evaluation, copy=True takes a snapshot, transposes need no copy."""
    memory = np.arange(6, dtype=np.float32).reshape(2, 3)
    shared, snapshot, turned = (
        lw.asarray(memory),
        lw.asarray(memory, copy=True),
        lw.asarray(memory.T),
    )
    memory[0, 0] = 9
    assert oracle(shared)[0, 0] == 9 and oracle(snapshot)[0, 0] == 0 and oracle(turned)[0, 0] == 9
    same(lw.asarray(memory.T, copy=False), memory.T)


@pytest.mark.parametrize(
    "memory",
    [
        np.arange(10)[::-3],
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(3, dtype=">i4"),
        np.array(5, np.int16),
        np.broadcast_to(np.float32(2), (2, 3)),
        np.frombuffer(b"abcdefgh", np.uint8),
        np.zeros(3, ml_dtypes.bfloat16),
        np.frombuffer(b"0123456789abc", np.uint8)[1:9].view(np.int32),
        np.zeros((0, 4), np.int8),
    ],
    ids=str,
)
def test_any_layout(memory: np.ndarray[Any, Any]) -> None:
    """Odd strides, foreign byte order, 0-d, read-only and unaligned memory are taken."""
    same(lw.asarray(memory), memory.astype(memory.dtype.newbyteorder("=")))


def test_lists_of_arrays() -> None:
    """Arrays inside a list are stacked, with numbers beside them."""
    x = lw.asarray(np.float32(2)) + 1
    same(lw.asarray([x, 4.0]), np.array([3.0, 4.0]))
    same(lw.asarray([1, 2], dtype=lw.uint8), np.array([1, 2], np.uint8))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: lw.asarray(1j), DTypeError),
        (lambda: lw.asarray([1j]), DTypeError),
        (lambda: lw.asarray(np.zeros(2, np.complex64)), DTypeError),
        (lambda: lw.asarray(np.array([1, None])), DTypeError),
        (lambda: lw.asarray(np.zeros(2, np.longdouble)), DTypeError),
        (lambda: lw.asarray("text"), ArgumentTypeError),
        (lambda: lw.asarray(["a"]), DTypeError),
        (lambda: lw.asarray([[1, 2], [3]]), ArgumentError),
        (lambda: lw.asarray(2**63), ConstantRangeError),
        (lambda: lw.asarray([2**64]), ConstantRangeError),
        (lambda: lw.asarray([300], dtype=lw.uint8), ConstantRangeError),
        (lambda: lw.full(2, 300, dtype=lw.int8), ConstantRangeError),
        (lambda: lw.asarray(np.zeros(6)[::2], copy=False), ArgumentError),
        (lambda: lw.asarray([1], copy=False), ArgumentError),
        (lambda: lw.zeros((-1,)), ValueError),
        (lambda: lw.zeros(2, dtype="complex64"), DTypeError),
        (lambda: lw.arange(0, 5, 0), ArgumentError),
        (lambda: lw.zeros(2, device="nonesuch"), DeviceError),
    ],
)
def test_errors(call: Any, kind: type[Exception]) -> None:
    """Each is refused at the call, as the error NumPy raises there."""
    with pytest.raises(kind):
        call()
