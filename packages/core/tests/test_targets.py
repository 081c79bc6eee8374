"""Targets of well-known GPUs."""

from __future__ import annotations

import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.targets.cuda import ARCHITECTURES, cuda
from loopwright_core.targets.metal import metal


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_dtype_is_computed_or_stored_on_cuda(arch):
    """Each dtype of arrays is either computed natively or stored and computed in float32."""
    target = cuda(arch)
    assert target.arith | target.storage == set(dt.ARRAY_DTYPES)
    assert not target.arith & target.storage


def test_metal_has_no_double():
    """float64 is neither computed nor stored on Apple GPUs."""
    target = metal()
    assert dt.float64 not in target.arith | target.storage


def test_architectures_have_keys_of_their_own():
    """Two architectures never share cached kernels."""
    keys = {cuda(arch).key for arch in ARCHITECTURES} | {metal().key}
    assert len(keys) == len(ARCHITECTURES) + 1
