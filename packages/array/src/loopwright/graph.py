"""Level-1 nodes, built in their simplest form: no-ops vanish, constants stay bare, nothing empty
is computed.

Shapes hold ints and, for dynamic axes, Variables; arguments are already checked. Where a value of
a Variable would be needed, DynamicShapeError is raised.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright.extents import bare, keeps_dynamic, most, shown
from loopwright_core.errors import ConstantRangeError, DynamicShapeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, Variable, const

Shape = tuple[int, ...]

_single = struct.Struct("<f")


def shape(node: UOp) -> Shape:
    """The node's shape."""
    known = node._shape
    return shape_of(node) if known is None else known  # type: ignore[return-value]  # ints but for dynamic axes, which refuse what needs an int


def constant(value: bool | int | float, dtype: DType, where: str = "a constant") -> UOp:
    """The CONST of that dtype: rounded to a float dtype, truncated and saturated to an integer.

    Raises ConstantRangeError for an int the dtype cannot hold.
    """
    if dtype.is_float:
        try:
            number = float(value)
        except OverflowError:
            _refuse(value, dtype, where)
        if dtype is dt.float32 and -1e38 < number < 1e38:
            number = _single.unpack(_single.pack(number))[0]
        elif dtype is not dt.float64:
            with np.errstate(all="ignore"):
                number = float(dtype.numpy.type(number))
        return const(number, dtype)
    if dtype.is_bool:
        return const(value != 0, dtype)
    low, high = int(dtype.min), int(dtype.max)
    if isinstance(value, float):
        if math.isnan(value):
            return const(0, dtype)
        value = low if value <= low else high if value >= high else int(value)
    elif not low <= value <= high:
        _refuse(value, dtype, where)
    return const(int(value), dtype)


def _refuse(value: object, dtype: DType, where: str) -> None:
    fail(
        ConstantRangeError,
        f"{value} is out of range for {dtype}",
        where=where,
        fix="use a wider dtype, or wrap the number before",
    )


def scalar(node: UOp) -> UOp | None:
    """The CONST that fills the whole node, if it is one constant."""
    while node.op in (Op.EXPAND, Op.RESHAPE):
        node = node.src[0]
    return node if node.op is Op.CONST else None


MAX_AXES = 64  # NumPy's
_MAX_BYTES = 2**63 - 1


def limit(sizes: Shape, dtype: DType) -> None:
    """Raise ShapeError for what no array can be: too many axes, more bytes than can be counted."""
    if len(sizes) > MAX_AXES:
        fail(ShapeError, f"{len(sizes)} axes are too many", fix=f"an array has at most {MAX_AXES}")
    if math.prod([n for n in most(sizes) if n]) * dtype.itemsize > _MAX_BYTES:
        fail(ShapeError, f"an array of shape {sizes} is too big", fix="make its sizes smaller")


def full(sizes: Shape, node: UOp) -> UOp:
    """A node of shape () repeated over a shape."""
    sizes = bare(sizes)
    limit(sizes, node.dtype)
    if not sizes:
        return node
    return UOp(
        Op.EXPAND, node.dtype, (UOp(Op.RESHAPE, node.dtype, (node,), (1,) * len(sizes)),), sizes
    )


def empty(sizes: Shape, dtype: DType) -> UOp:
    """A node without elements: a constant, so that no kernel is made for it."""
    return full(sizes, const(0, dtype))


def alu(op: Op, *src: UOp, dtype: DType | None = None) -> UOp:
    """An elementwise op over sources of one shape; constants and shape () fit every shape."""
    if dtype is None:
        dtype = dt.bool_ if op in COMPARE else src[-1].dtype
    sizes: Shape = ()
    bare: list[UOp] = []
    for s in src:
        sizes = sizes or shape(s)
        bare.append(scalar(s) or s)
    if 0 in sizes:
        return empty(sizes, dtype)
    if sizes and all(not shape(s) for s in bare):
        return full(sizes, UOp(op, dtype, tuple(bare)))
    spread = [s if s.op is Op.CONST or shape(s) == sizes else full(sizes, s) for s in bare]
    return UOp(op, dtype, tuple(spread))


