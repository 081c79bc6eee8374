"""Making arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.arguments import as_shape, flag, integer
from loopwright.api.dtypes import astype, broadcast_arrays, operand
from loopwright.array import Array, as_device, asarray_like, from_host, host_values
from loopwright.extents import DynamicSize
from loopwright.promotion import as_dtype, is_weak, weak_kind
from loopwright.tracing import depends_on_trace
from loopwright_core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

_DEFAULT = {bool: dt.bool_, int: dt.int64, float: dt.float64}


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Array:
    """An array of what NumPy understands: arrays, numbers, nested lists.

    Memory is shared where dtype and layout allow; `copy=True` takes a snapshot (of an Array: a
    contiguous computed copy), `copy=False` refuses where sharing is impossible.

    Raises DTypeError for complex, text and objects, ConstantRangeError for an int out of range.
    """
    wanted = None if dtype is None else as_dtype(dtype, "asarray")
    copy = None if copy is None else flag(copy, "copy", "asarray")
    if isinstance(obj, Array):
        return _from_array(obj, wanted, device, copy)
    if is_weak(obj):
        if copy is False:
            fail(ArgumentError, "a Python number has no memory to share", where="asarray")
        found = wanted or _DEFAULT[weak_kind(obj)]
        return Array(graph.constant(obj, found, "asarray"), as_device(device))
    if isinstance(obj, complex):
        as_dtype(np.complex128, "asarray")
    if isinstance(obj, np.ndarray):
        x = from_host(obj, device, copy)
    elif isinstance(obj, (list, tuple)):
        if copy is False:
            fail(ArgumentError, "a list has no memory to share", where="asarray")
        return _from_list(obj, wanted, device)
    else:
        x = asarray_like(obj, device, "asarray", copy)
    if wanted is None or wanted is x.dtype:
        return x
    if copy is False:
        fail(ArgumentError, f"{x.dtype} to {wanted} needs a copy", where="asarray")
    return astype(x, wanted)


def _from_array(x: Array, dtype: DType | None, device: str | None, copy: bool | None) -> Array:
    if dtype is not None and dtype is not x.dtype:
        if copy is False:
            fail(ArgumentError, f"{x.dtype} to {dtype} needs a copy", where="asarray")
        x = astype(x, dtype)
    if device is not None:
        x = x.to_device(device)
    if not copy:
        return x
    if depends_on_trace(x._uop):  # a value of its own, that a kernel writes
        return Array(UOp(Op.CAST, x.dtype, (x._uop,)), x._device)
    return from_host(x.numpy(), x.device, True)


def _from_list(obj: Any, dtype: DType | None, device: str | None) -> Array:
    if _holds_arrays(obj):
        from loopwright.api.manipulation import stack

        x = stack(
            [
                _from_list(v, None, device) if isinstance(v, (list, tuple)) else asarray(v)
                for v in obj
            ]
        )
        x = x if dtype is None else astype(x, dtype)
        return x if device is None else x.to_device(device)
    if dtype is not None and dtype.is_int:
        values = host_values(obj, "asarray")
        if values.dtype.kind in "iu" and values.size:
            for value in (int(values.max()), int(values.min())):
                graph.constant(value, dtype, "asarray")  # in range, or it raises
    elif dtype is dt.float64:
        try:
            return from_host(np.array(obj, np.float64), device, None)
        except (ValueError, TypeError, OverflowError):
            pass  # the general way below names the fault
    x = from_host(host_values(obj, "asarray"), device, None)
    return x if dtype is None else astype(x, dtype)


def _holds_arrays(obj: Any) -> bool:
    """Whether a nested list holds an Array: a list is walked level by level, never recursively."""
    level = [obj]
    while level:
        inner: list[Any] = []
        for one in level:
            for value in one:
                if isinstance(value, Array):
                    return True
                if isinstance(value, (list, tuple)):
                    inner.append(value)
        level = inner
    return False


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Array:
    """An array over the memory of any object that speaks DLPack.

    With a device named, an object of another device's memory is asked for a copy.
    """
    copy = None if copy is None else flag(copy, "copy", "from_dlpack")
    if isinstance(x, Array):
        x = _from_array(x, None, device, copy)
        return Array(x._uop, x.device)  # writing into it leaves the given one alone
    from loopwright.interchange import imported

    return from_host(imported(x, "from_dlpack", device is not None, copy), device, copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """An array of one value."""
    sizes = as_shape(shape, "full")
    if isinstance(fill_value, (Array, np.ndarray, np.generic)):
        value = operand("full", fill_value)
        if value.shape:
            fail(ShapeError, f"full takes one value, got shape {value.shape}", where="full")
        value = value if dtype is None else astype(value, dtype)
        return Array(
            graph.expand(value._uop, sizes), value.device if device is None else as_device(device)
        )
    if not is_weak(fill_value):
        if isinstance(fill_value, complex):
            as_dtype(np.complex128, "full")
        fail(ArgumentTypeError, f"full takes a number, got {fill_value!r}", where="full")
    found = _DEFAULT[weak_kind(fill_value)] if dtype is None else as_dtype(dtype, "full")
    node = graph.constant(fill_value, found, "full")
    return Array(graph.full(sizes, node), as_device(device))


def zeros(shape: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """An array of zeros, float64 unless told otherwise."""
    return full(shape, 0, dtype=dt.float64 if dtype is None else dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """An array of ones, float64 unless told otherwise."""
    return full(shape, 1, dtype=dt.float64 if dtype is None else dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """An array whose values do not matter: zeros, since arrays are values."""
    return zeros(shape, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: str | None = None) -> Array:
    """An array of one value with the shape, dtype and device of another."""
    x = operand("full_like", x)
    found = x.dtype if dtype is None else dtype
    return full(x.shape, fill_value, dtype=found, device=x.device if device is None else device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Zeros with the shape, dtype and device of another array."""
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """Ones with the shape, dtype and device of another array."""
    return full_like(x, 1, dtype=dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: str | None = None) -> Array:
    """An array whose values do not matter: zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def _number(value: Any, where: str) -> int | float:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Array):
        value = value.item()
    if isinstance(value, DynamicSize):
        value.refuse(where)
    if not isinstance(value, (int, float)):
        fail(ArgumentTypeError, f"{value!r} is no real number", where=where)
    return value


def _affine(n: int, start: float, step: float, dtype: DType, device: str | None) -> Array:
    """start + i * step for i in 0..n-1, in the dtype's own arithmetic."""
    if dtype.is_int:
        base, stride = [_wrapped(v, dtype) for v in (start, step)]
        node = graph.iota((n,), 0, dtype)
    else:
        wide = dt.float64 if dtype is dt.float64 else dt.float32
        base, stride = graph.constant(start, wide), graph.constant(step, wide)
        node = graph.cast(graph.iota((n,), 0), wide)
    if stride.arg != 1:
        node = graph.alu(Op.MUL, node, stride)
    if base.arg != 0:
        node = graph.alu(Op.ADD, base, node)
    return Array(graph.cast(node, dtype), as_device(device))


