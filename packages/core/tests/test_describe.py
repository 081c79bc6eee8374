"""Schedules in one line."""

from __future__ import annotations

from dataclasses import replace

from handmade import F, at, kernel, load, matmul, op

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.outline import nest, outline
from loopwright_core.kernel.schedule import Schedule, Stage


def test_describe() -> None:
    """One line of kinds and sizes in nest order; coloured on request, cut to a width."""
    k = matmul()
    assert k.describe() == "name  i:L4 j:L6 k:R8"
    coloured = k.describe(colour=True)
    assert coloured == "name  \x1b[37mi:L4\x1b[0m \x1b[37mj:L6\x1b[0m \x1b[31mk:R8\x1b[0m"
    assert k.describe(width=10) == "name  i:L…"
    assert k.describe(width=20) == k.describe()
    for width in range(22):
        assert len(k.describe(width)) == min(width, 20)
    quiet = k.with_schedule(replace(k.schedule, no_locals=True))
    assert quiet.describe().endswith("k:R8 (no locals)")


def test_nest() -> None:
    """Loops open braces; stages stand at their axis, what is expanded behind the nest."""
    axes = (
        Axis("i", 2, 2, AxisKind.THREAD),
        Axis("j", 1, 6, AxisKind.LOOP),
        Axis("k", 1, 8, AxisKind.REDUCE),
        Axis("i", 1, 2, AxisKind.UPCAST),
    )
    k = matmul().with_schedule(Schedule(axes, (Stage("B", "j/1"), Stage("v0", "", "keep"))))
    assert nest(k) == (
        "nest  [keep v0] thread i/2(2) { loop j(6) [stage B] { reduce k(8) } }  upcast i(2)"
    )
    assert outline(k).splitlines() == [
        "[keep v0]",
        "thread i/2(2)",
        "  loop j(6) [stage B]",
        "    reduce k(8)",
        "      the sum over k",
        "    the store to C",
        "upcast i(2)",
    ]


def test_nests_side_by_side() -> None:
    """Loops that follow each other stand side by side, not inside one another."""
    i, k, j = Dim("i", 4), Dim("k", 6, True), Dim("j", 6)
    total = UOp(Op.REDUCE, F, (load(at(0, (4, 6), i.uop, k.uop)), k.uop), ("max",))
    value = op(Op.SUB, load(at(0, (4, 6), i.uop, j.uop)), total)
    made = kernel((i, j, k), (at(1, (4, 6), i.uop, j.uop), value))
    assert nest(made) == "nest  loop i(4) { reduce k(6); loop j(6) }"
