"""One barrier, mask or index term taken out of a program is reported.

By the verifier, by the interpreter's checks (bounds, races, uninitialised reads, results written
over), or by other results than the whole program's in the interpreter, over several sets of data.
Not counted is what changes nothing at these sizes (support/planted.py says how that is decided).
LOOPWRIGHT_LONG=1 plants every fault there is.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

import numpy as np
import pytest

from loopwright_core.errors import VerifyError
from loopwright_core.ir.spec import verify_program
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.program.program import Program
from support.planted import Fault, faults
from support.planted_cases import CASES, TARGETS, build

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
# Of one kind in one program.
MOST = 1000 if LONG else 3
SETS = 6
Arrays = dict[int, np.ndarray]


@pytest.fixture(scope="module")
def counts() -> Iterator[Counter[tuple[str, str]]]:
    """(kind of fault, who reported it) -> how many; printed at the end of the module."""
    found: Counter[tuple[str, str]] = Counter()
    yield found
    print()
    for kind in sorted({k for k, _ in found}):
        by = ", ".join(f"{who} {n}" for (k, who), n in sorted(found.items()) if k == kind)
        print(f"  {kind:8} {by}")
    print(f"  reported: {_share(found):.1%}")


def _share(counts: Counter[tuple[str, str]]) -> float:
    real = {key: n for key, n in counts.items() if key[1] != "no effect"}
    missed = sum(n for (_, who), n in real.items() if who == "nobody")
    return 1 - missed / max(1, sum(real.values()))


def _memory(kernel: Kernel, which: int) -> Arrays:
    """Floats of no pattern about 0, -3 or 3; whole numbers that also serve as indices."""
    rng = np.random.default_rng(which)
    arrays: Arrays = {}
    for b in kernel.buffers:
        shape = b.arg.shape
        values = rng.integers(-9, 10, shape)
        if b.dtype.is_float:
            values = rng.standard_normal(shape) + (0, -3, 3)[which % 3]
        arrays[b.arg.slot] = values.astype(b.dtype.numpy)
    return arrays


class _Runs:
    """What the whole program makes of each set of data."""

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel, self.program = kernel, program
        self._results: dict[int, Arrays] = {}

    def agrees(self, other: Program, which: int) -> bool:
        """Whether another program gives the same bits. Raises VerifyError as it does."""
        if which not in self._results:
            self._results[which] = _memory(self.kernel, which)
            run_program(self.program, self._results[which])
        arrays = _memory(self.kernel, which)
        run_program(other, arrays)
        return all(
            np.array_equal(a.view(np.uint8), self._results[which][slot].view(np.uint8))
            for slot, a in arrays.items()
        )


def _reported_by(fault: Fault, runs: _Runs, target: str) -> str:
    try:
        verify_program(fault.program, TARGETS[target])
    except VerifyError:
        return "verifier"
    for which in range(SETS):
        try:
            if not runs.agrees(fault.program, which):
                return "results"
        except VerifyError:
            return "interpreter"
    if fault.poisoned is not None and all(runs.agrees(fault.poisoned, n) for n in range(2)):
        return "no effect"
    if fault.probe is not None:
        try:
            runs.agrees(fault.probe, 0)
        except VerifyError:
            return "nobody"
        return "no effect"
    return "nobody"


def _chosen(program: Program) -> Iterator[Fault]:
    """Up to MOST faults of each kind, evenly from first to last."""
    by_kind = sorted(faults(program), key=lambda f: f.kind)
    for _, group in groupby(by_kind, key=lambda f: f.kind):
        found = list(group)
        n = min(MOST, len(found))
        yield from (found[k * len(found) // n] for k in range(n))


@pytest.mark.parametrize("case", range(len(CASES)))
def test_planted(case: int, counts: Counter[tuple[str, str]]) -> None:
    """The whole program passes every check; most of its faults do not."""
    kernel, target, opts = CASES[case]
    plain, program = build(kernel, target, opts)
    verify_program(program, TARGETS[target])
    runs = _Runs(plain, program)
    own: Counter[str] = Counter()
    for fault in _chosen(program):
        by = _reported_by(fault, runs, target)
        counts[fault.kind, by] += 1
        own[by] += 1
    assert own["verifier"] + own["interpreter"] + own["results"] > 2 * own["nobody"], CASES[case]


def test_share(counts: Counter[tuple[str, str]]) -> None:
    """Of all faults at least 95 % are reported, and so are those of barriers alone."""
    if sum(counts.values()) < 5 * len(CASES):
        pytest.skip("not all programs were selected")
    assert len(CASES) >= 50
    assert {kind for kind, _ in counts} == {"barrier", "guard", "mask", "select", "bound", "term"}
    assert _share(counts) >= 0.95
    barriers = Counter({key: n for key, n in counts.items() if key[0] == "barrier"})
    assert sum(barriers.values()) >= 20 and _share(barriers) >= 0.95
