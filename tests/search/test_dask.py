"""Searches that a Dask cluster carries: the same as with any other executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

import bodies
import pytest

from loopwright_core.kernel.options import Options
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress, listening
from loopwright_core.tuning import TuningDatabase
from loopwright_opt.beam import tune
from loopwright_opt.worker import Task, carry

distributed = pytest.importorskip(
    "distributed", reason="the extra loopwright[tune] is not installed: tox -e tune"
)


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    """Two worker processes on this machine, as an executor."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client.get_executor()


@pytest.fixture
def cpu() -> Device:
    device = registry().device("cpu")
    if device.state()[0] != "ready":
        pytest.skip(device.state()[1])
    return device


def test_a_cluster_carries_a_search(executor: Executor, cpu: Device, tmp_path: Path) -> None:
    """Its workers compile the candidates, this machine times them, and the winner is replayed."""
    kernel = bodies.matmul(96, 96, 96)
    options = Options(schedule="beam", beam=2, budget_s=120.0)
    database = TuningDatabase(tmp_path)
    told: list[Progress] = []

    def listen(progress: Progress) -> None:
        told.append(progress)
        if progress.n_timed >= 6 and not progress.done:
            raise KeyboardInterrupt

    with listening(listen):
        found = tune(kernel, cpu.target, options, executor=executor, database=database)
    assert told[-1].n_timed == 6
    assert told[-1].best_s <= told[-1].start_s
    with listening(told.append):
        assert tune(kernel, cpu.target, options, database=database).schedule == found.schedule
    assert told[-1].is_replay


def test_a_worker_of_another_kind_refuses(executor: Executor, cpu: Device) -> None:
    """A machine whose device is another one says so; its binaries would be of no use here."""
    task = Task(b"", (), "cpu", replace(cpu.target, threads=99).key)
    assert "another one here" in executor.submit(carry, task, 60.0).result().problem
