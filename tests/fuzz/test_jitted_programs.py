"""Random array programs give the same bits jitted as evaluated one by one."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from support.random_programs import inputs, run

N_PROGRAMS = 1000 if os.environ.get("LOOPWRIGHT_LONG") else 30


def bits(x: Any) -> tuple[Any, Any, bytes]:
    values = np.asarray(x)
    return values.dtype, values.shape, np.ascontiguousarray(values).tobytes()


@pytest.mark.parametrize("seed", range(N_PROGRAMS))
def test_program(seed: int) -> None:
    """NumPy's arrays or Loopwright's in, one call or several, other values or the same, with out=
    or without: always the results of the function itself."""
    first = inputs(seed)
    rng = np.random.default_rng(seed)
    second = [rng.permutation(a.ravel()).reshape(a.shape) for a in first]
    f = lw.jit(lambda *arrays: run(seed, lw, list(arrays)))
    for arrays in (first, second, first):
        want = run(seed, lw, [lw.asarray(a.copy()) for a in arrays])
        lw.evaluate(*want)
        want = [bits(x) for x in want]
        kept = [a.copy() for a in arrays]
        results = f(*arrays)
        assert [bits(x) for x in results] == want
        assert [bits(x) for x in f(*map(lw.asarray, arrays))] == want
        for r in results:
            r[...] = 0  # the caller's own
        out = [np.empty(r.shape, r.dtype) for r in results]
        assert [bits(x) for x in f(*arrays, out=out)] == want
        assert [bits(x) for x in arrays] == [bits(x) for x in kept]
    assert f.n_variants == 2
