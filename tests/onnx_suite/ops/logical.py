"""Comparisons, logic, and bits."""

from __future__ import annotations

import math

import loopwright as lw
from onnx_suite.registry import operator

for _name, _function in {
    "And": lw.logical_and,
    "BitwiseAnd": lw.bitwise_and,
    "BitwiseNot": lw.bitwise_invert,
    "BitwiseOr": lw.bitwise_or,
    "BitwiseXor": lw.bitwise_xor,
    "Equal": lw.equal,
    "Greater": lw.greater,
    "GreaterOrEqual": lw.greater_equal,
    "IsNaN": lw.isnan,
    "Less": lw.less,
    "LessOrEqual": lw.less_equal,
    "Not": lw.logical_not,
    "Or": lw.logical_or,
    "Where": lw.where,
    "Xor": lw.logical_xor,
}.items():
    operator(_name)(_function)


@operator("BitShift")
def bit_shift(x: lw.Array, y: lw.Array, *, direction: str) -> lw.Array:
    return (lw.bitwise_left_shift if direction == "LEFT" else lw.bitwise_right_shift)(x, y)


@operator("IsInf")
def is_inf(x: lw.Array, *, detect_negative: int = 1, detect_positive: int = 1) -> lw.Array:
    found = lw.zeros(x.shape, dtype=lw.bool)
    if detect_negative:
        found = lw.logical_or(found, x == -math.inf)
    if detect_positive:
        found = lw.logical_or(found, x == math.inf)
    return found
