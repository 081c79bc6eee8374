"""CAST between bool, integers and the floats a target computes with; BITCAST of storage floats."""

from __future__ import annotations

import math

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.decompose.build import (
    and_,
    bitcast,
    cast,
    eq,
    ftoi,
    lt,
    ne,
    where,
)
from loopwright_lower.decompose.table import Emit, Rule

_MANTISSA = {dt.float16: 11, dt.bfloat16: 8, dt.float32: 24, dt.float64: 53}


def _from_float(e: Emit, node: UOp) -> bool:
    return node.src[0].dtype.kind == "float" and not e.is_soft(node.src[0].dtype)


def float_to_int(e: Emit, node: UOp) -> UOp:
    """int(x) --> a conversion only of what is in range; the bounds outside it, 0 for NaN."""
    return saturate(node.src[0], node.dtype)


def saturate(x: UOp, dtype: DType) -> UOp:
    """A float truncated to an integer: out of range gives the bound, NaN gives 0."""
    if dtype is dt.index:
        return cast(saturate(x, dt.int64), dt.index)
    low, high = int(dtype.min), int(dtype.max)
    if dtype.bits < 32:
        # Both bounds are floats: clamp, then convert through the width that hardware converts to.
        above = where(lt(float(low), x), x, const(low, x.dtype))  # NaN fails: the low bound
        inside = where(lt(float(high), above), const(high, x.dtype), above)
        if low < 0:
            inside = where(eq(x, x), inside, const(0, x.dtype))
        return cast(ftoi(inside, dt.int32), dtype)
    top = float(high + 1)
    fits = and_(lt(_below(low, x.dtype), x), lt(x, top))
    value = ftoi(where(fits, x, const(0, x.dtype)), dtype)
    outside = where(lt(0, x), const(high, dtype), const(0, dtype))
    if low < 0:
        outside = where(lt(x, 0), const(low, dtype), outside)
    return where(fits, value, outside)


def _below(low: int, dtype: DType) -> float:
    """The largest float that no longer truncates to `low`."""
    digits = _MANTISSA[dtype]
    if low == 0 or (-low).bit_length() <= digits:
        return float(low - 1)
    return -math.ldexp(1 + math.ldexp(1.0, 1 - digits), (-low).bit_length() - 1)


def _float_to_int(e: Emit, node: UOp) -> bool:
    return _from_float(e, node) and node.dtype.is_int


def _to_bool(e: Emit, node: UOp) -> bool:
    return node.dtype.is_bool and not e.is_soft(node.src[0].dtype)


def cast_to_bool(e: Emit, node: UOp) -> UOp:
    """bool(x) --> x != 0; NaN is true."""
    x = node.src[0]
    return x if x.dtype.is_bool else ne(x, 0)


def _soft_bitcast(e: Emit, node: UOp) -> bool:
    return e.is_soft(node.dtype) or e.is_soft(node.src[0].dtype)


def bitcast_soft(e: Emit, node: UOp) -> UOp:
    """bitcast(x) --> through the unsigned integer, which is all a storage float converts to."""
    x = node.src[0]
    if x.dtype.is_bool:
        x = cast(x, dt.uint8)
    return bitcast(bitcast(x, dt.unsigned(node.dtype.bits)), node.dtype)


def _bool_bitcast(e: Emit, node: UOp) -> bool:
    return node.dtype.is_bool or node.src[0].dtype.is_bool


def bitcast_bool(e: Emit, node: UOp) -> UOp:
    """bitcast to or from bool --> its byte, 0 or 1."""
    x = node.src[0]
    if node.dtype.is_bool:
        return x if x.dtype.is_bool else ne(bitcast(x, dt.uint8), 0)
    return bitcast(cast(x, dt.uint8), node.dtype)


cast_rules: tuple[Rule, ...] = (
    Rule(
        "cast_to_itself",
        (Op.CAST, Op.BITCAST),
        lambda e, node: node.dtype is node.src[0].dtype,
        lambda e, node: node.src[0],
    ),
    Rule("cast_to_bool", (Op.CAST,), _to_bool, cast_to_bool),
    Rule("float_to_int_saturates", (Op.CAST,), _float_to_int, float_to_int),
    Rule("bitcast_storage_float", (Op.BITCAST,), _soft_bitcast, bitcast_soft),
    Rule("bitcast_bool", (Op.BITCAST,), _bool_bitcast, bitcast_bool),
)
