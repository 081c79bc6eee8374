"""z3 proves that no access of any kernel leaves its buffer, before and after lowering."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from loopwright_core.kernel.options import Options
from loopwright_core.plugin.target import Target
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.plugin import loopwright_schedule
from loopwright_render_clang import cpu
from support.exact_kernels import KERNELS
from support.random_opts import Opts

pytest.importorskip("z3")
from support.z3_bounds import Report, prove_kernel, prove_program

TARGET: Target = cpu.variant("x86-64-v3")
PER_KERNEL = 16


@pytest.fixture(scope="module")
def total() -> Iterator[Report]:
    """All proofs of this module, counted and printed at its end."""
    found = Report()
    yield found
    print(f"\nproved {found.proved} accesses, {len(found.timeouts)} timeouts")
    for what in found.timeouts:
        print(f"  timeout: {what}")


def add(total: Report, report: Report) -> None:
    assert report.unproved == []
    total.proved += report.proved
    total.timeouts += report.timeouts


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str, total: Report) -> None:
    """Every index of every access of the indexed kernel lies inside its axis."""
    report = prove_kernel(index(KERNELS[name]()))
    assert report.proved
    add(total, report)


@pytest.mark.parametrize("name", KERNELS)
def test_programs(name: str, total: Report) -> None:
    """So does every lane of every access of the plain program, of the one that the heuristics
    choose, and of random ones."""
    plain = index(KERNELS[name]())
    made = [plain, loopwright_schedule(plain, TARGET, Options())]
    for seed in range(PER_KERNEL):
        made.append(Opts(random.Random(f"{name} {seed}"), TARGET).schedule(plain))
    for kernel in made:
        report = prove_program(lower(kernel, TARGET))
        assert report.unproved == [], str(kernel.schedule)
        add(total, report)


def test_hardly_any_proof_takes_long(total: Report) -> None:
    """Time-outs are counted, and are few: a proof that always times out proves nothing."""
    assert total.proved > 0
    assert len(total.timeouts) * 100 <= total.proved
