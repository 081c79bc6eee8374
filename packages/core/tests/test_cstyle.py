"""The base of the C-family renderers: names, literals, lines, and a language in a few lines."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp, const
from loopwright_core.program.cexpr import wrap
from loopwright_core.program.cinline import Plan, Storages
from loopwright_core.program.cliterals import decimal, storage_bits
from loopwright_core.program.cnames import C_KEYWORDS, Names, identifier
from loopwright_core.program.cstyle import CPrinter, function_names, scratch_bytes
from loopwright_core.program.program import Estimate, Local, Loop, Param, Phase, Program

I32, F32 = dt.int32, dt.float32


class Toy(CPrinter):
    """The least a language says of itself."""

    types = {"int32": "int", "float32": "float", "bool": "bool"}  # noqa: RUF012

    def parameters(self, phase: Phase) -> list[str]:
        return [f"float *{name}" for name in self.params.values()]


def program(*uops: UOp, name: str = "toy", n_params: int = 2) -> Program:
    params = [Param(k, "AB"[k], F32, (64,), k == 1) for k in range(n_params)]
    return Program(name, (Phase(name, uops),), tuple(params), (), Estimate(0, 0))


def copy_loop() -> tuple[UOp, ...]:
    a, b = (UOp(Op.BUFFER, F32, (), Buffer(k, (64,))) for k in range(2))
    i = UOp(Op.RANGE, I32, (const(64, I32),), Loop(0, "i"))
    load_at = UOp(Op.INDEX, F32, (a, i))
    x = UOp(Op.LOAD, F32, (load_at,))
    y = UOp(Op.ADD, F32, (x, const(1.0, F32)))
    at = UOp(Op.INDEX, F32, (b, i))
    return i, load_at, x, y, at, UOp(Op.STORE, dt.void, (at, y)), UOp(Op.END, dt.void, (i,))


def test_a_language_in_a_few_lines() -> None:
    """Types and parameters are enough for scalar programs."""
    assert Toy(program(*copy_loop())).text() == (
        "void toy(float *A, float *B) {\n"
        "    for (int i = 0; i < 64; i++) {\n"
        "        B[i] = A[i] + 1.0f;\n"
        "    }\n"
        "}\n"
    )


def test_a_language_has_parameters() -> None:
    """What every program needs of a language is asked for when a printer of it is made."""
    with pytest.raises(TypeError, match="parameters"):
        CPrinter(program(*copy_loop()))


def test_what_a_language_lacks_is_refused() -> None:
    """An op or form the language has no hook for is a LoweringError that names it."""
    b = UOp(Op.BUFFER, F32, (), Buffer(1, (64,)))
    root = UOp(Op.SQRT, F32, (const(2.0, F32),))
    at = UOp(Op.INDEX, F32, (b, const(0, I32)))
    with pytest.raises(LoweringError, match="no SQRT of float32"):
        Toy(program(root, at, UOp(Op.STORE, dt.void, (at, root)))).text()
    wide = UOp(Op.BROADCAST, F32.vec(4), (const(2.0, F32),))
    with pytest.raises(LoweringError, match="no vectors"):
        Toy(program(wide, at, UOp(Op.STORE, dt.void, (at, wide)))).text()
    for value, name in ((math.inf, "infinity"), (-math.inf, "infinity"), (math.nan, "NaN")):
        with pytest.raises(LoweringError, match=f"no {name} of float32"):
            Toy(program(at, UOp(Op.STORE, dt.void, (at, const(value, F32))))).text()
    missing = UOp(Op.RANGE, I32, (const(4, I32),), Loop(7, "z"))
    at = UOp(Op.INDEX, F32, (b, missing))
    with pytest.raises(LoweringError, match="before it stands"):
        Toy(program(at, UOp(Op.STORE, dt.void, (at, const(1.0, F32))))).text()


def test_plan_inlines_what_is_used_once() -> None:
    """The load and the sum of a copy loop are written inside the store."""
    uops = copy_loop()
    plan = Plan(uops, Storages())
    assert {u.op for u in plan.inlined} == {Op.LOAD, Op.ADD}


def test_plan_keeps_reads_before_writes() -> None:
    """A load is not moved behind a store to the same array, but behind one to another."""
    a, b = (UOp(Op.BUFFER, F32, (), Buffer(k, (64,))) for k in range(2))
    for other, moves in ((a, False), (b, True)):
        at = UOp(Op.INDEX, F32, (a, const(0, I32)))
        x = UOp(Op.LOAD, F32, (at,))
        to = UOp(Op.INDEX, F32, (other, const(5, I32)))
        first = UOp(Op.STORE, dt.void, (to, const(3.0, F32)))
        end = UOp(Op.INDEX, F32, (b, const(6, I32)))
        last = UOp(Op.STORE, dt.void, (end, x))
        plan = Plan((at, x, to, first, end, last), Storages())
        assert (x in plan.inlined) is moves


def test_values_nobody_uses_are_left_out() -> None:
    """Dead values are not printed."""
    i, load_at, x, y, *rest = copy_loop()
    dead = UOp(Op.MUL, F32, (x, x))
    text = Toy(program(i, load_at, x, dead, y, *rest)).text()
    assert "*" not in text.split("{", 1)[1]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_literals_read_back(value: float) -> None:
    """A decimal for float32 rounds to the very value, read as float64 or as float32."""
    text = decimal(value, dt.float32)
    assert np.float32(text).tobytes() == np.float32(value).tobytes()
    assert any(c in text for c in ".e")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_float64_literals_read_back(value: float) -> None:
    """A decimal for float64 is read back exactly."""
    assert np.float64(decimal(value, dt.float64)).tobytes() == np.float64(value).tobytes()


def test_storage_bits() -> None:
    """Narrow floats are written as their bits, rounded to nearest."""
    assert storage_bits(1.0, dt.float16) == 0x3C00
    assert storage_bits(1.0, dt.bfloat16) == 0x3F80
    assert storage_bits(-448.0, dt.float8_e4m3fn) == 0xFE
    assert storage_bits(65536.0, dt.float16) == 0x7C00


@given(st.text(max_size=20))
def test_any_text_becomes_an_identifier(name: str) -> None:
    """Whatever a name holds, the result is a C identifier and no keyword, and stays as it is."""
    found = identifier(name)
    assert found.isascii() and found.isidentifier() and found not in C_KEYWORDS
    assert not found.startswith("_")
    assert identifier(found) == found


def test_names_by_scope() -> None:
    """Open scopes keep their names, closed ones give them back; numbers go on."""
    names = Names(C_KEYWORDS)
    assert [names.take("i"), names.take("i"), names.take("int")] == ["i", "i_1", "int_"]
    names.push()
    assert [names.take("i"), names.take("k"), names.number("x")] == ["i_2", "k", "x0"]
    names.pop()
    assert [names.take("i"), names.take("k"), names.number("x"), names.number("x")] == [
        "i_2",
        "k",
        "x0",
        "x1",
    ]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_lines_are_cut_at_spaces(lengths: list[int]) -> None:
    """Cutting a line loses nothing and keeps to the width wherever words allow."""
    line = "    " + " ".join(["x" * n for n in lengths])
    cut = wrap(line, 60)
    assert " ".join(cut).split() == line.split()
    assert all(len(part) <= 60 for part in cut)


def test_scratch_and_stack() -> None:
    """Local arrays fill the stack's share in order; the others go to scratch memory."""
    sizes = (1000, 7000, 7100, 5)
    local = [UOp(Op.DEFINE_LOCAL, F32, (), Local(k, "t", n)) for k, n in enumerate(sizes)]
    assert scratch_bytes(program(*local[:2])) == 0
    assert scratch_bytes(program(*local)) == -(-7100 * 4 // 64) * 64
    assert scratch_bytes(program(local[2])) == 0


def test_function_names() -> None:
    """Phases number their functions; names that C or its library have get an underscore."""
    phase = Phase("p", ())
    two = Program("soft", (phase, phase), (), (), Estimate(0, 0))
    assert function_names(two) == ("soft", "soft_1")
    assert function_names(program(name="exp")) == ("exp_",)
    assert function_names(program(name="while")) == ("while_",)
