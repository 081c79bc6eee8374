"""Moving elements around: reshape, permute, flip, join, repeat, pad, windows."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api.arguments import integer, integers
from loopwright.api.axes import many_axes, one_axis
from loopwright.api.dtypes import operand
from loopwright.array import Array, host_values
from loopwright.promotion import common, joint_device
from loopwright_core.errors import ArgumentError, ArgumentTypeError, ShapeError, fail
from loopwright_core.ir.uop import UOp


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Array:
    """The elements in row-major order under another shape; one size may be -1."""
    x = operand("reshape", x)
    sizes = resolve_shape(x.shape, shape)
    return Array(graph.reshape(x._uop, sizes), x.device)


def resolve_shape(old: tuple[int, ...], shape: Any) -> tuple[int, ...]:
    """The new shape with its -1 filled in. Raises ShapeError where the counts differ."""
    given = integers(shape, "a shape", "reshape")
    sizes = list(given)
    n = math.prod(old)
    if sizes.count(-1) == 1:
        place = sizes.index(-1)
        rest = math.prod(s for s in sizes if s != -1)
        if rest > 0 and n % rest == 0:
            sizes[place] = n // rest
    if any(s < 0 for s in sizes) or math.prod(sizes) != n:
        fail(
            ShapeError,
            f"cannot reshape {old}, {n} elements, to {given}",
            where="reshape",
            fix="the products of the sizes must be equal, with at most one -1",
        )
    return tuple(sizes)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Array:
    """The axes in another order."""
    x = operand("permute_dims", x)
    axes = integers(axes, "axes", "permute_dims")
    order = many_axes(axes, x.ndim, "permute_dims")
    if len(order) != x.ndim:
        fail(
            ArgumentError,
            f"axes {axes} do not name all {x.ndim} axes",
            where="permute_dims",
            fix="name every axis once",
        )
    return Array(graph.permute(x._uop, order), x.device)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Array:
    """Axes moved to other places, the rest kept in order."""
    x = operand("moveaxis", x)
    sources = many_axes(source, x.ndim, "moveaxis")
    places = many_axes(destination, x.ndim, "moveaxis")
    if len(sources) != len(places):
        fail(ArgumentError, "source and destination differ in length", where="moveaxis")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return Array(graph.permute(x._uop, order), x.device)


def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """New axes of size 1 at the given places of the result."""
    x = operand("expand_dims", x)
    n_new = len(axis) if isinstance(axis, (tuple, list)) else 1
    places = many_axes(axis, x.ndim + n_new, "expand_dims")
    old = iter(x.shape)
    sizes = tuple([1 if a in places else next(old) for a in range(x.ndim + n_new)])
    return Array(graph.reshape(x._uop, sizes), x.device)


def squeeze(x: Any, /, axis: Any = None) -> Array:
    """Without the given axes, which must be of size 1; None: all of size 1."""
    x = operand("squeeze", x)
    if axis is None:
        axes = tuple([a for a, n in enumerate(x.shape) if n == 1])
    else:
        axes = many_axes(axis, x.ndim, "squeeze")
    for a in axes:
        if x.shape[a] != 1:
            fail(
                ShapeError,
                f"axis {a} of shape {x.shape} has size {x.shape[a]}, not 1",
                where="squeeze",
                fix="index or reduce it",
            )
    sizes = tuple([n for a, n in enumerate(x.shape) if a not in axes])
    return Array(graph.reshape(x._uop, sizes), x.device)


def flip(x: Any, /, *, axis: Any = None) -> Array:
    """The order of elements reversed along axes, all by default."""
    x = operand("flip", x)
    return Array(graph.flip(x._uop, many_axes(axis, x.ndim, "flip")), x.device)


def _joined(name: str, arrays: Any) -> tuple[list[Array], str]:
    if isinstance(arrays, Array):
        arrays = list(arrays)
    if not isinstance(arrays, (list, tuple)) or not arrays:
        fail(ArgumentError, f"{name} needs a list of at least one array")
    found = [operand(name, x) for x in arrays]
    dtype = common(name, found)
    device = joint_device(name, found)
    return [Array(graph.cast(x._uop, dtype), device) for x in found], device


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Arrays behind each other along an axis; None: all flattened."""
    found, device = _joined("concat", arrays)
    if axis is None:
        found, axis = [reshape(x, (-1,)) for x in found], 0
    first = found[0]
    place = one_axis(axis, first.ndim, "concat")
    for x in found[1:]:
        same = x.ndim == first.ndim and all(
            a == place or n == m for a, (n, m) in enumerate(zip(x.shape, first.shape, strict=True))
        )
        if not same:
            fail(
                ShapeError,
                f"shapes {first.shape} and {x.shape} differ beside axis {place}",
                where="concat",
                fix="only the joined axis may differ in size",
            )
    return Array(graph.concat([x._uop for x in found], place), device)


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Arrays of one shape as slices along a new axis."""
    found, device = _joined("stack", arrays)
    first = found[0].shape
    place = one_axis(axis, len(first) + 1, "stack")
    sizes = (*first[:place], 1, *first[place:])
    for x in found:
        if x.shape != first:
            fail(
                ShapeError,
                f"shapes {first} and {x.shape} differ",
                where="stack",
                fix="stack takes arrays of one shape; lw.concat joins along an axis",
            )
    return Array(graph.concat([graph.reshape(x._uop, sizes) for x in found], place), device)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    x = operand("unstack", x)
    place = one_axis(axis, x.ndim, "unstack")
    key: list[Any] = [slice(None)] * place
    return tuple([x[(*key, i)] for i in range(x.shape[place])])


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Array:
    """Elements moved along axes; what leaves at one end enters at the other."""
    x = operand("roll", x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(given)
    if len(shifts) == 1:
        shifts *= len(given)
    elif len(given) == 1:  # as in NumPy: all of them along this one
        given *= len(shifts)
    if len(shifts) != len(given):
        fail(ArgumentError, f"{len(shifts)} shifts for {len(given)} axes", where="roll")
    node = x._uop
    for a, by in zip(given, shifts, strict=True):
        node = _rolled(node, one_axis(a, x.ndim, "roll"), integer(by, "a shift", "roll"))
    return Array(node, x.device)


def _rolled(node: UOp, axis: int, shift: int) -> UOp:
    """The axis twice in a row, seen through a shifted span: index (i - shift) mod n."""
    old = graph.shape(node)
    n = old[axis]
    if n == 0 or shift % n == 0:
        return node
    twice = graph.expand(
        graph.reshape(node, (*old[:axis], 1, *old[axis:])), (*old[:axis], 2, *old[axis:])
    )
    line = graph.reshape(twice, (*old[:axis], 2 * n, *old[axis + 1 :]))
    spans = [(0, size, 1) for size in old]
    spans[axis] = (n - shift % n, n, 1)
    return graph.shrink(line, spans)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element or slice repeated in place: a count, or one count per slice."""
    x = operand("repeat", x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    place = one_axis(axis, x.ndim, "repeat")
    counts = host_values(repeats, "repeat")
    n = x.shape[place]
    if counts.dtype.kind not in "iu" or (counts < 0).any() or counts.ndim > 1:
        fail(ArgumentError, f"repeats is {repeats!r}", where="repeat", fix="use counts >= 0")
    if counts.size != 1:
        if counts.size != n:
            fail(ShapeError, f"{counts.size} counts for {n} slices", where="repeat")
        from loopwright.api.indexing import take

        return take(x, np.repeat(np.arange(n), counts), axis=place)
    count = int(counts.reshape(()))
    before, after = x.shape[:place], x.shape[place + 1 :]
    lifted = graph.reshape(x._uop, (*before, n, 1, *after))
    spread = graph.expand(lifted, (*before, n, count, *after))
    return Array(graph.reshape(spread, (*before, n * count, *after)), x.device)


def tile(x: Any, repetitions: Any, /) -> Array:
    """The whole array repeated along each axis."""
    x = operand("tile", x)
    counts = list(integers(repetitions, "repetitions", "tile"))
    if any(c < 0 for c in counts):
        fail(ArgumentError, f"repetitions {repetitions} are negative", where="tile")
    n_axes = max(x.ndim, len(counts))
    counts = [1] * (n_axes - len(counts)) + counts
    sizes = (1,) * (n_axes - x.ndim) + x.shape
    lifted: list[int] = []
    spread: list[int] = []
    for n, count in zip(sizes, counts, strict=True):
        lifted += [1, n]
        spread += [count, n]
    node = graph.expand(graph.reshape(x._uop, tuple(lifted)), tuple(spread))
    final = tuple([n * c for n, c in zip(sizes, counts, strict=True)])
    return Array(graph.reshape(node, final), x.device)


def _widths(widths: Any, n_axes: int) -> list[tuple[int, int]]:
    """NumPy's forms: a number, (before, after) for all axes, ((before, after), ...)."""
    try:
        pairs = np.broadcast_to(np.asarray(widths), (n_axes, 2))
    except ValueError:
        fail(
            ShapeError,
            f"widths {widths} do not fit {n_axes} axes",
            where="pad",
            fix="give one number, one (before, after), or one pair per axis",
        )
    if pairs.dtype.kind not in "iu" and pairs.size:
        fail(ArgumentTypeError, f"widths {widths} are no ints", where="pad")
    found = [(int(lo), int(hi)) for lo, hi in pairs]
    if any(lo < 0 or hi < 0 for lo, hi in found):
        fail(ArgumentError, f"widths {widths} are negative", where="pad", fix="slice instead")
    return found


def pad(x: Any, widths: Any, mode: str = "constant", constant_values: Any = 0) -> Array:
    """Elements added at both ends of each axis.

    mode: "constant", or "edge", "reflect", "symmetric", "wrap" for the array's own elements.
    """
    x = operand("pad", x)
    pairs = _widths(widths, x.ndim)
    if mode != "constant":
        return _mirrored(x, pairs, mode)
    try:
        given = np.asarray(constant_values, dtype=object)
        values = np.broadcast_to(given, (x.ndim, 2))
    except ValueError:
        fail(
            ShapeError,
            f"constant_values {constant_values!r} do not fit {x.ndim} axes",
            where="pad",
            fix="give one number, one (before, after), or one pair per axis",
        )
    node = x._uop
    fills = {(type(v), str(v)) for v in values.flat}
    if len(fills) <= 1:
        fill = values.flat[0] if values.size else 0
        return Array(graph.pad(node, pairs, _fill(fill, x)), x.device)
    for axis, (pair, ends) in enumerate(zip(pairs, values, strict=True)):
        for side in (0, 1):
            one = [(0, 0)] * x.ndim
            one[axis] = (pair[0], 0) if side == 0 else (0, pair[1])
            node = graph.pad(node, one, _fill(ends[side], x))
    return Array(node, x.device)


def _fill(value: Any, x: Array) -> UOp:
    if isinstance(value, (np.generic, Array)):
        value = value.item()
    if not isinstance(value, (bool, int, float)):
        fail(ArgumentTypeError, f"a pad value is a number, got {value!r}", where="pad")
    return graph.constant(value, x.dtype, "pad")


def _mirrored(x: Array, pairs: list[tuple[int, int]], mode: str) -> Array:
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        known = "constant, edge, reflect, symmetric, wrap"
        fail(ArgumentError, f"mode {mode!r} is unknown", where="pad", fix=f"use {known}")
    for axis, (before, after) in enumerate(pairs):
        n = x.shape[axis]
        if not before and not after:
            continue
        if n == 0:
            fail(ShapeError, f"axis {axis} has no element to repeat", where="pad")
        from loopwright.api.indexing import take

        x = take(x, np.pad(np.arange(n), (before, after), mode=mode), axis=axis)  # type: ignore[call-overload]  # a checked mode
    return x


def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, stride: Any = 1, dilation: Any = 1
) -> Array:
    """Every window of a shape: the window's axes come last, its positions stay in place.

    `stride` steps between windows, `dilation` between the elements of one; a number or a tuple.
    """
    x = operand("sliding_window_view", x)
    where = "sliding_window_view"
    sizes = integers(window_shape, "a window", where)
    if axis is None and len(sizes) != x.ndim:
        fail(
            ShapeError,
            f"window {sizes} does not name all {x.ndim} axes",
            where=where,
            fix="give axis=, or one size per axis",
        )
    axes = many_axes(axis, x.ndim, where)
    if len(axes) != len(sizes):
        fail(ShapeError, f"window {sizes} for axes {axes}", where=where)
    steps, spread = per_axis(stride, len(axes), "stride"), per_axis(dilation, len(axes), "dilation")
    return Array(windows(x._uop, axes, sizes, steps, spread, where), x.device)


def per_axis(value: Any, n: int, name: str, least: int = 1) -> tuple[int, ...]:
    """A number for all axes, or one for each."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * n
    try:
        found = tuple([operator.index(v) for v in values])
    except TypeError:
        fail(ArgumentTypeError, f"{name} is made of ints, got {value!r}")
    if len(found) != n or any(v < least for v in found):
        fail(ArgumentError, f"{name}={value}", fix=f"give {n} numbers >= {least}, or one")
    return found


def windows(
    node: UOp,
    axes: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    where: str,
) -> UOp:
    """WINDOW over several axes. Raises ShapeError where a window is larger than its axis."""
    for axis, size, stride, dilation in zip(axes, sizes, strides, dilations, strict=True):
        reach = (size - 1) * dilation + 1
        n = graph.shape(node)[axis]
        if size < 1 or reach > n:
            fail(
                ShapeError,
                f"a window of {reach} does not fit axis {axis} of {n}",
                where=where,
                fix="pad the array or use a smaller window",
            )
        node = graph.window(node, axis, size, stride, dilation)
    return node
