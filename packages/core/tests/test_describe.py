"""Schedules in one line."""

from __future__ import annotations

from dataclasses import replace

from handmade import matmul

from loopwright_core.kernel.describe import describe, nest
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.schedule import Schedule, Stage


def test_describe() -> None:
    """One line of kinds and sizes in nest order; coloured on request, cut to a width."""
    k = matmul()
    assert describe(k) == "name  L4 L6 R8"
    assert describe(k, colour=True) == "name  \x1b[37mL4\x1b[0m \x1b[37mL6\x1b[0m \x1b[31mR8\x1b[0m"
    assert describe(k, width=10) == "name  L4 …"
    assert len(describe(k, width=10)) <= 10
    quiet = k.with_schedule(replace(k.schedule, no_locals=True))
    assert describe(quiet).endswith("no locals")


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
        "nest  [keep v0] thread i/2(2) { loop j(6) [stage B] { reduce k(8) }}  upcast i(2)"
    )
