"""Flops and bytes by counting."""

from __future__ import annotations

from handmade import F, at, kernel, load, matmul, op

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.estimate import estimate, merge_cost


def test_estimate_of_matmul() -> None:
    """A multiply and an add a step; each buffer once."""
    found = estimate(matmul(4, 6, 8))
    assert found.flops == 2 * 4 * 6 * 8
    assert found.bytes == 4 * (4 * 8 + 8 * 6 + 4 * 6)


def test_estimate_of_nested_work() -> None:
    """What does not depend on a dim is counted once for it; casts and choices are free."""
    dims = Dim("i", 4), Dim("j", 5), Dim("k", 6, True)
    i, j, k = [d.uop for d in dims]
    top = UOp(Op.REDUCE, F, (load(at(0, (4, 6), i, k)), k), ("max",))
    value = op(Op.EXP, op(Op.SUB, load(at(1, (4, 5), i, j)), top))
    found = estimate(kernel(dims, (at(2, (4, 5), i, j), value)))
    assert found.flops == 4 * 6 + 2 * 4 * 5


def test_bytes_of_parts_of_a_buffer() -> None:
    """A slice counts its own elements; a buffer read from shifted places counts its box once."""
    i = Dim("i", 8)
    every_other = load(at(0, (64,), integer.mul(i.uop, 2)))
    assert estimate(kernel((i,), (at(1, (8,), i.uop), every_other))).bytes == 4 * (8 + 8)
    both = op(Op.ADD, load(at(0, (64,), i.uop)), load(at(0, (64,), integer.add(i.uop, 1))))
    assert estimate(kernel((i,), (at(1, (8,), i.uop), both))).bytes == 4 * (9 + 8)


def test_variables_count_at_their_largest() -> None:
    """A symbolic extent is estimated at its upper bound."""
    n = Variable("n", 1, 64)
    dims = Dim("i", 4), Dim("j", n)
    i, j = [d.uop for d in dims]
    value = op(Op.ADD, load(at(0, (4, n), i, j)), load(at(1, (4, n), i, j)))
    found = estimate(kernel(dims, (at(2, (4, n), i, j), value)))
    assert (found.flops, found.bytes) == (4 * 64, 3 * 4 * 64 * 4)


def test_merges_of_several_values() -> None:
    """A combine of several values costs its merge's arithmetic, a choice at least one step."""
    k = Dim("k", 8, True)
    x = load(at(0, (8,), k.uop))
    pair = (x, UOp(Op.CAST, dt.int64, (k.uop,)))
    assert merge_cost(UOp(Op.REDUCE, dt.void, (*pair, k.uop), ("argmax",))) == 1
    assert merge_cost(UOp(Op.REDUCE, dt.void, (x, x, x, k.uop), ("welford",))) > 5
    assert merge_cost(UOp(Op.REDUCE, F, (x, k.uop), ("add",))) == 1
