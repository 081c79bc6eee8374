"""Beam search: candidates are ranked by the cost model, the best compiled and timed, a few kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from math import log
from statistics import median

from loopwright_core.errors import OptError, fail
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.plugin.target import Target
from loopwright_core.progress import Progress, report
from loopwright_opt.actions import neighbours
from loopwright_opt.comparison import correlate, is_faster
from loopwright_opt.cost import predict
from loopwright_opt.facts import facts_of
from loopwright_opt.measure import ENDED, SAME, TIMED_S, Bench, Candidate, Pace
from loopwright_opt.strategies.choice import Proposal, proposals, variations
from loopwright_opt.worker import NO_ANSWER, Limits, Outcome

_log = logging.getLogger("loopwright.opt")
INTERRUPTED = "interrupted: the best so far is kept"

# Candidates compiled in one step, and those of one predicted class among them.
N_COMPILED = 32
N_OF_CLASS = 2
# What UPCAST and UNROLL may write out: vectors on a CPU, elements on a GPU.
MAX_VECTORS = 64
MAX_ELEMENTS = 256
MAX_COST_RATIO = 1000.0
# Steps without a gain before the search ends: the second looks at what ranked next.
_PATIENCE = 2
# What the unoptimized kernel may take of the budget for each set of numbers.
_REFERENCE_SHARE = 0.3
# Kept of the budget for checking the winner: so many trials, and the most of a small budget.
_SETTLE_TRIALS = 14
_SETTLE_SHARE = 0.4
_ROUNDS = 5


@dataclass
class Found:
    """What a search gives. Units: seconds; `correlation` of predicted and timed ranks.

    `best_s` and `start_s` are 0 where the budget ended before anything ran.
    """

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
    """One search for one kernel. `executor` carries the compiling; default: processes here."""

    kernel: Kernel
    device: Device
    beam: int = 4
    budget_s: float = 30.0
    executor: Executor | None = None
    limits: Limits = field(default_factory=Limits)
    options: Options = field(default_factory=Options)
    # Where the search may begin besides the strategies: as a kept result.
    starts: tuple[Kernel, ...] = ()
    _n_ranked: int = 0
    _step: int = 0
    _n_failed: int = 0
    _timed: list[Candidate] = field(default_factory=list)
    _waiting: list[Candidate] = field(default_factory=list)
    _problems: dict[str, int] = field(default_factory=dict)
    _seen: set[object] = field(default_factory=set)
    _start: Candidate | None = None
    _first: list[Candidate] = field(default_factory=list)
    _pace: Pace = field(default_factory=Pace)

    def run(self) -> Found:
        """Search until steps gain less than the noise or the budget ends; Ctrl-C ends it too.

        Raises OptError where the unoptimized kernel does not run.
        """
        end = time.monotonic() + self.budget_s
        with Bench(self.kernel, self.device, end, self.executor, self.limits) as self._bench:
            return self._search()

    def _search(self) -> Found:
        done = ENDED
        try:
            done = self._begin() or self._improve()
        except KeyboardInterrupt:
            done = INTERRUPTED
        self._bench.stop_compiling()
        if not self._has_begun():
            return self._unmeasured(done)
        winner = self._settle()
        assert self._start is not None
        ranks = [(c.predicted_s, c.steady_s) for c in self._timed]
        found = Found(
            winner.kernel,
            winner.best_s,
            self._start.best_s,
            self._n_ranked,
            len(self._timed),
            self._n_failed,
            correlate([p for p, _ in ranks], [t for _, t in ranks]),
            done,
            dict(self._problems),
        )
        _log.info("%s: rank correlation %.2f, %s", self.kernel.name, found.correlation, done)
        self._report(done, winner, found.correlation)
        return found

    def _begin(self) -> str:
        """The unoptimized kernel is the reference; what strategies propose must not be lost.

        A sentence where the search ends here.
        """
        plain = self._candidate(self.kernel)
        assert plain is not None
        made = proposals(self.kernel, self.device.target, self.options)
        first = [c for p in made if (c := self._candidate(p.kernel, p)) is not None]
        self._first = first
        more = [c for k in self.starts if (c := self._candidate(k)) is not None]
        self._bench.compile([plain, *first, *more])
        if problem := self._reference(plain):
            return problem
        for c in (*first, *more):
            self._try(c)
            if self._start is plain and c.times:  # what the kernel would get without a search
                self._start = c
        self._measure_pace()
        return ""

    def _has_begun(self) -> bool:
        """Whether what the strategies propose was tried: the unoptimized kernel is no find."""
        is_tried = all(c.problem not in ("", ENDED) for c in self._first)
        return len(self._timed) > (0 if is_tried else 1)

    def _reference(self, plain: Candidate) -> str:
        """Its results on two sets of numbers are what all others are compared with; a sentence
        where they are not there in time."""
        limit = _REFERENCE_SHARE * self.budget_s
        if plain.binary is not None:
            # it may be very slow, and nothing hangs on its exact time
            outcome = self._bench.attempt(plain, timed_s=0.0, limit_s=limit)
            plain.problem, plain.times = outcome.problem, outcome.times
            if plain.times:
                plain.problem = self._bench.attempt(plain, 1, timed_s=0.0, limit_s=limit).problem
        if plain.problem == ENDED:
            return ENDED
        if plain.problem.startswith(NO_ANSWER):
            return f"the unoptimized kernel, to compare with, takes more than {limit:.1f} s"
        if plain.problem:
            what = f"the unoptimized kernel {self.kernel.name} does not run: {plain.problem}"
            fail(OptError, what, fix='Use schedule="heuristic"')
        plain.steady_s = plain.best_s
        self._timed.append(plain)
        self._start = plain
        self._report()
        return ""

    def _improve(self) -> str:
        """Steps from the best; why they ended."""
        without_gain = 0
        while self._left() > 0:
            self._step += 1
            entries = self._entries()
            before = entries[0].steady_s
            self._derive(entries)
            if not self._waiting and self._left() > 0:
                return "nothing is left to try"
            self._time(self._choose())
            if self._left() <= 0:
                break
            is_gain = self._entries()[0].steady_s < before * (1 - self._pace.noise)
            without_gain = 0 if is_gain else without_gain + 1
            if without_gain == _PATIENCE:
                return f"steps gained less than the noise of {self._pace.noise:.1%}"
        return ENDED

    def _entries(self) -> list[Candidate]:
        return sorted(self._timed, key=lambda c: c.steady_s)[: max(self.beam, 1)]

    def _derive(self, entries: list[Candidate]) -> None:
        """Everything one move away from the best that was not thought of before."""
        for entry in entries:
            for kernel, proposal in self._moves(entry):
                made = self._candidate(kernel, proposal)
                if made is not None:
                    self._waiting.append(made)
                if self._left() <= 0:
                    return

    def _moves(self, entry: Candidate) -> Iterator[tuple[Kernel, Proposal | None]]:
        target = self.device.target
        if entry.proposal is not None:
            is_first = not entry.proposal.settings
            for made in variations(self.kernel, target, self.options, entry.proposal, is_first):
                yield made.kernel, made
        hook = registry().hook.loopwright_actions
        extra = [o for part in hook(kernel=entry.kernel, target=target) for o in part]
        for kernel in neighbours(self.kernel, entry.kernel, target, tuple(extra)):
            yield kernel, None

    def _candidate(self, kernel: Kernel, proposal: Proposal | None = None) -> Candidate | None:
        """None for what was here before: the same axes and stages by another list of steps."""
        s = kernel.schedule
        loops = tuple([a for a in s.axes if not a.kind.is_expanded])
        expanded = frozenset([a for a in s.axes if a.kind.is_expanded])
        key = loops, expanded, replace(s, axes=(), opts=())
        target = self.device.target
        if key in self._seen or not is_small(kernel, target):
            return None
        self._seen.add(key)
        self._n_ranked += 1
        priced = registry().hook.loopwright_cost(kernel=kernel, target=target)
        return Candidate(kernel, predict(kernel, target) if priced is None else priced, proposal)

    def _choose(self) -> list[Candidate]:
        """The cheapest by prediction, few of one predicted class; they wait no more."""
        self._waiting.sort(key=lambda c: c.predicted_s)
        classes: dict[int, int] = {}
        chosen: list[Candidate] = []
        rest: list[Candidate] = []
        for c in self._waiting:
            label = round(log(max(c.predicted_s, 1e-12)) * 100)
            is_wanted = len(chosen) < N_COMPILED and classes.get(label, 0) < N_OF_CLASS
            if is_wanted and c.predicted_s <= self._waiting[0].predicted_s * MAX_COST_RATIO:
                classes[label] = classes.get(label, 0) + 1
                chosen.append(c)
            else:
                rest.append(c)
        self._waiting = rest
        return chosen

    def _time(self, candidates: list[Candidate]) -> None:
        """Compile them side by side, then, when no compiler runs any more, time one by one."""
        at_once = self._bench.at_once
        for begin in range(0, len(candidates), at_once):
            if self._left() <= 0:
                return
            part = candidates[begin : begin + at_once]
            self._bench.compile(part)
            self._measure_pace()
            for c in part:
                if self._left() <= 0:
                    return
                self._try(c)

    def _try(self, c: Candidate) -> None:
        """Time one that was compiled."""
        if c.binary is not None:
            best = min([t.best_s for t in self._timed])
            outcome = self._bench.attempt(c, best_s=best)
            c.times, c.problem = outcome.times, outcome.problem
            c.steady_s = c.best_s / self._pace.now
            if c.times:
                self._timed.append(c)
        if c.problem not in ("", ENDED, SAME):
            self._note(c)
        self._report()

    def _measure_pace(self) -> None:
        """Time what the search began with again: what changes is the machine."""
        if self._start is not None and self._left() > 0:
            again = self._again(self._start, 0)
            if again.times:
                self._pace.add(again.best_s)

    def _again(self, c: Candidate, seed: int) -> Outcome:
        """Check and time one that ran before; a slow one is not timed for long."""
        assert self._start is not None
        timed_s = TIMED_S if c.best_s < TIMED_S else 0.0
        return self._bench.attempt(c, seed, self._start.best_s, timed_s)

    def _settle(self) -> Candidate:
        """The best that is right on other numbers, in a fresh process, and faster in turns.

        What the search began with stays where nothing beats it there.
        """
        start = self._start
        assert start is not None
        rivals = [c for c in sorted(self._timed, key=lambda c: c.steady_s)[:4] if c is not start]
        for c in rivals:
            if c.steady_s >= start.steady_s or self._bench.left() <= 0:
                break
            checked = self._again(c, 1)
            if checked.problem:
                if checked.problem != ENDED:
                    c.problem = f"on other numbers: {checked.problem}"
                    self._note(c)
                continue
            mine, theirs = [], []
            for _ in range(_ROUNDS):  # in turns, so that both meet the same unrest
                one = self._again(c, 1)
                two = self._again(start, 1)
                if not one.times or not two.times:
                    break
                mine.append(one.best_s)
                theirs.append(two.best_s)
            if is_faster(mine, theirs, self._pace.noise):
                c.times, start.times = (min(mine),), (min(theirs),)
                return c
        return start

    def _unmeasured(self, done: str) -> Found:
        """Too little ran to choose from: what the strategies say, as ever."""
        made = proposals(self.kernel, self.device.target, self.options)
        kernel = made[0].kernel if made else self.kernel
        self._tell(kernel, 0.0, 0.0, done)
        failed = self._n_failed
        return Found(kernel, 0.0, 0.0, self._n_ranked, 0, failed, 0.0, done, dict(self._problems))

    def _note(self, candidate: Candidate) -> None:
        self._n_failed += 1
        problem = candidate.problem
        self._problems[problem] = self._problems.get(problem, 0) + 1
        _log.debug("%s: %s: %s", self.kernel.name, candidate.kernel.schedule, problem)

    def _left(self) -> float:
        """Seconds until the winner must be checked."""
        trials = self._bench.trial_s
        reserve = 0.5 + _SETTLE_TRIALS * (median(trials) if trials else 0.0)
        return self._bench.left() - min(reserve, _SETTLE_SHARE * self.budget_s)

    def _report(
        self, done: str = "", winner: Candidate | None = None, correlation: float = 0.0
    ) -> None:
        best = winner or min(self._timed, key=lambda c: c.steady_s)
        start_s = self._start.best_s if self._start is not None else best.best_s
        best_s = best.best_s if winner else best.steady_s
        self._tell(best.kernel, best_s, start_s, done, correlation)

    def _tell(
        self, kernel: Kernel, best_s: float, start_s: float, done: str, correlation: float = 0.0
    ) -> None:
        counted = estimate(self.kernel)
        report(
            Progress(
                self.kernel.name,
                self._step,
                self._n_ranked,
                len(self._timed),
                self._n_failed,
                best_s,
                start_s,
                max(0.0, self._bench.left()),
                tuple(map(str, kernel.schedule.opts)),
                counted.flops,
                counted.bytes,
                done,
                correlation,
                is_interrupted=done == INTERRUPTED,
            )
        )


def is_small(kernel: Kernel, target: Target) -> bool:
    """Whether what UPCAST and UNROLL write out stays within bounds, in the widest statement."""
    axes = kernel.schedule.axes
    widest = max(target.vector_bytes, default=4)
    for statement in facts_of(kernel).statements:
        found = 1
        for a in axes:
            if a.dim in statement.dims and a.kind.is_expanded and isinstance(a.size, int):
                if a.kind is not AxisKind.VECTOR:
                    found *= a.size
                elif not target.has_local:
                    found *= max(1, a.size * 4 // widest)
        if found > (MAX_ELEMENTS if target.has_local else MAX_VECTORS):
            return False
    return True
