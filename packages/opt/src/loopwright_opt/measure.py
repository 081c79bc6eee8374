"""Candidates compiled side by side and timed one by one, within limits, by supervised workers."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import TracebackType

from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.device import Device
from loopwright_opt import portable
from loopwright_opt.strategies.choice import Proposal
from loopwright_opt.worker import Limits, Outcome, Task, Worker, carry

# What a step must gain at least, and what no machine's unrest is taken to exceed.
MIN_NOISE = 0.01
MAX_NOISE = 0.15
# Seconds that one candidate is timed for, about.
TIMED_S = 0.05
# A compile may take so many times what the others took before the search goes on without it, a
# run so many times the longest good one; both have a second at least.
_PATIENCE = 8.0
_LEAST_S = 1.0
ENDED = "the budget has ended"
SAME = "the same text as another one"


@dataclass
class Candidate:
    """A schedule, its predicted seconds and, once it ran, the seconds of its runs.

    `proposal`: where a strategy made it. `steady_s`: its best time as it would be at the machine's
    first pace.
    """

    kernel: Kernel
    predicted_s: float
    proposal: Proposal | None = None
    binary: bytes | None = None
    times: tuple[float, ...] = ()
    steady_s: float = float("inf")
    problem: str = ""

    @property
    def best_s(self) -> float:
        return min(self.times, default=float("inf"))


class Pace:
    """How fast the machine is now, by a yardstick that is timed again and again."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def add(self, seconds: float) -> None:
        """The yardstick took so long just now."""
        self._times.append(seconds)

    @property
    def now(self) -> float:
        """What the yardstick takes now by what it took at first: above 1, all is slower."""
        return median(self._times[-3:]) / self._times[0] if self._times else 1.0

    @property
    def noise(self) -> float:
        """By what share a time differs from the next one of the same schedule, usually."""
        apart = [abs(b / a - 1) for a, b in zip(self._times, self._times[1:], strict=False)]
        return min(MAX_NOISE, max(MIN_NOISE, median(apart))) if apart else MIN_NOISE


@dataclass
class Bench:
    """Workers for one kernel: some compile, one times. Nothing goes on after `end` (monotonic).

    `executor` carries the compiling; default: processes of this machine.
    """

    kernel: Kernel
    device: Device
    end: float
    executor: Executor | None = None
    limits: Limits = field(default_factory=Limits)
    compile_s: list[float] = field(default_factory=list)
    trial_s: list[float] = field(default_factory=list)
    _by_text: dict[bytes, Candidate] = field(default_factory=dict)

    def __enter__(self) -> Bench:
        self._data = portable.dump(self.kernel)
        self._temporary = tempfile.TemporaryDirectory(prefix="loopwright-tune-")
        self._folder = Path(self._temporary.name)
        self._n = min(4, os.cpu_count() or 1)
        self._workers = [Worker() for _ in range(self._n)]
        self._timer = self._workers[0]
        self._idle = list(self._workers)
        self._pool = ThreadPoolExecutor(self._n)
        for worker in self._workers[: 1 if self.executor else self._n]:
            worker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._temporary.cleanup()

    def stop_compiling(self) -> None:
        """Nothing else runs while a winner is checked, by a process that ran no candidate yet."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers[:-1]:
            worker.close()
        if self._n == 1 or len(self._idle) < self._n:
            self._workers[-1].close()
        self._timer = self._workers[-1]

    @property
    def at_once(self) -> int:
        """How many candidates are compiled before those are timed."""
        return 8 if self.executor else 4 * self._n

    def left(self) -> float:
        return self.end - time.monotonic()

    def compile(self, part: Sequence[Candidate]) -> None:
        """Fill in each one's binary or problem; one with another's binary is taken for that."""
        limit = self._compile_limit()
        if self.executor is not None:
            waiting: list[Future[Outcome]] = [
                self.executor.submit(carry, self._task(c), limit) for c in part
            ]
            rounds = len(part)
        else:
            waiting = [self._pool.submit(self._compile_one, self._task(c), limit) for c in part]
            rounds = -(-len(part) // self._n)
        wait_for(waiting, timeout=max(0.0, min(limit * rounds + 5.0, self.left())))
        for c, future in zip(part, waiting, strict=True):
            outcome = _outcome(future) if future.done() else None
            if outcome is None:
                future.cancel()
                outcome = Outcome("the executor gave no answer")
            if outcome.problem and self.left() <= 0:
                outcome = Outcome(ENDED)
            c.problem, c.binary = outcome.problem, outcome.binary
            if c.binary is not None:
                digest = hashlib.sha256(c.binary).digest()
                first = self._by_text.setdefault(digest, c)
                if first is not c:
                    c.times, c.steady_s = first.times, first.steady_s
                    c.problem, c.binary = SAME, None

    def _compile_one(self, task: Task, limit_s: float) -> Outcome:
        worker = self._idle.pop()
        begin = time.monotonic()
        try:
            return worker.perform(task, limit_s, self.end)
        finally:
            self.compile_s.append(time.monotonic() - begin)
            self._idle.append(worker)

    def _compile_limit(self) -> float:
        usual = median(self.compile_s) if self.compile_s else self.limits.compile_s
        return min(self.limits.compile_s, max(_LEAST_S, _PATIENCE * usual))

    def attempt(
        self,
        candidate: Candidate,
        seed: int = 0,
        best_s: float = 0.0,
        timed_s: float = TIMED_S,
        limit_s: float | None = None,
    ) -> Outcome:
        """Check a compiled candidate on the numbers of a seed, and time it."""
        usual = max(self.trial_s) if self.trial_s else self.limits.run_s
        limit = limit_s or min(self.limits.run_s, max(_LEAST_S, _PATIENCE * usual))
        task = self._task(candidate, seed, best_s, timed_s)
        begin = time.monotonic()
        outcome = self._timer.perform(task, limit, self.end)
        if not outcome.problem and best_s:  # the unoptimized kernel's own runs set no example
            self.trial_s.append(time.monotonic() - begin)
        return Outcome(ENDED) if outcome.problem and self.left() <= 0 else outcome

    def _task(
        self, candidate: Candidate, seed: int = 0, best_s: float = 0.0, timed_s: float = TIMED_S
    ) -> Task:
        return Task(
            self._data,
            tuple(map(str, candidate.kernel.schedule.opts)),
            self.device.name,
            self.device.target.key,
            str(self._folder / f"expected{seed}"),
            seed,
            candidate.binary,
            best_s,
            memory_bytes=self.limits.memory_bytes,
            timed_s=timed_s,
        )


def _outcome(future: Future[Outcome]) -> Outcome:
    error = future.exception()
    if error is not None:
        return Outcome(f"the executor failed: {type(error).__name__}")
    return future.result()
