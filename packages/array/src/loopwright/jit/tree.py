"""Nested containers: their leaves in order, and the same containers around other leaves.

Containers are tuples, named tuples, lists, dicts and dataclass instances.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from typing import Any

import numpy as np

from loopwright.array import Array
from loopwright_core.errors import ArgumentTypeError, fail
from loopwright_core.ir.dtype import DType

# Values that are part of what is compiled: another value is another trace.
_VALUES = (bool, int, float, str, bytes, type(None), Enum, DType, np.dtype, type(Ellipsis))


def is_array(value: Any) -> bool:
    """Whether a leaf is an input: an array, or a NumPy scalar, which is an array of no axes."""
    return isinstance(value, (Array, np.ndarray, np.generic))


def is_container(value: Any) -> bool:
    """Whether it is looked into."""
    is_instance = dataclasses.is_dataclass(value) and not isinstance(value, type)
    return is_instance or isinstance(value, (tuple, list, dict))


def take_apart(value: Any, path: str, arrays: list[Any], paths: list[str]) -> Hashable:
    """Append the array leaves in order, and where each is (`params['w'][0]`).

    Returns what is equal for values that differ in their array leaves only. Raises
    ArgumentTypeError for a leaf that is neither an array nor a plain value.
    """
    if is_array(value):
        arrays.append(value)
        paths.append(path)
        return Array
    if isinstance(value, _VALUES):
        return token(value)
    parts = _parts(value, path)
    if parts is None:
        fail(
            ArgumentTypeError,
            f"{path} is a {type(value).__name__}, which lw.jit does not look into",
            fix="pass arrays, numbers, texts, None, or tuples, lists, dicts and dataclasses of "
            "them; name an argument in static= to pass anything that can be hashed",
        )
    try:
        inner = tuple([(name, take_apart(part, at, arrays, paths)) for name, part, at in parts])
    except RecursionError:
        what = f"{path.partition('[')[0]} contains itself, or containers at too many depths"
        fail(ArgumentTypeError, what)
    return type(value), inner


def _parts(value: Any, path: str) -> list[tuple[Hashable, Any, str]] | None:
    """The parts of a container, each with what tells it apart and where it is."""
    if isinstance(value, (tuple, list)):
        return [(i, part, f"{path}[{i}]") for i, part in enumerate(value)]
    if isinstance(value, dict):
        return [(token(k), part, f"{path}[{k!r}]") for k, part in value.items()]
    if is_container(value):
        names = [f.name for f in dataclasses.fields(value)]
        return [(name, getattr(value, name), f"{path}.{name}") for name in names]
    return None


def put_together(
    value: Any, arrays: Iterator[Any], number: Callable[[float], Any] | None = None
) -> Any:
    """The same containers around other array leaves, taken in order, and changed floats."""
    if is_array(value):
        return next(arrays)
    if isinstance(value, _VALUES):
        return number(value) if number is not None and isinstance(value, float) else value
    if isinstance(value, (tuple, list)):
        parts = [put_together(part, arrays, number) for part in value]
        if isinstance(value, tuple):
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return parts if type(value) is list else type(value)(parts)
    if isinstance(value, dict):
        changed = copy.copy(value)  # a defaultdict or an OrderedDict stays one
        changed.update({k: put_together(part, arrays, number) for k, part in value.items()})
        return changed
    changed = copy.copy(value)
    for field in dataclasses.fields(value):
        part = put_together(getattr(value, field.name), arrays, number)
        object.__setattr__(changed, field.name, part)  # frozen ones too
    return changed


def map_known_arrays(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same containers around changed array leaves; what is no container stays as it is."""
    if is_array(value):
        return change(value)
    if not is_container(value):
        return value
    arrays: list[Any] = []
    take_apart(value, "", arrays, [])
    return put_together(value, iter([change(array) for array in arrays]))


def token(value: Any) -> Hashable:
    """What a value is told apart by: 1 from True and 1.0, 0.0 from -0.0; a NaN equals itself."""
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, (tuple, frozenset)):
        kind = tuple if isinstance(value, tuple) else frozenset
        return type(value), kind([token(part) for part in value])
    return type(value), value
