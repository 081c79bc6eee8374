"""Data types: conversion, promotion, limits, kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from loopwright import graph
from loopwright.api.arguments import as_shape
from loopwright.array import Array
from loopwright.promotion import as_dtype, check, common, joint_device, joint_shape
from loopwright_core.errors import ArgumentError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType

_KINDS: dict[str, frozenset[DType]] = {
    "bool": frozenset({dt.bool_}),
    "signed integer": frozenset(d for d in dt.INTS if d.kind == "int"),
    "unsigned integer": frozenset(d for d in dt.INTS if d.kind == "uint"),
    "integral": frozenset(dt.INTS),
    "real floating": frozenset(dt.FLOATS),
    "complex floating": frozenset(),
    "numeric": frozenset({*dt.INTS, *dt.FLOATS}),
}


def operand(name: str, x: Any) -> Array:
    """One argument as an Array."""
    found: Array | bool | int | float = check(name, (x,))[0]
    if isinstance(found, Array):
        return found
    return Array(graph.constant(found, common(name, (found,)), name), joint_device(name, ()))


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Array:
    """The elements as another dtype.

    Integers wrap; floats truncate, saturate and turn NaN into 0 on the way to integers; anything
    but zero is True.
    """
    own, wanted = operand("astype", x), as_dtype(dtype, "astype")
    if wanted is own.dtype and not copy and device in (None, own.device):
        return own
    out = Array(graph.cast(own._uop, wanted), own.device)
    return out if device is None else out.to_device(device)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The promoted dtype of arrays, dtypes and Python numbers."""
    found: list[Any] = []
    for value in arrays_and_dtypes:
        if isinstance(value, (str, type, np.dtype, DType)):
            found.append(as_dtype(value, "result_type"))
        else:
            found.extend(check("result_type", (value,)))
    return common("result_type", found)


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether every value of one dtype (or array) has a place in the other."""
    return bool(np.can_cast(_dtype_of(from_, "can_cast").numpy, as_dtype(to, "can_cast").numpy))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind: a dtype, a kind's name, or a tuple of those."""
    found = as_dtype(dtype, "isdtype")
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            if found in _KINDS[one]:
                return True
        elif isinstance(one, str) and one not in dt.BY_NAME:
            names = ", ".join(map(repr, _KINDS))
            fail(ArgumentError, f"{one!r} is no kind of dtype", where="isdtype", fix=f"use {names}")
        elif as_dtype(one, "isdtype") is found:
            return True
    return False


@dataclass(frozen=True)
class FloatInfo:
    """Limits of a float dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntInfo:
    """Limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(what: Any, where: str) -> DType:
    if isinstance(what, Array):
        return what.dtype
    return as_dtype(what.dtype if isinstance(what, (np.ndarray, np.generic)) else what, where)


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a float dtype or of a float array's dtype."""
    dtype = _dtype_of(type, "finfo")
    if not dtype.is_float:
        fail(DTypeError, f"{dtype} is no float dtype", where="finfo", fix="use lw.iinfo")
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]  # it has no types
    return FloatInfo(
        dtype.bits,
        float(info.eps),
        float(info.max),
        float(info.min),
        float(info.smallest_normal),
        dtype,
    )


def iinfo(type: Any, /) -> IntInfo:
    """The limits of an integer dtype or of an integer array's dtype."""
    dtype = _dtype_of(type, "iinfo")
    if not dtype.is_int:
        fail(DTypeError, f"{dtype} is no integer dtype", where="iinfo", fix="use lw.finfo")
    return IntInfo(dtype.bits, int(dtype.max), int(dtype.min), dtype)


def broadcast_to(x: Any, /, shape: tuple[int, ...]) -> Array:
    """The array repeated to a shape, without a copy."""
    x = operand("broadcast_to", x)
    sizes = as_shape(shape, "broadcast_to")
    if joint_shape("broadcast_to", [x.shape, sizes]) != sizes:
        fail(
            ShapeError,
            f"shape {x.shape} does not broadcast to {sizes}",
            where="broadcast_to",
            fix="sizes must be equal or 1, aligned at the last axis",
        )
    return Array(graph.expand(x._uop, sizes), x.device)


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """All arrays repeated to their common shape."""
    found = [operand("broadcast_arrays", x) for x in arrays]
    if not found:
        return []
    sizes = joint_shape("broadcast_arrays", [x.shape for x in found])
    return [broadcast_to(x, sizes) for x in found]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of several shapes."""
    found = [as_shape(s, "broadcast_shapes") for s in shapes]
    return joint_shape("broadcast_shapes", found) if found else ()
