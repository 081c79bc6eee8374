"""Kernels in two launches on a real processor: scratch belongs to whoever launches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import asts
import numpy as np
import pytest

from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from loopwright_render_clang.device import CpuDevice

DEVICE = CpuDevice()
TARGET = replace(DEVICE.target, threads=2, caches=(1 << 10, 1 << 8, 0))
pytestmark = pytest.mark.skipif(DEVICE.state()[0] != "ready", reason="no C compiler")


@pytest.mark.parametrize(
    "opts", ["SPLITK k 3", "THREAD k 2", "SPLITK k 4 · THREAD i 2", "STREAM k 4 · THREAD k/4096 2"]
)
def test_launches_at_once(opts: str) -> None:
    """Several Python threads launch one loaded kernel over arrays of their own: each gets its own
    sums, the same bits every time."""
    rows, length = 4, 1 << 15
    ast = asts.sink((asts.buffer(1, rows), asts.reduce(asts.buffer(0, rows, length), "add", 1)))
    program = lower(apply_all(index(ast), parse(opts), TARGET), TARGET)
    assert len(program.phases) == 2
    loaded = DEVICE.load(DEVICE.compile(DEVICE.render(program), program), program)

    def launch(seed: int) -> set[bytes]:
        numbers = np.random.default_rng(seed).integers(-9, 10, (rows, length)).astype(np.float32)
        sums = np.zeros(rows, np.float32)
        found = set()
        for _ in range(20):
            DEVICE.launch(loaded, [DEVICE.from_host(numbers), DEVICE.from_host(sums)])
            np.testing.assert_array_equal(sums, numbers.sum(axis=1))
            found.add(sums.tobytes())
        return found

    with ThreadPoolExecutor(4) as pool:
        assert [len(found) for found in pool.map(launch, range(4))] == [1] * 4
