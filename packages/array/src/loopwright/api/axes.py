"""Axis arguments: checked, made non-negative."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from loopwright_core.errors import ArgumentError, ArgumentTypeError, AxisError, fail


def one_axis(axis: Any, n_axes: int, where: str) -> int:
    """The axis as 0 .. n_axes-1. Raises AxisError where the array has no such axis."""
    try:
        found = operator.index(axis)
    except TypeError:
        fail(ArgumentTypeError, f"an axis is an int, got {axis!r}", where=where)
    if not -n_axes <= found < n_axes:
        if n_axes == 0:
            fail(AxisError, f"axis {found} of a 0-d array", where=where, fix="it has no axes")
        fail(
            AxisError,
            f"axis {found} is out of bounds",
            where=where,
            fix=f"the array has {n_axes} axes: {-n_axes} to {n_axes - 1}",
        )
    return found % n_axes


def many_axes(axis: Any, n_axes: int, where: str) -> tuple[int, ...]:
    """None (all), an int or several as distinct non-negative axes, in the order given."""
    if axis is None:
        return tuple(range(n_axes))
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple([one_axis(a, n_axes, where) for a in given])
    if len(set(axes)) != len(axes):
        fail(ArgumentError, f"axis {axis} names an axis twice", where=where)
    return axes


def reduced_axes(axis: Any, n_axes: int, where: str) -> tuple[int, ...]:
    """As `many_axes`; a 0-d array has axis 0 here, as NumPy's reductions see it."""
    if n_axes == 0 and isinstance(axis, (int, np.integer)) and axis in (0, -1):
        return ()
    return many_axes(axis, n_axes, where)
