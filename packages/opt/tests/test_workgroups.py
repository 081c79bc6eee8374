"""LOCAL, GROUP, GROUPTOP and NOLOCALS: what they make of a schedule."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import bodies
import pytest
from bodies import CPU, GPU

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.statements import statements_of
from loopwright_opt.apply import apply_all
from loopwright_opt.facts import facts_of
from loopwright_opt.legality.workgroups import escapes, shared_bytes
from loopwright_opt.text import parse, show

N = Variable("n", 1, 100)


def nest(kernel: Kernel, text: str) -> str:
    """The schedule after these steps, one letter and size an axis."""
    made = apply_all(kernel, parse(text), GPU)
    assert show(parse(show(made.schedule.opts))) == show(made.schedule.opts)
    return " ".join(f"{a.kind.value[0]}{a.name}({a.size})" for a in made.schedule.axes)


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
        (bodies.row_sums(32, 16), "GROUP k 0 · GROUP k/16 0", "gi/1(32) Gk/16(1) Gk/1(16)"),
        (bodies.row_sums(1, 16), "LOCAL i 0", "li/1(1) Rk/1(16)"),
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
    assert nest(bodies.centred(), "UNROLL i.0 2").startswith("gj/1(64) Li/1(64) Ri.0")
    assert nest(bodies.running_sum(), "UPCAST i 2") == "gi/2(8) Lj/1(64) ui/1(2)"


def test_no_locals() -> None:
    """NOLOCALS stands in the schedule."""
    made = apply_all(bodies.matmul(), parse("UPCAST i 4 · NOLOCALS"), GPU)
    assert made.schedule.no_locals and str(made.schedule) == "UPCAST i 4 · NOLOCALS"


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


@pytest.mark.parametrize("order", list(permutations(("i", "j", "i.0"))), ids=" ".join)
def test_escapes_are_those_of_the_statements(order: tuple[str, ...]) -> None:
    """Which loops a value leaves is found without statements and comes out the same."""
    kernel = apply_all(bodies.centred(), parse(f"TILE i 8 · ORDER {' '.join(order)}"), CPU)
    expected = [a for s in statements_of(kernel) if s.kind == "reduce" for a in s.escapes()]
    assert escapes(facts_of(kernel), kernel.schedule) == expected


def test_parts_count_in_their_own_launch() -> None:
    """A split reduce may have as many workgroups as the target launches: its parts are counted
    with the reduce's outputs, and not once more with those of the launch that joins them."""
    small = replace(GPU, global_max=(40, 7, 5))
    made = apply_all(bodies.matmul(20, 20, 16), parse("SPLITK k 2"), small)
    assert show(made.schedule.opts) == "SPLITK k 2"
    with pytest.raises(OptError, match=r"1600 workgroups are more than the target's 1400"):
        apply_all(bodies.matmul(20, 20, 16), parse("SPLITK k 4"), small)


@pytest.mark.parametrize(
    ("kernel", "text", "size"),
    [
        (bodies.stencil(), "LOCAL i 8 · STAGE A @i/8 halo", 4 * 10),
        (bodies.stencil(), "LOCAL i 8 · STAGE A @i/8", 4 * 8 * 3),
        (bodies.softmax(64, 100), "LOCAL j 32 · KEEP v0 @i", 4 * 128),
        (bodies.softmax(64, 100), "GROUP j.1 8 · KEEP v0 @i", 4 * (104 + 8)),
        (bodies.softmax(64, 100), "LOCAL i 8 · KEEP v0 @i/8", 4 * 8 * 100),
        (bodies.softmax(64, 100), "LOCAL i 8 · KEEP v0 @i", 0),
    ],
)
def test_shared_bytes(kernel: Kernel, text: str, size: int) -> None:
    """Windows and kept values take shared memory, but for values that are each thread's own."""
    made = apply_all(kernel, parse(text), GPU)
    assert shared_bytes(made, made.schedule) == size
