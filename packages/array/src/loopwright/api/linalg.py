"""Products of matrices and vectors: reductions of a product, nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.axes import many_axes, one_axis
from loopwright.api.dtypes import operand
from loopwright.array import Array
from loopwright.promotion import accumulator, check, common, joint_device, joint_shape
from loopwright_core.errors import ArgumentTypeError, ShapeError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp


def _pair(name: str, x1: Any, x2: Any) -> tuple[Array, Array, DType, str]:
    a, b = [operand(name, x) for x in check(name, (x1, x2))]
    dtype = common(name, (a, b))
    return a, b, dtype, joint_device(name, (a, b))


def sum_of_products(a: UOp, b: UOp, axes: Sequence[int], dtype: DType) -> UOp:
    """The reduction of a product; small floats are widened before it and rounded once after it."""
    if dtype.is_bool:
        a, b = graph.cast(a, dtype), graph.cast(b, dtype)
        return graph.reduce("or", axes, graph.alu(Op.AND, a, b))
    wide = accumulator(dtype)
    a, b = [graph.cast(graph.cast(x, dtype), wide) for x in (a, b)]
    return graph.cast(graph.reduce("add", axes, graph.alu(Op.MUL, a, b)), dtype)


def matmul(x1: Any, x2: Any, /) -> Array:
    """Matrix product over the last two axes, the ones before broadcast; 1-D operands are vectors.

    Integers keep the promoted dtype and wrap; float16, bfloat16 and float8 are summed in float32.
    """
    a, b, dtype, device = _pair("matmul", x1, x2)
    if not a.ndim or not b.ndim:
        fail(ShapeError, f"matmul of shapes {a.shape} and {b.shape}", fix="use * for numbers")
    left = a._uop if a.ndim > 1 else graph.reshape(a._uop, (1, *a.shape))
    right = b._uop if b.ndim > 1 else graph.reshape(b._uop, (*b.shape, 1))
    *batch1, n_rows, inner = graph.shape(left)
    *batch2, inner2, n_columns = graph.shape(right)
    if inner != inner2:
        fail(
            ShapeError,
            f"matmul: {a.shape} @ {b.shape}: the last axis of the first is {inner}, "
            f"the {'last but one' if b.ndim > 1 else 'only'} of the second is {inner2}",
            fix="these two must be equal; x.mT exchanges the last two axes",
        )
    batch = joint_shape("matmul", [tuple(batch1), tuple(batch2)])
    sizes = (*batch, n_rows, n_columns, inner)
    left = graph.reshape(left, (*batch1, n_rows, 1, inner))
    n = len(batch2)
    right = graph.permute(right, (*range(n), n + 1, n))
    right = graph.reshape(right, (*batch2, 1, n_columns, inner))
    node = sum_of_products(
        graph.expand(left, sizes), graph.expand(right, sizes), (len(sizes) - 1,), dtype
    )
    final = [*batch]
    if a.ndim > 1:
        final.append(n_rows)
    if b.ndim > 1:
        final.append(n_columns)
    return Array(graph.reshape(node, tuple(final)), device)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The sum of products along an axis, the others broadcast."""
    a, b, dtype, device = _pair("vecdot", x1, x2)
    place = one_axis(axis, min(a.ndim, b.ndim), "vecdot") - min(a.ndim, b.ndim)
    if a.shape[place] != b.shape[place]:
        fail(
            ShapeError,
            f"vecdot: axis {axis} of shapes {a.shape} and {b.shape} differs in size",
            fix="make them equal",
        )
    sizes = joint_shape("vecdot", [a.shape, b.shape])
    left, right = graph.expand(a._uop, sizes), graph.expand(b._uop, sizes)
    return Array(sum_of_products(left, right, (len(sizes) + place,), dtype), device)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array:
    """Products summed over pairs of axes: a count (last of x1, first of x2) or two lists."""
    a, b, dtype, device = _pair("tensordot", x1, x2)
    if isinstance(axes, (int, np.integer)):
        axes = int(axes)
        if not 0 <= axes <= min(a.ndim, b.ndim):
            fail(ShapeError, f"tensordot over {axes} axes of shapes {a.shape} and {b.shape}")
        first, second = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    elif not isinstance(axes, (tuple, list)) or len(axes) != 2:
        fail(
            ArgumentTypeError,
            f"axes is a count or a pair, got {axes!r}",
            where="tensordot",
            fix="give how many axes, or (axes of the first, axes of the second)",
        )
    else:
        first = many_axes(axes[0], a.ndim, "tensordot")
        second = many_axes(axes[1], b.ndim, "tensordot")
    if [a.shape[i] for i in first] != [b.shape[i] for i in second]:
        fail(
            ShapeError,
            f"tensordot: axes {first} of shape {a.shape} and {second} of shape {b.shape} differ",
            fix="paired axes must have equal sizes",
        )
    free1 = [i for i in range(a.ndim) if i not in first]
    free2 = [i for i in range(b.ndim) if i not in second]
    left = graph.permute(a._uop, (*free1, *first))
    right = graph.permute(b._uop, (*free2, *second))
    outer1, outer2 = [a.shape[i] for i in free1], [b.shape[i] for i in free2]
    inner = [a.shape[i] for i in first]
    sizes = (*outer1, *outer2, *inner)
    left = graph.reshape(left, (*outer1, *[1] * len(outer2), *inner))
    n_outer = len(outer1) + len(outer2)
    node = sum_of_products(
        graph.expand(left, sizes),
        graph.expand(right, sizes),
        range(n_outer, n_outer + len(inner)),
        dtype,
    )
    return Array(node, device)


def matrix_transpose(x: Any, /) -> Array:
    """The last two axes exchanged."""
    x = operand("matrix_transpose", x)
    if x.ndim < 2:
        fail(ShapeError, f"matrix_transpose of shape {x.shape}", fix="it needs two axes")
    n = x.ndim
    return Array(graph.permute(x._uop, (*range(n - 2), n - 1, n - 2)), x.device)
