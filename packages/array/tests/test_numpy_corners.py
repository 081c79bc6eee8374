"""Corners of NumPy's rules: weak numbers, zeros' signs, ellipses, empty axes, kinds of errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import (
    ArgumentTypeError,
    AxisError,
    ConstantRangeError,
    ShapeError,
)


def same(got: lw.Array, want: Any) -> None:
    """Equal shape, dtype, values and signs of zeros, compiled."""
    mine, theirs = got.numpy(), np.asarray(want)
    assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_array_equal(mine, theirs)
    if mine.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))


@pytest.mark.parametrize("name", ["atan2", "copysign", "hypot", "logaddexp", "nextafter"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "float32"])
def test_float_functions_of_integers_and_numbers(name: str, dtype: str) -> None:
    """A Python number meets the integers before both become floats, on either side."""
    x = np.ones(3, dtype)
    for number in (True, 2, 0.5):
        for pair in ((x, number), (number, x)):
            ours = [lw.asarray(v) if v is x else v for v in pair]
            assert getattr(lw, name)(*ours).dtype == getattr(np, name)(*pair).dtype, pair


@pytest.mark.parametrize("schedule", ["heuristic", "none"])
@pytest.mark.parametrize("dtype", ["int32", "uint64", "bool"])
def test_zero_minus_an_integer_is_a_positive_zero(dtype: str, schedule: str) -> None:
    """Also where the C compiler sees that a converted integer is never -0.0."""
    x = np.array([0, 1, 0], dtype)
    y = lw.asarray(x)
    with lw.options(schedule=schedule):
        for number in (0.0, -0.0):
            same(number - y, number - x)
        same(-(y * 1.0) + 0.0, -(x * 1.0) + 0.0)
        one_axis = -(y * 1.0)[:, None]
        same(lw.sum(one_axis, axis=1), np.sum(-(x * 1.0)[:, None], axis=1))


@pytest.mark.parametrize("schedule", ["heuristic", "none"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_sums_of_negative_zeros(n: int, dtype: str, schedule: str) -> None:
    """A sum is 0.0, of one element too; a running sum starts with its first element."""
    x = np.full((3, n), -0.0, dtype)
    y = lw.asarray(x)
    with lw.options(schedule=schedule):
        for axis in (0, 1):
            same(lw.sum(y, axis=axis), np.sum(x, axis=axis))
            same(lw.cumulative_sum(y, axis=axis), np.cumulative_sum(x, axis=axis))


def test_an_ellipsis_parts_index_arrays() -> None:
    """Even one that stands for no axis: the picked axes come first, read or written."""
    x = np.arange(2.0 * 3 * 4).reshape(2, 3, 4)
    i, j = np.array([[2], [0]]), np.array([1, 3])
    for key in ((slice(None), i, ..., j), (slice(None), i, j, ...), (..., i, j), (0, ..., j)):
        same(lw.asarray(x)[key], x[key])
        values = np.arange(float(x[key].size)).reshape(x[key].shape)
        want, got = x.copy(), lw.asarray(x, copy=True)
        want[key] = values
        got[key] = values
        same(got, want)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes_of_an_empty_axis(name: str) -> None:
    """Refused even where there is no result to give."""
    for shape, axis in (((0, 0), 0), ((1, 0, 0), -1)):
        with pytest.raises(ShapeError):
            getattr(lw, name)(lw.zeros(shape), axis=axis)
    assert getattr(lw, name)(lw.zeros((2, 0)), axis=0).shape == (0,)


def test_clip_promotes_all_three() -> None:
    """A Python int that limits nothing may be out of range; the dtype is that of all operands."""
    x = np.array([0, 7, 255], np.uint8)
    other = np.array([1, 2, 3], np.uint32)
    for low, high in ((-1, 5), (-1, 300), (None, 300), (-1, None), (256, other), (-1, 2.5)):
        same(lw.clip(lw.asarray(x), low, high), np.clip(x, low, high))
    for low, high in ((300, 400), (-5, -2)):
        with pytest.raises(ConstantRangeError):
            lw.clip(lw.asarray(x), low, high)


def test_divmod_of_a_number_and_an_array() -> None:
    """A Python number may stand first."""
    x = np.array([1, 2, -3], np.int16)
    for got, want in zip(divmod(7, lw.asarray(x)), divmod(7, x), strict=True):
        same(got, want)


def test_bool_in_functions_of_numbers() -> None:
    """round gives float16, bincount counts."""
    x = np.array([True, False, True])
    same(lw.round(lw.asarray(x)), np.round(x))
    same(lw.bincount(lw.asarray(x)), np.bincount(x))


def test_kinds_of_errors() -> None:
    """As NumPy's: conversions of several elements, missing axes, ranges out of range."""
    for convert in (int, float, complex):
        with pytest.raises(ArgumentTypeError):
            convert(lw.zeros(2))
    for name in ("mean", "std", "var"):
        with pytest.raises(AxisError):
            getattr(lw, name)(lw.asarray(1.0), axis=0)
    for start, stop, dtype in ((-1, 5, "uint8"), (250, 300, "int8"), (127, 130, "int8")):
        with pytest.raises(ConstantRangeError):
            lw.arange(start, stop, dtype=dtype)
    assert (
        lw.arange(250, 300, dtype=lw.uint8).numpy().tolist()
        == np.arange(250, 300, dtype="uint8").tolist()
    )
