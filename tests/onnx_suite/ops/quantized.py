"""Quantized numbers: scales and zero points."""

from __future__ import annotations

from typing import Any

import loopwright as lw
from onnx_suite.ops.casting import convert
from onnx_suite.ops.linear import conv
from onnx_suite.registry import operator
from onnx_suite.values import channels, dtype_of, per_channel


def _spread(values: lw.Array, x: lw.Array, axis: int, block_size: int) -> lw.Array:
    """A scale of its own per element: for all, per slice along an axis, or per block of it."""
    if not block_size:
        return per_channel(values, axis, x.ndim)
    return lw.repeat(values, block_size, axis=axis)[tuple([slice(0, n) for n in x.shape])]


@operator("QuantizeLinear")
def quantize(
    x: lw.Array,
    scale: lw.Array,
    zero: lw.Array | None = None,
    *,
    axis: int = 1,
    saturate: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
) -> lw.Array:
    target = (
        zero.dtype if zero is not None else dtype_of(output_dtype) if output_dtype else lw.uint8
    )
    ratio = lw.astype(x, lw.float32) / lw.astype(_spread(scale, x, axis, block_size), lw.float32)
    if not lw.isdtype(target, "integral"):
        return convert(ratio, target, saturate)
    value = lw.round(ratio)
    if zero is not None:
        value = value + lw.astype(_spread(zero, x, axis, block_size), lw.float32)
    limits = lw.iinfo(target)
    return lw.astype(lw.clip(value, limits.min, limits.max), target)


@operator("DequantizeLinear")
def dequantize(
    x: lw.Array,
    scale: lw.Array,
    zero: lw.Array | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> lw.Array:
    value = lw.astype(x, lw.float32)
    if zero is not None:
        value = value - lw.astype(_spread(zero, x, axis, block_size), lw.float32)
    value = value * lw.astype(_spread(scale, x, axis, block_size), lw.float32)
    return lw.astype(value, dtype_of(output_dtype) if output_dtype else scale.dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(x: lw.Array) -> tuple[lw.Array, lw.Array, lw.Array]:
    low, high = lw.minimum(lw.min(x), 0), lw.maximum(lw.max(x), 0)
    scale = (high - low) / 255
    zero = lw.astype(lw.clip(lw.round(-low / scale), 0, 255), lw.uint8)
    return quantize(x, scale, zero), scale, zero


def _centred(x: lw.Array, zero: lw.Array | None) -> lw.Array:
    value = lw.astype(x, lw.int32)
    return value if zero is None else value - lw.astype(zero, lw.int32)


@operator("MatMulInteger")
def matmul_integer(
    a: lw.Array, b: lw.Array, a_zero: lw.Array | None = None, b_zero: lw.Array | None = None
) -> lw.Array:
    if a_zero is not None and a_zero.ndim == 1 and a_zero.size > 1:
        a_zero = lw.expand_dims(a_zero, axis=1)
    return _centred(a, a_zero) @ _centred(b, b_zero)


@operator("QLinearMatMul")
def quantized_matmul(
    a: lw.Array,
    a_scale: lw.Array,
    a_zero: lw.Array,
    b: lw.Array,
    b_scale: lw.Array,
    b_zero: lw.Array,
    y_scale: lw.Array,
    y_zero: lw.Array,
) -> lw.Array:
    product = lw.astype(_centred(a, a_zero) @ _centred(b, b_zero), lw.float32)
    scales = [lw.astype(s, lw.float32) for s in (a_scale, b_scale, y_scale)]
    return quantize(product * (scales[0] * scales[1] / scales[2]), lw.ones(()), y_zero)


@operator("ConvInteger")
def conv_integer(
    x: lw.Array,
    w: lw.Array,
    x_zero: lw.Array | None = None,
    w_zero: lw.Array | None = None,
    **how: Any,
) -> lw.Array:
    if w_zero is not None and w_zero.size > 1:
        w_zero = lw.reshape(w_zero, (-1, *[1] * (w.ndim - 1)))
    return conv(_centred(x, x_zero), _centred(w, w_zero), **how)


@operator("QLinearConv")
def quantized_conv(
    x: lw.Array,
    x_scale: lw.Array,
    x_zero: lw.Array,
    w: lw.Array,
    w_scale: lw.Array,
    w_zero: lw.Array,
    y_scale: lw.Array,
    y_zero: lw.Array,
    bias: lw.Array | None = None,
    **how: Any,
) -> lw.Array:
    sums = conv_integer(x, w, x_zero, w_zero, **how)
    if bias is not None:
        sums = sums + channels(bias, sums.ndim)
    scale = x_scale * w_scale / y_scale
    scale = channels(scale, sums.ndim) if scale.size > 1 else scale
    return quantize(lw.astype(sums, lw.float32) * scale, lw.ones(()), y_zero)
