"""dtypes of results: NumPy's promotion, with Python numbers that take the arrays' dtype."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.array import Array, asarray_like, default_device, refuse_devices
from loopwright.extents import bare, shown
from loopwright_core.errors import ArgumentTypeError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp

SMALL_FLOATS = frozenset({dt.float16, dt.bfloat16, dt.float8_e4m3fn, dt.float8_e5m2})
_WEAK_DEFAULT = {bool: dt.bool_, int: dt.int64, float: dt.float64}
_NAMES = ", ".join(d.name for d in dt.ARRAY_DTYPES)


def as_dtype(what: Any, where: str = "dtype") -> DType:
    """The DType that a DType, a NumPy dtype, a Python type or a name means.

    Raises DTypeError for what has no counterpart: complex, object, text, long double.
    """
    if isinstance(what, DType):
        if what in _ALLOWED:
            return what
        fail(DTypeError, f"{what} is no array dtype", where=where)
    if isinstance(what, str) and what in dt.BY_NAME:
        return as_dtype(dt.BY_NAME[what], where)
    try:
        if isinstance(what, Array):
            raise TypeError
        found = np.dtype(what)
    except (TypeError, ValueError):
        fail(DTypeError, f"{what!r} names no dtype", where=where, fix=f"use one of {_NAMES}")
    dtype = dt.from_numpy(found.newbyteorder("=") if found.byteorder == ">" else found)
    if dtype is None:
        if found.kind == "c":
            fail(
                DTypeError,
                f"complex numbers are not supported, got {found}",
                where=where,
                fix="keep the real and the imaginary part in two arrays",
            )
        fail(DTypeError, f"{found} is not supported", where=where, fix=f"use one of {_NAMES}")
    return dtype


_ALLOWED = frozenset(dt.ARRAY_DTYPES)


@cache
def promote(a: DType, b: DType) -> DType:
    """The dtype of a result of two arrays: NumPy's choice."""
    if a is b:
        return a
    with contextlib.suppress(TypeError):  # NumPy's way to say that it does not know the pair
        found = dt.from_numpy(np.promote_types(a.numpy, b.numpy))
        if found is not None:
            return found
    # NumPy's functions then meet in the first of their own floats that both have a place in
    if a.is_float and b.is_float:
        return dt.float32
    whole = b if a.is_float else a
    return dt.float32 if whole.bits == 16 else dt.float64


def is_weak(value: Any) -> bool:
    """A Python number: it takes the dtype of the arrays it meets."""
    return type(value) in _WEAK_DEFAULT or (
        isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)
    )


def weak_kind(value: Any) -> type:
    """bool, int or float."""
    return bool if isinstance(value, bool) else int if isinstance(value, int) else float


def weaken(dtype: DType, kind: type) -> DType:
    """The dtype of an array of `dtype` combined with a Python number of `kind`."""
    if kind is bool or dtype.is_float:
        return dtype
    if kind is int:
        return dt.int64 if dtype.is_bool else dtype
    return dt.float64


def common(name: str, operands: Sequence[Any]) -> DType:
    """The promoted dtype of arrays, dtypes and Python numbers."""
    strong: DType | None = None
    kinds = []
    for value in operands:
        if isinstance(value, (Array, DType)):
            own = value if isinstance(value, DType) else value.dtype
            strong = own if strong is None else promote(strong, own)
        else:
            kinds.append(weak_kind(value))
    for kind in (bool, int, float):
        if kind in kinds:
            strong = _WEAK_DEFAULT[kind] if strong is None else weaken(strong, kind)
    if strong is None:
        fail(ArgumentTypeError, f"{name} needs at least one operand")
    return strong


def check(name: str, operands: Sequence[Any]) -> list[Any]:
    """The operands as Arrays and Python numbers. Raises ArgumentTypeError and DTypeError."""
    device = next((x.device for x in operands if isinstance(x, Array)), None)
    out: list[Any] = []
    for value in operands:
        if isinstance(value, Array) or is_weak(value):
            out.append(value)
        elif isinstance(value, complex):
            as_dtype(np.complex128, name)
        else:
            out.append(asarray_like(value, device, name))
    return out


def joint_device(name: str, operands: Sequence[Any]) -> str:
    """The one device of the arrays. Raises DeviceError where they lie on several."""
    device: str | None = None
    for value in operands:
        if isinstance(value, Array):
            if device is None:
                device = value.device
            elif device != value.device:
                refuse_devices(name, device, value.device)
    return device or default_device()


