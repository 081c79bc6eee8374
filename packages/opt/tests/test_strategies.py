"""The first strategy and the plugin's order of decision."""

from __future__ import annotations

import bodies
import pytest
from bodies import CPU

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.options import Options
from loopwright_opt.plugin import loopwright_schedule
from loopwright_opt.strategies.simple import propose
from loopwright_opt.text import show


def steps(kernel: bodies.Kernel) -> str:
    return show(propose(kernel, CPU).schedule.opts)


def test_simple() -> None:
    """Lanes along unit stride, copies where a load is reused, partial results in row reduces."""
    assert steps(bodies.matmul()) == "VECTOR j 16 · UPCAST i 4 · UPCAST j/16 2"
    assert steps(bodies.add()) == "VECTOR i 16"
    assert steps(bodies.row_sums(32, 256)) == "VECTOR k 16 · UPCAST k/16 4"
    assert steps(bodies.column_sums(64, 256)) == "VECTOR i 16 · UPCAST i/16 4"
    assert steps(bodies.softmax(64, 20)) == "VECTOR j 16 · VECTOR j.1 16 · VECTOR j.0 16"


def test_nothing_to_gain() -> None:
    """No lanes along a scan, a gathered row, a symbolic dim or fewer elements than lanes."""
    assert steps(bodies.running_sum()) == ""
    assert steps(bodies.add(3)) == ""
    assert steps(bodies.row_sums(Variable("n", 1, 9), 3)) == ""


def test_order_of_decision() -> None:
    """Given opts win, then the option; a kernel that carries opts is not scheduled again."""
    kernel = bodies.matmul()
    given = loopwright_schedule(kernel, CPU, Options(opts=("UPCAST i 2", "UNROLL k 2")))
    assert show(given.schedule.opts) == "UPCAST i 2 · UNROLL k 2"
    assert loopwright_schedule(given, CPU, Options()) is given
    assert loopwright_schedule(kernel, CPU, Options(schedule="none")) is kernel
    by_name = Options(schedule="none", opts_by_kernel=(("kernel", ("VECTOR j 4",)),))
    assert show(loopwright_schedule(kernel, CPU, by_name).schedule.opts) == "VECTOR j 4"
    with pytest.raises(OptError, match="beam"):
        loopwright_schedule(kernel, CPU, Options(schedule="beam"))
    with pytest.raises(OptError, match="not known"):
        loopwright_schedule(kernel, CPU, Options(schedule="best"))
