"""Activation functions."""

from __future__ import annotations

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import product, wide

for _name, _function in {"Relu": lw.relu, "Sigmoid": lw.sigmoid}.items():
    operator(_name)(_function)


@operator("Gelu")
def gelu(x: lw.Array, *, approximate: str = "none") -> lw.Array:
    return lw.gelu(x, approximate=approximate)


@operator("Elu")
def elu(x: lw.Array, *, alpha: float = 1.0) -> lw.Array:
    return lw.where(x < 0, alpha * lw.expm1(x), x)


@operator("Celu")
def celu(x: lw.Array, *, alpha: float = 1.0) -> lw.Array:
    return lw.where(x < 0, alpha * lw.expm1(x / alpha), x)


@operator("Selu")
def selu(
    x: lw.Array, *, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805
) -> lw.Array:
    return gamma * lw.where(x < 0, alpha * lw.expm1(x), x)


@operator("LeakyRelu")
def leaky_relu(x: lw.Array, *, alpha: float = 0.01) -> lw.Array:
    return lw.where(x < 0, alpha * x, x)


@operator("PRelu")
def parametric_relu(x: lw.Array, slope: lw.Array) -> lw.Array:
    return lw.where(x < 0, slope * x, x)


@operator("ThresholdedRelu")
def thresholded_relu(x: lw.Array, *, alpha: float = 1.0) -> lw.Array:
    return lw.where(x > alpha, x, 0)


@operator("HardSigmoid")
def hard_sigmoid(x: lw.Array, *, alpha: float = 0.2, beta: float = 0.5) -> lw.Array:
    return lw.clip(alpha * x + beta, 0, 1)


@operator("HardSwish")
def hard_swish(x: lw.Array) -> lw.Array:
    return x * hard_sigmoid(x, alpha=1 / 6)


@operator("Softplus")
def softplus(x: lw.Array) -> lw.Array:
    return lw.relu(x) + lw.log1p(lw.exp(-lw.abs(x)))


@operator("Softsign")
def softsign(x: lw.Array) -> lw.Array:
    return x / (1 + lw.abs(x))


@operator("Mish")
def mish(x: lw.Array) -> lw.Array:
    return x * lw.tanh(softplus(x))


@operator("Swish")
def swish(x: lw.Array, *, alpha: float = 1.0) -> lw.Array:
    return lw.astype(wide(x) * lw.sigmoid(alpha * wide(x)), x.dtype)


@operator("SwiGLU")
def swiglu(gate: lw.Array, x: lw.Array, *, alpha: float = 1.0) -> lw.Array:
    return swish(gate, alpha=alpha) * x


@operator("Shrink")
def shrink(x: lw.Array, *, lambd: float = 0.5, bias: float = 0.0) -> lw.Array:
    return lw.where(x < -lambd, x + bias, lw.where(x > lambd, x - bias, 0))


@operator("Softmax")
def softmax(x: lw.Array, *, opset: int, axis: int | None = None) -> lw.Array:
    return _along(lw.softmax, x, axis, opset)


@operator("LogSoftmax")
def log_softmax(x: lw.Array, *, opset: int, axis: int | None = None) -> lw.Array:
    return _along(lw.log_softmax, x, axis, opset)


@operator("Hardmax")
def hardmax(x: lw.Array, *, opset: int, axis: int | None = None) -> lw.Array:
    """1 at the first largest element, 0 elsewhere."""

    def first(values: lw.Array, axis: int) -> lw.Array:
        place = lw.argmax(values, axis=axis)
        return lw.one_hot(place, values.shape[axis], axis=axis % values.ndim, dtype=values.dtype)

    return _along(first, x, axis, opset)


def _along(function, x: lw.Array, axis: int | None, opset: int) -> lw.Array:
    """One axis; before opset 13 all from that axis on, seen as one."""
    if opset >= 13:
        return function(x, axis=-1 if axis is None else axis)
    axis = 1 if axis is None else axis % x.ndim
    flat = lw.reshape(x, (product(x.shape[:axis]), product(x.shape[axis:])))
    return lw.reshape(function(flat, axis=-1), x.shape)


@operator("Dropout")
def dropout(
    x: lw.Array,
    ratio: lw.Array | float = 0.5,
    training: lw.Array | None = None,
    *,
    n_outputs: int,
    seed: int = 0,
) -> lw.Array | tuple[lw.Array, lw.Array]:
    """The input as it is; in training a ratio of 0 too, others are random."""
    from onnx_suite.values import UnsupportedError, number

    if training is not None and number(training):
        share = 0.5 if ratio is None else ratio if isinstance(ratio, float) else number(ratio)
        if share != 0:
            raise UnsupportedError("random values")
    return (x, lw.ones(x.shape, dtype=lw.bool)) if n_outputs == 2 else x
