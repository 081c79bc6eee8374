"""Schedules of common kernels beside those of the predecessors, on a CPU and on two GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopwright_core import pipeline
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.loader import registry
from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_opt.text import show
from support.access_counts import count
from support.parity_rows import ROWS, Row
from support.predecessor import notation

TARGETS: dict[str, Target] = {
    "cpu": replace(
        registry().device("cpu:x86-64-v3").target, threads=1, caches=(32 << 10, 1 << 20, 16 << 20)
    ),
    "metal": metal(),
    "cuda": cuda("sm_80"),
}


@pytest.mark.parametrize("which", TARGETS)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_parity(row: Row, which: str) -> None:
    """parity=True gives the predecessors' list of opts, to the letter."""
    kernel, target = row.kernel(), TARGETS[which]
    made = pipeline.schedule(kernel, target, Options(parity=True))
    assert notation(kernel, made.schedule.opts, target) == row.column(which)


@pytest.mark.parametrize("which", TARGETS)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_ours(row: Row, which: str) -> None:
    """Without the option we choose the same, or what the table says is ours."""
    kernel, target = row.kernel(), TARGETS[which]
    made = pipeline.schedule(kernel, target, Options())
    if which in row.ours:
        assert show(made.schedule.opts) == row.ours[which]
    else:
        assert notation(kernel, made.schedule.opts, target) == row.column(which)


DIFFERENT = [(r, which) for r in ROWS for which in ("metal", "cuda") if which in r.ours]


@pytest.mark.parametrize(("row", "which"), DIFFERENT, ids=lambda x: getattr(x, "name", x))
def test_ours_touches_less(row: Row, which: str) -> None:
    """Where ours differs on a GPU it loads or stores less often, and neither more often; or both
    as often, from fewer subgroups."""
    kernel, target = row.kernel(), TARGETS[which]
    ours, theirs = [
        count(pipeline.lower(pipeline.schedule(kernel, target, Options(parity=p)), target))
        for p in (False, True)
    ]
    assert ours.loads <= theirs.loads
    assert ours.stores <= theirs.stores
    accesses = ours.loads + ours.stores, theirs.loads + theirs.stores
    assert accesses[0] < accesses[1] or ours.subgroups < theirs.subgroups