def joint_shape(name: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The broadcast of shapes. Raises ShapeError naming the operation and all shapes."""
    shapes = [bare(s) for s in shapes]
    first = shapes[0]
    if all(s == first for s in shapes):
        return first
    n_axes = max(len(s) for s in shapes)
    out = [1] * n_axes
    for s in shapes:
        for axis, size in enumerate(s, n_axes - len(s)):
            if size != 1:
                if out[axis] not in (1, size):
                    texts = ", ".join(str(shown(s)) for s in shapes)
                    fail(
                        ShapeError,
                        f"{name}: shapes {texts} do not broadcast: axis {axis - n_axes} is "
                        f"{out[axis]} and {size}",
                        fix="make the sizes equal, or 1; lw.expand_dims adds axes of size 1",
                    )
                out[axis] = size
    return tuple(out)


def _unify_plain(
    name: str, operands: Sequence[Any], dtype: DType | None
) -> tuple[list[UOp], DType, str] | None:
    """The common case by the shortest way: one dtype, one shape, or a Python number second."""
    a, b = operands
    if type(a) is not Array:
        return None
    left = a._uop
    if type(b) is Array:
        right = b._uop
        found = left.dtype
        if right.dtype is not found or dtype not in (None, found) or a._device != b._device:
            return None
        if graph.shape(left) != graph.shape(right):
            return None
        return [left, right], found, a._device
    kind = type(b)
    if kind not in _WEAK_DEFAULT:
        return None
    found = weaken(left.dtype, kind) if dtype is None else dtype
    return [graph.cast(left, found), graph.constant(b, found, name)], found, a._device


def number(value: Any, dtype: DType, name: str) -> UOp:
    """A Python number as a node of shape (): a constant, or an input of the trace it belongs to."""
    node = graph.constant(value, dtype, name)
    if type(value) not in _WEAK_DEFAULT and hasattr(value, "operand"):
        return value.operand(node)  # type: ignore[no-any-return]
    return node


def unify(
    name: str, operands: Sequence[Any], dtype: DType | None = None
) -> tuple[list[UOp], DType, str]:
    """The operands as nodes of one shape and dtype (the promoted one unless given), their device.

    Python numbers become bare constants, those given to a traced function its inputs.
    """
    plain = _unify_plain(name, operands, dtype)
    if plain is not None:
        return plain
    operands = check(name, operands)
    if dtype is None:
        dtype = common(name, operands)
    device = joint_device(name, operands)
    sizes = joint_shape(name, [x.shape if isinstance(x, Array) else () for x in operands])
    nodes = []
    for value in operands:
        if isinstance(value, Array):
            nodes.append(graph.expand(graph.cast(value._uop, dtype), sizes))
        else:
            node = number(value, dtype, name)
            nodes.append(node if node.op is Op.CONST else graph.expand(node, sizes))
    if sizes and all(not graph.shape(n) for n in nodes):
        nodes[0] = graph.full(sizes, nodes[0])
    return nodes, dtype, device


def float_dtype(dtype: DType) -> DType:
    """The dtype of a float function of it: NumPy's float16 for 8-bit integers and so on."""
    if dtype.is_float:
        return dtype
    return dt.float16 if dtype.bits == 8 else dt.float32 if dtype.bits == 16 else dt.float64


def common_float(name: str, operands: Sequence[Any]) -> DType:
    """The dtype of a float function of two operands; integers alone are made floats first.

    Python numbers meet the integers before that: NumPy's copysign of int8 and 0.5 is float64.
    """
    own = [x.dtype for x in operands if isinstance(x, Array)]
    if any(d.is_float for d in own) or len(own) < len(operands):
        return float_dtype(common(name, operands))
    return common(name, [float_dtype(d) for d in own])


def accumulator(dtype: DType) -> DType:
    """What sums and products of a dtype are kept in: float32 for the small floats."""
    return dt.float32 if dtype in SMALL_FLOATS else dtype


def widened_sum(dtype: DType) -> DType:
    """The default dtype of sum, prod and cumulative_sum: integers widen to 64 bits."""
    if dtype.is_bool or dtype.kind == "int":
        return dt.int64
    return dt.uint64 if dtype.kind == "uint" else dtype
