"""Launches larger than a device's dimensions, and memory that a workgroup's threads share."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import asts
import pytest
from asts import buffer, keep, op, sink

from loopwright_core.errors import VerifyError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.program import run_program
from loopwright_lower.indexing import index
from loopwright_lower.launch import factor, launch
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from support.exact_kernels import GuardedMemory
from support.planted import Edit, edited
from support.trap_runs import TARGETS, check, legal

LIMIT = 65535
SMALL = replace(TARGETS["cuda"], global_max=(LIMIT,) * 3)


def turned(*shape: int) -> UOp:
    """A sum in which no two dims merge."""
    x, y = buffer(0, *shape), buffer(1, *shape[::-1])
    back = asts.permute(y, *range(len(shape))[::-1])
    return sink((buffer(2, *shape), op(Op.ADD, x, back)))


@pytest.mark.parametrize(
    "shape", [(102400,), (65536, 2), (2, 65536), (65537,), (65539, 2), (3, 70001), (2, 2, 2, 16411)]
)
def test_grids_beyond_a_dimension(shape: tuple[int, ...]) -> None:
    """102400, 65536 x 2 and primes above 65535 run every element once."""
    ast = turned(*shape)
    plain = index(ast)
    program = lower(plain, SMALL)
    verify_program(program, SMALL)
    sizes = [n.arg for n in program.phases[0].global_size or ()]
    assert max(sizes) <= LIMIT
    memory = GuardedMemory(plain, 3)
    run_program(program, memory.arrays)
    a, b, c = (memory.arrays[n] for n in range(3))
    assert (c == a + b.transpose()).all() and memory.broken_guards() == []


@pytest.mark.parametrize("total", [65535, 65536, 65537, 102400, 131071, 1_000_003, 2**31 - 1])
def test_sizes_are_split_by_a_divisor_or_rounded_up(total: int) -> None:
    """The product of the dimensions is the size itself where some divisor allows it, and less
    than one more slice where none does."""
    found = factor(total, (LIMIT,) * 3)
    assert found is not None and max(found) <= LIMIT
    launched, inner = 1, 1
    for n in found:
        launched *= n
    for n in found[1:]:
        inner *= n
    assert total <= launched < total + inner
    has_divisor = any(total % d == 0 and total // d <= LIMIT for d in range(1, LIMIT + 1))
    if has_divisor:
        assert launched == total


def test_an_error_only_beyond_the_product() -> None:
    """Whatever fits the product of small maxima is launched."""
    limits = (5, 4, 3)
    for sizes in product(range(1, 8), repeat=2):
        launch("gidx", ("a/1", "b/1"), sizes, limits) if sizes[0] * sizes[1] <= 60 else None
    for n in range(1, 61):
        assert factor(n, limits) is not None
    assert factor(61, limits) is None


def rows_of_sums(m: int, n: int) -> UOp:
    x = buffer(0, m, n)
    return sink((buffer(1, m, n), op(Op.SUB, x, keep(x, "add", 1))))


TILES = (
    "LOCAL i 4 · LOCAL j 4 · TILE k 4 · STAGE A @k/4",
    "LOCAL i 4 · LOCAL j 4 · TILE k 4 · STAGE A @k/4 · STAGE B @k/4",
    "LOCAL i 2 · UPCAST j 4 · TILE k 2 · STAGE B @k/2",
    "TILE k 4 · LOCAL j 4 · UNROLL k 2 · STAGE A @k/4 · UPCAST i 2",
)


@pytest.mark.parametrize("target", ["cuda", "metal"])
@pytest.mark.parametrize("opts", TILES)
def test_a_tile_rewritten_in_the_next_step(opts: str, target: str) -> None:
    """A tile is not overwritten while threads still read it: right as lowered, a race without
    either of its barriers."""
    ast = asts.matmul(9, 7, 13)
    program = check(ast, opts, target)
    (phase,) = program.phases
    barriers = [u for u in phase.uops if u.op is Op.BARRIER]
    assert len(barriers) == 2
    for barrier in barriers:
        uops = edited(phase.uops, Edit(gone=frozenset({barrier})))
        with pytest.raises(VerifyError, match="no barrier between them"):
            broken = replace(program, phases=(replace(phase, uops=uops),))
            run_program(broken, GuardedMemory(index(ast), 0).arrays)


@pytest.mark.parametrize("target", ["cuda", "metal"])
def test_shared_sums_rewritten_in_the_next_row(target: str) -> None:
    """So it is with the parts of a grouped reduce where a workgroup takes several rows."""
    ast = rows_of_sums(6, 11)
    for opts in legal(
        ast, target, ("TILE i 3", "TILE i 2 · TILE i/2 2"), ("GROUP j.0 4", "GROUPTOP j.0 3")
    ):
        for more in legal(ast, target, (opts,), ("", "LOCAL j 4", "LOCAL j 8", "UPCAST j 2")):
            check(ast, more, target)


def test_values_across_threads_rewritten_in_the_next_step() -> None:
    """And with column sums that one workgroup's threads hand to each other, loop after loop."""
    x = buffer(0, 3, 6, 8)
    ast = sink((buffer(1, 3, 6, 8), op(Op.SUB, x, keep(x, "add", 1))))
    plain = index(ast)
    found = legal(
        ast,
        "cuda",
        ("LOCAL m 0", "LOCAL m 4"),
        ("LOCAL j 0", "LOCAL j 3"),
        ("SWAP j/1 m/1", "SWAP m/1 j/1", ""),
    )
    assert found
    for opts in found:
        check(ast, opts, "cuda")
    made = apply_all(plain, parse(found[0]), TARGETS["cuda"])
    assert made.schedule.opts
