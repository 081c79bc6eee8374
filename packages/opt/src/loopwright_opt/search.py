"""Beam search: candidates are ranked by the cost model, the best compiled and timed, a few kept."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from statistics import median

from loopwright_core.errors import OptError, fail
from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress, report
from loopwright_opt import portable
from loopwright_opt.actions import neighbours
from loopwright_opt.cost import predict
from loopwright_opt.strategies.choice import proposals, propose, variations
from loopwright_opt.worker import Limits, Outcome, Task, Worker, carry

_log = logging.getLogger("loopwright.opt")

# A step must gain more than the machine's own unrest, and never less than this share.
MIN_NOISE = 0.02
MAX_NOISE = 0.10
# Candidates compiled in one step, and those of one predicted class among them.
N_COMPILED = 32
N_OF_CLASS = 2
MAX_ELEMENTS = 64
MAX_COST_RATIO = 1000.0
# Kept of the budget for checking the winner: seconds, and the share of a small budget.
_SETTLE_S = 6.0
_SETTLE_SHARE = 0.2
_TIMED_S = 0.05


@dataclass
class Candidate:
    """A schedule, its predicted seconds and, once it ran, the seconds of its runs."""

    kernel: Kernel
    predicted_s: float
    binary: bytes | None = None
    times: tuple[float, ...] = ()
    problem: str = ""

    @property
    def best_s(self) -> float:
        return min(self.times, default=float("inf"))


@dataclass
class Found:
    """What a search gives. Units: seconds; `correlation` of predicted and timed ranks."""

    kernel: Kernel
    best_s: float
    start_s: float
    n_ranked: int
    n_timed: int
    n_failed: int
    correlation: float
    done: str
    problems: dict[str, int]


@dataclass
class Search:
    """One search for one kernel. `executor` carries the compiling; default: threads here."""

    kernel: Kernel
    device: Device
    beam: int = 4
    budget_s: float = 30.0
    executor: Executor | None = None
    limits: Limits = field(default_factory=Limits)
    # Where the search may begin besides the strategies: as a kept result.
    starts: tuple[Kernel, ...] = ()
    _n_ranked: int = 0
    _step: int = 0
    _n_failed: int = 0
    _timed: list[Candidate] = field(default_factory=list)
    _problems: dict[str, int] = field(default_factory=dict)
    _seen: set[object] = field(default_factory=set)
    _start: Candidate | None = None
    _noise: float = MIN_NOISE

    def run(self) -> Found:
        """Search until a step gains less than the noise or the budget ends; Ctrl-C ends it too.

        Raises OptError where not even what the search begins with runs.
        """
        self._reserved = min(_SETTLE_S, self.budget_s * _SETTLE_SHARE)
        self._deadline = time.monotonic() + self.budget_s - self._reserved
        self._data = portable.dump(self.kernel)
        with tempfile.TemporaryDirectory(prefix="loopwright-tune-") as folder:
            self._folder = Path(folder)
            self._worker = Worker()
            n = 1 if self.executor else min(4, os.cpu_count() or 1)
            self._compilers = [Worker() for _ in range(n)]
            self._idle = list(self._compilers)
            self._pool = ThreadPoolExecutor(n)
            try:
                return self._search()
            finally:
                for worker in (self._worker, *self._compilers):
                    worker.close()
                self._pool.shutdown(wait=False, cancel_futures=True)

    def _search(self) -> Found:
        done = "the budget has ended"
        try:
            self._begin()
            entries = sorted(self._timed, key=lambda c: c.best_s)[: max(self.beam, 1)]
            while self._left() > 0:
                self._step += 1
                before = entries[0].best_s
                self._time(self._choose(self._derive(entries)))
                entries = sorted(self._timed, key=lambda c: c.best_s)[: max(self.beam, 1)]
                if entries[0].best_s > before * (1 - self._noise) and self._left() > 0:
                    done = "a step gained less than the noise"
                    break
        except KeyboardInterrupt:
            done = "interrupted: the best so far is kept"
            self._pool.shutdown(wait=False, cancel_futures=True)
            for worker in self._compilers:  # nothing else runs while the winner is checked
                worker.close()
        if self._start is None:
            fail(OptError, f"the search for {self.kernel.name} ended before anything ran")
        winner = self._settle()
        found = Found(
            winner.kernel,
            winner.best_s,
            self._start.best_s,
            self._n_ranked,
            len(self._timed),
            self._n_failed,
            correlate([c.predicted_s for c in self._timed], [c.best_s for c in self._timed]),
            done,
            dict(self._problems),
        )
        _log.info("%s: rank correlation %.2f, %s", self.kernel.name, found.correlation, done)
        self._report(done, winner, found.correlation)
        return found

    def _begin(self) -> None:
        """The unoptimized kernel is the reference; the strategy's is what must not be lost."""
        target = self.device.target
        plain = self._candidate(self.kernel)
        proposed = propose(self.kernel, target).kernel
        self._reference(plain)
        first = self._candidate(proposed)
        more = [self._candidate(k) for k in self.starts]
        for proposal in (*proposals(self.kernel, target), *variations(self.kernel, target)):
            more.append(self._candidate(proposal.kernel))
        self._time([c for c in [first, *more[: len(self.starts)]] if c is not None])
        if first is not None and first.times:
            self._start = first
            worker_times = self._attempt(first).times
            if worker_times:
                both = first.best_s, min(worker_times)
                self._noise = min(MAX_NOISE, max(MIN_NOISE, abs(both[0] / both[1] - 1)))
        rest = [c for c in more[len(self.starts) :] if c is not None]
        self._time(sorted(rest, key=lambda c: c.predicted_s)[: N_COMPILED // 2])

    def _reference(self, plain: Candidate | None) -> None:
        assert plain is not None
        outcome = self._compile_one(plain)
        plain.binary = outcome.binary
        if plain.binary is not None:
            outcome = self._attempt(plain)
        if outcome.problem:
            what = f"the unoptimized kernel {self.kernel.name} does not run: {outcome.problem}"
            fail(OptError, what, fix='Use schedule="heuristic", or a larger budget_s')
        plain.times = outcome.times
        self._timed.append(plain)
        self._start = plain
        self._report()

    def _derive(self, entries: list[Candidate]) -> list[Candidate]:
        target = self.device.target
        hook = registry().hook
        found: list[Candidate] = []
        for entry in entries:
            extra = tuple(
                [o for part in hook.loopwright_actions(kernel=entry.kernel, target=target)
                 for o in part]
            )  # fmt: skip
            for kernel in neighbours(self.kernel, entry.kernel, target, extra):
                made = self._candidate(kernel)
                if made is not None:
                    found.append(made)
                if self._left() <= 0:
                    return found
        return found

    def _candidate(self, kernel: Kernel) -> Candidate | None:
        """None for what was here before: the same axes and stages by another list of steps."""
        s = kernel.schedule
        key = (s.axes, s.stages, s.prefetch, s.nt_stores)
        if key in self._seen or elements(kernel) > MAX_ELEMENTS * 4:
            return None
        self._seen.add(key)
        self._n_ranked += 1
        target = self.device.target
        priced = registry().hook.loopwright_cost(kernel=kernel, target=target)
        return Candidate(kernel, predict(kernel, target) if priced is None else priced)

    def _choose(self, candidates: list[Candidate]) -> list[Candidate]:
        """The cheapest by prediction, few of one predicted class."""
        ranked = sorted(candidates, key=lambda c: c.predicted_s)
        classes: dict[int, int] = {}
        chosen: list[Candidate] = []
        for c in ranked:
            if c.predicted_s > ranked[0].predicted_s * MAX_COST_RATIO:
                break
            label = round(log(max(c.predicted_s, 1e-12)) * 100)
            classes[label] = classes.get(label, 0) + 1
            if classes[label] <= N_OF_CLASS:
                chosen.append(c)
            if len(chosen) == N_COMPILED:
                break
        return chosen

    def _time(self, candidates: list[Candidate]) -> None:
        """Compile them side by side, then, when no compiler runs any more, time one by one."""
        at_once = 8 if self.executor else 2 * len(self._compilers)
        for begin in range(0, len(candidates), at_once):
            if self._left() <= 0:
                return
            part = candidates[begin : begin + at_once]
            for c, outcome in zip(part, self._compile(part), strict=True):
                c.binary, c.problem = outcome.binary, outcome.problem
                if outcome.problem:
                    self._note(c)
            for c in part:
                if c.binary is None or self._left() <= 0:
                    continue
                outcome = self._attempt(c)
                c.times, c.problem = outcome.times, outcome.problem
                if c.problem:
                    self._note(c)
                else:
                    self._timed.append(c)
                self._report()

    def _compile(self, part: list[Candidate]) -> list[Outcome]:
        limit = self._limit()
        pool: Executor = self.executor or self._pool
        if self.executor is not None:
            waiting: list[Future[Outcome]] = [
                pool.submit(carry, self._task(c), limit) for c in part
            ]
        else:
            waiting = [pool.submit(self._compile_one, c) for c in part]
        wait_for(waiting, timeout=limit * len(part) + 5.0)
        found = []
        for future in waiting:
            if not future.done():
                future.cancel()
                found.append(Outcome("the executor gave no answer"))
            elif (error := future.exception()) is not None:
                found.append(Outcome(f"the executor failed: {type(error).__name__}"))
            else:
                found.append(future.result())
        return found

    def _compile_one(self, candidate: Candidate) -> Outcome:
        worker = self._idle.pop()
        try:
            return worker.perform(self._task(candidate), self._limit())
        finally:
            self._idle.append(worker)

    def _limit(self) -> float:
        """Seconds of one compile: less near the end of the budget, but for the reference."""
        if not self._timed:
            return self.limits.compile_s
        return min(self.limits.compile_s, max(1.0, self._left()))

    def _attempt(
        self, candidate: Candidate, seed: int = 0, worker: Worker | None = None
    ) -> Outcome:
        best = min((c.best_s for c in self._timed), default=0.0)
        task = self._task(candidate, seed, best)
        return (worker or self._worker).perform(task, self.limits.run_s)

    def _task(self, candidate: Candidate, seed: int = 0, best_s: float = 0.0) -> Task:
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
            # the unoptimized kernel may be very slow, and nothing hangs on its exact time
            timed_s=_TIMED_S if candidate.kernel.schedule.opts else 0.0,
        )

    def _settle(self) -> Candidate:
        """The best that is right on other numbers, in a fresh process, and faster in a rerun.

        What the search began with stays where nothing beats it there.
        """
        start = self._start
        assert start is not None
        with Worker() as worker:
            self._attempt(self._timed[0], 1, worker)  # writes what is expected of seed 1
            for c in sorted(self._timed, key=lambda c: c.best_s)[:4]:
                if c is start:
                    break
                if self._attempt(c, 1, worker).problem:
                    c.problem = "wrong on other numbers"
                    self._note(c)
                    continue
                mine, theirs = [], []
                for _ in range(3):  # in turns, so that both meet the same unrest
                    mine.append(self._attempt(c, 1, worker).best_s)
                    theirs.append(self._attempt(start, 1, worker).best_s)
                if median(mine) < median(theirs) and min(mine) < min(theirs):
                    c.times, start.times = (min(mine),), (min(theirs),)
                    return c
                if self._left() + self._reserved <= 0:
                    break
        return start

    def _note(self, candidate: Candidate) -> None:
        self._n_failed += 1
        problem = candidate.problem
        self._problems[problem] = self._problems.get(problem, 0) + 1
        _log.debug("%s: %s: %s", self.kernel.name, candidate.kernel.schedule, problem)

    def _left(self) -> float:
        return self._deadline - time.monotonic()

    def _report(
        self, done: str = "", winner: Candidate | None = None, correlation: float = 0.0
    ) -> None:
        best = winner or min(self._timed, key=lambda c: c.best_s)
        assert self._start is not None
        counted = estimate(self.kernel)
        report(
            Progress(
                self.kernel.name,
                self._step,
                self._n_ranked,
                len(self._timed),
                self._n_failed,
                best.best_s,
                self._start.best_s,
                max(0.0, self._left()),
                tuple(map(str, best.kernel.schedule.opts)),
                counted.flops,
                counted.bytes,
                done,
                correlation,
            )
        )


def elements(kernel: Kernel) -> int:
    """Copies that the expanded axes make of the widest statement, lanes not counted."""
    found = 1
    for axis in kernel.schedule.axes:
        if axis.kind.name in ("UPCAST", "UNROLL") and isinstance(axis.size, int):
            found *= axis.size
    return found


def correlate(first: Iterable[float], second: Iterable[float]) -> float:
    """Spearman's rank correlation, 0 where there is none to speak of.

    >>> correlate([1, 2, 3, 4], [10, 20, 30, 40]), correlate([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    a, b = _ranks(list(first)), _ranks(list(second))
    n = len(a)
    if n < 3:
        return 0.0
    mean = (n - 1) / 2
    above = sum((x - mean) * (y - mean) for x, y in zip(a, b, strict=True))
    below = sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b)
    return round(above / below**0.5, 4) if below else 0.0


def _ranks(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for place, at in enumerate(order):
        ranks[at] = float(place)
    return ranks
