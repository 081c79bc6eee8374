"""Casts: every value of the small floats, every tie, and what lies beyond each range."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, cast, samples

SMALL = [d for d in dt.ARRAY_DTYPES if d.is_float and d.bits < 32]


@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_every_small_float(dtype: DType) -> None:
    """Each bit pattern widens exactly and comes back as it was."""
    x = np.arange(2**dtype.bits, dtype=f"u{dtype.itemsize}").view(dtype.numpy)
    with np.errstate(all="ignore"):
        all_exact(
            [
                ("float32", lw.astype(array(x), lw.float32), x.astype(np.float32)),
                ("float64", lw.astype(array(x), lw.float64), x.astype(np.float64)),
                ("there and back", lw.astype(lw.astype(array(x), lw.float32), dtype), x),
                ("and by float64", lw.astype(lw.astype(array(x), lw.float64), dtype), x),
                ("to bool", lw.astype(array(x), lw.bool), x.astype(np.float64) != 0),
            ]
        )


@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("source", [dt.float32, dt.float64], ids=str)
def test_ties_and_their_neighbours(dtype: DType, source: DType) -> None:
    """Halfway values go to even, a last bit decides; overflow starts half a step beyond the end."""
    bits = np.arange(2 ** (dtype.bits - 1), dtype=f"u{dtype.itemsize}")
    values = bits.view(dtype.numpy).astype(np.float64)
    values = values[np.isfinite(values)]
    values = values[:: max(1, len(values) // 300)] if dtype.bits == 16 else values
    last = float(lw.finfo(dtype).max)
    step = last - float(np.nextafter(np.float64(last), 0))
    spaced = np.append(values, [last, last + step])
    middle = (spaced[:-1] + spaced[1:]) / 2
    if dtype.bits == 16:
        middle = values * (1 + 2.0 ** -(8 if dtype is dt.bfloat16 else 11))
    middle = middle.astype(source.numpy)
    below, above = (np.nextafter(middle, source.numpy.type(v)) for v in (0, np.inf))
    beyond = np.array([last * 1.1, last * 2, 1e38, np.inf, np.nan]).astype(source.numpy)
    x = np.concatenate([middle, below, above, beyond])
    x = np.concatenate([x, -x])
    all_exact([(f"{source} to {dtype}", lw.astype(array(x), dtype), cast(x, dtype))])


def test_signalling_nan_stays_nan() -> None:
    """A NaN whose payload would be cut off does not become infinity."""
    x = np.array([0x7F800001, 0xFF800001, 0x7FC00000] * 7, np.uint32).view(np.float32)
    for dtype in SMALL:
        all_exact([(str(dtype), lw.isnan(lw.astype(array(x), dtype)), np.ones(21, bool))])


@pytest.mark.parametrize("source", [d for d in dt.ARRAY_DTYPES if d.is_int], ids=str)
def test_integers_round_once(source: DType) -> None:
    """Integers that no float holds round once, to nearest even, in every float dtype."""
    x = samples(source, (300,), 8)
    high = int(source.max)
    ties = [2**k + 2**j for k in (9, 12, 25, 40, 54, 62) for j in (0, 1, 2, 3, 8)]
    near = [v + d for v in ties for d in (-1, 0, 1) if v + d <= high]
    x = np.concatenate([x, np.array(near, source.numpy)])
    floats = [d for d in dt.ARRAY_DTYPES if d.is_float]
    all_exact([(f"{source} to {d}", lw.astype(array(x), d), cast(x, d)) for d in floats])


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_casts_inside_a_kernel(dtype: DType) -> None:
    """A cast between two operations is made, not skipped, and rounds before the next one."""
    x = samples(dt.float32, (67,), 4)
    with np.errstate(all="ignore"):
        want = cast(cast(x, dtype), dt.float64)
        all_exact([(str(dtype), lw.astype(lw.astype(array(x), dtype), lw.float64) + 1, want + 1)])
