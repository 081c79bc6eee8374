"""The bounds that the property test of schedules compares with hold, and are narrow."""

from __future__ import annotations

import random

import numpy as np
import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.tensor import eval_tensor
from loopwright_lower.indexing import index
from support.drawn_kernels import KINDS, draw
from support.error_bounds import bounds, check_within
from support.exact_kernels import GuardedMemory

DTYPES = frozenset(dt.ARRAY_DTYPES)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_kernels_lie_within(kind: str) -> None:
    """What NumPy computes of real numbers lies within, and most bounds are finite: those are not
    that depend on which of two nearly equal numbers is larger."""
    finite = total = 0
    for seed in range(6):
        drawn = draw(random.Random(f"{kind} {seed}"), kind, DTYPES, 200)
        plain = index(drawn.ast)
        memory = GuardedMemory(plain, seed, drawn.ranges, drawn.variables, is_real=True)
        found = bounds(drawn.ast, memory.arrays, drawn.variables)
        run_kernel(plain, memory.arrays, drawn.variables)
        for view, value, bound in found:
            check_within(eval_tensor(view, memory.arrays, drawn.variables), value, bound)
            finite += np.isfinite(bound).sum()
            total += bound.size
    assert finite > total / 2


@pytest.mark.parametrize("kind", ["product", "rows", "softmax", "layer norm", "spread moments"])
def test_a_lost_term_lies_outside(kind: str) -> None:
    """Results of inputs of which one element is missing are told from rounding, wherever the
    kernel reads that element."""
    told = 0
    for seed in range(8):
        drawn = draw(random.Random(f"{kind} {seed}"), kind, frozenset({dt.float32}), 200)
        plain = index(drawn.ast)
        memory = GuardedMemory(plain, seed, drawn.ranges, drawn.variables, is_real=True)
        found = bounds(drawn.ast, memory.arrays, drawn.variables)
        memory.arrays[0].flat[0] = 0
        run_kernel(plain, memory.arrays, drawn.variables)
        for view, value, bound in found:
            try:
                check_within(eval_tensor(view, memory.arrays, drawn.variables), value, bound)
            except AssertionError:
                told += 1
                break
    assert told >= 4
