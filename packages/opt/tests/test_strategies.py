"""Which structure each strategy chooses on named processors, and the plugin's order of decision."""

from __future__ import annotations

from dataclasses import replace

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
from loopwright_core.plugin.target import Target
from loopwright_opt.apply import apply_all
from loopwright_opt.plugin import loopwright_schedule
from loopwright_opt.strategies.choice import OURS, proposals, propose, strategies, variations
from loopwright_opt.text import parse, show

# As `cpu:x86-64-v3` and `cpu:x86-64-v4`, on one thread.
V3 = replace(CPU, name="v3", vector_bytes=(16, 32), registers=16, threads=1)
V4 = replace(CPU, name="v4", vector_bytes=(16, 32, 64), registers=32, threads=1)


def steps(kernel: bodies.Kernel, target: Target = V4) -> str:
    return show(propose(kernel, target).kernel.schedule.opts)


def test_products() -> None:
    """Six rows by what the registers hold, over panels of B: in L2 where there are 32 registers,
    strip by strip in L1 where there are 16."""
    assert steps(bodies.matmul(512, 512, 512), V3) == (
        "TILE k 512 · TILE i 66 · UPCAST i 6 · TILE j 16 · VECTOR j 8 · UPCAST j/8 0"
        " · ORDER k/512 i/66 j/16 i/6 k/1"
        " · STAGE B @k/512 layout j/16,k/1,j/8,j/1 order k/1,j/16,j/8,j/1"
        " · STAGE A @i/66 layout i/6,k/1,i/1 order i/6,k/1,i/1 · PREFETCH C"
    )
    assert "STAGE A" not in steps(bodies.matmul(512, 192, 512), V3)
    assert "STAGE A" not in steps(bodies.matmul(512, 512, 64), V3)
    assert "STAGE" not in steps(bodies.matmul(64, 64, 64), V3)
    assert steps(bodies.matmul(), V4) == (
        "TILE j 256 · TILE k 512 · UPCAST i 6 · TILE j 64 · VECTOR j 16 · UPCAST j/16 0"
        " · ORDER j/256 k/512 i/6 j/64 k/1"
        " · STAGE B @k/512 layout j/64,k/1,j/16,j/1 order k/1,j/64,j/16,j/1 · PREFETCH C"
    )


def test_small_products() -> None:
    """Too few rows for a copy: the register tile alone, cut evenly."""
    tile = "UPCAST i 6 · TILE j 16 · VECTOR j 8 · UPCAST j/8 0 · ORDER i/6 j/16 k"
    assert steps(bodies.matmul(12, 64, 64), V3) == tile
    few = "UPCAST i 4 · TILE j 24 · VECTOR j 8 · UPCAST j/8 0 · ORDER i/4 j/24 k"
    assert steps(bodies.matmul(7, 48, 64), V3) == few
    assert steps(bodies.matmul(2, 8, 16), V3) == "UPCAST i 2 · VECTOR j 8 · ORDER i/2 j/8 k"


def test_few_columns() -> None:
    """Long rows by three columns: dot products, over a turned copy of the columns."""
    turned = "STAGE B @ layout j/3,j/1,k/8,k/1"
    dots = f"VECTOR k 8 · UPCAST j 3 · UPCAST i 4 · ORDER i/4 j/3 · {turned}"
    assert steps(bodies.matmul(512, 3, 512), V3) == dots
    assert "VECTOR k" not in steps(bodies.matmul(512, 3, 17), V3)


def test_streams_and_rows() -> None:
    """Lanes along unit stride, several vectors at once, several rows or partial results."""
    assert steps(bodies.add(1 << 16)) == "VECTOR i 16 · UPCAST i/16 4"
    assert steps(bodies.row_sums(32, 256)) == "VECTOR k 16 · UPCAST i 4 · UPCAST k/16 2"
    assert steps(bodies.row_sums(3, 256)) == "VECTOR k 16 · UPCAST k/16 4"
    assert steps(bodies.softmax(64, 200)) == (
        "VECTOR j 16 · VECTOR j.1 16 · VECTOR j.0 16 · UPCAST j.0/16 4 · UPCAST j.1/16 4"
        " · UPCAST j/16 4 · KEEP v0 @i/1"
    )


def test_columns() -> None:
    """Rows are read along their length, eight at a time; few columns stay in registers."""
    assert steps(bodies.column_sums(64, 256)) == (
        "TILE k 8 · UNROLL k 0 · VECTOR i 16 · UPCAST i/16 4 · ORDER k/8 i/64"
    )
    assert steps(bodies.column_sums(64, 32)) == "VECTOR i 16 · UPCAST i/16 2 · UPCAST k 4"
    wide = steps(bodies.column_sums(64, 1 << 16))
    assert wide.startswith("TILE i 4096 · ") and wide.endswith("ORDER i/4096 k/8 i/64")


def transpose(m: int, n: int) -> bodies.Kernel:
    dims = Dim("i", m), Dim("j", n)
    i, j = [d.uop for d in dims]
    return bodies.kernel(
        dims, (bodies.at(1, (m, n), i, j), bodies.load(bodies.at(0, (n, m), j, i)))
    )


