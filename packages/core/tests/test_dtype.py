"""Facts about dtypes: identity, vectors, limits, NumPy counterparts."""

from __future__ import annotations

import math
import pickle

import ml_dtypes
import numpy as np
import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import ARRAY_DTYPES, DType


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
def test_counterpart(dtype: DType) -> None:
    """Each array dtype has one NumPy counterpart of its width, and finds back from it."""
    assert dt.from_numpy(dtype.numpy) is dtype
    assert dtype.numpy.itemsize == dtype.itemsize
    assert dt.BY_NAME[repr(dtype)] is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert pickle.loads(pickle.dumps(dtype.vec(4))) is dtype.vec(4)


@pytest.mark.parametrize("dtype", [d for d in ARRAY_DTYPES if d.is_int], ids=str)
def test_integer_limits(dtype: DType) -> None:
    """min and max of integers are NumPy's."""
    info = np.iinfo(dtype.numpy)
    assert (dtype.min, dtype.max) == (info.min, info.max)
    assert dtype.is_signed == (info.min < 0)


def test_float_limits_are_identities() -> None:
    """max with min, and min with max, change no float; e4m3fn has no infinity."""
    for dtype in dt.FLOATS:
        if dtype is dt.float8_e4m3fn:
            top = float(ml_dtypes.finfo(dtype.numpy).max)
            assert (dtype.min, dtype.max) == (-top, top)
        else:
            assert (dtype.min, dtype.max) == (-math.inf, math.inf)
    assert (dt.bool_.min, dt.bool_.max) == (False, True)


def test_vectors_are_interned() -> None:
    """vec(n) is one object; its scalar is the dtype and vec(1) too."""
    four = dt.float32.vec(4)
    assert four is dt.float32.vec(4) is dt.float32.vec(8).vec(4)
    assert four.scalar is dt.float32 and four.lanes == 4 and dt.float32.vec(1) is dt.float32
    assert repr(four) == "float32x4" and four.is_float and four.max == math.inf


def test_kinds() -> None:
    """bool is no integer; index is one; unsigned and signed go by width."""
    assert not dt.bool_.is_int and dt.index.is_int and dt.index not in dt.INTS
    assert dt.unsigned(16) is dt.uint16 and dt.signed(64) is dt.int64
    assert dt.from_numpy(np.complex64) is None
    assert dt.from_numpy(np.dtype(">f4")) is None
