"""Beam search: what it keeps, what it survives, when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import bodies
import pytest

from loopwright_core.errors import OptError
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress, listening
from loopwright_core.tuning import TuningDatabase
from loopwright_opt.apply import apply_all
from loopwright_opt.beam import tune
from loopwright_opt.comparison import correlate
from loopwright_opt.search import Search
from loopwright_opt.strategies.choice import propose
from loopwright_opt.text import parse


@pytest.fixture
def cpu() -> Device:
    device = registry().device("cpu")
    if device.state()[0] != "ready":
        pytest.skip(device.state()[1])
    return device


def until(n_timed: int) -> Callable[[Progress], None]:
    """A listener that presses Ctrl-C once so many candidates have been timed."""

    def interrupt(progress: Progress) -> None:
        if progress.n_timed >= n_timed and not progress.done:
            raise KeyboardInterrupt

    return interrupt


def test_a_search_is_no_slower_than_it_began(cpu: Device) -> None:
    """The winner's time in the rerun is at most the first schedule's."""
    with listening(until(8)):
        found = Search(bodies.matmul(96, 96, 96), cpu, beam=2, budget_s=60.0).run()
    assert found.best_s <= found.start_s
    assert found.n_timed == 8


def test_a_search_ends_with_its_budget(cpu: Device) -> None:
    """A search that could go on says that its budget has ended, whatever runs then."""
    found = Search(bodies.matmul(96, 96, 96), cpu, beam=2, budget_s=1.5).run()
    assert found.done == "the budget has ended"


def test_a_budget_too_short_for_a_run_gives_what_strategies_give(
    cpu: Device, tmp_path: Path
) -> None:
    """Where no candidate runs in time the kernel is scheduled as without a search; none is kept."""
    database = TuningDatabase(tmp_path)
    options = Options(schedule="beam", budget_s=0.01)
    kernel = bodies.matmul(96, 96, 96)
    made = tune(kernel, cpu.target, options, database=database)
    assert made == propose(kernel, cpu.target, options).kernel
    assert database.ls() == []


def test_a_reference_that_takes_too_long_ends_the_search(cpu: Device) -> None:
    """A kernel whose unoptimized form cannot run within the budget gets what strategies give."""
    kernel = bodies.matmul(2048, 2048, 2048)
    told: list[Progress] = []
    with listening(told.append):
        found = Search(kernel, cpu, budget_s=8.0).run()
    assert found.kernel == propose(kernel, cpu.target).kernel
    assert "unoptimized" in found.done or "budget" in found.done
    assert told[-1].best_s == found.best_s == 0.0


def test_slow_compilers_do_not_prolong_a_search(cpu: Device) -> None:
    """No task gets more time than is left, that of a carrying executor included."""
    seen: list[float] = []

    class Slow(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            seen.append(time.monotonic())
            return super().submit(time.sleep, 3.0)

    with Slow(1) as pool:
        found = Search(bodies.add(1 << 12), cpu, budget_s=1.0, executor=pool).run()
        ended = time.monotonic()
    assert found.done == "the budget has ended"
    assert ended < seen[0] + 3.0  # it did not wait for the first compile


def test_the_database_replays_the_winner(cpu: Device, tmp_path: Path) -> None:
    """A second call searches no more and gives the same steps; another listener is told."""
    database = TuningDatabase(tmp_path)
    options = Options(schedule="beam", beam=2, budget_s=60.0)
    told: list[Progress] = []
    kernel = bodies.softmax()
    with listening(until(4)):
        first = tune(kernel, cpu.target, options, database=database)
    with listening(told.append):
        again = tune(kernel, cpu.target, options, database=database)
    assert again.schedule == first.schedule
    assert [p.is_replay for p in told] == [True]
    other = TuningDatabase(tmp_path / "other")
    database.export(tmp_path / "out.json")
    other.import_(tmp_path / "out.json")
    with listening(told.append):
        assert tune(kernel, cpu.target, options, database=other).schedule == first.schedule
    assert told[-1].is_replay


def test_ctrl_c_keeps_the_best_so_far(cpu: Device) -> None:
    """An interrupt ends the search, not the program, and what it found is given."""
    with listening(until(3)):
        found = Search(bodies.softmax(), cpu, beam=2, budget_s=60.0).run()
    assert found.done.startswith("interrupted")
    assert found.best_s <= found.start_s


def test_an_executor_carries_the_compiling(cpu: Device) -> None:
    """A process pool compiles the candidates; times are taken here."""
    with ProcessPoolExecutor(2) as pool, listening(until(4)):
        found = Search(bodies.add(1 << 16), cpu, beam=1, budget_s=60.0, executor=pool).run()
    assert found.n_timed == 4
    assert not found.problems


def test_a_device_that_does_not_run_here_is_refused() -> None:
    """Text for another processor cannot be timed: the search says so and what to do."""
    target = registry().device("cpu:x86-64-v3").target
    with pytest.raises(OptError, match="heuristic"):
        tune(bodies.matmul(), target, Options(schedule="beam"))


def test_progress_counts_up(cpu: Device) -> None:
    """Numbers of a search's reports never fall, and the last one says why it ended."""
    told: list[Progress] = []
    stop = until(6)

    def listen(progress: Progress) -> None:
        told.append(progress)
        stop(progress)

    with listening(listen):
        Search(bodies.add(1 << 14), cpu, beam=1, budget_s=60.0).run()
    for before, after in pairwise(told):
        assert before.n_ranked <= after.n_ranked
        assert before.n_timed <= after.n_timed
        assert before.step <= after.step
    assert told[-1].done
    assert apply_all(bodies.add(1 << 14), parse(list(told[-1].opts)), cpu.target)


def test_rank_correlation() -> None:
    """One for the same order, minus one for the opposite, zero for too few to tell."""
    assert correlate([1, 2, 3, 4], [2, 4, 8, 9]) == 1
    assert correlate([1, 2, 3, 4], [9, 8, 4, 2]) == -1
    assert correlate([1, 2], [1, 2]) == 0
