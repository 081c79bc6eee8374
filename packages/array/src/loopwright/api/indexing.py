"""Reading parts of arrays: x[key], take, take_along_axis."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.axes import one_axis
from loopwright.api.dtypes import operand
from loopwright.array import Array, host_values
from loopwright.extents import DynamicSize
from loopwright.promotion import joint_device, joint_shape
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    OutOfBoundsError,
    ShapeError,
    fail,
)
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const


@dataclass(frozen=True)
class Span:
    """What a key keeps of one axis: n elements from `start`, `step` apart; step may be negative."""

    start: int
    n: int
    step: int
    is_kept: bool  # False: an integer, its axis goes away


@dataclass(frozen=True)
class Basic:
    """A key of ints, slices and new axes: a span per axis of the array, and the result's shape."""

    spans: tuple[Span, ...]
    shape: tuple[int, ...]


def is_array(part: Any) -> bool:
    """An index that is an array of its own, not an int or a slice."""
    if isinstance(part, Array):
        return True
    if isinstance(part, (np.ndarray, list)):
        return True
    return isinstance(part, (bool, np.bool_))


def key_parts(x: Array, key: Any) -> list[Any]:
    """The key as one part per axis and new axis, its ellipsis written out."""
    parts = list(key) if isinstance(key, tuple) else [key]
    n_used = 0
    for part in parts:
        if part is None or part is Ellipsis:
            continue
        n_used += as_index(part).ndim if is_bool(part) else 1
    if sum(part is Ellipsis for part in parts) > 1:
        fail(OutOfBoundsError, "an index has more than one ellipsis", fix="keep one `...`")
    if n_used > x.ndim:
        fail(
            OutOfBoundsError,
            f"{n_used} indices for an array of shape {x.shape}, {x.ndim} axes",
            fix="remove some",
        )
    fill = [slice(None)] * (x.ndim - n_used)
    place = next((i for i, part in enumerate(parts) if part is Ellipsis), None)
    if place is None:
        return parts + fill
    return parts[:place] + fill + parts[place + 1 :]


def is_bool(part: Any) -> bool:
    return is_array(part) and as_index(part).dtype.is_bool


def as_index(part: Any) -> Array:
    """An array index as an Array of integers or bool."""
    if isinstance(part, list) and not part:
        part = np.zeros(0, np.int64)
    found = operand("an index", part)
    if not (found.dtype.is_int or found.dtype.is_bool):
        fail(
            OutOfBoundsError,
            f"an index array is {found.dtype}",
            fix="indices are integers or bool; convert with lw.astype",
        )
    return found


def basic_key(x: Array, parts: list[Any]) -> Basic:
    spans: list[Span] = []
    shape: list[int] = []
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        n = x.shape[len(spans)]
        if isinstance(part, slice):
            span = _slice(part, n)
            shape.append(span.n)
        else:
            span = Span(_integer(part, n, len(spans)), 1, 1, False)
        spans.append(span)
    return Basic(tuple(spans), tuple(shape))


def _slice(part: slice, size: int) -> Span:
    n: Any = size  # or a DynamicSize
    if type(n) is DynamicSize:
        is_whole = part.start in (None, 0) and part.step in (None, 1)
        if is_whole and (part.stop is None or part.stop == n):
            return Span(0, size, 1, True)
        n.refuse(f"the slice {_text(part)}")
    try:
        start, stop, step = part.indices(n)
    except TypeError as error:
        fail(ArgumentTypeError, f"the slice {part} is none of ints: {error}", where="an index")
    except ValueError:
        fail(ArgumentError, f"the slice {part} has step 0", where="an index")
    count = len(range(start, stop, step))
    return Span(start if count else 0, count, step if count else 1, True)


def _integer(part: Any, n: Any, axis: int) -> int:
    try:
        at = operator.index(part)
    except TypeError:
        fail(
            OutOfBoundsError,
            f"{type(part).__name__} {part!r} is no index",
            fix="use ints, slices, `...`, None, or arrays of integers or bool",
        )
    if type(n) is DynamicSize:
        n.refuse(f"the index {at}")
    if not -n <= at < n:
        fail(
            OutOfBoundsError,
            f"index {at} is out of bounds for axis {axis} of size {n}",
            fix=f"use {-n} to {n - 1}" if n else "the axis is empty",
        )
    return int(at % n)


def _text(part: slice) -> str:
    ends = [("" if end is None else str(end)) for end in (part.start, part.stop, part.step)]
    return ":".join(ends[:2] if part.step is None else ends)


