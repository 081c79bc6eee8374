"""Where an element of a movement op's result comes from: index expressions of level 1."""

from __future__ import annotations

from collections.abc import Callable

from loopwright_core.errors import ShapeError, fail
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import Shape, shape_of
from loopwright_core.ir.uop import TRUE, UOp, Variable, extent_uop

Index = tuple[UOp, ...]

ZERO = extent_uop(0)


def source_index(node: UOp, index: Index) -> tuple[Index, UOp]:
    """The index into `node.src[0]` that holds the result's element at `index`, and its validity.

    Shapes: one index value per axis of the result; one per axis of the source comes back.
    The condition is constant true except for PAD, where it says whether the element is the
    source's rather than the fill; the source index means something only where it holds.
    """
    return _RULES[node.op](node, index)


def _permute(node: UOp, index: Index) -> tuple[Index, UOp]:
    source = [ZERO] * len(index)
    for at, axis in zip(index, node.arg, strict=True):
        source[axis] = at
    return tuple(source), TRUE


def _expand(node: UOp, index: Index) -> tuple[Index, UOp]:
    shape = shape_of(node.src[0])
    return tuple([ZERO if n == 1 else i for i, n in zip(index, shape, strict=True)]), TRUE


def _flip(node: UOp, index: Index) -> tuple[Index, UOp]:
    source = list(index)
    for axis in node.arg:
        last = integer.add(extent_uop(shape_of(node)[axis]), extent_uop(-1))
        source[axis] = integer.sub(last, index[axis])
    return tuple(source), TRUE


def _shrink(node: UOp, index: Index) -> tuple[Index, UOp]:
    source = [
        integer.add(integer.mul(i, extent_uop(step)), extent_uop(start))
        for i, (start, _, step) in zip(index, node.arg, strict=True)
    ]
    return tuple(source), TRUE


def _window(node: UOp, index: Index) -> tuple[Index, UOp]:
    axis, _, stride, dilation = node.arg
    source = list(index[:-1])
    source[axis] = integer.add(
        integer.mul(index[axis], extent_uop(stride)),
        integer.mul(index[-1], extent_uop(dilation)),
    )
    return tuple(source), TRUE


def _pad(node: UOp, index: Index) -> tuple[Index, UOp]:
    source = list(index)
    valid = TRUE
    for axis, ((before, after), n) in enumerate(zip(node.arg, shape_of(node.src[0]), strict=True)):
        if before:
            source[axis] = integer.add(index[axis], extent_uop(-before))
            valid = integer.and_(valid, integer.ge(source[axis], ZERO))
        if after:
            valid = integer.and_(valid, integer.lt(source[axis], extent_uop(n)))
    return tuple(source), valid


def _reshape(node: UOp, index: Index) -> tuple[Index, UOp]:
    return reshape_index(index, node.arg, shape_of(node.src[0])), TRUE


def reshape_index(index: Index, result: Shape, source: Shape) -> Index:
    """The index into shape `source` of the element at `index` of it reshaped to `result`.

    Raises ShapeError where a Variable extent is not kept whole.
    """
    found = [ZERO] * len(source)
    if 0 in source:
        return tuple(found)
    for result_axes, source_axes in axis_groups(result, source):
        if len(result_axes) == len(source_axes) == 1:
            found[source_axes[0]] = index[result_axes[0]]
            continue
        flat = flatten(
            tuple([index[a] for a in result_axes]), tuple([result[a] for a in result_axes])
        )
        parts = unflatten(flat, tuple([source[a] for a in source_axes]))
        for axis, part in zip(source_axes, parts, strict=True):
            found[axis] = part
    return tuple(found)


def flatten(index: Index, shape: Shape) -> UOp:
    """The row-major offset of an index into a shape."""
    flat, stride = ZERO, extent_uop(1)
    for at, n in zip(reversed(index), reversed(shape), strict=True):
        flat = integer.add(integer.mul(at, stride), flat)
        stride = integer.mul(stride, extent_uop(n))
    return flat


def unflatten(flat: UOp, shape: Shape) -> Index:
    """The index into a shape of a row-major offset that lies inside it."""
    index = []
    for axis in range(len(shape) - 1, 0, -1):
        n = extent_uop(shape[axis])
        index.append(integer.mod(flat, n))
        flat = integer.floordiv(flat, n)
    index.append(flat)
    return tuple(reversed(index))


def axis_groups(left: Shape, right: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The smallest runs of axes of two shapes with equal element counts; axes of size 1 left out.

    Raises ShapeError where a Variable extent is not kept whole.

    >>> axis_groups((2, 3, 20), (6, 1, 4, 5))
    [((0, 1), (0,)), ((2,), (2, 3))]
    """
    groups = []
    a = [axis for axis, n in enumerate(left) if n != 1]
    b = [axis for axis, n in enumerate(right) if n != 1]
    i = j = 0
    while i < len(a) and j < len(b):
        first_i, first_j = i, j
        i, j = i + 1, j + 1
        if left[a[first_i]] != right[b[first_j]]:
            n_left = _whole(left, a, first_i, right)
            n_right = _whole(right, b, first_j, left)
            while n_left != n_right:
                if n_left < n_right:
                    n_left *= _whole(left, a, i, right)
                    i += 1
                else:
                    n_right *= _whole(right, b, j, left)
                    j += 1
        groups.append((tuple(a[first_i:i]), tuple(b[first_j:j])))
    if i < len(a) or j < len(b):
        fail(ShapeError, f"shapes {left} and {right} differ in their number of elements")
    return groups


def _whole(shape: Shape, axes: list[int], at: int, other: Shape) -> int:
    """The extent of the next axis of a run that is merged or split: an int."""
    if at >= len(axes):
        fail(ShapeError, f"shapes {shape} and {other} differ in their number of elements")
    n = shape[axes[at]]
    if isinstance(n, Variable):
        fail(
            ShapeError,
            f"a reshape between {shape} and {other} splits or merges a Variable extent",
            fix="Keep the Variable axis whole",
        )
    return n


_RULES: dict[Op, Callable[[UOp, Index], tuple[Index, UOp]]] = {
    Op.RESHAPE: _reshape,
    Op.PERMUTE: _permute,
    Op.EXPAND: _expand,
    Op.PAD: _pad,
    Op.SHRINK: _shrink,
    Op.FLIP: _flip,
    Op.WINDOW: _window,
}
