"""One case of the property test of schedules: a random kernel under random legal opts, run.

Its results on small whole numbers are the plain kernel's, and on real numbers within what rounding
in any order allows; no byte beside a buffer changes.
"""

from __future__ import annotations

import os
import random
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from loopwright_core.ir.spec import verify_program
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.tensor import eval_tensor
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.text import show
from support.drawn_kernels import KINDS, WEIGHTS, Drawn, draw
from support.error_bounds import bounds, check_within
from support.exact_kernels import GuardedMemory
from support.random_opts import SYMBOLIC_THREAD, TOGETHER, Opts, count_steps, ops_for

Run = Callable[[GuardedMemory, Mapping[str, int]], None]
# Opts that few kernels may have: how to draw one that may.
KINDS_FOR = {
    "NTSTORE": ("lines",),
    "TC": ("core product",),
    "PADTO": ("core product",),
    "STREAM": ("lines", "vector product", "reduces", "elementwise"),
    "KEEP": ("rows", "rows", "attention", "attention on reals", "softmax", "layer norm"),
    "SPLITK": ("product", "vector product", "reduces", "outputs"),
    "STAGE": ("product", "windows", "elementwise", "reduces"),
    "GROUP": ("reduces", "rows", "vector product", "extremes", "outputs"),
    "GROUPTOP": ("reduces", "rows", "vector product", "extremes", "outputs"),
    "THREAD": ("symbolic", "symbolic", "product", "elementwise", "reduces", "outputs", "windows"),
    "UNROLL": ("reduces", "windows", "product", "attention"),
}
# Opts that are rarely legal elsewhere, and how many further shares of the cases are theirs.
RARE = {
    "KEEP": 5,
    "STAGE": 1,
    "THREAD": 2,
    "NTSTORE": 6,
    "TC": 1,
    "PADTO": 7,
    "SPLITK": 2,
    "STREAM": 2,
}
# Tail policies that some dim of some schedule must have met.
TAILS = ("none", "bound", "peel", "guard", "pad")
LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")


@dataclass(frozen=True)
class Machine:
    """A target and how its programs run here. `points`: how large its kernels are; `n_cases`,
    `n_long`: how many cases it runs by default and in the long form."""

    name: str
    target: Target
    load: Callable[[Program], Run]
    points: int
    n_cases: int
    n_long: int


@dataclass
class Report:
    """What was tried, what was applied how often, and what failed."""

    cases: int = 0
    opts: int = 0
    unscheduled: int = 0
    tried: Counter[str] = field(default_factory=Counter)
    legal: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        tried, legal = self.tried.total(), self.legal.total()
        lines = [
            f"{self.cases} cases, {len(self.failures)} failures, {self.unscheduled} without a step",
            f"{self.opts / max(self.cases, 1):.2f} opts in a schedule on average",
            f"{legal} of {tried} steps drawn were legal ({100 * legal / max(tried, 1):.0f} %)",
        ]
        lines += [
            f"  {name:13} {n:6} in schedules"
            + (f", {self.legal[name]} of {self.tried[name]} legal" if name in self.tried else "")
            for name, n in sorted(self.steps.items())
        ]
        lines.append("kinds: " + ", ".join(f"{k} {n}" for k, n in sorted(self.kinds.items())))
        return "\n".join(lines)

    def add(self, other: Report) -> None:
        """Take over what another report says."""
        self.cases += other.cases
        self.opts += other.opts
        self.unscheduled += other.unscheduled
        self.failures += other.failures
        for mine, theirs in (
            (self.tried, other.tried),
            (self.legal, other.legal),
            (self.steps, other.steps),
            (self.kinds, other.kinds),
        ):
            mine.update(theirs)


def seeds(machine: Machine) -> range:
    """Which cases a machine runs: some, with LOOPWRIGHT_LONG many, or those of LOOPWRIGHT_FUZZ."""
    given = os.environ.get("LOOPWRIGHT_FUZZ", "")
    if given:
        first, _, end = given.partition(":")
        return range(int(first), int(end))
    return range(machine.n_long if LONG else machine.n_cases)


