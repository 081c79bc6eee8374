"""Short constructors of level-1 graphs, and one AST of every kind of kernel."""

from __future__ import annotations

import math

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import Buffer, Extent, UOp, Variable, const

F = dt.float32


def buffer(slot: int, *shape: Extent, dtype: DType = F) -> UOp:
    return UOp(Op.BUFFER, dtype, (), Buffer(slot, shape))


def reshape(x: UOp, *shape: Extent) -> UOp:
    return UOp(Op.RESHAPE, x.dtype, (x,), shape)


def expand(x: UOp, *shape: Extent) -> UOp:
    return UOp(Op.EXPAND, x.dtype, (x,), shape)


def permute(x: UOp, *axes: int) -> UOp:
    return UOp(Op.PERMUTE, x.dtype, (x,), axes)


def flip(x: UOp, *axes: int) -> UOp:
    return UOp(Op.FLIP, x.dtype, (x,), axes)


def shrink(x: UOp, *spans: tuple[int, int, int]) -> UOp:
    return UOp(Op.SHRINK, x.dtype, (x,), spans)


def pad(x: UOp, *widths: tuple[int, int], fill: float = 0) -> UOp:
    return UOp(Op.PAD, x.dtype, (x, const(fill, x.dtype)), widths)


def window(x: UOp, axis: int, size: int, stride: int = 1, dilation: int = 1) -> UOp:
    return UOp(Op.WINDOW, x.dtype, (x,), (axis, size, stride, dilation))


def iota(axis: int, *shape: int, dtype: DType = dt.int64) -> UOp:
    return UOp(Op.IOTA, dtype, (), (shape, axis))


def gather(x: UOp, indices: UOp, axis: int = 0) -> UOp:
    return UOp(Op.GATHER, x.dtype, (x, indices), axis)


def reduce(x: UOp, combine: str, *axes: int) -> UOp:
    return UOp(Op.REDUCE, x.dtype, (x,), (combine, axes))


def keep(x: UOp, combine: str, axis: int) -> UOp:
    """A reduce over one axis, repeated along it again."""
    shape = shape_of(x)
    small = (*shape[:axis], 1, *shape[axis + 1 :])
    return expand(reshape(reduce(x, combine, axis), *small), *shape)


def scan(x: UOp, combine: str, axis: int, exclusive: bool = False, reverse: bool = False) -> UOp:
    return UOp(Op.SCAN, x.dtype, (x,), (combine, axis, exclusive, reverse))


def item(x: UOp, which: int, dtype: DType) -> UOp:
    return UOp(Op.ITEM, dtype, (x,), which)


def op(which: Op, *src: UOp, dtype: DType | None = None) -> UOp:
    return UOp(which, dtype or src[0].dtype, src)


def cast(x: UOp, dtype: DType) -> UOp:
    return UOp(Op.CAST, dtype, (x,))


def sink(*stores: tuple[UOp, UOp]) -> UOp:
    return UOp(Op.SINK, dt.void, tuple([UOp(Op.STORE, dt.void, s) for s in stores]))


def product(a: UOp, b: UOp) -> UOp:
    """a @ b of two matrices as a reduce of a product."""
    (m, k), (_, n) = shape_of(a), shape_of(b)
    left = expand(reshape(a, m, 1, k), m, n, k)
    right = expand(reshape(permute(b, 1, 0), 1, n, k), m, n, k)
    return reduce(op(Op.MUL, left, right), "add", 2)


def matmul(m: int = 5, n: int = 7, k: int = 6) -> UOp:
    return sink((buffer(2, m, n), product(buffer(0, m, k), buffer(1, k, n))))


def softmax_of(x: UOp, axis: int = 1) -> UOp:
    e = op(Op.EXP, op(Op.SUB, x, keep(x, "max", axis)))
    return op(Op.DIV, e, keep(e, "add", axis))


def softmax(m: int = 4, n: int = 9) -> UOp:
    return sink((buffer(1, m, n), softmax_of(buffer(0, m, n))))


def attention(m: int = 4, n: int = 6, d: int = 3, e: int = 5) -> UOp:
    q, k, v = buffer(0, m, d), buffer(1, n, d), buffer(2, n, e)
    scores = op(Op.MUL, product(q, permute(k, 1, 0)), const(1 / math.sqrt(d), F))
    return sink((buffer(3, m, e), product(softmax_of(scores), v)))


def conv(c: int = 2, h: int = 6, w: int = 5, f: int = 3, size: int = 3, stride: int = 1) -> UOp:
    """A 2-D convolution with padding 1 over one image."""
    x, weight = buffer(0, c, h, w), buffer(1, f, c, size, size)
    padded = pad(x, (0, 0), (1, 1), (1, 1))
    tiles = window(window(padded, 1, size, stride), 2, size, stride)
    _, oh, ow, _, _ = shape_of(tiles)
    full = (f, oh, ow, c, size, size)
    data = expand(reshape(permute(tiles, 1, 2, 0, 3, 4), 1, *full[1:]), *full)
    weights = expand(reshape(weight, f, 1, 1, c, size, size), *full)
    return sink((buffer(2, f, oh, ow), reduce(op(Op.MUL, data, weights), "add", 3, 4, 5)))


def argmax(m: int = 4, n: int = 7) -> UOp:
    pair = UOp(Op.REDUCE, dt.void, (buffer(0, m, n), iota(1, m, n)), ("argmax", (1,)))
    return sink((buffer(1, m, dtype=dt.int64), item(pair, 1, dt.int64)))


def cumsum(m: int = 3, n: int = 8, exclusive: bool = False, reverse: bool = False) -> UOp:
    return sink((buffer(1, m, n), scan(buffer(0, m, n), "add", 1, exclusive, reverse)))


def take(n: int = 6, d: int = 4, count: int = 5) -> UOp:
    rows = gather(buffer(0, n, d), buffer(1, count, dtype=dt.int32), 0)
    return sink((buffer(2, count, d), rows))


def concat(m: int = 4, a: int = 3, b: int = 5) -> UOp:
    out = buffer(1, m, a + b)
    first = (shrink(out, (0, m, 1), (0, a, 1)), op(Op.EXP, buffer(0, m, a)))
    second = (shrink(out, (0, m, 1), (a, a + b, 1)), buffer(2, m, b))
    return sink(first, second)


def row_sums(n: Variable, m: int = 8) -> UOp:
    return sink((buffer(1, n), reduce(buffer(0, n, m), "add", 1)))


def layer_norm(m: int = 4, n: int = 8) -> UOp:
    x = buffer(0, m, n)
    scale = const(1 / n, F)
    centred = op(Op.SUB, x, op(Op.MUL, keep(x, "add", 1), scale))
    variance = op(Op.MUL, keep(op(Op.MUL, centred, centred), "add", 1), scale)
    return sink(
        (buffer(1, m, n), op(Op.DIV, centred, op(Op.SQRT, op(Op.ADD, variance, const(1e-5, F)))))
    )


KINDS = {
    "matmul": matmul,
    "softmax": softmax,
    "attention": attention,
    "conv": conv,
    "argmax": argmax,
    "cumsum": cumsum,
    "take": take,
    "concat": concat,
    "layer_norm": layer_norm,
}