def _view(node: UOp, spans: tuple[Span, ...]) -> UOp:
    """FLIP and SHRINK to the spans, integers as axes of size 1."""
    old = graph.shape(node)
    node = graph.flip(node, [a for a, s in enumerate(spans) if s.step < 0])
    cuts = []
    for n, s in zip(old, spans, strict=True):
        start = n - 1 - s.start if s.step < 0 and n > 1 else s.start
        cuts.append((start, s.n, abs(s.step)))
    return graph.shrink(node, cuts)


def get(x: Array, key: Any) -> Array:
    """x[key]. Raises OutOfBoundsError where an int is outside its axis."""
    parts = key_parts(x, key)
    if any(is_array(part) for part in parts):
        return _advanced(x, parts, _are_adjacent(key))
    basic = basic_key(x, parts)
    return Array(graph.reshape(_view(x._uop, basic.spans), basic.shape), x.device)


def _advanced(x: Array, parts: list[Any], adjacent: bool) -> Array:
    """Integer arrays pick by one flat gather; bool arrays by their positions, from the host."""
    x, parts = _expand_masks(x, parts)
    basic_parts = [slice(None) if is_array(p) else p for p in parts]
    kept = get(x, tuple(basic_parts))
    # the axes of `kept` where the arrays stand; ints between arrays count as arrays in NumPy
    picks: list[Array] = []
    axes: list[int] = []
    places: list[int] = []
    axis = 0
    for place, part in enumerate(parts):
        if is_array(part):
            picks.append(checked_index(part, kept.shape[axis], axis))
            axes.append(axis)
            places.append(place)
            axis += 1
        elif part is None or isinstance(part, slice):
            axis += 1
    joint_device("an index", [x, *picks])
    return _pick(kept, axes, picks, adjacent)


def _are_adjacent(key: Any) -> bool:
    """Whether no slice or new axis stands between arrays (and ints, which NumPy counts as such).

    An ellipsis parts them even where it stands for no axis: so the key as it was written.
    """
    parts = key if isinstance(key, tuple) else (key,)
    marks = [not (part is None or part is Ellipsis or isinstance(part, slice)) for part in parts]
    first, last = marks.index(True), len(marks) - 1 - marks[::-1].index(True)
    return all(marks[first : last + 1])


def _expand_masks(x: Array, parts: list[Any]) -> tuple[Array, list[Any]]:
    """Bool arrays replaced by the positions where they hold; evaluated on the host.

    One without axes picks all or nothing of a new axis, which the array gets for it.
    """
    out: list[Any] = []
    node, axis = x._uop, 0
    for part in parts:
        if not is_bool(part):
            out.append(part)
            axis += part is not None
            continue
        mask = as_index(part)
        sizes = graph.shape(node)
        if mask.ndim == 0:
            node = graph.reshape(node, (*sizes[:axis], 1, *sizes[axis:]))
            out.append(np.zeros(int(bool(mask)), np.int64))
            axis += 1
            continue
        check_mask(mask, x, sizes[axis : axis + mask.ndim])
        out.extend(np.nonzero(mask.numpy()))
        axis += mask.ndim
    return Array(node, x.device), out


def check_mask(mask: Array, x: Array, sizes: tuple[int, ...]) -> None:
    """A mask has the sizes of the axes that it indexes. Raises OutOfBoundsError."""
    if mask.shape != sizes:
        fail(
            OutOfBoundsError,
            f"a mask of shape {mask.shape} for an array of shape {x.shape}",
            fix=f"its sizes must be {sizes}, those of the axes that it indexes",
        )


def checked_index(part: Any, n: int, axis: int, is_read: bool = True) -> Array:
    """An index array; where its values are known now, they are checked against the axis.

    Of an empty axis nothing is read; what would be written there may be dropped.
    """
    if isinstance(part, list):
        part = host_values(part, "an index") if part else np.zeros(0, np.int64)
    if isinstance(part, np.ndarray):
        values = part
        if values.size and values.dtype.kind in "iu":
            for value in (int(values.min()), int(values.max())):
                _integer(value, n, axis)
    elif isinstance(part, Array):
        single = graph.scalar(part._uop)
        if single is not None and part.size:
            _integer(single.arg, n, axis)
    found = as_index(part)
    if is_read and type(n) is int and n == 0 and 0 not in graph.shape(found._uop):
        _integer(0, n, axis)
    return found


