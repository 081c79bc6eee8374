"""Supervised workers: what one task may do to the others."""

from __future__ import annotations

import pickle
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.program.program import Param
from loopwright_core.trial import agrees, contents
from loopwright_opt.worker import Outcome, Task, Worker, carry

TASK = Task(b"", (), "cpu", "")
HEAD = "import os, pickle, struct, sys, time;sys.stdout.buffer.write(bytes(8)); sys.stdout.flush();"
ANSWER = (
    "from loopwright_opt.worker import Outcome; d = pickle.dumps(Outcome('here'));"
    "sys.stdout.buffer.write(struct.pack('<Q', len(d)) + d); sys.stdout.flush(); time.sleep(60)"
)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", HEAD + code]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
        ("os._exit(3)", "ended with status 3"),
        ("time.sleep(60)", "no answer within"),
        ("sys.stdout.buffer.write(struct.pack('<Q', 4) + b'junk')", "damaged"),
        ("sys.stdout.buffer.write(struct.pack('<Q', 1 << 40) + b'junk')", "ended with status 0"),
    ],
)
def test_a_failing_worker_costs_one_task(code: str, problem: str) -> None:
    """A crash, an exit, silence and a damaged answer are outcomes, and the process is gone."""
    worker = Worker(python(code))
    outcome = worker.perform(TASK, 1.0)
    assert problem in outcome.problem
    assert worker._process is None


def test_what_a_worker_started_ends_with_it(tmp_path: Path) -> None:
    """A child of a worker that hangs is ended too."""
    note = tmp_path / "pid"
    code = (
        "import subprocess; p = subprocess.Popen(['sleep', '60']);"
        f"open({str(note)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    )
    Worker(python(code)).perform(TASK, 1.5)
    pid = int(note.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _is_alive(pid):
        time.sleep(0.05)
    assert not _is_alive(pid)


def _is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_worker_answers() -> None:
    """An outcome comes back as it was sent."""
    with Worker(python(ANSWER)) as worker:
        assert worker.perform(TASK, 10.0) == Outcome("here")


def test_tasks_and_outcomes_travel() -> None:
    """Executors of other processes can carry both."""
    assert pickle.loads(pickle.dumps(TASK)) == TASK
    assert pickle.loads(pickle.dumps(Outcome("x", b"y", (1.0,)))).best_s == 1.0


def test_an_unknown_target_is_refused() -> None:
    """A worker whose device is another one says so instead of timing something else."""
    assert "another one here" in carry(TASK, 20.0).problem


def test_any_executor_carries_a_task() -> None:
    """Threads and processes give the same outcome."""
    for kind in (ThreadPoolExecutor, ProcessPoolExecutor):
        with kind(1) as pool:
            assert "another one here" in pool.submit(carry, TASK, 20.0).result().problem


def test_agreement_allows_another_order_of_summation_only() -> None:
    """Rounding is forgiven; a wrong element, NaN or infinity is not; integers are exact."""
    f = np.linspace(-4, 4, 64, dtype=np.float32)
    assert agrees(f + np.float32(1e-6), f, dt.float32)
    for wrong in (0.01, np.nan, np.inf):
        g = f.copy()
        g[7] += np.float32(wrong)
        assert not agrees(g, f, dt.float32)
        assert not agrees(f, g, dt.float32)
    n = np.arange(8)
    assert agrees(n, n, dt.int64)
    assert not agrees(n + 1, n, dt.int64)


@pytest.mark.parametrize(("dtype", "limit"), [(dt.int32, 1000), (dt.int64, 3), (dt.uint8, 1000)])
def test_positions_point_everywhere(dtype: DType, limit: int) -> None:
    """Made-up positions are below their limit and what the dtype holds, and reach up to it."""
    held = contents(Param(0, "A", dtype, (50_000,), False), 0, limit)
    values = held[: 50_000 * dtype.itemsize].view(dtype.numpy)
    assert values.min() == 0
    assert values.max() == min(limit, 128 if dtype.bits == 8 else limit) - 1