def cast(node: UOp, dtype: DType) -> UOp:
    """CAST, folded where the node is a constant that the new dtype holds exactly."""
    if node.dtype is dtype:
        return node
    value = scalar(node)
    if value is not None and (dtype.is_float or dtype.is_bool or not value.dtype.is_float):
        folded = _convert(value.arg, dtype)
        return full(shape(node), folded)
    return alu(Op.CAST, node, dtype=dtype)


def _convert(value: bool | int | float, dtype: DType) -> UOp:
    if dtype.is_int:
        mask = (1 << dtype.bits) - 1
        wrapped = int(value) & mask
        if dtype.kind == "int" and wrapped >> (dtype.bits - 1):
            wrapped -= 1 << dtype.bits
        return const(wrapped, dtype)
    return constant(value, dtype)


def bitcast(node: UOp, dtype: DType) -> UOp:
    """The same bits as another dtype of the same width."""
    return node if node.dtype is dtype else alu(Op.BITCAST, node, dtype=dtype)


def where(condition: UOp, a: UOp, b: UOp) -> UOp:
    """WHERE over one shape."""
    return alu(Op.WHERE, condition, a, b, dtype=a.dtype)


def reshape(node: UOp, sizes: Shape) -> UOp:
    """RESHAPE; a reshape of a reshape is one. Raises DynamicShapeError where it would take a
    dynamic axis apart or merge it."""
    sizes, old = bare(sizes), shape(node)
    if old == sizes:
        return node
    if not keeps_dynamic(old, sizes):
        fail(
            DynamicShapeError,
            f"a reshape from {shown(old)} to {shown(sizes)} does not keep the dynamic axes",
            fix="reshape the other axes only, or leave it out of dynamic=",
        )
    value = scalar(node)
    if value is not None:
        return full(sizes, value)
    if len(sizes) > MAX_AXES:
        limit(sizes, node.dtype)
    while node.op is Op.RESHAPE:
        node = node.src[0]
    return node if shape(node) == sizes else UOp(Op.RESHAPE, node.dtype, (node,), sizes)


def expand(node: UOp, sizes: Shape) -> UOp:
    """Broadcast to a shape, axes aligned at the end."""
    sizes, old = bare(sizes), shape(node)
    if old == sizes:
        return node
    value = scalar(node)
    if value is not None or 0 in sizes:
        return full(sizes, value if value is not None else const(0, node.dtype))
    limit(sizes, node.dtype)
    lifted = reshape(node, (1,) * (len(sizes) - len(old)) + old)
    if shape(lifted) == sizes:
        return lifted
    return UOp(Op.EXPAND, node.dtype, (lifted,), sizes)


def permute(node: UOp, axes: Sequence[int]) -> UOp:
    """PERMUTE; a permutation of a permutation is one."""
    axes = tuple(axes)
    if axes == tuple(range(len(axes))):
        return node
    value = scalar(node)
    if value is not None:
        old = shape(node)
        return full(tuple([old[a] for a in axes]), value)
    if node.op is Op.PERMUTE:
        return permute(node.src[0], tuple([node.arg[a] for a in axes]))
    return UOp(Op.PERMUTE, node.dtype, (node,), axes)


def flip(node: UOp, axes: Sequence[int]) -> UOp:
    """FLIP of the axes longer than 1."""
    old = shape(node)
    axes = tuple(sorted(a for a in axes if old[a] != 1))
    if not axes or scalar(node) is not None:
        return node
    return UOp(Op.FLIP, node.dtype, (node,), axes)


def shrink(node: UOp, spans: Sequence[tuple[int, int, int]]) -> UOp:
    """SHRINK to (start, length, step) per axis, step >= 1."""
    old = shape(node)
    arg = tuple([_span(*span, size) for span, size in zip(spans, old, strict=True)])
    if all(span == (0, size, 1) for span, size in zip(arg, old, strict=True)):
        return node
    sizes = bare([n for _, n, _ in spans])
    value = scalar(node)
    if value is not None or 0 in sizes:
        return full(sizes, value if value is not None else const(0, node.dtype))
    return UOp(Op.SHRINK, node.dtype, (node,), arg)


def _span(start: int, n: int, step: int, size: int) -> tuple[int, int, int]:
    """A SHRINK's (start, stop, step); the whole of a dynamic axis stays as it is."""
    if isinstance(size, Variable):
        if (start, n, step) == (0, size, 1):
            return 0, size, 1
        shown((size,))[0].refuse("a part of the axis")
    return start, start + (n - 1) * step + 1 if n else start, step