def run_cases(machine: Machine, report: Report) -> None:
    """Run the cases of a machine. Raises AssertionError with all failures."""
    before = len(report.failures)
    for seed in seeds(machine):
        run_case(machine, seed, report)
    failures = report.failures[before:]
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures)


def check_report(machines: tuple[Machine, ...], report: Report) -> None:
    """Every opt and every tail policy occurs, and schedules are long enough to tell."""
    if report.cases < sum(m.n_cases for m in machines):
        pytest.skip("not all cases were selected")
    wanted = {op for m in machines for op in ops_for(m.target)} | {f"tail {kind}" for kind in TAILS}
    ways = {way for m in machines if m.target.has_local for way in TOGETHER}
    ways |= {SYMBOLIC_THREAD for m in machines if m.target.threads > 1}
    is_long = report.cases >= sum(m.n_long for m in machines)
    for names, least in ((wanted, 500 if is_long else 1), (ways, 100 if is_long else 1)):
        assert {name: report.steps[name] for name in names if report.steps[name] < least} == {}
    assert report.opts / report.cases >= 4


def run_case(machine: Machine, seed: int, report: Report) -> None:
    """Draw and run a case; what fails is written into the report with all that repeats it."""
    rnd = random.Random(f"{machine.name} {seed}")
    target = machine.target
    known = ops_for(target)
    known = (*known, *[op for op in known for _ in range(RARE.get(op, 0))])
    focus = known[seed % len(known)]
    names = KINDS_FOR.get(focus, ())
    plain = None
    while plain is None or not plain.dims:  # a single element has nothing to schedule
        kinds = names
        if not names or rnd.random() < 0.25:
            kinds = tuple(rnd.choices(list(KINDS), [WEIGHTS[k] for k in KINDS]))
        drawn = draw(rnd, rnd.choice(kinds), target.arith | target.storage, machine.points)
        plain = index(drawn.ast)
    opts = Opts(rnd, target, focus)
    report.cases += 1
    report.kinds[drawn.kind] += 1
    text = "not scheduled"
    try:
        kernel = opts.schedule(plain)
        text = show(kernel.schedule.opts)
        report.opts += len(kernel.schedule.opts)
        report.unscheduled += not kernel.schedule.opts
        count_steps(kernel, report.steps)
        program = lower(kernel, target)
        verify_program(program, target)
        run = machine.load(program)
        check_results(run, plain, drawn, seed)
    except Exception:
        error = traceback.format_exc()
        report.failures.append(
            f"{machine.name} {seed}, {drawn.kind}, {drawn.variables}: {text}\n{error}"
        )
    report.tried.update(opts.tried)
    report.legal.update(opts.legal)


def check_results(run: Run, plain: Kernel, drawn: Drawn, seed: int) -> None:
    """On whole numbers where those are exact, and on real ones."""
    if drawn.is_exact:
        _check_whole(run, plain, drawn, seed)
    _check_real(run, plain, drawn, seed)


def _check_whole(run: Run, plain: Kernel, drawn: Drawn, seed: int) -> None:
    """Bit for bit (but for the sign of zeros) what the plain kernel gives."""
    expected, actual = [GuardedMemory(plain, seed, drawn.ranges, drawn.variables) for _ in range(2)]
    run_kernel(plain, expected.arrays, drawn.variables)
    run(actual, drawn.variables)
    for slot, array in expected.arrays.items():
        np.testing.assert_array_equal(actual.arrays[slot], array, err_msg=f"buffer {slot}")
    assert actual.broken_guards() == []


def _check_real(run: Run, plain: Kernel, drawn: Drawn, seed: int) -> None:
    """As near to exact arithmetic as rounding in any order allows."""
    before, actual = [
        GuardedMemory(plain, seed, drawn.ranges, drawn.variables, is_real=True) for _ in range(2)
    ]
    run(actual, drawn.variables)
    assert actual.broken_guards() == []
    for view, value, bound in bounds(drawn.ast, before.arrays, drawn.variables):
        found = eval_tensor(view, actual.arrays, drawn.variables)
        check_within(found, value, bound)
