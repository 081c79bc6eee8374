"""Arithmetic, element by element."""

from __future__ import annotations

from functools import reduce
from typing import Any

import loopwright as lw
from onnx_suite.registry import operator
from onnx_suite.values import is_float, number

for _name, _function in {
    "Abs": lw.abs,
    "Acos": lw.acos,
    "Acosh": lw.acosh,
    "Asin": lw.asin,
    "Asinh": lw.asinh,
    "Atan": lw.atan,
    "Atanh": lw.atanh,
    "Ceil": lw.ceil,
    "Cos": lw.cos,
    "Cosh": lw.cosh,
    "Erf": lw.erf,
    "Exp": lw.exp,
    "Floor": lw.floor,
    "Identity": lambda x: x,
    "Log": lw.log,
    "Neg": lw.negative,
    "Reciprocal": lw.reciprocal,
    "Round": lw.round,
    "Sign": lw.sign,
    "Sin": lw.sin,
    "Sinh": lw.sinh,
    "Sqrt": lw.sqrt,
    "Tan": lw.tan,
    "Tanh": lw.tanh,
    "Add": lw.add,
    "Mul": lw.multiply,
    "Sub": lw.subtract,
}.items():
    operator(_name)(_function)


@operator("Div")
def divide(x: lw.Array, y: lw.Array) -> lw.Array:
    """Integers are divided towards zero."""
    if is_float(x):
        return lw.divide(x, y)
    quotient, rest = lw.floor_divide(x, y), lw.remainder(x, y)
    is_below = lw.logical_and(rest != 0, (x < 0) != (y < 0))
    return lw.where(is_below, quotient + 1, quotient)


@operator("Mod")
def modulo(x: lw.Array, y: lw.Array, *, fmod: int = 0) -> lw.Array:
    """The rest with the divisor's sign, or with the dividend's."""
    rest = lw.remainder(lw.abs(x), lw.abs(y)) if fmod else lw.remainder(x, y)
    return lw.where(x < 0, -rest, rest) if fmod else rest


@operator("Pow")
def power(x: lw.Array, y: lw.Array) -> lw.Array:
    """The base's dtype is the result's."""
    return lw.astype(lw.pow(x, y), x.dtype)


@operator("Max")
def maximum(*xs: lw.Array) -> lw.Array:
    return reduce(lw.maximum, xs)


@operator("Min")
def minimum(*xs: lw.Array) -> lw.Array:
    return reduce(lw.minimum, xs)


@operator("Sum")
def total(*xs: lw.Array) -> lw.Array:
    return reduce(lw.add, xs)


@operator("Mean")
def mean(*xs: lw.Array) -> lw.Array:
    return total(*xs) / len(xs)


@operator("Clip")
def clip(x: lw.Array, low: Any = None, high: Any = None, **limits: float) -> lw.Array:
    """Limits are inputs, or attributes `min` and `max` in old models; a low above a high loses."""
    low = limits.get("min", low)
    high = limits.get("max", high)
    if low is not None:
        x = lw.maximum(x, low)
    return x if high is None else lw.minimum(x, high)


@operator("CumSum")
def cumulative_sum(x: lw.Array, axis: lw.Array, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _cumulative(lw.cumulative_sum, x, number(axis), exclusive, reverse, 0)


@operator("CumProd")
def cumulative_prod(x: lw.Array, axis: lw.Array, *, exclusive: int = 0, reverse: int = 0) -> Any:
    return _cumulative(lw.cumulative_prod, x, number(axis), exclusive, reverse, 1)


def _cumulative(
    scan: Any, x: lw.Array, axis: int, exclusive: int, reverse: int, start: int
) -> lw.Array:
    axis %= x.ndim
    if reverse:
        x = lw.flip(x, axis=axis)
    result = scan(x, axis=axis, dtype=x.dtype)
    if exclusive:
        widths = [(1, 0) if a == axis else (0, 0) for a in range(x.ndim)]
        shifted = lw.pad(result, widths, constant_values=start)
        result = shifted[(slice(None),) * axis + (slice(0, x.shape[axis]),)]
    return lw.flip(result, axis=axis) if reverse else result