def pad(node: UOp, widths: Sequence[tuple[int, int]], fill: UOp) -> UOp:
    """PAD with a constant."""
    widths = tuple(widths)
    if not any(lo or hi for lo, hi in widths):
        return node
    old = shape(node)
    ends = zip(old, widths, strict=True)
    sizes = tuple([n + lo + hi if lo or hi else n for n, (lo, hi) in ends])
    if 0 in old or 0 in sizes or scalar(node) is fill:
        return full(sizes, fill)
    limit(sizes, node.dtype)
    return UOp(Op.PAD, node.dtype, (node, fill), widths)


def window(node: UOp, axis: int, size: int, stride: int = 1, dilation: int = 1) -> UOp:
    """WINDOW: the axis becomes the windows' positions, a last axis walks inside each."""
    old = shape(node)
    value = scalar(node)
    node = UOp(Op.WINDOW, node.dtype, (node,), (axis, size, stride, dilation))
    if value is not None or 0 in old:
        return full(shape(node), value if value is not None else const(0, node.dtype))
    return node


def iota(sizes: Shape, axis: int, dtype: DType = dt.int64) -> UOp:
    """The index along an axis."""
    sizes = bare(sizes)
    limit(sizes, dtype)
    return empty(sizes, dtype) if 0 in sizes else UOp(Op.IOTA, dtype, (), (sizes, axis))


def gather(node: UOp, indices: UOp, axis: int) -> UOp:
    """Slices of an axis picked by an integer node."""
    old, picked = shape(node), shape(indices)
    sizes = old[:axis] + picked + old[axis + 1 :]
    value = scalar(node)
    limit(sizes, node.dtype)
    if 0 in sizes or 0 in old:
        return empty(sizes, node.dtype)
    if value is not None and value.arg == 0:
        return full(sizes, value)
    return UOp(Op.GATHER, node.dtype, (node, indices), axis)


def reduce(combine: str, axes: Sequence[int], *values: UOp) -> UOp:
    """REDUCE over axes; of nothing it gives the combine's identity. One value per combine only."""
    axes = tuple(sorted(axes))
    old = shape(values[0])
    kept = tuple([n for a, n in enumerate(old) if a not in axes])
    row = COMBINES[combine]
    if not axes and row.n_values == 1:
        return values[0]
    if 0 in old and row.n_values == 1:
        return full(kept, row.identity((values[0].dtype,))[0])
    dtype = values[0].dtype if row.n_values == 1 else dt.void
    return UOp(Op.REDUCE, dtype, values, (combine, axes))


def scan(combine: str, axis: int, value: UOp, exclusive: bool = False) -> UOp:
    """The running combine along an axis."""
    if 0 in shape(value):
        return value
    return UOp(Op.SCAN, value.dtype, (value,), (combine, axis, exclusive, False))


def concat(nodes: Sequence[UOp], axis: int) -> UOp:
    """Arrays behind each other along an axis."""
    sizes = list(shape(nodes[0]))
    sizes[axis] = sum(shape(n)[axis] for n in nodes)
    if 0 in sizes:
        return empty(tuple(sizes), nodes[0].dtype)
    limit(tuple(sizes), nodes[0].dtype)
    parts = tuple([n for n in nodes if shape(n)[axis]])
    return parts[0] if len(parts) == 1 else UOp(Op.CONCAT, parts[0].dtype, parts, axis)


def dilate(node: UOp, axis: int, step: int, fill: UOp) -> UOp:
    """The axis' elements `step` apart, `fill` between them: n becomes (n - 1) * step + 1."""
    old = shape(node)
    n = old[axis]
    if step == 1 or n <= 1:
        return node
    split: Any = reshape(node, (*old[: axis + 1], 1, *old[axis + 1 :]))
    widths = [(0, 0)] * (len(old) + 1)
    widths[axis + 1] = (0, step - 1)
    joined = reshape(pad(split, widths, fill), (*old[:axis], n * step, *old[axis + 1 :]))
    spans = [(0, size, 1) for size in shape(joined)]
    spans[axis] = (0, (n - 1) * step + 1, 1)
    return shrink(joined, spans)
