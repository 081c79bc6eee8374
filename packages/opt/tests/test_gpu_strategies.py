"""Which steps the rules for workgroups choose, each at the edge where it begins to apply."""

from __future__ import annotations

from dataclasses import replace

import bodies
import pytest

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, Variable
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.options import Options
from loopwright_core.kernel.schedule import Opt
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_opt.apply import apply_all
from loopwright_opt.strategies.choice import proposals, propose
from loopwright_opt.text import parse, show

GPU = cuda("sm_80")
PARITY = Options(parity=True)


def steps(kernel: bodies.Kernel, options: Options = PARITY, **settings: int) -> str:
    named = {name.replace("__", "."): value for name, value in settings.items()}
    return show(propose(kernel, GPU, options, named).kernel.schedule.opts)


def matvec(m: int, n: int, is_turned: bool = False) -> bodies.Kernel:
    dims = Dim("i", m), Dim("k", n, True)
    i, k = [d.uop for d in dims]
    place = bodies.at(0, (n, m), k, i) if is_turned else bodies.at(0, (m, n), i, k)
    value = bodies.op(Op.MUL, bodies.load(place), bodies.load(bodies.at(1, (n,), k)))
    return bodies.kernel(dims, (bodies.at(2, (m,), i), bodies.reduce("add", value, k)))


def test_matvec() -> None:
    """Threads along a row where rows divide by 16 and their length by 8; can be switched off."""
    found = "GROUP k/1 8 · LOCAL i/1 4 · UPCAST i/4 4"
    assert steps(matvec(64, 32)) == found
    assert "GROUP k" not in steps(matvec(72, 32)).replace("GROUPTOP", "")
    assert "GROUP k" not in steps(matvec(64, 36)).replace("GROUPTOP", "")
    assert "GROUP k" not in steps(matvec(64, 32, is_turned=True)).replace("GROUPTOP", "")
    assert "GROUP k" not in steps(matvec(64, 32), matvec__use=0).replace("GROUPTOP", "")
    assert steps(matvec(64, 32), matvec__threads_per_row=16).startswith("GROUP k/1 16")


def test_small_outputs() -> None:
    """2048 outputs share their reduces among 16 threads, more do not; what 16 does not divide is
    left to the other rules."""
    assert steps(bodies.row_sums(2048, 64)) == "GROUPTOP k/1 16"
    assert "GROUP" not in steps(bodies.row_sums(2064, 64))
    assert "GROUP" not in steps(bodies.row_sums(128, 100))


def padded(n: int, m: int) -> bodies.Kernel:
    """An n x m output that is zero where i + j < 2."""
    dims = Dim("i", n), Dim("j", m)
    i, j = [d.uop for d in dims]
    two = UOp(Op.CONST, i.dtype, (), 2)
    is_in = UOp(Op.CMPLT, TRUE.dtype, (two, UOp(Op.ADD, i.dtype, (i, j))))
    return bodies.kernel(
        dims,
        (bodies.at(1, (n, m), i, j), bodies.load(bodies.at(0, (n, m), i, j, valid=is_in))),
    )


def test_masked_axes() -> None:
    """Axes of at most 7 that a pad masks are written out, while their product is at most 49."""
    assert steps(padded(7, 7)).startswith("UPCAST j 0 · UPCAST i 0")
    assert steps(padded(3, 9)).startswith("UPCAST i 0")
    assert "UPCAST j" not in steps(padded(3, 9))
    assert "UPCAST" not in steps(bodies.add(7))


def test_upcasts_share_loads() -> None:
    """Axes along which an operand stands still: the smaller strides first, 3 before 4, as long as
    1024 outputs remain."""
    assert steps(bodies.matmul(64, 64, 34)).startswith("UPCAST j/1 4 · UPCAST i/1 4 · LOCAL")
    assert steps(bodies.matmul(64, 96, 34)).startswith("UPCAST j/1 3 · UPCAST i/1 4 · LOCAL")
    assert steps(bodies.matmul(50, 64, 34)).startswith("UPCAST j/1 4 · LOCAL")
    assert "UPCAST" not in steps(bodies.matmul(32, 24, 36), groups__most=32)


def test_unrolls() -> None:
    """32 steps are written out whole, of 36 only 4; two short axes both."""
    options = {"groups__most": 32}
    assert steps(bodies.row_sums(100, 32), **options).startswith("UNROLL k/1 0")
    assert steps(bodies.row_sums(100, 36), **options).startswith("UNROLL k/1 4")
    assert "UNROLL" not in steps(bodies.row_sums(100, 37), **options)
    assert "UNROLL k2/1 0 · UNROLL l/1 0" in steps(bodies.convolution(32, 8, 32))


