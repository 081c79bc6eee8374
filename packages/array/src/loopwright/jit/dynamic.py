"""`dynamic=` of `lw.jit`: which axes of arguments are Variables, and their values in a call."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from loopwright.jit.kind import Kind
from loopwright_core.errors import ArgumentError, ArgumentTypeError, AxisError, ShapeError, fail
from loopwright_core.ir.uop import Variable

# By parameter: the Variable of each axis, as the user numbered it.
Dynamic: TypeAlias = dict[str, dict[int, Variable]]


def checked(given: Any, names: tuple[str, ...], static: tuple[str, ...]) -> Dynamic:
    """What `dynamic=` says. Raises ArgumentError and ArgumentTypeError."""
    if not isinstance(given, Mapping):
        _refuse(given)
    found: Dynamic = {}
    known: dict[str, Variable] = {}
    for name, axes in given.items():
        if name not in names:
            fail(
                ArgumentError,
                f"there is no parameter {name!r}",
                where="dynamic=",
                fix=f"name one of {', '.join(names)}",
            )
        if name in static:
            fail(ArgumentError, f"{name} cannot be static and have dynamic axes", where="dynamic=")
        if not isinstance(axes, Mapping):
            _refuse(axes)
        own = found[name] = {}
        for axis, variable in axes.items():
            if not isinstance(variable, Variable):
                _refuse(variable)
            _check(variable, known)
            try:
                own[operator.index(axis)] = variable
            except TypeError:
                _refuse(axis)
    return found


def _refuse(value: object) -> None:
    fail(
        ArgumentTypeError,
        f"{value!r} does not say which axes are dynamic",
        where="dynamic=",
        fix='give parameter, axis and Variable: {"x": {0: lw.Variable("n", 1, 4096)}}',
    )


def _check(variable: Variable, known: dict[str, Variable]) -> None:
    name, lo, hi = variable.name, variable.lo, variable.hi
    if not isinstance(name, str) or not name.isidentifier():
        fail(ArgumentError, f"a Variable's name is an identifier, not {name!r}", where="dynamic=")
    if type(lo) is not int or type(hi) is not int or not 1 <= lo <= hi:
        fail(ArgumentError, f"{variable!r} has no range", where="dynamic=", fix="1 <= lo <= hi")
    if known.setdefault(name, variable) != variable:
        fail(ArgumentError, f"two Variables are named {name!r}", where="dynamic=")


def bind(kind: Kind, path: str, axes: Mapping[int, Variable], values: dict[Variable, int]) -> Kind:
    """The kind with its dynamic axes as Variables, whose values of this call are noted.

    Raises AxisError, and ShapeError for sizes out of range or in conflict.
    """
    shape: list[Any] = list(kind.shape)
    order = range(len(shape)) if kind.axes is None else kind.axes
    for axis, variable in axes.items():
        if not -len(shape) <= axis < len(shape):
            fail(AxisError, f"{path} has {len(shape)} axes, dynamic= names its axis {axis}")
        place = order[axis]
        size = kind.shape[place]
        if not variable.lo <= size <= variable.hi:
            fail(
                ShapeError,
                f"axis {axis} of {path} is {size}, and {variable.name} goes from {variable.lo} to "
                f"{variable.hi}",
                fix="give an array in that range, or the Variable a wider one",
            )
        if values.setdefault(variable, size) != size:
            fail(
                ShapeError,
                f"axis {axis} of {path} is {size}, and {variable.name} is {values[variable]} "
                "already: it is one size in all arguments of a call",
                fix="give arrays of one size, or the axes Variables of their own",
            )
        shape[place] = variable
    return replace(kind, shape=tuple(shape))
