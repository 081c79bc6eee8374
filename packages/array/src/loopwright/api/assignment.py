"""Replacing parts of arrays: x[key] = v gives a new value."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.dtypes import astype, operand
from loopwright.api.indexing import (
    Basic,
    as_index,
    basic_key,
    check_mask,
    checked_index,
    is_array,
    is_bool,
    key_parts,
)
from loopwright.array import Array, from_host
from loopwright.promotion import is_weak, joint_device
from loopwright_core.errors import ArgumentTypeError, OutOfBoundsError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.uop import UOp, const


def put(x: Array, key: Any, value: Any) -> UOp:
    """The node of x with the part `key` replaced by `value`."""
    new = _value(x, value)
    parts = key_parts(x, key)
    if any(is_array(part) for part in parts):
        return _put_advanced(x, key if isinstance(key, tuple) else (key,), parts, new)
    basic = basic_key(x, parts)
    return _place(x, basic, new)


def _value(x: Array, value: Any) -> Array:
    if is_weak(value):
        return Array(graph.constant(value, x.dtype, "x[...] = v"), x.device)
    new = astype(operand("x[...] = v", value), x.dtype)
    joint_device("x[...] = v", (x, new))
    return new


def _fit(new: Array, shape: tuple[int, ...]) -> UOp:
    """The value broadcast to the part's shape; NumPy drops leading axes of size 1."""
    node, sizes = new._uop, new.shape
    while len(sizes) > len(shape) and sizes[0] == 1:
        sizes = sizes[1:]
    fits = len(sizes) <= len(shape) and all(
        n in (1, m) for n, m in zip(sizes[::-1], shape[::-1], strict=False)
    )
    if not fits:
        fail(
            ShapeError,
            f"a value of shape {new.shape} does not broadcast to the part of shape {shape}",
            where="x[...] = v",
            fix="make its sizes equal to the part's, or 1",
        )
    return graph.expand(graph.reshape(node, sizes), shape)


def _place(x: Array, basic: Basic, new: Array) -> UOp:
    """where(the part, the value moved to its place, x)."""
    node = _fit(new, basic.shape)
    spans = basic.spans
    part = tuple([s.n for s in spans])
    if 0 in part:
        return x._uop
    node = graph.reshape(node, part)
    node = graph.flip(node, [a for a, s in enumerate(spans) if s.step < 0])
    if part == x.shape:
        return node
    inside = graph.full(part, const(True, dt.bool_))
    zero = const(0, x.dtype)
    widths = []
    for axis, s in enumerate(spans):
        first = s.start if s.step > 0 else s.start + (s.n - 1) * s.step
        step = abs(s.step)
        node = graph.dilate(node, axis, step, zero)
        if step > 1 and s.n > 1:
            inside = graph.dilate(inside, axis, step, const(False, dt.bool_))
        widths.append((first, x.shape[axis] - first - ((s.n - 1) * step + 1)))
    inside = graph.pad(inside, widths, const(False, dt.bool_))
    return graph.where(inside, graph.pad(node, widths, zero), x._uop)


def _put_advanced(x: Array, key: tuple[Any, ...], parts: list[Any], new: Array) -> UOp:
    """One mask alone is a where; anything else is done by NumPy on the host."""
    masks = [p for p in parts if is_array(p)]
    plain = all(p == slice(None) for p in parts if not is_array(p))
    if len(masks) == 1 and plain and is_bool(masks[0]) and is_array(parts[0]):
        mask = as_index(masks[0])
        rest = x.shape[mask.ndim :]
        check_mask(mask, x, x.shape[: mask.ndim])
        sizes = new.shape
        if len(sizes) == len(rest) + 1 and sizes[0] == 1:
            sizes = sizes[1:]
        if len(sizes) <= len(rest):
            value = _fit(Array(graph.reshape(new._uop, sizes), x.device), rest)
            lifted = graph.reshape(mask._uop, (*mask.shape, *[1] * len(rest)))
            return graph.where(graph.expand(lifted, x.shape), graph.expand(value, x.shape), x._uop)
    copy = x.numpy().copy()
    is_lined_up = not any(part is None for part in parts)
    for axis, part in enumerate(parts):
        if isinstance(part, (list, np.ndarray)) and not is_bool(part) and is_lined_up:
            checked_index(part, x.shape[axis], axis)
    # not `parts`: to NumPy an ellipsis parts arrays even where it stands for no axis
    host = tuple([p.numpy() if isinstance(p, Array) else p for p in key])
    try:
        copy[host] = new.numpy()
    except IndexError as error:
        fail(OutOfBoundsError, str(error), where="x[...] = v")
    except ValueError as error:
        fail(ShapeError, str(error), where="x[...] = v")
    except TypeError as error:
        fail(ArgumentTypeError, str(error), where="x[...] = v")
    return from_host(copy, x.device, False)._uop
