"""z3 proves what the verifier's intervals prove, and finds what they must not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ir_samples import (
    F32,
    I32,
    Sample,
    at,
    buffer,
    guarded,
    int_,
    kernel,
    listed,
    load,
    masked_add,
    param,
    place,
    program,
    row_sum,
    samples,
    sink,
    staged,
    store,
    threaded,
    u,
)

from loopwright_core.errors import VerifyError
from loopwright_core.ir import spec
from loopwright_core.ir.integer import add, floordiv, mod, mul, sub
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Variable, const
from loopwright_core.kernel.dims import Dim
from loopwright_core.program.program import Param

pytest.importorskip("z3")
from support.z3_bounds import prove_kernel, prove_program


@pytest.mark.parametrize("sample", samples(), ids=lambda s: s.name)
def test_sample_kernels_are_proved(sample: Sample) -> None:
    """Every access of the sample kernels is in bounds."""
    report = prove_kernel(sample.kernel)
    assert report.counts[1:] == (0, 0)
    assert report.proved > 0 or sample.name == "reduce_of_reduce"


def test_sample_programs_are_proved() -> None:
    """Every lane of the sample programs is in bounds, symbolic extents and masks included."""
    for made in (row_sum(), masked_add(), staged(), threaded(), guarded()):
        report = prove_program(made)
        assert report.counts[1:] == (0, 0)
        assert report.proved > 0


def test_one_element_too_far_is_found() -> None:
    """Shrinking an array by one element makes its accesses unproved."""
    made = row_sum()
    short: Param = replace(made.params[0], shape=(made.params[0].shape[0], 63))
    assert prove_program(replace(made, params=(short, made.params[1]))).counts[1] == 1
    masked = masked_add(10, 4)
    short = replace(masked.params[1], shape=(9,))
    assert len(prove_program(replace(masked, params=(masked.params[0], short))).unproved) > 0


def test_quotients_and_reversed_symbols_are_proved() -> None:
    """Division, remainder and n-1-i stay in bounds; i+1 does not."""
    i, j = Dim("i", 5).uop, Dim("j", 6).uop
    flat = add(mul(i, 6), j)
    value = load(buffer(0, (30,)), (10, 3), floordiv(flat, 3), mod(flat, 3))
    made = kernel(sink((at(buffer(1, (5, 6)), (5, 6), i, j), value)), i, j)
    assert prove_kernel(made).counts == (4, 0, 0)
    n = Variable("n", 1, 50)
    r = Dim("r", n).uop
    for index, found in ((sub(sub(u(Op.VAR, r.dtype, arg=n), 1), r), 0), (add(r, 1), 1)):
        body = sink((at(buffer(1, (n,)), (n,), r), load(buffer(0, (n,)), (n,), index)))
        assert prove_kernel(kernel(body, r)).counts == (2 - found, found, 0)
        if found:
            with pytest.raises(VerifyError, match="not provably"):
                spec.verify_kernel(kernel(body, r))


def test_an_offset_that_wraps_is_found() -> None:
    """A product beyond int32 wraps: it is unproved though its exact value would fit the array."""
    a = buffer(0, (2**31 + 10,))
    big = u(Op.MUL, I32, u(Op.VAR, I32, arg=Variable("n", 1, 2**20)), int_(2**11))
    body = listed(store(place(a, big), const(0.0, F32)))
    made = program(body, param(0, (2**31 + 10,), True), variables=(Variable("n", 1, 2**20),))
    assert prove_program(made).counts == (0, 1, 0)
