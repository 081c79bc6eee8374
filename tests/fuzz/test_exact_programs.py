"""Random array programs give NumPy's results to the bit, in every dtype and from any layout."""

from __future__ import annotations

import os
import warnings

import pytest

import loopwright as lw
from support.exact_programs import make
from support.exact_steps import STEPS
from support.numeric import exact

N_PROGRAMS = 5000 if os.environ.get("LOOPWRIGHT_LONG") else 150


@pytest.mark.parametrize("seed", range(N_PROGRAMS))
def test_program(seed: int) -> None:
    """What a program keeps has NumPy's dtype, shape and values, evaluated together; where the
    schedule is none, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = make(seed, STEPS)
    values = [lw.asarray(x) for x in program.inputs]
    for step, want in zip(program.steps, program.values[len(values) :], strict=True):
        values.append(step.on_loopwright(values))
        assert values[-1].shape == want.shape, step.text
        assert values[-1].dtype == want.dtype, step.text
    schedule = "none" if seed % 5 == 0 else "heuristic"
    with lw.options(schedule=schedule):
        lw.evaluate(*[values[k] for k in program.kept])
    for k in program.kept:
        exact(f"v{k} of\n{program.text()}\n", values[k], program.values[k], zeros=False)
