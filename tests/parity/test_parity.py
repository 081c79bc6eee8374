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
from support.parity_rows import ROWS, Row
from support.predecessor import notation

TARGETS: dict[str, Target] = {
    "cpu": replace(registry().device("cpu:x86-64-v3").target, threads=1),
    "metal": metal(),
    "cuda": cuda("sm_80"),
}


def scheduled(row: Row, target: Target, parity: bool) -> str:
    """The opts of the row's kernel in the predecessors' notation."""
    kernel = row.kernel()
    made = pipeline.schedule(kernel, target, Options(parity=parity))
    return notation(kernel, made.schedule.opts, target)


@pytest.mark.parametrize("which", TARGETS)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_parity(row: Row, which: str) -> None:
    """parity=True gives the predecessors' list of opts, to the letter."""
    assert scheduled(row, TARGETS[which], parity=True) == row.column(which)
