"""LOCAL, GROUP, GROUPTOP and NOLOCALS: what they make of a schedule, and every rule broken."""

from __future__ import annotations

from dataclasses import replace

import bodies
import pytest
from bodies import CPU

from loopwright_core.errors import OptError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse, show

GPU = replace(
    CPU,
    name="gpu",
    vector_bytes=(16,),
    threads=1,
    has_local=True,
    has_shared=True,
    shared_bytes=48 << 10,
    max_threads=1024,
    local_max=(1024, 1024, 64),
    global_max=(2**31 - 1, 65535, 65535),
    subgroup=32,
)
N = Variable("n", 1, 100)


def nest(kernel: Kernel, text: str) -> str:
    """The schedule after these steps, one letter and size an axis."""
    made = apply_all(kernel, parse(text), GPU)
    assert show(parse(show(made.schedule.opts))) == show(made.schedule.opts)
    return " ".join(f"{a.kind.value[0]}{a.name}({a.size})" for a in made.schedule.axes)


def sum_of_sums(m: int = 8, n: int = 8) -> Kernel:
    """A reduce of a reduce that is squared."""
    dims = Dim("k", m, True), Dim("l", n, True)
    k, inner = [d.uop for d in dims]
    row = bodies.reduce("add", bodies.load(bodies.at(0, (m, n), k, inner)), inner)
    return bodies.kernel(
        dims, (bodies.at(1, ()), bodies.reduce("add", bodies.op(Op.MUL, row, row), k))
    )


def centred(m: int = 64, n: int = 64) -> Kernel:
    """x - sum of its column."""
    dims = Dim("i", m), Dim("j", n), Dim("i.0", m, True)
    i, j, i0 = [d.uop for d in dims]
    total = bodies.reduce("add", bodies.load(bodies.at(0, (m, n), i0, j)), i0)
    value = bodies.op(Op.SUB, bodies.load(bodies.at(0, (m, n), i, j)), total)
    return bodies.kernel(dims, (bodies.at(1, (m, n), i, j), value))


@pytest.mark.parametrize(
    ("kernel", "text", "axes"),
    [
        (
            bodies.matmul(64, 64, 64),
            "LOCAL i 8 · LOCAL j 16",
            "gi/8(8) gj/16(4) li/1(8) lj/1(16) Rk/1(64)",
        ),
        (bodies.matmul(64, 64, 64), "LOCAL j 0", "gi/1(64) gj/64(1) lj/1(64) Rk/1(64)"),
        (
            bodies.matmul(64, 64, 64),
            "UPCAST i 4 · LOCAL i/4 8",
            "gi/32(2) gj/1(64) li/4(8) Rk/1(64) ui/1(4)",
        ),
        (
            bodies.softmax(64, 100),
            "LOCAL j 32",
            "gi/1(64) lj/1(32) Lj/32(4) Rj.0/1(100) Rj.1/1(100)",
        ),
        (bodies.row_sums(32, 256), "GROUP k 8", "gi/1(32) Gk/1(8) Rk/8(32)"),
        (bodies.row_sums(32, 256), "GROUPTOP k 16", "gi/1(32) Gk/16(16) Rk/1(16)"),
        (bodies.row_sums(32, 250), "GROUPTOP k 16", "gi/1(32) Gk/16(16) Rk/1(16)"),
        (bodies.row_sums(32, 256), "GROUP k 8 · UNROLL k 4", "gi/1(32) Gk/4(2) Rk/8(32) rk/1(4)"),
        (bodies.row_sums(32, 256), "GROUP k 8 · UNROLL k 0", "gi/1(32) Rk/8(32) rk/1(8)"),
        (bodies.row_sums(32, 16), "GROUP k 0", "gi/1(32) Gk/1(16) Rk/16(1)"),
        (bodies.row_sums(N, 16), "GROUP k 4", "gi/1(n) Gk/1(4) Rk/4(4)"),
    ],
)
def test_steps(kernel: Kernel, text: str, axes: str) -> None:
    """Threads stand behind the grid, groups before their reduce's own loops."""
    assert nest(kernel, text).replace(str(N), "n") == axes


def test_starts_on_the_grid() -> None:
    """Outputs are on the grid, but for a row whose reduce would run once for each element."""
    assert nest(bodies.matmul(4, 5, 6), "UNROLL k 2").startswith("gi/1(4) gj/1(5) Rk")
    assert nest(bodies.softmax(4, 6), "UNROLL j.0 2").startswith("gi/1(4) Lj/1(6) Rj.0")
    assert nest(centred(), "UNROLL i.0 2").startswith("gj/1(64) Li/1(64) Ri.0")
    assert nest(bodies.running_sum(), "UPCAST i 2") == "gi/2(8) Lj/1(64) ui/1(2)"


