"""Random array programs: the same draw runs under NumPy and under Loopwright."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

DTYPES = ("float32", "float64", "int32", "int8", "uint8", "int64", "bool", "float16")
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 13)
LARGEST = 3000  # elements: what grows beyond is dropped

Step = Callable[[Any, random.Random, Any, list[Any]], Any]


def name_of(x: Any) -> str:
    return str(x.dtype.name)


def _partner(rnd: random.Random, x: Any, values: list[Any]) -> Any:
    """Another value of the same shape and dtype, or x itself."""
    return rnd.choice([v for v in values if v.shape == x.shape and name_of(v) == name_of(x)])


def _binary(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    y = _partner(rnd, x, values)
    which = rnd.randrange(6)
    if which == 0:
        return x + y
    if which == 1:
        return x * y
    if which == 2:
        return xp.maximum(x, y)
    if which == 3:
        return x < y
    if name_of(x) == "bool":
        return x ^ y
    return x - y if which == 4 or name_of(x).startswith("float") else x // y


def _where(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    masks = [v for v in values if v.shape == x.shape and name_of(v) == "bool"]
    return xp.where(rnd.choice(masks), x, x * x) if masks else None


def _reduce(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    kinds = ["sum", "max", "min", "argmax", "argmin", "any", "all"]
    if name_of(x) in ("float32", "float64"):
        kinds.append("mean")
    reduce = getattr(xp, rnd.choice(kinds))
    return reduce(x, axis=rnd.randrange(x.ndim), keepdims=rnd.random() < 0.5)


def _slice(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    spans = []
    for n in x.shape:
        start, step = rnd.randrange(n), rnd.choice((1, 2, 3, -1, -2))
        spans.append(slice(start, None, step) if rnd.random() < 0.6 else slice(None))
    return x[tuple(spans)]


def _pad(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    widths = [(rnd.randint(0, 2), rnd.randint(0, 2)) for _ in x.shape]
    return xp.pad(x, widths, constant_values=rnd.randint(0, 1))


def _permute(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    axes = list(range(x.ndim))
    rnd.shuffle(axes)
    return xp.permute_dims(x, tuple(axes))


def _join(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    if rnd.random() < 0.5:
        return xp.stack([x, x], axis=rnd.randint(0, x.ndim))
    return xp.concat([x, x[::-1]], axis=rnd.randrange(x.ndim))


def _cast(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    return xp.astype(x, getattr(xp, rnd.choice(("float32", "int32", "int64", "float64"))))


def _scan(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    if name_of(x) not in ("int32", "int64", "float64"):
        return None
    return xp.cumulative_sum(x, axis=rnd.randrange(x.ndim))


def _product(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    if x.ndim != 2 or name_of(x) == "bool":
        return None
    return x @ xp.permute_dims(x, (1, 0))


def _reshape(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    return xp.reshape(x, (-1,) if rnd.random() < 0.5 else (1, *x.shape))


def _take(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    axis = rnd.randrange(x.ndim)
    return xp.take(x, xp.asarray([rnd.randrange(x.shape[axis]) for _ in range(3)]), axis=axis)


def _repeat(xp: Any, rnd: random.Random, x: Any, values: list[Any]) -> Any:
    return xp.broadcast_to(x, (2, *x.shape)) if x.ndim < 3 else xp.flip(x)


STEPS: tuple[Step, ...] = (
    *(_binary, _binary, _binary, _where, _reduce, _reduce, _slice, _pad, _permute, _join),
    *(_cast, _scan, _product, _reshape, _take, _repeat),
)


def inputs(seed: int) -> list[np.ndarray[Any, Any]]:
    """Two arrays of one shape, small whole numbers."""
    rnd, rng = random.Random(seed), np.random.default_rng(seed)
    shape = tuple(rnd.choice(SIZES) for _ in range(rnd.randint(1, 3)))
    found = []
    for dtype in rnd.choices(DTYPES, k=2):
        low = 0 if dtype in ("uint8", "bool") else -4
        found.append(rng.integers(low, 5, shape).astype(dtype))
    return found


def run(seed: int, xp: Any, arrays: list[Any]) -> list[Any]:
    """The last six values of a program of 4 to 14 steps."""
    rnd = random.Random(seed + 1)
    values = list(arrays)
    for _ in range(rnd.randint(4, 14)):
        x, step = rnd.choice(values), rnd.choice(STEPS)
        new = step(xp, rnd, x, values) if x.ndim else None
        if new is not None and 0 < new.size <= LARGEST:
            values.append(new)
    return values[-6:]
