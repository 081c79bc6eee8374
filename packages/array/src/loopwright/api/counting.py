"""Sums by key: scatter_add, bincount, histogram."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from loopwright import graph
from loopwright.api.arguments import integer
from loopwright.api.axes import one_axis
from loopwright.api.dtypes import astype, operand
from loopwright.api.indexing import checked_index
from loopwright.array import Array, from_host
from loopwright.promotion import SMALL_FLOATS, accumulator, is_weak, joint_device
from loopwright_core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

# So many slices are compared with every index by a kernel; more are added to on the host.
_MAX_COMPARED = 64


def scatter_add(x: Any, indices: Any, values: Any, /, *, axis: int = 0) -> Array:
    """x with values added to the slices of an axis at given indices; the opposite of `take`.

    Shapes: values broadcast to x's, with the indices' shape in place of the axis. What goes to
    one slice adds up, at x's dtype; small floats are summed in float32 and rounded once. Negative
    indices count from the end. Axes of more than 64 slices evaluate on the host.

    Raises OutOfBoundsError for known indices outside the axis; what computed ones point at
    outside is dropped.
    """
    where = "scatter_add"
    x = operand(where, x)
    if is_weak(values):
        new = Array(graph.constant(values, x.dtype, where), x.device)
    else:
        new = operand(where, values)
    place = one_axis(axis, x.ndim, where)
    index = checked_index(indices, x.shape[place], place, is_read=False)
    if index.dtype.is_bool:
        fail(DTypeError, f"{where} takes integer indices, not bool", fix="use lw.where")
    device = joint_device(where, (x, index, new))
    before, n, after = x.shape[:place], x.shape[place], x.shape[place + 1 :]
    sizes = (*before, *index.shape, *after)
    if not _fits(new.shape, sizes):
        fail(ShapeError, f"values of shape {new.shape} do not broadcast to {sizes}", where=where)
    n_added = math.prod(index.shape)
    if 0 in x.shape or not n_added:
        return Array(x._uop, device)
    lined = (*before, n_added, *after)
    wide = accumulator(x.dtype)
    added = graph.reshape(graph.expand(graph.cast(new._uop, x.dtype), sizes), lined)
    added, base = graph.cast(added, wide), graph.cast(x._uop, wide)
    line = graph.reshape(index._uop, (n_added,))
    if n > _MAX_COMPARED and _are_known(added, base, line):
        total = _on_host(Array(base, device), Array(line, device), Array(added, device), place)
    else:
        total = _compared(base, line, added, place)
    return Array(graph.cast(total, x.dtype), device)


def _are_known(*nodes: UOp) -> bool:
    from loopwright.memory import is_known  # brings in the compiler, which importing does not need

    return all(is_known(node) for node in nodes)


def _fits(shape: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    return len(shape) <= len(sizes) and all(n in (1, m) for n, m in zip(shape[::-1], sizes[::-1]))


def _on_host(base: Array, line: Array, added: Array, axis: int) -> UOp:
    """The sums in the order of the indices, by NumPy."""
    out, at, n = base.numpy().copy(), line.numpy(), base.shape[axis]
    new = added.numpy()
    is_inside = (at >= -min(n, np.iinfo(at.dtype).max)) & (at < n)
    if not is_inside.all():
        at, new = at[is_inside], np.compress(is_inside, new, axis=axis)
    key: Any = (*[slice(None)] * axis, at)
    np.add.at(out, key, new)
    return from_host(out, base.device, False)._uop


def _compared(base: UOp, line: UOp, added: UOp, axis: int) -> UOp:
    """Every slice plus the sum of those whose index is its own: a reduce over all indices."""
    shape, (n_added,) = graph.shape(base), graph.shape(line)
    n = shape[axis]
    if line.dtype is dt.uint64:  # what no int64 holds is outside, not negative
        line = graph.alu(Op.MIN, line, const(dt.int64.max, dt.uint64))
    at = graph.cast(line, dt.int64)
    wrapped = graph.alu(Op.ADD, at, const(n, dt.int64))
    at = graph.where(graph.alu(Op.CMPLT, at, const(0, dt.int64)), wrapped, at)
    sizes = (*shape, n_added)
    own = graph.alu(Op.CMPEQ, graph.expand(at, sizes), graph.iota(sizes, axis))
    lifted = graph.permute(added, [a for a in range(len(shape)) if a != axis] + [axis])
    lifted = graph.reshape(lifted, (*shape[:axis], 1, *shape[axis + 1 :], n_added))
    chosen = graph.where(own, graph.expand(lifted, sizes), const(0, base.dtype))
    is_bool = base.dtype.is_bool
    total = graph.reduce("or" if is_bool else "add", (len(shape),), chosen)
    both = graph.alu(Op.OR if is_bool else Op.ADD, base, total)
    if not base.dtype.is_float:
        return both
    # what no index points at stays as it is, -0.0 too: adding 0.0 would make it 0.0
    return graph.where(graph.alu(Op.CMPNE, total, const(0, base.dtype)), both, base)


def _values(x: Array) -> np.ndarray[Any, Any]:
    """The elements as NumPy's own functions take them."""
    return astype(x, dt.float32).numpy() if x.dtype in SMALL_FLOATS else x.numpy()


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Array:
    """How often each of 0, 1, 2, ... occurs in a line of integers or bool, or its weights' sum.

    Evaluated on the host: the result is as long as the largest element asks for.
    """
    line = operand("bincount", x)
    least = integer(minlength, "minlength", "bincount")
    if line.ndim != 1 or not (line.dtype.is_int or line.dtype.is_bool) or least < 0:
        what = f"bincount of {line.dtype} of shape {line.shape}, minlength={minlength}"
        fail(ArgumentError, what, fix="give a line of integers, and a length >= 0")
    values = line.numpy()
    if values.size and int(values.min()) < 0:
        fail(ArgumentError, f"bincount of {values.min()}", fix="every element is 0 or more")
    if values.size:
        graph.limit((int(values.max()) + 1,), dt.int64)
    own = None if weights is None else operand("bincount", weights)
    if own is not None and own.shape != line.shape:
        fail(ShapeError, f"{own.shape} weights for {line.shape} elements", where="bincount")
    found = np.bincount(values.astype(np.int64), None if own is None else _values(own), least)
    return from_host(found, line.device, False)


class Histogram(NamedTuple):
    """What histogram gives: one value per bin, and the edges, one more."""

    hist: Array
    bin_edges: Array


def histogram(
    x: Any, /, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False
) -> Histogram:
    """How many elements lie in each bin, or the sum of their weights; evaluated on the host.

    `bins`: a number of bins of one width, between the least and the greatest element or over
    `range`; or their edges, ascending. `density`: per unit of width and of the total.
    """
    values = operand("histogram", x)
    edges = (
        bins if isinstance(bins, (int, str, np.integer)) else _values(operand("histogram", bins))
    )
    own = None if weights is None else operand("histogram", weights)
    joint_device("histogram", [values] if own is None else [values, own])
    loads = None if own is None else _values(own)
    try:
        hist, found = np.histogram(_values(values), edges, range, density=density, weights=loads)
    except ValueError as error:
        fail(ArgumentError, f"histogram: {error}")
    except TypeError as error:
        fail(ArgumentTypeError, f"histogram: {error}")
    return Histogram(*[from_host(np.asarray(v), values.device, False) for v in (hist, found)])
