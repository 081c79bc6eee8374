"""Combines on NumPy arrays: what a REDUCE or a SCAN does to the axes it walks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.alu import constant, expression
from loopwright_core.oracle.rounding import is_small

Arrays = tuple[Any, ...]
_UFUNCS: dict[str, Any] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
_BOOL_UFUNCS: dict[str, Any] = {
    "add": np.logical_or,
    "mul": np.logical_and,
    "max": np.logical_or,
    "min": np.logical_and,
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def identity(combine: str, dtypes: Sequence[DType]) -> Arrays:
    """The combine's identity as NumPy scalars."""
    return tuple(constant(n) for n in COMBINES[combine].identity(tuple(dtypes)))


@cache
def merging(combine: str, dtypes: tuple[DType, ...]) -> Callable[[Sequence[Any]], list[Any]]:
    """`merge` as a function of the values (earlier..., later...)."""
    earlier = tuple(UOp(Op.VAR, d, (), ("earlier", k)) for k, d in enumerate(dtypes))
    later = tuple(UOp(Op.VAR, d, (), ("later", k)) for k, d in enumerate(dtypes))
    return expression(COMBINES[combine].merge(earlier, later), earlier + later)


def _ufunc(combine: str, dtypes: Sequence[DType]) -> Any:
    """NumPy's own reduction, where it computes in the value's dtype."""
    dtype = dtypes[0]
    if len(dtypes) > 1 or is_small(dtype):
        return None
    return (_BOOL_UFUNCS if dtype.is_bool else _UFUNCS)[combine]


def reduce(combine: str, dtypes: Sequence[DType], values: Arrays, axes: tuple[int, ...]) -> Arrays:
    """The axes combined away. Values have one shape; order within an axis is kept."""
    shape = values[0].shape
    kept = [a for a in range(len(shape)) if a not in axes]
    if any(shape[a] == 0 for a in axes):
        start = identity(combine, dtypes)
        rest = tuple(shape[a] for a in kept)
        return tuple(np.full(rest, s, s.dtype) for s in start)
    ufunc = _ufunc(combine, dtypes)
    if ufunc is not None:
        return (np.asarray(ufunc.reduce(values[0], axis=axes, dtype=dtypes[0].numpy)),)
    merge = merging(combine, tuple(dtypes))
    rest = tuple(shape[a] for a in kept)
    parts = [v.transpose(*kept, *axes).reshape(*rest, -1) for v in values]
    while parts[0].shape[-1] > 1:
        even = parts[0].shape[-1] // 2 * 2
        joined = merge([p[..., 0:even:2] for p in parts] + [p[..., 1:even:2] for p in parts])
        parts = [
            np.concatenate([j, p[..., even:]], axis=-1) for j, p in zip(joined, parts, strict=True)
        ]
    return tuple(p[..., 0] for p in parts)


def scan(
    combine: str,
    dtypes: Sequence[DType],
    values: Arrays,
    axis: int,
    exclusive: bool,
    reverse: bool,
) -> Arrays:
    """The running combine along one axis, from the last element down where `reverse`."""
    moved = [np.moveaxis(v, axis, -1) for v in values]
    if reverse:
        moved = [m[..., ::-1] for m in moved]
    moved = _running(combine, dtypes, moved)
    if exclusive and moved[0].shape[-1]:
        start = identity(combine, dtypes)
        moved = [
            np.concatenate([np.full((*m.shape[:-1], 1), s, s.dtype), m[..., :-1]], axis=-1)
            for m, s in zip(moved, start, strict=True)
        ]
    if reverse:
        moved = [m[..., ::-1] for m in moved]
    return tuple(np.moveaxis(m, -1, axis) for m in moved)


def _running(combine: str, dtypes: Sequence[DType], values: list[Any]) -> list[Any]:
    ufunc = _ufunc(combine, dtypes)
    if ufunc is not None:
        return [ufunc.accumulate(values[0], axis=-1, dtype=dtypes[0].numpy)]
    merge = merging(combine, tuple(dtypes))
    n, step = values[0].shape[-1], 1
    while step < n:  # Hillis and Steele 1986: log n merges of whole arrays
        joined = merge([v[..., :-step] for v in values] + [v[..., step:] for v in values])
        values = [
            np.concatenate([v[..., :step], j], axis=-1) for v, j in zip(values, joined, strict=True)
        ]
        step *= 2
    return values
