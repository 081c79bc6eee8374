"""Candidates that crash, hang, miscompute or take all memory, planted by a plugin."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import bodies
import faults
import pytest

from loopwright_core import pipeline
from loopwright_core.plugin import loader
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress, listening
from loopwright_opt import portable
from loopwright_opt.apply import apply_all
from loopwright_opt.search import Search
from loopwright_opt.text import parse
from loopwright_opt.worker import Limits, Task, Worker


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    """The device with planted failures, here and in every worker."""
    device = registry().device("cpu")
    if device.state()[0] != "ready":
        pytest.skip(device.state()[1])
    kept, path = os.environ.get("PYTHONPATH"), list(sys.path)
    before = loader.registry()
    with pytest.MonkeyPatch.context() as patch:
        faults.install(tmp_path_factory.mktemp("plugin"))
        importlib.invalidate_caches()
        fresh = loader.Registry()
        patch.setattr(loader, "_registry", fresh)
        yield fresh.device("faulty")
    assert loader.registry() is before
    sys.path[:] = path
    if kept is None:
        del os.environ["PYTHONPATH"]
    else:
        os.environ["PYTHONPATH"] = kept


@pytest.mark.parametrize(
    ("tile", "problem"),
    [
        (64, "ended by SIGSEGV"),
        (32, "no answer within"),
        (16, "wrong numbers"),
        (128, "out of memory"),
        (48, "wrote behind the end of C"),
        (96, "no answer within"),
    ],
)
def test_each_planted_failure_costs_one_candidate(
    faulty: Device, tmp_path: Path, tile: int, problem: str
) -> None:
    """It is told what went wrong, and the worker does the next task well."""
    kernel = bodies.add(1 << 16)
    expected = str(tmp_path / "expected")

    def attempt(worker: Worker, *steps: str) -> str:
        task = Task(portable.dump(kernel), steps, "faulty", faulty.target.key, expected)
        compiled = worker.perform(task, 2.0 if tile == 96 else 10.0)
        if compiled.binary is None:
            return compiled.problem
        return worker.perform(replace(task, binary=compiled.binary), 1.5).problem

    with Worker() as worker:
        assert attempt(worker) == ""
        assert problem in attempt(worker, f"TILE i {tile}")
        assert attempt(worker, "VECTOR i 4") == ""


def test_a_crash_costs_no_start(faulty: Device) -> None:
    """What crashes is a fork: the process that imported everything answers for it and goes on."""
    kernel = bodies.add(1 << 16)
    with Worker() as worker:
        task = Task(portable.dump(kernel), ("TILE i 64",), "faulty", faulty.target.key)
        crashing = replace(task, binary=worker.perform(task, 60.0).binary)
        process = worker._process
        for _ in range(3):
            assert worker.perform(crashing, 60.0).problem == "ended by SIGSEGV"
        good = replace(task, opts=())
        good = replace(good, binary=worker.perform(good, 60.0).binary)
        assert worker.perform(good, 60.0).times
        assert worker._process is process


def test_a_search_survives_what_is_planted(faulty: Device) -> None:
    """Crashes, endless loops and wrong numbers rank first and are tried; none of them wins."""
    kernel = bodies.add(1 << 16)

    def enough(progress: Progress) -> None:
        if progress.n_failed >= len(faults.FAULTS) and progress.n_timed > 3 and not progress.done:
            raise KeyboardInterrupt

    limits = Limits(compile_s=5.0, run_s=1.0)
    with listening(enough):
        found = Search(kernel, faulty, beam=2, budget_s=120.0, limits=limits).run()
    assert found.n_failed >= len(faults.FAULTS)
    problems = " ".join(found.problems)
    for what in ("SIGSEGV", "no answer", "wrong numbers", "out of memory", "behind the end"):
        assert what in problems
    winner = faulty.render(pipeline.lower(found.kernel, faulty.target))
    assert not faults.fault(winner)
    assert found.best_s <= found.start_s


def test_wrong_on_real_numbers_only(faulty: Device) -> None:
    """A candidate whose error shows on real values alone is found out when winners are checked."""
    kernel = bodies.add(1 << 16)
    with listening(until_timed(4)):
        start = apply_all(kernel, parse("TILE i 24"), faulty.target)
        found = Search(kernel, faulty, beam=2, budget_s=120.0, starts=(start,)).run()
    assert any(p.startswith("on other numbers: wrong numbers") for p in found.problems)
    winner = faulty.render(pipeline.lower(found.kernel, faulty.target))
    assert not faults.fault(winner)


def until_timed(n: int) -> Callable[[Progress], None]:
    def interrupt(progress: Progress) -> None:
        if progress.n_timed >= n and not progress.done:
            raise KeyboardInterrupt

    return interrupt