def _wrapped(value: float, dtype: DType) -> UOp:
    number = int(value) & ((1 << dtype.bits) - 1)
    if dtype.kind == "int" and number >> (dtype.bits - 1):
        number -= 1 << dtype.bits
    return const(number, dtype)


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: str | None = None,
) -> Array:
    """The numbers from start, step apart, before stop; int64 where all three are ints."""
    first, last = (0, start) if stop is None else (start, stop)
    first, last, by = [_number(v, "arange") for v in (first, last, step)]
    for name, value in (("start", first), ("stop", last), ("step", by)):
        if not math.isfinite(value):
            fail(ArgumentError, f"{name} is {value}", where="arange", fix="give a finite number")
    if by == 0:
        fail(ArgumentError, "a step of 0 never ends", where="arange")
    is_whole = all(isinstance(v, int) for v in (first, last, by))
    found = (dt.int64 if is_whole else dt.float64) if dtype is None else as_dtype(dtype, "arange")
    if found.is_bool:
        fail(DTypeError, "bool has no ranges", where="arange", fix="use lw.full or a comparison")
    if is_whole:
        n = -((first - last) // by)
    else:
        steps = (last - first) / by
        if not math.isfinite(steps):
            fail(ShapeError, f"{first} to {last} in steps of {by} never ends", where="arange")
        n = math.ceil(steps)
    n = max(int(n), 0)
    if found.is_int and is_whole:
        for value in (first, first + by)[:n]:  # later ones wrap, as NumPy's do
            graph.constant(value, found, "arange")
        return _affine(n, first, by, found, device)
    # NumPy's steps: the difference of the first two elements as the dtype has them
    with np.errstate(all="ignore"):
        wide = found.numpy.type if found is dt.float64 else np.float32
        if found.is_int:
            return _affine(n, int(first), int(first + by) - int(first), found, device)
        a = found.numpy.type(first)
        delta = float(wide(found.numpy.type(first + by)) - wide(a))
        return _affine(n, float(a), delta, found, device)


def linspace(
    start: Any,
    stop: Any,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Array:
    """`num` numbers evenly apart from start to stop, computed in float64."""
    first, last = [float(_number(v, "linspace")) for v in (start, stop)]
    found = dt.float64 if dtype is None else as_dtype(dtype, "linspace")
    num, endpoint = integer(num, "num", "linspace"), flag(endpoint, "endpoint", "linspace")
    if num < 0:
        fail(ArgumentError, f"num={num} is negative", where="linspace")
    parts = num - 1 if endpoint else num
    step = (last - first) / parts if parts > 0 else math.nan
    x = _affine(num, first, step if parts > 0 else 0.0, dt.float64, device)
    if endpoint and num > 1:
        is_last = graph.alu(Op.CMPEQ, graph.iota((num,), 0), const(num - 1, dt.int64))
        x = Array(graph.where(is_last, const(last, dt.float64), x._uop), x.device)
    if found.is_int:
        from loopwright.api.elementwise import floor

        x = floor(x)
    return astype(x, found)


def _below(n_rows: int, n_cols: int, k: int, op: Op) -> UOp:
    """column `op` row + k, of shape (rows, columns)."""
    row = graph.iota((n_rows, n_cols), 0)
    column = graph.iota((n_rows, n_cols), 1)
    if k:
        row = graph.alu(Op.ADD, row, const(k, dt.int64))
    return graph.alu(op, column, row)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
) -> Array:
    """Ones on the k-th diagonal, zeros elsewhere."""
    rows, columns = as_shape((n_rows, n_rows if n_cols is None else n_cols), "eye")
    found = dt.float64 if dtype is None else as_dtype(dtype, "eye")
    node = graph.cast(_below(rows, columns, integer(k, "k", "eye"), Op.CMPEQ), found)
    return Array(node, as_device(device))


def _triangle(name: str, x: Any, k: int, upper: bool) -> Array:
    x = operand(name, x)
    if x.ndim < 2:
        fail(ShapeError, f"{name} takes two axes or more, got shape {x.shape}")
    k = integer(k, "k", name)
    below = _below(x.shape[-2], x.shape[-1], k if upper else k + 1, Op.CMPLT)
    below = graph.expand(below, x.shape)
    zero = const(0, x.dtype)
    node = graph.where(below, zero, x._uop) if upper else graph.where(below, x._uop, zero)
    return Array(node, x.device)


def tril(x: Any, /, *, k: int = 0) -> Array:
    """The lower triangle of the last two axes, zeros above the k-th diagonal."""
    return _triangle("tril", x, k, False)


def triu(x: Any, /, *, k: int = 0) -> Array:
    """The upper triangle of the last two axes, zeros below the k-th diagonal."""
    return _triangle("triu", x, k, True)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Array]:
    """One-dimensional coordinates as a grid of each."""
    if not isinstance(indexing, str) or indexing not in ("xy", "ij"):
        fail(ArgumentError, f"indexing={indexing!r}", where="meshgrid", fix="use 'xy' or 'ij'")
    found = [operand("meshgrid", x) for x in arrays]
    n = len(found)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[:2] = [1, 0]
    lifted = []
    for x, axis in zip(found, order, strict=True):
        if x.ndim > 1:
            fail(ShapeError, f"meshgrid takes 1-D arrays, got shape {x.shape}")
        sizes = [1] * n
        sizes[axis] = x.size
        lifted.append(Array(graph.reshape(x._uop, tuple(sizes)), x.device))
    return broadcast_arrays(*lifted)
