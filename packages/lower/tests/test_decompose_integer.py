"""Integer and bool ops after decomposition against the interpreter, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ulp import CPU, HARD, extremes, leaf, run

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import RAW, Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.oracle import alu
from loopwright_core.plugin.target import Target
from loopwright_lower.decompose import decompose


def pairs(dtype: DType) -> tuple[Any, Any]:
    """Every pair of the extremes."""
    x = extremes(dtype)
    a, b = np.meshgrid(x, x)
    return a.ravel(), b.ravel()


BINARY = (
    *(Op.ADD, Op.SUB, Op.MUL, Op.FLOORDIV, Op.MOD, Op.MAX, Op.MIN, Op.AND, Op.OR, Op.XOR),
    *(Op.SHL, Op.SHR, Op.CMPLT, Op.CMPEQ, Op.CMPNE),
)


@pytest.mark.parametrize("dtype", dt.INTS, ids=repr)
@pytest.mark.parametrize("op", BINARY, ids=repr)
def test_integer_ops_equal_the_interpreter(op: Op, dtype: DType) -> None:
    """A decomposed integer op gives the interpreter's bits on every pair of extreme values."""
    a, b = pairs(dtype)
    out = dt.bool_ if op in (Op.CMPLT, Op.CMPEQ, Op.CMPNE) else dtype
    expected = alu.apply(op, out, (dtype, dtype), (a, b))
    np.testing.assert_array_equal(expected, run(op, out, (a, b), (dtype, dtype)))


@pytest.mark.parametrize("dtype", dt.INTS, ids=repr)
@pytest.mark.parametrize("op", [Op.FLOORDIV, Op.MOD, Op.SHL, Op.SHR], ids=repr)
def test_constant_operand_equals_the_interpreter(op: Op, dtype: DType) -> None:
    """The short forms for constant divisors and shift amounts give the same bits."""
    x = extremes(dtype)
    for value in x:
        expected = alu.apply(op, dtype, (dtype, dtype), (x, np.full_like(x, value)))
        got = run(op, dtype, (x, const(int(value), dtype)), (dtype, dtype))
        np.testing.assert_array_equal(expected, np.broadcast_to(got, x.shape), str(value))


def reference_power(a: int, n: int, dtype: DType) -> int:
    """a ** n wrapped to the dtype; a negative power rounds to zero."""
    bits = dtype.bits
    if n < 0:
        value = 1 if a == 1 else ((-1) ** (n & 1) if a == -1 else 0)
    else:
        value = pow(a, n, 1 << bits)
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "int" and value >> (bits - 1) else value


@pytest.mark.parametrize("dtype", dt.INTS, ids=repr)
def test_integer_power_wraps(dtype: DType) -> None:
    """x ** n is exact modulo 2**bits for variable and constant n, negative n rounds to zero."""
    a, b = pairs(dtype)
    expected = [reference_power(int(x), int(n), dtype) for x, n in zip(a, b, strict=True)]
    got = run(Op.POW, dtype, (a, b), (dtype, dtype))
    assert expected == [int(v) for v in got]
    x = extremes(dtype)
    for n in (0, 1, 2, 3, 10, -1, -2) if dtype.kind == "int" else (0, 1, 2, 3, 10):
        got = np.broadcast_to(run(Op.POW, dtype, (x, const(n, dtype)), (dtype, dtype)), x.shape)
        assert [reference_power(int(v), n, dtype) for v in x] == [int(v) for v in got]


@pytest.mark.parametrize(
    "op", [Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.AND, Op.OR, Op.XOR, Op.CMPLT, Op.CMPEQ, Op.CMPNE]
)
def test_bool_ops_are_logic(op: Op) -> None:
    """Every bool op equals the interpreter on all four pairs and needs AND, OR, XOR alone."""
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    expected = alu.apply(op, dt.bool_, (dt.bool_, dt.bool_), (a, b))
    np.testing.assert_array_equal(expected, run(op, dt.bool_, (a, b), (dt.bool_, dt.bool_)))
    (root,) = decompose((UOp(op, dt.bool_, (leaf(0, dt.bool_), leaf(1, dt.bool_))),), CPU)
    assert {n.op for n in root.toposort()} <= {Op.AND, Op.OR, Op.XOR, Op.CONST, Op.DEFINE_REG}


def test_target_keeps_its_own_ops() -> None:
    """A target that lists MAX and FLOORDIV keeps them, but not FLOORDIV by a constant."""
    own = Target("own", "", HARD, HARD, RAW | {Op.MAX, Op.FLOORDIV, Op.EXP})
    a, b = leaf(0, dt.int32), leaf(1, dt.int32)
    for op in (Op.MAX, Op.FLOORDIV):
        node = UOp(op, dt.int32, (a, b))
        assert (node,) == decompose((node,), own)
    shifted = UOp(Op.FLOORDIV, dt.int32, (a, const(8, dt.int32)))
    assert (UOp(Op.CSHR, dt.int32, (a, const(3, dt.int32))),) == decompose((shifted,), own)


def test_index_arithmetic_stays() -> None:
    """Index expressions pass through, and a gathered index still has its value decomposed."""
    i, x = leaf(0, dt.index), leaf(1, dt.int32)
    node = UOp(Op.FLOORDIV, dt.index, (i, const(3, dt.index)))
    limit = UOp(Op.CMPLT, dt.bool_, (node, const(5, dt.index)))
    assert (node, limit) == decompose((node, limit), CPU)
    gathered = UOp(Op.CAST, dt.index, (UOp(Op.MAX, dt.int32, (x, const(0, dt.int32))),))
    (found,) = decompose((gathered,), CPU)
    assert Op.CAST is found.op and Op.WHERE is found.src[0].op
    # A float index saturates as an int64, an index becomes a small float through int64.
    (found,) = decompose((UOp(Op.CAST, dt.index, (leaf(2, dt.float32),)),), CPU)
    assert Op.CAST is found.op and dt.int64 is found.src[0].dtype
    (found,) = decompose((UOp(Op.CAST, dt.float16, (i,)),), CPU)
    assert UOp(Op.CAST, dt.int64, (i,)) in found.toposort()
