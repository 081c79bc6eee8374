"""Every input of float16 and bfloat16, against float64 NumPy rounded once, on the compiled path."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import Host, array

# float16 inputs whose exact results lie so near the middle of two neighbours that float32 holds the
# middle itself, or the number beyond it: at most so many of 65,536. Correctly rounded float32
# results would differ at as many, but for asinh (4), acosh (1) and tan (6).
NEAR_TIES = {
    "exp": 2,
    "exp2": 1,
    "expm1": 1,
    "log": 1,
    "log10": 5,
    "log1p": 2,
    "sin": 4,
    "cos": 2,
    "tan": 2,
    "cosh": 2,
    "acos": 3,
    "atan": 6,
    "asinh": 8,
    "acosh": 2,
    "cbrt": 20,
}
OTHERS = ["log2", "sinh", "tanh", "asin", "atanh", "sqrt", "square", "reciprocal"]
EXACT = ["floor", "ceil", "trunc", "round", "abs", "negative", "sign"]
NAMES = [*NEAR_TIES, *OTHERS, *EXACT]


def both(dtype: DType, name: str) -> tuple[Host, Host]:
    """Our results and NumPy's at all bit patterns, as places in the order of the numbers."""
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.numpy)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64)).astype(dtype.numpy)
    got = np.asarray(getattr(lw, name)(array(x)))
    assert got.dtype == want.dtype
    nan = want != want
    np.testing.assert_array_equal(got != got, nan)
    # Both zeros have places of their own: a wrong sign is a difference.
    bits = (h[~nan].view(np.int16).astype(np.int64) for h in (got, want))
    a, b = (np.where(v < 0, -(v & 0x7FFF) - 1, v) for v in bits)
    return a, b


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16(name: str) -> None:
    """float32 holds 16 bits more than bfloat16: every result is the exact one, rounded once."""
    a, b = both(dt.bfloat16, name)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_float16(name: str) -> None:
    """The neighbour at most, and only at the few inputs that were counted."""
    a, b = both(dt.float16, name)
    assert np.abs(a - b).max() <= 1
    assert np.count_nonzero(a != b) <= NEAR_TIES.get(name, 0)
