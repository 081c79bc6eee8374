"""Arguments that are plain numbers or flags, checked where the user gives them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from loopwright.extents import DynamicSize
from loopwright_core.errors import ArgumentTypeError, ShapeError, fail


def integer(value: Any, name: str, where: str) -> int:
    """An int, a NumPy integer or a 0-d integer array. Raises ArgumentTypeError for all else."""
    try:
        return operator.index(value)
    except TypeError:
        fail(ArgumentTypeError, f"{name} is an int, got {value!r}", where=where)


def integers(value: Any, name: str, where: str) -> tuple[int, ...]:
    """One int or a sequence of ints. Raises ArgumentTypeError."""
    if isinstance(value, (int, np.integer)):
        return (int(value),)
    if type(value) is DynamicSize:
        return (value,)  # type: ignore[return-value]  # which refuses what needs an int
    try:
        sizes: list[Any] = [n if type(n) is DynamicSize else operator.index(n) for n in value]
        return tuple(sizes)
    except TypeError:
        fail(ArgumentTypeError, f"{name} is an int or several, got {value!r}", where=where)


def as_shape(shape: Any, where: str) -> tuple[int, ...]:
    """A shape given as an int or a sequence of ints. Raises ShapeError for negative sizes."""
    sizes = integers(shape, "a shape", where)
    if any(n < 0 for n in sizes):
        fail(ShapeError, f"shape {sizes} has a negative size", where=where)
    return sizes


def number(value: Any, name: str, where: str) -> float:
    """A real number; NumPy scalars and 0-d arrays too. Raises ArgumentTypeError."""
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, (str, bytes, np.generic)) or isinstance(value, np.number):
        try:
            if getattr(value, "shape", ()) == () and not isinstance(value, np.complexfloating):
                return float(value)
        except (TypeError, ValueError):
            pass
    fail(ArgumentTypeError, f"{name} is a number, got {value!r}", where=where)


def flag(value: Any, name: str, where: str) -> bool:
    """True or False. Raises ArgumentTypeError."""
    if isinstance(value, (bool, int, np.bool_)):
        return bool(value)
    fail(ArgumentTypeError, f"{name} is True or False, got {value!r}", where=where)
