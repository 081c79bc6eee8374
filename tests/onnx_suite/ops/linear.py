"""Products of matrices, convolutions."""

from __future__ import annotations

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import UnsupportedError, product

operator("MatMul")(lw.matmul)


@operator("Gemm")
def gemm(
    a: lw.Array,
    b: lw.Array,
    c: lw.Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> lw.Array:
    y = (a.T if transA else a) @ (b.T if transB else b)
    y = y if alpha == 1 else alpha * y
    return y if c is None else y + (c if beta == 1 else beta * c)


@operator("Einsum")
def einsum(*xs: lw.Array, equation: str) -> lw.Array:
    return lw.einsum(equation, *xs)


@operator("Det")
def determinant(x: lw.Array) -> lw.Array:
    """By elimination; the row with the largest first element goes first."""
    value = lw.ones(x.shape[:-2], dtype=x.dtype)
    for n in range(x.shape[-1], 0, -1):
        first = lw.expand_dims(lw.argmax(lw.abs(x[..., 0]), axis=-1), axis=-1)
        row = lw.arange(n)
        order = lw.where(row == 0, first, lw.where(row == first, 0, row))
        order = lw.broadcast_to(lw.expand_dims(order, axis=-1), x.shape)
        x = lw.take_along_axis(x, order, axis=-2)
        pivot = x[..., :1, :1]
        value = value * lw.where(first[..., 0] == 0, 1, -1) * pivot[..., 0, 0]
        ratio = x[..., 1:, :1] / lw.where(pivot == 0, 1, pivot)
        x = x[..., 1:, 1:] - ratio * x[..., :1, 1:]
    return lw.astype(value, x.dtype)


def padding(
    sizes: tuple[int, ...],
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    auto_pad: str,
    pads: list[int] | None,
) -> list[tuple[int, int]]:
    """(before, after) for each spatial axis."""
    n = len(kernel)
    if auto_pad in ("NOTSET", "VALID"):
        given = pads if pads and auto_pad == "NOTSET" else [0] * 2 * n
        return [(given[i], given[n + i]) for i in range(n)]
    out = []
    for i in range(n):
        reach = (kernel[i] - 1) * dilations[i] + 1
        total = max((-(-sizes[i] // strides[i]) - 1) * strides[i] + reach - sizes[i], 0)
        small, large = total // 2, total - total // 2
        out.append((small, large) if auto_pad == "SAME_UPPER" else (large, small))
    return out


@operator("Conv")
def conv(
    x: lw.Array,
    w: lw.Array,
    bias: lw.Array | None = None,
    *,
    kernel_shape: list[int] | None = None,
    strides: list[int] | None = None,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> lw.Array:
    n = x.ndim - 2
    kernel, steps, apart = list(w.shape[2:]), strides or [1] * n, dilations or [1] * n
    around = padding(x.shape[2:], kernel, steps, apart, auto_pad, pads)
    return lw.conv(
        x, w, bias, stride=tuple(steps), padding=tuple(around), dilation=tuple(apart), groups=group
    )


@operator("ConvTranspose")
def conv_transpose(
    x: lw.Array,
    w: lw.Array,
    bias: lw.Array | None = None,
    *,
    kernel_shape: list[int] | None = None,
    strides: list[int] | None = None,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
    output_padding: list[int] | None = None,
    output_shape: list[int] | None = None,
    auto_pad: str = "NOTSET",
    group: int = 1,
) -> lw.Array:
    """A convolution of x with zeros between its elements and the kernel reversed."""
    n = x.ndim - 2
    steps, apart, extra = strides or [1] * n, dilations or [1] * n, output_padding or [0] * n
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], apart)]
    full = [(m - 1) * s + r + e for m, s, r, e in zip(x.shape[2:], steps, reach, extra)]
    if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = output_shape or [m * s for m, s in zip(x.shape[2:], steps)]
        over = [f - m for f, m in zip(full, wanted[-n:])]
        less = [o // 2 for o in over]
        cut = [(v, o - v) if auto_pad == "SAME_UPPER" else (o - v, v) for v, o in zip(less, over)]
    else:
        given = pads or [0] * 2 * n
        cut = [(given[i], given[n + i]) for i in range(n)]
    for a, step in enumerate(steps):
        x = _apart(x, a + 2, step)
    around = [(r - 1 - lo, r - 1 - hi + e) for r, e, (lo, hi) in zip(reach, extra, cut)]
    x = lw.pad(x, [(0, 0), (0, 0), *[(max(lo, 0), max(hi, 0)) for lo, hi in around]])
    key = [slice(max(-lo, 0), m - max(-hi, 0)) for m, (lo, hi) in zip(x.shape[2:], around)]
    x = x[(slice(None), slice(None), *key)]
    c_in, c_out = w.shape[:2]
    kernel = lw.reshape(w, (group, c_in // group, c_out, *w.shape[2:]))
    kernel = lw.flip(lw.moveaxis(kernel, 1, 2), axis=tuple(range(3, 3 + n)))
    kernel = lw.reshape(kernel, (group * c_out, c_in // group, *w.shape[2:]))
    return lw.conv(x, kernel, bias, dilation=tuple(apart), groups=group)


def _apart(x: lw.Array, axis: int, step: int) -> lw.Array:
    """step - 1 zeros between neighbours along an axis."""
    if step == 1:
        return x
    n = x.shape[axis]
    widths = [(0, 0)] * (x.ndim + 1)
    widths[axis + 1] = (0, step - 1)
    spread = lw.pad(lw.expand_dims(x, axis=axis + 1), widths)
    line = lw.reshape(spread, (*x.shape[:axis], n * step, *x.shape[axis + 1 :]))
    return line[(slice(None),) * axis + (slice(0, n * step - step + 1),)]


@operator("Col2Im")
def columns_to_image(
    x: lw.Array,
    image_shape: lw.Array,
    block_shape: lw.Array,
    *,
    strides: list[int] | None = None,
    dilations: list[int] | None = None,
    pads: list[int] | None = None,
) -> lw.Array:
    """The sum of all blocks at their places: a transposed convolution with kernels of one 1."""
    from onnx_suite.values import ints

    image, block = ints(image_shape), ints(block_shape)
    n = len(image)
    steps, apart, borders = strides or [1] * n, dilations or [1] * n, pads or [0] * 2 * n
    counts = []
    for i in range(n):
        reach = (block[i] - 1) * apart[i] + 1
        counts.append((image[i] + borders[i] + borders[n + i] - reach) // steps[i] + 1)
    size = product(block)
    c = x.shape[1] // size
    blocks = lw.reshape(x, (x.shape[0], c * size, *counts))
    unit = lw.reshape(lw.eye(size, dtype=x.dtype), (size, 1, *block))
    kernel = lw.tile(unit, (c, *[1] * (n + 1)))
    return conv_transpose(blocks, kernel, strides=steps, dilations=apart, pads=borders, group=c)


@operator("CausalConvWithState")
def causal_conv(
    x: lw.Array,
    w: lw.Array,
    bias: lw.Array | None = None,
    past: lw.Array | None = None,
    *,
    activation: str = "none",
) -> tuple[lw.Array, lw.Array]:
    """One filter a channel over what came before; the last k - 1 inputs are the next state."""
    n_kept = w.shape[-1] - 1
    if past is None:
        past = lw.zeros((*x.shape[:2], n_kept), dtype=x.dtype)
    line = lw.concat([past, x], axis=-1)
    y = lw.conv(line, w, bias, groups=x.shape[1])
    if activation in ("silu", "swish"):
        y = y * lw.sigmoid(y)
    elif activation != "none":
        raise UnsupportedError(f"activation {activation}")
    return y, line[..., line.shape[-1] - n_kept :]