def test_last_resort() -> None:
    """The last axis by 4, where nothing else was written out."""
    assert steps(bodies.add(64)) == "UPCAST i/1 4 · LOCAL i/4 16"
    assert steps(bodies.add(66)) == "LOCAL i/1 3"


def test_locals() -> None:
    """At most three axes and 128 threads; 32 only along the first axis; or none at all."""
    assert steps(bodies.matmul(512, 512, 512)).endswith("LOCAL i/4 8 · LOCAL j/4 16")
    assert steps(bodies.add(1024)).endswith("LOCAL i/4 32")
    for kernel in (bodies.matmul(64, 64, 64), bodies.add(1024), matvec(64, 32)):
        opts = propose(kernel, GPU, Options(no_locals=True)).kernel.schedule.opts
        assert opts[-1] == Opt("NOLOCALS")
        assert not any(o.op in ("LOCAL", "GROUP", "GROUPTOP") for o in opts)


def test_shared_memory_and_whole_lines() -> None:
    """Without parity: tiles of operands, groups along and across rows, 16 bytes in one access."""
    ours = Options()
    tile = "UPCAST i 4 · LOCAL i/4 16 · LOCAL j/4 16 · TILE k 16 · STAGE A @k/16 · STAGE B @k/16"
    assert steps(bodies.matmul(), ours) == "VECTOR j 4 · " + tile
    assert steps(bodies.matmul(64, 65, 65), ours) == "UPCAST j 4 · " + tile
    assert "STAGE" not in steps(bodies.matmul(8, 64, 64), ours)
    assert steps(bodies.row_sums(100, 256), ours) == "VECTOR k 4 · GROUP k/4 32"
    assert steps(bodies.row_sums(100, 255), ours) == "GROUP k/1 64"
    assert steps(bodies.row_sums(2048, 64), ours) == "VECTOR k 4 · LOCAL i/1 4 · GROUP k/4 16"
    assert steps(bodies.column_sums(256, 128), ours) == "VECTOR i 4 · LOCAL i/4 16 · GROUP k 16"
    rows = "VECTOR j.0 4 · VECTOR j.1 4 · VECTOR j 4 · GROUP j.0/4 32 · GROUP j.1/4 32"
    assert steps(bodies.softmax(64, 128), ours) == rows + " · LOCAL j/4 32"
    assert steps(bodies.add(), ours) == "VECTOR i 4 · LOCAL i/4 128"


def test_whole_groups() -> None:
    """Without parity a workgroup is a subgroup at least, whatever divides."""
    odd = bodies.matmul(8, 67, 67)
    assert steps(odd) == "LOCAL i/1 8"
    assert steps(odd, Options()) == "LOCAL j/1 128 · TILE k/1 8 · STAGE A @k/8"
    assert steps(bodies.take(7, 9, 5), Options()) == "LOCAL j/1 8 · LOCAL i/1 8"


def test_split_reduces() -> None:
    """Where outputs fill few workgroups, a long reduce runs in parts; never under parity."""
    long = bodies.row_sums(2, 1 << 20)
    assert steps(long, Options()) == "VECTOR k 4 · GROUP k/4 256 · SPLITK k/1024 16"
    assert steps(long) == "GROUPTOP k/1 16"
    columns = bodies.column_sums(1 << 16, 64)
    assert steps(columns, Options()).endswith("GROUP k 16 · SPLITK k/16 64")
    assert "SPLITK" not in steps(bodies.row_sums(2, 1 << 16), Options())
    assert "SPLITK" not in steps(bodies.row_sums(200, 1 << 20), Options())


KERNELS = {
    "matmul": bodies.matmul(64, 48, 40),
    "softmax": bodies.softmax(),
    "add": bodies.add(),
    "symbolic": bodies.row_sums(Variable("n", 1, 9), 64),
    "row sums": bodies.row_sums(100),
    "column sums": bodies.column_sums(100, 200),
    "scan": bodies.running_sum(),
    "gather": bodies.take(),
    "stencil": bodies.stencil(),
    "convolution": bodies.convolution(16, 8, 12),
    "matvec": matvec(64, 64),
    "padded": padded(7, 12),
}


@pytest.mark.parametrize("name", KERNELS)
def test_proposals(name: str) -> None:
    """Every proposal is a list of legal steps that its text replays, the same every time; on a
    target without shared memory too."""
    kernel = KERNELS[name]
    for target in (GPU, metal(), replace(GPU, has_shared=False, shared_bytes=0, vector_bytes=())):
        for options in (Options(), PARITY, Options(no_locals=True)):
            found = proposals(kernel, target, options)
            assert found == proposals(kernel, target, options)
            assert found[0] == propose(kernel, target, options)
            for made in found:
                text = show(made.kernel.schedule.opts)
                assert apply_all(kernel, parse(text), target) == made.kernel