def _pick(x: Array, axes: list[int], picks: list[Array], adjacent: bool) -> Array:
    """x at joint positions along several axes: the picked axes become the picks' joint shape."""
    try:
        sizes = joint_shape("an index", [p.shape for p in picks])
    except ShapeError as error:  # NumPy's IndexError
        raise OutOfBoundsError(str(error)) from None
    first = axes[0] if adjacent else 0
    rest = [a for a in range(x.ndim) if a not in axes]
    if len(axes) == 1:
        node = graph.gather(x._uop, picks[0]._uop, axes[0])
        if not adjacent:
            order = list(range(axes[0], axes[0] + len(sizes)))
            order += [a for a in range(len(graph.shape(node))) if a not in order]
            node = graph.permute(node, order)
        return Array(node, x.device)
    moved = graph.permute(x._uop, (*axes, *rest))
    extents = [x.shape[a] for a in axes]
    n = 1
    for extent in extents:
        n *= extent
    line = graph.reshape(moved, (n, *[x.shape[a] for a in rest]))
    node = joint_gather(line, [graph.expand(p._uop, sizes) for p in picks], extents)
    if first:
        order = [*range(len(sizes), len(sizes) + first), *range(len(sizes))]
        order += range(len(sizes) + first, len(sizes) + len(rest))
        node = graph.permute(node, order)
    return Array(node, x.device)


def joint_gather(line: UOp, indices: list[UOp], extents: list[int]) -> UOp:
    """Slices of the first axis, which is several axes in row-major order, at joint indices.

    Negative indices count from the end; where any is outside its own axis the result is 0.
    """
    zero = const(0, dt.int64)
    flat: UOp = zero
    outside: UOp = const(False, dt.bool_)
    for node, extent in zip(indices, extents, strict=True):
        n, last = const(extent, dt.int64), const(extent - 1, dt.int64)
        if node.dtype is dt.uint64:  # what no int64 holds is outside, not negative
            node = graph.alu(Op.MIN, node, const(dt.int64.max, dt.uint64))
        at = inside = graph.cast(node, dt.int64)
        if node.op is not Op.IOTA:
            at = graph.where(graph.alu(Op.CMPLT, at, zero), graph.alu(Op.ADD, at, n), at)
            # indices come from memory and could be anything: what is read is always in bounds
            inside = graph.alu(Op.MIN, graph.alu(Op.MAX, at, zero), last)
            outside = graph.alu(Op.OR, outside, graph.alu(Op.CMPNE, at, inside))
        flat = graph.alu(Op.ADD, graph.alu(Op.MUL, flat, n), inside)
    found = graph.gather(line, flat, 0)
    sizes = graph.shape(found)
    mask = graph.reshape(
        outside, (*graph.shape(flat), *[1] * (len(sizes) - len(graph.shape(flat))))
    )
    return graph.where(graph.expand(mask, sizes), const(0, found.dtype), found)


def _positions(name: str, indices: Any, x: Array, axis: int) -> Array:
    """The checked indices of `take` and its like: integers, on the array's device."""
    index = checked_index(indices, x.shape[axis], axis)
    if index.dtype.is_bool:
        fail(DTypeError, f"{name} needs integer indices, not bool", fix="index with x[mask]")
    joint_device(name, (x, index))
    return index


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array:
    """Slices of an axis at given indices; negative ones count from the end.

    Raises OutOfBoundsError for known indices outside the axis; computed ones read 0.
    """
    x = operand("take", x)
    if axis is None:
        if x.ndim != 1:
            fail(ShapeError, f"take of shape {x.shape} needs an axis", fix="give axis=")
        axis = 0
    place = one_axis(axis, x.ndim, "take")
    if isinstance(indices, (int, np.integer)):
        indices = np.asarray(indices)
    index = _positions("take", indices, x, place)
    return Array(graph.gather(x._uop, index._uop, place), x.device)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """Elements at indices along an axis, the other axes walked together and broadcast."""
    x = operand("take_along_axis", x)
    place = one_axis(axis, x.ndim, "take_along_axis")
    index = _positions("take_along_axis", indices, x, place)
    if index.ndim != x.ndim:
        fail(
            ShapeError,
            f"take_along_axis: indices of shape {index.shape} for shape {x.shape}",
            fix="both need the same number of axes",
        )
    others = [
        tuple([1 if a == place else n for a, n in enumerate(s)]) for s in (x.shape, index.shape)
    ]
    outer = joint_shape("take_along_axis", others)
    sizes = tuple([index.shape[a] if a == place else n for a, n in enumerate(outer)])
    full = tuple([x.shape[a] if a == place else n for a, n in enumerate(outer)])
    source = graph.expand(x._uop, full)
    if 0 in full or 0 in sizes:
        return Array(graph.empty(sizes, x.dtype), x.device)
    picks = [
        graph.expand(index._uop, sizes) if a == place else graph.iota(sizes, a)
        for a in range(x.ndim)
    ]
    n = 1
    for extent in full:
        n *= extent
    return Array(joint_gather(graph.reshape(source, (n,)), picks, list(full)), x.device)
