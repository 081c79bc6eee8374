"""Products of every shape that a tensor core may meet, in the dtypes of a core."""

from __future__ import annotations

from collections.abc import Callable

from asts import buffer, cast, expand, keep, op, pad, permute, reduce, reshape, sink, window

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, const
from loopwright_core.plugin.tensor_core import TensorCore

Sizes = tuple[int, int, int]


def sums_in(core: TensorCore) -> DType:
    """What the kernel sums in; a core of half sums does float32's work at less precision."""
    return core.dtype_out


def dot(core: TensorCore, a: UOp, b: UOp) -> UOp:
    """a @ b of (..., m, k) and (..., k, n), both widened before the product."""
    *batch, m, k = shape_of(a)
    n = shape_of(b)[-1]
    full = (*batch, m, n, k)
    order = (*range(len(batch)), len(batch) + 1, len(batch))
    x = expand(reshape(a, *batch, m, 1, k), *full)
    y = expand(reshape(permute(b, *order), *batch, 1, n, k), *full)
    return reduce(op(Op.MUL, widened(x, core), widened(y, core)), "add", len(full) - 1)


def widened(x: UOp, core: TensorCore) -> UOp:
    return x if x.dtype is sums_in(core) else cast(x, sums_in(core))


def matmul(core: TensorCore, sizes: Sizes) -> UOp:
    m, n, k = sizes
    a, b = core.dtype_in
    made = dot(core, buffer(0, m, k, dtype=a), buffer(1, k, n, dtype=b))
    return sink((buffer(2, m, n, dtype=sums_in(core)), made))


def epilogue(core: TensorCore, sizes: Sizes) -> UOp:
    """Bias along the columns, a clamp, and a cast of the result to the inputs' dtype."""
    m, n, k = sizes
    a, b = core.dtype_in
    made = dot(core, buffer(0, m, k, dtype=a), buffer(1, k, n, dtype=b))
    bias = expand(reshape(buffer(2, n, dtype=sums_in(core)), 1, n), m, n)
    made = op(Op.MIN, op(Op.ADD, made, bias), const(3, made.dtype))
    made = op(Op.MAX, made, const(0, made.dtype))
    return sink((buffer(3, m, n, dtype=a), made if made.dtype is a else cast(made, a)))


def transposed(core: TensorCore, sizes: Sizes) -> UOp:
    """A.T @ B.T, stored transposed."""
    m, n, k = sizes
    a, b = core.dtype_in
    left = permute(buffer(0, k, m, dtype=a), 1, 0)
    made = dot(core, left, permute(buffer(1, n, k, dtype=b), 1, 0))
    return sink((buffer(2, n, m, dtype=sums_in(core)), permute(made, 1, 0)))


def batched(core: TensorCore, sizes: Sizes) -> UOp:
    m, n, k = sizes
    a, b = core.dtype_in
    made = dot(core, buffer(0, 2, m, k, dtype=a), buffer(1, 2, k, n, dtype=b))
    return sink((buffer(2, 2, m, n, dtype=sums_in(core)), made))


def computed(core: TensorCore, sizes: Sizes) -> UOp:
    """max(A, 1) @ cast(B), where zero rows of padding would not be zero."""
    m, n, k = sizes
    a, b = core.dtype_in
    left = op(Op.MAX, buffer(0, m, k, dtype=a), const(1, a))
    wide = buffer(1, k, n, dtype=dt.int32)
    right = cast(op(Op.AND, wide, const(3, dt.int32)), b)
    return sink((buffer(2, m, n, dtype=sums_in(core)), dot(core, left, right)))


def padded(core: TensorCore, sizes: Sizes) -> UOp:
    """A padded with ones along K: the load has a fill that is not zero."""
    m, n, k = sizes
    a, b = core.dtype_in
    left = pad(buffer(0, m, k - 2, dtype=a), (0, 0), (1, 1), fill=1)
    made = dot(core, left, buffer(1, k, n, dtype=b))
    return sink((buffer(2, m, n, dtype=sums_in(core)), made))


def convolution(core: TensorCore, sizes: Sizes) -> UOp:
    """A 1-D convolution of width 3: two reduce axes."""
    filters, w, channels = sizes
    a, b = core.dtype_in
    weight = buffer(0, filters, channels, 3, dtype=a)
    rows = window(pad(buffer(1, channels, w, dtype=b), (0, 0), (1, 1)), 1, 3)
    full = (filters, w, channels, 3)
    x = expand(reshape(weight, filters, 1, channels, 3), *full)
    y = expand(reshape(permute(rows, 1, 0, 2), 1, w, channels, 3), *full)
    made = reduce(op(Op.MUL, widened(x, core), widened(y, core)), "add", 2, 3)
    return sink((buffer(2, filters, w, dtype=sums_in(core)), made))


def two_products(core: TensorCore, sizes: Sizes) -> UOp:
    """(A @ B) + (C @ D) over one K."""
    m, n, k = sizes
    a, b = core.dtype_in
    first = dot(core, buffer(0, m, k, dtype=a), buffer(1, k, n, dtype=b))
    second = dot(core, buffer(2, m, k, dtype=a), buffer(3, k, n, dtype=b))
    return sink((buffer(4, m, n, dtype=sums_in(core)), op(Op.ADD, first, second)))


def two_depths(core: TensorCore, sizes: Sizes) -> UOp:
    """(A @ B) - (C @ D), each over a K of its own."""
    m, n, k = sizes
    a, b = core.dtype_in
    first = dot(core, buffer(0, m, k, dtype=a), buffer(1, k, n, dtype=b))
    second = dot(core, buffer(2, m, k + 3, dtype=a), buffer(3, k + 3, n, dtype=b))
    return sink((buffer(4, m, n, dtype=sums_in(core)), op(Op.SUB, first, second)))


def softmax_like(core: TensorCore, sizes: Sizes) -> UOp:
    """x - max(x) along the rows of x = A @ B, as softmax(A @ B) has it, and the row's maximum."""
    m, n, k = sizes
    a, b = core.dtype_in
    x = dot(core, buffer(0, m, k, dtype=a), buffer(1, k, n, dtype=b))
    made = op(Op.SUB, x, keep(x, "max", 1))
    return sink((buffer(2, m, n, dtype=sums_in(core)), made))


def rows_beside(core: TensorCore, sizes: Sizes) -> UOp:
    """A @ B, and the sums of A's rows as a second output that lacks the columns."""
    m, n, k = sizes
    a, b = core.dtype_in
    left = buffer(0, m, k, dtype=a)
    rows = reduce(widened(left, core), "add", 1)
    made = dot(core, left, buffer(1, k, n, dtype=b))
    return sink(
        (buffer(2, m, n, dtype=sums_in(core)), made), (buffer(3, m, dtype=sums_in(core)), rows)
    )


KERNELS: dict[str, Callable[[TensorCore, Sizes], UOp]] = {
    f.__name__: f
    for f in (
        matmul,
        epilogue,
        transposed,
        batched,
        computed,
        padded,
        convolution,
        two_products,
        two_depths,
        softmax_like,
        rows_beside,
    )
}
