"""Random kernels under random legal schedules of GPUs, in the interpreter (see test_schedules)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.machines import GPUS
from support.schedule_cases import Machine, Report, check_report, run_cases


@pytest.fixture(scope="module")
def report() -> Iterator[Report]:
    """What was applied how often, printed at the end of the module."""
    found = Report()
    yield found
    print(f"\n{found}")


@pytest.mark.parametrize("machine", GPUS, ids=[m.name for m in GPUS])
def test_random_legal_schedules(machine: Machine, report: Report) -> None:
    """Whatever the rules of the opts accept is lowered, verifies, and changes no bit of exact
    results, no more of others than rounding may, and no byte outside its buffers."""
    run_cases(machine, report)


def test_every_step_was_drawn(report: Report) -> None:
    """The schedules above hold every opt of these targets and every tail policy."""
    check_report(GPUS, report)
