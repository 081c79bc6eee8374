"""Patterns of arguments: containers of known kinds, arrays in known places, known values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopwright.array import Array

# Appends the arrays of a value like the one it was made of, in order; False for another value.
Pattern = Callable[[Any, list[Any]], bool]

_VALUES = (int, str, bool, type(None))


def pattern_of(value: Any) -> Pattern | None:
    """What is true of values that differ from this one in their arrays only; None where only a
    closer look tells. An array is one of NumPy's, or a Loopwright array, as it is here."""
    kind = type(value)
    if kind is np.ndarray or kind is Array:

        def array(found: Any, arrays: list[Any]) -> bool:
            arrays.append(found)
            return type(found) is kind

        return array
    if kind in _VALUES or (kind is float and value == value and value != 0):
        return lambda found, arrays: type(found) is kind and found == value
    if kind is tuple or kind is list:
        return _sequence(kind, value)
    if kind is dict and all(type(key) is str for key in value):
        keys, inner = tuple(value), _sequence(tuple, tuple(value.values()))
        if inner is None:
            return None
        return lambda found, arrays: (
            type(found) is dict and tuple(found) == keys and inner(tuple(found.values()), arrays)
        )
    return None


def _sequence(kind: type, values: Sequence[Any]) -> Pattern | None:
    parts = [pattern_of(value) for value in values]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    n = len(known)

    def sequence(found: Any, arrays: list[Any]) -> bool:
        if type(found) not in kinds or len(found) != n:
            return False
        for place, part in enumerate(known):  # noqa: SIM110  # all() of a generator takes longer
            if not part(found[place], arrays):
                return False
        return True

    kinds = (kind,)  # mypy takes `is not kind` for the end of what is known of `found`
    return sequence


def builder_of(value: Any) -> Callable[[tuple[Any, ...]], Any] | None:
    """Makes containers like this one, where np.bool_ stands for each array, of as many arrays; None
    for any but the plainest."""
    kind = type(value)
    if kind is np.bool_:
        return lambda arrays: arrays[0]
    parts = tuple(value.values()) if kind is dict else value
    if kind not in (tuple, list, dict) or any(type(part) is not np.bool_ for part in parts):
        return None
    if kind is dict:
        keys = tuple(value)
        return lambda arrays: dict(zip(keys, arrays, strict=True))
    return list if kind is list else lambda arrays: arrays
