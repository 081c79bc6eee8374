"""Long expansions are functions of the program: written once, called at every use."""

from __future__ import annotations

from dataclasses import replace

import asts
import numpy as np
import pytest
from schedules import TARGET, cut

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.oracle.program import run_program
from loopwright_core.program.program import Program
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower


def exp_program(n: int = 11, lanes: int = 0) -> Program:
    kernel = index(asts.sink((asts.buffer(1, n), asts.op(Op.EXP, asts.buffer(0, n)))))
    if lanes:
        schedule = cut(kernel.schedule, ("i/1", lanes, AxisKind.VECTOR))
        kernel = kernel.with_schedule(schedule)
    return lower(kernel, TARGET)


@pytest.mark.parametrize("lanes", [0, 4, 8])
def test_exp_is_one_function(lanes: int) -> None:
    """EXP is called at the lane count in use, and the program still computes it."""
    program = exp_program(11, lanes)
    verify_program(program, TARGET)
    assert [f.name for f in program.functions] == [f"exp_f32x{lanes}" if lanes else "exp_f32"]
    x = np.linspace(-3, 3, 11, dtype=np.float32)
    buffers = {0: x, 1: np.zeros(11, np.float32)}
    run_program(program, buffers, {})
    np.testing.assert_allclose(buffers[1], np.exp(x.astype(np.float64)), rtol=2e-7)


def test_callees_come_first() -> None:
    """A function that needs a conversion calls it, and stands behind it."""
    x = asts.buffer(0, 8, dtype=dt.bfloat16)
    ast = asts.sink((asts.buffer(1, 8, dtype=dt.bfloat16), asts.op(Op.EXP, x)))
    program = lower(index(ast), TARGET)
    verify_program(program, TARGET)
    names = [f.name for f in program.functions]
    for f in program.functions:
        called = [u.arg for u in f.uops if u.op is Op.CALL]
        assert all(names.index(c) < names.index(f.name) for c in called)
    assert names[-1] == "exp_bf16"


def test_text_does_not_depend_on_what_was_lowered_before() -> None:
    """Functions are the same whether or not another kernel needed them first."""
    first = exp_program(5)
    lower(index(asts.softmax(3, 5)), TARGET)
    assert exp_program(5).functions == first.functions


def _call(program: Program) -> UOp:
    return next(u for u in program.phases[0].uops if u.op is Op.CALL)


@pytest.mark.parametrize("fault", ["missing", "no return", "lanes", "argument", "order"])
def test_planted_faults(fault: str) -> None:
    """The verifier refuses calls to nowhere, functions without an end, and wrong arguments."""
    program = exp_program()
    (exp,) = program.functions
    if fault == "missing":
        bad = replace(program, functions=())
    elif fault == "no return":
        bad = replace(program, functions=(replace(exp, uops=exp.uops[:-1]),))
    elif fault == "lanes":
        bad = replace(program, functions=(exp_program(11, 4).functions[0],))
    elif fault == "argument":
        bad = replace(program, functions=(replace(exp, params=(dt.float64,)),))
    else:
        caller = replace(exp, name="early", uops=(_call(program), *exp.uops))
        bad = replace(program, functions=(caller, exp))
    with pytest.raises(VerifyError):
        verify_program(bad, TARGET)
