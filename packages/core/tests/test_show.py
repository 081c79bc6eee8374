"""Facts about graphs as text: one line a node, readable, the same each time."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer as ix
from loopwright_core.ir.ops import Op
from loopwright_core.ir.show import formula, show, show_list
from loopwright_core.ir.uop import TRUE, Buffer, UOp, const
from loopwright_core.kernel.dims import Dim
from loopwright_core.program.program import Loop

i, j = Dim("i", 4).uop, Dim("j", 8).uop


def test_kernel_body() -> None:
    """A store of a doubled load: each node a line, indices spelled out where they stand."""
    a, b = (UOp(Op.BUFFER, dt.float32, (), Buffer(s, (4, 8))) for s in (0, 1))
    load = UOp(
        Op.LOAD,
        dt.float32,
        (UOp(Op.INDEX, dt.float32, (a, i, j, TRUE), (4, 8)), const(0.0, dt.float32)),
    )
    twice = UOp(Op.MUL, dt.float32, (load, const(2.0, dt.float32)))
    target = UOp(Op.INDEX, dt.float32, (b, i, j, TRUE), (4, 8))
    body = UOp(Op.SINK, dt.void, (UOp(Op.STORE, dt.void, (target, twice)),))
    assert show(body).splitlines() == [
        "%0 float32 = BUFFER [1: 4x8]",
        "%1 float32 = INDEX %0 i j True [(4, 8)]",
        "%2 float32 = BUFFER [0: 4x8]",
        "%3 float32 = INDEX %2 i j True [(4, 8)]",
        "%4 float32 = LOAD %3 0.0",
        "%5 float32 = MUL %4 2.0",
        "%6 void = STORE %1 %5",
        "%7 void = SINK %6",
    ]


def test_formula() -> None:
    """Index expressions read as arithmetic, with brackets only where they are needed."""
    assert formula(ix.add(ix.mul(i, 24), ix.add(j, 3))) == "i*24 + j + 3"
    q = ix.floordiv(ix.add(ix.mul(i, 2), j), 3)
    assert formula(q) == "(i*2 + j)//3"
    assert formula(ix.lt(ix.add(i, j), 5)) == "i + j < 5"
    assert formula(ix.minimum(i, 2)) == "min(i, 2)"
    nested = UOp(Op.SUB, dt.index, (i, UOp(Op.SUB, dt.index, (j, i))))
    assert formula(nested) == "i - (j - i)"
    assert formula(UOp(Op.CAST, dt.float32, (i,))) == "cast(i, float32)"


def test_program_is_indented() -> None:
    """In a linear list loops indent what they contain."""
    loop = UOp(Op.RANGE, dt.int32, (const(8, dt.int32),), Loop(0, "i"))
    value = UOp(Op.MUL, dt.int32, (loop, const(2, dt.int32)))
    end = UOp(Op.END, dt.void, (loop,))
    assert show_list([loop, value, end]) == (
        "%0 int32 = RANGE 8 [0 i]\n  %1 int32 = MUL %0 2\n%2 void = END %0"
    )


def test_long_chain_stays_short() -> None:
    """A very deep expression is shown without recursion and its formula is cut."""
    u = i
    for n in range(20_000):
        u = UOp(Op.ADD, dt.index, (u, const(n, dt.index)))
    assert len(show(u).splitlines()) == 20_000
    assert len(formula(u)) < 3000
    assert show(const(3, dt.int32)) == "%0 int32 = CONST [3]"