def test_transposes() -> None:
    """Tiles through a copy that is read along the input's rows; none where one side is short."""
    assert steps(transpose(512, 300), V3) == (
        "TILE i 64 · TILE j 64 · VECTOR j 8 · ORDER j/64 i/64 i/1 j/8"
        " · STAGE A @i/64 order j/8,j/1,i/1"
    )
    assert "STAGE" not in steps(transpose(512, 8), V3)


def test_outputs_that_no_cache_holds() -> None:
    """Elementwise results and transposes are written past the caches where the launch touches more
    than those hold, transposes in longer rows; results of reduces and small ones are not."""
    assert steps(bodies.add(1 << 24)) == "VECTOR i 16 · UPCAST i/16 4 · NTSTORE C"
    assert "NTSTORE" not in steps(bodies.add(1 << 16))
    assert "NTSTORE" not in steps(bodies.add((1 << 24) + 1))  # its last vector is not whole
    far = steps(transpose(2048, 2048), V3)
    assert far.startswith("TILE i 128 · TILE j 128 · ") and far.endswith("NTSTORE B")
    assert "NTSTORE" not in steps(bodies.softmax(4096, 4096))
    assert "NTSTORE" in steps(bodies.exponential(1 << 24), V4)  # a vector is a line
    assert "NTSTORE" not in steps(bodies.exponential(1 << 24), V3)  # half lines, long apart
    assert "NTSTORE" in steps(bodies.add(1 << 24), V3)
    with_l3 = replace(V4, caches=(32 << 10, 1 << 20, 1 << 30))
    assert "NTSTORE" not in steps(bodies.add(1 << 24), with_l3)


def test_windows() -> None:
    """Channels by pixels in registers over a copy with its halo."""
    text = steps(bodies.convolution(32, 16, 20), V3)
    assert "STAGE A @j/8 halo" in text and "UPCAST i 6" in text and "VECTOR m 8" in text


def test_threads() -> None:
    """An outer loop in slices where there is work for all, at the grain of its tiles."""
    four = replace(V3, threads=4)
    assert steps(bodies.matmul(), four).endswith("THREAD j/256 4")
    assert steps(bodies.add(1 << 19), four).endswith("THREAD i/32 4")
    assert steps(bodies.softmax(4096, 1024), four).endswith("THREAD i/1 4")
    assert "THREAD" not in steps(bodies.add(1 << 14), four)
    assert "THREAD" not in steps(bodies.add(1 << 24), V3)


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
    assert steps(elementwise(dt.int8, dt.int8)).startswith("VECTOR i 64")
    assert steps(elementwise(dt.float16, dt.float32)).startswith("VECTOR i 16")
    for small in (dt.float16, dt.bfloat16, dt.float8_e5m2):  # computed in float32
        assert steps(elementwise(small, small)).startswith("VECTOR i 16")


def test_nothing_to_gain() -> None:
    """No lanes along a gathered row, a symbolic dim or fewer elements than lanes."""
    assert steps(bodies.add(3)) == ""
    assert steps(bodies.row_sums(Variable("n", 1, 9), 12)) == ""
    assert steps(bodies.running_sum(4, 64)) == ""
    assert steps(bodies.running_sum()) == "UPCAST i 4"


ALL = {
    "matmul": bodies.matmul(),
    "small matmul": bodies.matmul(7, 9, 5),
    "softmax": bodies.softmax(),
    "add": bodies.add(),
    "row sums": bodies.row_sums(100),
    "column sums": bodies.column_sums(100, 200),
    "scan": bodies.running_sum(),
    "gather": bodies.take(),
    "stencil": bodies.stencil(),
    "convolution": bodies.convolution(16, 8, 12),
    "transpose": transpose(64, 64),
}


@pytest.mark.parametrize("name", ALL)
def test_proposals(name: str) -> None:
    """A proposal is a list of legal steps that its text replays, the same every time, on every
    target and with every value of every parameter; it says why."""
    kernel = ALL[name]
    for target in (V3, V4, replace(V3, threads=2), replace(V3, vector_bytes=())):
        made = propose(kernel, target)
        assert propose(kernel, target) == made
        assert apply_all(kernel, parse(show(made.kernel.schedule.opts)), target) == made.kernel
        assert bool(made.why) == bool(made.kernel.schedule.opts)
    assert propose(kernel, V3) == proposals(kernel, V3)[0]
    for base in proposals(kernel, V3):
        for made in variations(kernel, V3, Options(), base):
            assert apply_all(kernel, made.kernel.schedule.opts, V3) == made.kernel
            assert len(made.settings) == 1


def test_ours_are_registered() -> None:
    """The plugin's strategies are those the optimizer collects; names and parameters are unique."""
    assert [s for s in strategies() if s in OURS] == list(OURS)
    assert len({s.name for s in OURS}) == len(OURS)
    for each in OURS:
        names = [p.name for p in each.parameters]
        assert len(set(names)) == len(names)
        assert all(p.default in p.choices for p in each.parameters)


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
