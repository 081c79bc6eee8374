"""Arguments of a wrong kind are refused where they are given, as NumPy's error and by name."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.kernels import kernels
from loopwright.options import options

X = lw.asarray(np.arange(12, dtype=np.float32).reshape(3, 4))
PAIR = np.array([True, False])

WRONG_TYPES: dict[str, Callable[[], Any]] = {
    "dtype": lambda: lw.zeros(3, dtype=X),
    "astype": lambda: X.astype(X),
    "keepdims": lambda: lw.sum(X, keepdims=PAIR),
    "axis of a 0-d array": lambda: lw.sum(lw.asarray(2.0), axis=PAIR),
    "argmax": lambda: lw.argmax(lw.asarray(2.0), axis=PAIR),
    "correction": lambda: lw.std(X, correction="1"),
    "n of diff": lambda: lw.diff(X, n=1.5),
    "include_initial": lambda: lw.cumulative_sum(X, axis=0, include_initial=PAIR),
    "descending": lambda: lw.sort(X, descending=PAIR),
    "reshape": lambda: lw.reshape(X, ...),
    "permute_dims": lambda: lw.permute_dims(X, 1.5),
    "transpose": lambda: X.transpose(PAIR, None),
    "roll": lambda: lw.roll(X, "1"),
    "tile": lambda: lw.tile(X, 1.5),
    "broadcast_to": lambda: lw.broadcast_to(X, (3.0, 4)),
    "broadcast_shapes": lambda: lw.broadcast_shapes((3,), None),
    "one_hot": lambda: lw.one_hot(lw.asarray([1]), 2.5),
    "eps": lambda: lw.layer_norm(X, eps=(1e-5,)),
    "tensordot": lambda: lw.tensordot(X, X, axes=None),
    "triangle": lambda: lw.tril(X, k=0.5),
    "num": lambda: lw.linspace(0, 1, 2.5),
    "window": lambda: lw.sliding_window_view(X, "2", axis=0),
    "copy": lambda: lw.asarray(X, copy=PAIR),
    "device": lambda: X.to_device(PAIR),  # type: ignore[arg-type]  # the point of the test
    "device of kernels": lambda: kernels(X + 1, device=["cpu"]),  # type: ignore[arg-type]
    "assignment": lambda: lw.asarray(np.zeros((3, 4))).__setitem__(X > 3, np.ones((3, 4))),
}
WRONG_VALUES: dict[str, Callable[[], Any]] = {
    "one_hot": lambda: lw.one_hot(lw.asarray([1]), -1),
    "side": lambda: lw.searchsorted(lw.asarray([1, 2]), X, side=PAIR),  # type: ignore[arg-type]
    "haystack": lambda: lw.searchsorted(X, 1.0),
    "sorter": lambda: lw.searchsorted(lw.asarray([1, 2]), X, sorter=[1.5, 2.5]),
    "indexing": lambda: lw.meshgrid(X, indexing=PAIR),  # type: ignore[arg-type]
    "approximate": lambda: lw.gelu(X, approximate=PAIR),  # type: ignore[arg-type]
    "ragged counts": lambda: lw.repeat(X, [[1], [2, 3]], axis=0),
    "ragged indices": lambda: lw.take(X, [[1], [2, 3]], axis=0),
    "pad values": lambda: lw.pad(X, 1, constant_values=np.zeros((3, 4))),
    "not a number": lambda: lw.arange(float("nan")),
    "endless": lambda: lw.arange(float("inf")),
    "endless steps": lambda: lw.arange(0, 1, 5e-324),
    "option": lambda: options(schedule=PAIR).__enter__(),
    "too many axes": lambda: lw.reshape(X, (1,) * 70 + (12,)),
    "too many elements": lambda: lw.broadcast_to(X[:1, :1], (2**32, 2**32)),
    "too large a size": lambda: lw.zeros(2**70),
    "too much padding": lambda: lw.pad(X, 2**62),
    "too long a range": lambda: lw.arange(2**62),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_wrong_types(name: str) -> None:
    """A TypeError of our own, raised before anything is computed."""
    with pytest.raises(TypeError) as caught:
        WRONG_TYPES[name]()
    assert isinstance(caught.value, lw.LoopwrightError)


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_wrong_values(name: str) -> None:
    """A ValueError of our own, raised before anything is computed."""
    with pytest.raises(ValueError) as caught:
        WRONG_VALUES[name]()
    assert isinstance(caught.value, lw.LoopwrightError)


def test_numpy_scalars_are_numbers() -> None:
    """What NumPy hands out as sizes, axes and flags is taken."""
    one = np.int64(1)
    assert lw.sum(X, axis=one, keepdims=np.bool_(True)).shape == (3, 1)
    assert lw.tensordot(X, X.T, axes=one).shape == (3, 3)
    assert lw.std(X, axis=0, correction=np.float32(1)).shape == (4,)
    assert lw.broadcast_to(X[:one], (np.int32(5), 4)).shape == (5, 4)
    assert lw.sum(lw.asarray(2.0), axis=np.int64(0)).shape == ()


def test_arrays_are_copied_and_pickled_as_values() -> None:
    """copy, deepcopy and pickle give the values; a copy that changes leaves the first alone."""
    y = X + 1
    for z in (copy.copy(y), copy.deepcopy(y), pickle.loads(pickle.dumps(y))):
        z[0, 0] = 9
        np.testing.assert_array_equal(np.asarray(z)[0], [9, 2, 3, 4])
        assert z.device == y.device
    assert float(y[0, 0]) == 1


def test_formats() -> None:
    """A format is the number's where there is one element, else there is only the text."""
    assert f"{lw.sum(X):.1f}" == "66.0"
    assert f"{X}" == str(X)


def test_unsigned_positions_that_no_int64_holds() -> None:
    """They are outside the axis: they read 0, and do not count from its end."""
    at = lw.asarray(np.array([[2**64 - 1, 2]], np.uint64)) + lw.asarray(np.uint64(0))
    got = lw.take_along_axis(lw.asarray([[5, 6, 7]]), at, axis=1)
    np.testing.assert_array_equal(got, [[0, 7]])