def test_no_locals() -> None:
    """NOLOCALS stands in the schedule."""
    made = apply_all(bodies.matmul(), parse("UPCAST i 4 · NOLOCALS"), GPU)
    assert made.schedule.no_locals and str(made.schedule) == "UPCAST i 4 · NOLOCALS"


ILLEGAL: dict[str, tuple[Kernel, str, str]] = {
    "local of a reduce": (bodies.matmul(), "LOCAL k 8", "for output axes"),
    "local twice": (bodies.matmul(), "LOCAL i 8 · LOCAL i 4", "LOCAL already"),
    "local of an upcast": (bodies.matmul(), "UPCAST i 4 · LOCAL i 2", "UPCAST already"),
    "local along a scan": (bodies.running_sum(), "LOCAL j 4", "runs in order"),
    "local by no divisor": (bodies.matmul(), "TILE j 64 · LOCAL j 6", "does not divide"),
    "symbolic local": (bodies.row_sums(N), "LOCAL i 4", "can only loop"),
    "local amount": (bodies.matmul(), "LOCAL i 1", "2 or more"),
    "too many threads": (bodies.matmul(), "LOCAL i 64 · LOCAL j 32", "2048 threads are more"),
    "too many with a group": (bodies.matmul(), "LOCAL i 64 · GROUP k 32", "2048 threads are more"),
    "group of an output": (bodies.matmul(), "GROUP i 8", "GROUP is for reduce axes"),
    "grouptop of an output": (bodies.matmul(), "GROUPTOP i 8", "GROUPTOP is for reduce axes"),
    "group of an unroll": (bodies.matmul(), "UNROLL k 4 · GROUP k 2", "UNROLL already"),
    "nested group": (sum_of_sums(), "GROUP l 4", "runs inside a reduce over k"),
    "locals after NOLOCALS": (bodies.matmul(), "NOLOCALS · LOCAL i 8", "to the runtime"),
    "group after NOLOCALS": (bodies.matmul(), "NOLOCALS · GROUP k 8", "to the runtime"),
    "NOLOCALS after a local": (bodies.matmul(), "LOCAL i 8 · NOLOCALS", "LOCAL already"),
    "NOLOCALS twice": (bodies.matmul(), "NOLOCALS · NOLOCALS", "holds already"),
    "shared memory of parts": (
        bodies.matmul(),
        "UPCAST i 16 · UPCAST j 4 · GROUP k 256",
        "65536 bytes of shared memory",
    ),
    "shared memory of tiles": (
        bodies.matmul(),
        "TILE k 512 · LOCAL i 16 · LOCAL j 16 · STAGE A @k/512 · STAGE B @k/512",
        "65536 bytes of shared memory",
    ),
    "shared memory that grows": (
        bodies.matmul(),
        "TILE k 512 · LOCAL i 16 · STAGE A @k/512 · UPCAST i/16 4",
        "bytes of shared memory",
    ),
    "keep with threads": (bodies.softmax(), "LOCAL j 32 · KEEP v0 @i", "without LOCAL and GROUP"),
    "threads with a keep": (bodies.softmax(), "KEEP v0 @i · LOCAL j 32", "without LOCAL and GROUP"),
    "halo with threads": (bodies.stencil(), "LOCAL i 8 · STAGE A @i/8 halo", "without LOCAL"),
    "across workgroups": (
        centred(),
        "SWAP j i.0 · TILE i.0 8",
        "read at other ids, along j/1",
    ),
    "group apart from its reduce": (
        centred(),
        "GROUP i.0 8 · SWAP i.0 j",
        "other loops stand between the group",
    ),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal(case: str) -> None:
    """The step is refused with its reason and the kernel's name."""
    kernel, text, reason = ILLEGAL[case]
    with pytest.raises(OptError) as caught:
        apply_all(kernel, parse(text), GPU)
    assert reason in str(caught.value)
    assert "kernel" in str(caught.value)


@pytest.mark.parametrize("text", ["LOCAL i 8", "GROUP k 8", "GROUPTOP k 8", "NOLOCALS"])
def test_targets_without_workgroups(text: str) -> None:
    """A processor has no workgroups; a device without shared memory joins no groups."""
    with pytest.raises(OptError, match="needs workgroups"):
        apply_all(bodies.matmul(), parse(text), CPU)
    bare = replace(GPU, has_shared=False)
    if text.startswith("GROUP"):
        with pytest.raises(OptError, match="shared memory"):
            apply_all(bodies.matmul(), parse(text), bare)
    else:
        apply_all(bodies.matmul(), parse(text), bare)
