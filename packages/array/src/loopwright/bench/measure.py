"""All peers' workers, in turns: what each measured, and whether its result was right."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from loopwright.bench.workloads import Workload
from loopwright_core.errors import ArgumentError, fail

WORKER = Path(__file__).parent / "peers" / "worker.py"
OURS, LIMIT = "loopwright", "limit"
PEERS = (OURS, "numpy", "torch", "jax", "numba", "numexpr", "onnxruntime")
# Set in some environments for processors on which old libraries fail; they slow a current one.
# Without bytecode kept, every import compiles again.
_CRIPPLING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "PYTHONDONTWRITEBYTECODE")
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOOPWRIGHT_THREADS",
)


@dataclass
class Cell:
    """Seconds a call of one peer on one workload, over all rounds, or why there are none."""

    times: list[float] = field(default_factory=list)
    first_s: float = math.nan
    error: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.times) if self.times else math.nan

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.times, (25, 75)) if self.times else (math.nan, math.nan)
        return float(low), float(high)


Row = dict[str, Cell]
Versions = dict[str, str]
TellPeer = Callable[[str, str], None]
TellRow = Callable[[Workload, Row], None]


class Worker:
    """One peer in a process of its own, on as many processors as it may have threads."""

    def __init__(self, peer: str, python: str, threads: int, cache: str) -> None:
        self.peer = peer
        env = {k: v for k, v in os.environ.items() if k not in _CRIPPLING}
        env |= dict.fromkeys(_THREADS, str(threads))
        env["LOOPWRIGHT_CACHE_DIR"] = cache
        if threads == 1:  # it starts threads of its own, and spins on the processor given to it
            env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
        self.process = subprocess.Popen(
            [python, str(WORKER), peer],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=env,
        )
        if hasattr(os, "sched_setaffinity"):
            allowed = sorted(os.sched_getaffinity(0))[:threads]
            os.sched_setaffinity(self.process.pid, allowed)
        self.hello = self.answer()
        self.error = str(self.hello.get("error", ""))
        self.version = str(self.hello.get("version", ""))
        self.import_s = float(self.hello.get("import_s", math.nan))
        self.workloads = frozenset(self.hello.get("workloads", ()))

    def ask(self, **command: Any) -> dict[str, Any]:
        """One command and its answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError:
            return {"error": "the process ended"}
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next answer; an error where the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"the process ended with status {self.process.wait()}"}
        return dict(json.loads(line))

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@dataclass(frozen=True)
class Plan:
    """What to measure and how. `pythons`: the interpreter of each peer that has one of its own."""

    workloads: tuple[Workload, ...]
    peers: tuple[str, ...] = PEERS
    pythons: tuple[tuple[str, str], ...] = ()
    threads: int = 1
    rounds: int = 7
    seconds: float = 0.1

    def python(self, peer: str) -> str:
        return dict(self.pythons).get(peer, sys.executable)


def measure(plan: Plan, tell_peer: TellPeer, tell_row: TellRow) -> tuple[Versions, dict[str, Row]]:
    """Every workload by every peer in turns: the versions, and a row of cells for each workload.

    `tell_peer` hears of each peer's version, or why it is not there; `tell_row` of each row.
    """
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        workers: dict[str, Worker] = {}
        try:
            versions: Versions = {}
            for peer in (*plan.peers, LIMIT):
                worker = Worker(peer, plan.python(peer), plan.threads, f"{folder}/cache")
                versions[peer] = worker.version or f"not measured: {worker.error}"
                tell_peer(peer, versions[peer])
                if worker.error:
                    worker.close()
                else:
                    workers[peer] = worker
            if not workers:
                fail(ArgumentError, "no peer could be started", fix="see the reasons above")
            rows = {}
            for workload in plan.workloads:
                rows[workload.name] = _row(workload, workers, plan, Path(folder))
                tell_row(workload, rows[workload.name])
            return versions, rows
        finally:
            for worker in workers.values():
                worker.close()


def first_result(workload: Workload, worker: Worker, folder: Path, expected: Any) -> Cell:
    """A worker's first result of a workload: when it came, and whether it is right."""
    path = folder / "result.npy"
    answer = worker.ask(prepare=workload.name, result=str(path))
    cell = Cell(first_s=answer.get("first_s", math.nan))
    cell.error = str(answer.get("error", ""))
    if not cell.error and worker.peer != LIMIT:
        cell.error = disagreement(workload, np.load(path), expected)
    return cell


def _row(workload: Workload, workers: dict[str, Worker], plan: Plan, folder: Path) -> Row:
    row: Row = {}
    expected = workload.expected()
    for peer, worker in workers.items():
        if workload.name not in worker.workloads:
            continue
        row[peer] = first_result(workload, worker, folder, expected)
    ready = {peer: worker for peer, worker in workers.items() if peer in row}
    for _ in range(plan.rounds):
        for peer, worker in ready.items():
            if row[peer].error:
                continue
            time.sleep(0.2 if plan.threads > 1 else 0.0)  # threads that still spin go to sleep
            answer = worker.ask(time=plan.seconds)
            row[peer].times += answer.get("times", [])
            row[peer].error = str(answer.get("error", ""))
    return row


def disagreement(workload: Workload, result: Any, expected: Any) -> str:
    """What is wrong with a result; "" where it is within the workload's tolerance."""
    result = np.asarray(result, np.float64)
    if result.size != expected.size:
        return f"wrong: shape {result.shape} instead of {expected.shape}"
    error = np.max(np.abs(result.reshape(expected.shape) - expected))
    scale = max(float(np.max(np.abs(expected))), 1e-30)
    if not error <= workload.tolerance * scale:
        return f"wrong: off by {error / scale:.2g} of the largest value"
    return ""
