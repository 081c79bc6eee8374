"""Programs written for NumPy run unchanged on lazy arrays, with equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.memory import buffer_node, to_numpy
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from programs.inputs import PROGRAMS, STENCILS, drawing, results
from support.error_bounds import bounds, check_within

SIZES = (9, 33)


def within(arrays: list[lw.Array]) -> list[tuple[Any, Any]]:
    """Each lazy array's value, and how far any order of its sums may lie from it."""
    stores = [UOp(Op.STORE, dt.void, (buffer_node(x.dtype, x.shape), x._uop)) for x in arrays]
    sink = UOp(Op.SINK, dt.void, tuple(stores))
    leaves = [n for x in arrays for n in toposort([x._uop]) if n.op is Op.BUFFER]
    found = bounds(sink, {leaf.arg.slot: to_numpy(leaf) for leaf in leaves}, {})
    return [(value, bound) for _, value, bound in found]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, n: int, dtype: str) -> None:
    """NumPy's shapes and dtypes; a sum of n terms within n * eps * sum|terms|; else its bits."""
    program, inputs = PROGRAMS[name]
    given = inputs(n, drawing(dtype, n))
    want = results(program(np, *given))
    mine = [lw.asarray(v, device="cpu") if isinstance(v, np.ndarray) else v for v in given]
    found = results(program(lw, *mine))
    allowed = within(list(found)) if name not in STENCILS else []
    lw.evaluate(*found)
    assert len(found) == len(want)
    for i, (got, own) in enumerate(zip(found, want, strict=True)):
        assert (got.shape, got.dtype.numpy) == (own.shape, own.dtype)
        if name in STENCILS:
            np.testing.assert_array_equal(got.numpy(), own)
            continue
        value, bound = allowed[i]
        if dtype == "float32":
            assert np.isfinite(bound).all()
            check_within(got.numpy(), value, bound)
        check_within(got.numpy(), own, 2 * bound)


def test_what_was_given_is_not_written() -> None:
    """A program that assigns to slices of its own copies leaves its inputs as they were."""
    program, inputs = PROGRAMS["fdtd 2-D"]
    given = inputs(12, drawing("float64", 1))
    kept = [np.array(v) for v in given]
    mine = [lw.asarray(v, device="cpu") if isinstance(v, np.ndarray) else v for v in given]
    lw.evaluate(*results(program(lw, *mine)))
    for before, now in zip(kept, given, strict=True):
        np.testing.assert_array_equal(before, now)
