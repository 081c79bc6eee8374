"""The first strategy and the plugin's order of decision."""

from __future__ import annotations

import bodies
import pytest
from bodies import CPU

from loopwright_core.errors import OptError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.dims import Dim
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


def elementwise(stored: DType, computed: DType) -> bodies.Kernel:
    """B[i] = A[i] + A[i], added in one dtype between two buffers of another."""
    dims = (Dim("i", 256),)
    i = dims[0].uop
    x = bodies.load(bodies.place(0, (256,), stored, i))
    wide = x if stored is computed else UOp(Op.CAST, computed, (x,))
    total = bodies.op(Op.ADD, wide, wide)
    back = total if stored is computed else UOp(Op.CAST, stored, (total,))
    return bodies.kernel(dims, (bodies.place(1, (256,), stored, i), back))


def test_lanes_fill_one_register_of_what_is_computed() -> None:
    """Narrow buffers do not make lanes wider than a register of the values between them."""
    assert steps(elementwise(dt.int8, dt.int8)) == "VECTOR i 64"
    assert steps(elementwise(dt.float16, dt.float32)) == "VECTOR i 16"
    for small in (dt.float16, dt.bfloat16, dt.float8_e5m2):  # computed in float32
        assert steps(elementwise(small, small)) == "VECTOR i 16"


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
