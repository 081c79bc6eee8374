"""Products of matrices and vectors, and diagonals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.arguments import integer
from loopwright.api.axes import many_axes, one_axis
from loopwright.api.dtypes import operand
from loopwright.api.elementwise import multiply, subtract
from loopwright.api.manipulation import expand_dims, moveaxis, stack, unstack
from loopwright.api.statistical import sum as sum_
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


def outer(x1: Any, x2: Any, /) -> Array:
    """Every element of one vector times every element of another."""
    a, b = [operand("outer", x) for x in check("outer", (x1, x2))]
    if a.ndim != 1 or b.ndim != 1:
        fail(
            ShapeError,
            f"outer of shapes {a.shape} and {b.shape}",
            fix="it takes two vectors; lw.tensordot(a, b, axes=0) takes all shapes",
        )
    return multiply(expand_dims(a, axis=1), b)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three along an axis, the other axes broadcast."""
    a, b = [operand("cross", x) for x in check("cross", (x1, x2))]
    n_axes = min(a.ndim, b.ndim)
    place = one_axis(axis, n_axes, "cross") - n_axes
    if a.shape[place] != 3 or b.shape[place] != 3:
        fail(
            ShapeError,
            f"cross: axis {axis} of shapes {a.shape} and {b.shape} is {a.shape[place]} and "
            f"{b.shape[place]}",
            fix="both must be 3",
        )
    a1, a2, a3 = unstack(a, axis=place)
    b1, b2, b3 = unstack(b, axis=place)
    terms = ((a2, b3, a3, b2), (a3, b1, a1, b3), (a1, b2, a2, b1))
    parts = [subtract(multiply(p, q), multiply(r, s)) for p, q, r, s in terms]
    return moveaxis(stack(parts), 0, place)


def diagonal_node(node: UOp, offset: int) -> UOp:
    """The diagonal of the last two axes as one last axis, `offset` places to the right."""
    *outer_sizes, n_rows, n_columns = graph.shape(node)
    row, column = max(-offset, 0), max(offset, 0)
    n = max(min(n_rows - row, n_columns - column), 0)
    line = graph.reshape(node, (*outer_sizes, n_rows * n_columns))
    start = row * n_columns + column if n else 0
    spans = [*[(0, size, 1) for size in outer_sizes], (start, n, n_columns + 1)]
    return graph.shrink(line, spans)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """The diagonal of the last two axes; offset > 0 above it, < 0 below it."""
    x = operand("diagonal", x)
    if x.ndim < 2:
        fail(ShapeError, f"diagonal of shape {x.shape}", fix="it needs two axes")
    return Array(diagonal_node(x._uop, integer(offset, "offset", "diagonal")), x.device)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of a diagonal of the last two axes; integers widen to 64 bits as in lw.sum."""
    return sum_(diagonal(x, offset=offset), axis=-1, dtype=dtype)
