"""The data type functions of the array API standard, and what the namespace says of itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import LoopwrightError

SIGNED = [lw.int8, lw.int16, lw.int32, lw.int64]
UNSIGNED = [lw.uint8, lw.uint16, lw.uint32, lw.uint64]
REAL = [lw.float32, lw.float64]
ALL = [lw.bool, *SIGNED, *UNSIGNED, *REAL]
KINDS = {
    "bool": [lw.bool],
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED + UNSIGNED,
    "real floating": REAL,
    "complex floating": [],
    "numeric": SIGNED + UNSIGNED + REAL,
}


def mixed(a: Any, b: Any) -> Any:
    """The standard's promotion table; None where it has no entry."""
    for group in (SIGNED, UNSIGNED, REAL, [lw.bool]):
        if a in group and b in group:
            return group[max(group.index(a), group.index(b))]
    for s, u in ((a, b), (b, a)):
        if s in SIGNED and u in UNSIGNED:
            width = max(SIGNED.index(s), UNSIGNED.index(u) + 1)
            return SIGNED[width] if width < 4 else None
    return None


def test_result_type() -> None:
    """The promotion table, of dtypes and of arrays, in any order and number."""
    for a in ALL:
        for b in ALL:
            want = mixed(a, b)
            if want is not None:
                assert lw.result_type(a, b) == want
                assert lw.result_type(lw.zeros((2, 0), dtype=a), b) == want
                assert lw.result_type(a, lw.zeros((), dtype=b)) == want
    assert lw.result_type(lw.int8) == lw.int8
    assert lw.result_type(lw.int8, lw.uint8, lw.int32) == lw.int32
    assert lw.result_type(lw.zeros((3,), dtype=lw.float32), 2.0) == lw.float32
    assert lw.result_type(lw.zeros((3,), dtype=lw.int16), 2) == lw.int16
    with pytest.raises(LoopwrightError):
        lw.result_type()


def test_can_cast() -> None:
    """What the promotion table keeps is safe; from a wider dtype, or to another kind, is not."""
    for a in ALL:
        for b in ALL:
            want = mixed(a, b)
            if want is not None:
                assert lw.can_cast(a, b) is (want == b)
                assert lw.can_cast(lw.zeros((2,), dtype=a), b) is (want == b)
                assert lw.can_cast(np.zeros(2, a.numpy), b) is (want == b)
    assert not lw.can_cast(lw.float32, lw.int64)
    assert not lw.can_cast(lw.int8, lw.bool)


def test_isdtype() -> None:
    """Kinds by name, dtypes themselves, and any of a tuple of both."""
    for kind, members in KINDS.items():
        assert [d for d in ALL if lw.isdtype(d, kind)] == [d for d in ALL if d in members]
    for dtype in ALL:
        assert lw.isdtype(dtype, dtype)
        assert lw.isdtype(dtype, ("bool", "numeric"))
        assert not lw.isdtype(dtype, ())
    assert lw.isdtype(lw.int8, (lw.float32, "signed integer"))
    assert not lw.isdtype(lw.int8, lw.int16)
    with pytest.raises(LoopwrightError, match="whole") as caught:
        lw.isdtype(lw.int8, "whole")
    assert isinstance(caught.value, (ValueError, TypeError))


def test_iinfo() -> None:
    """Width and ends of every integer dtype, of arrays too."""
    for dtype in SIGNED + UNSIGNED:
        bits = int(dtype.name.lstrip("uint"))
        low = 0 if dtype in UNSIGNED else -(2 ** (bits - 1))
        host = np.zeros(2, dtype.numpy)
        for given in (dtype, lw.zeros((2,), dtype=dtype), host, host[0]):
            info = lw.iinfo(given)
            assert (info.bits, info.min, info.max) == (bits, low, low + 2**bits - 1)
            assert info.dtype == dtype
    with pytest.raises(LoopwrightError):
        lw.iinfo(lw.float32)


def test_finfo() -> None:
    """Width, ends, spacing at one and least normal number, as Python floats."""
    for dtype, bits, digits, exponent in ((lw.float32, 32, 23, 127), (lw.float64, 64, 52, 1023)):
        host = np.zeros(2, dtype.numpy)
        for given in (dtype, lw.zeros((2,), dtype=dtype), host, host[0]):
            info = lw.finfo(given)
            largest = (2 - 2.0**-digits) * 2.0**exponent
            assert (info.bits, info.eps, info.dtype) == (bits, 2.0**-digits, dtype)
            assert (info.max, info.min) == (largest, -largest)
            assert info.smallest_normal == 2.0 ** (1 - exponent)
            for number in (info.eps, info.max, info.min, info.smallest_normal):
                assert isinstance(number, float)
    with pytest.raises(LoopwrightError):
        lw.finfo(lw.int8)


@pytest.mark.parametrize("source", ALL, ids=str)
def test_astype(source: Any) -> None:
    """Numbers in reach arrive whole; floats lose their fractions, and everything but 0 is True."""
    values = [0, 1, 3] if source != lw.bool else [False, True]
    x = lw.asarray(np.array(values, source.numpy))
    targets = [lw.astype(x, dtype) for dtype in ALL]
    lw.evaluate(*targets)
    for dtype, got in zip(ALL, targets):
        assert got.dtype == dtype
        want = [bool(v) for v in values] if dtype == lw.bool else values
        assert got.numpy().tolist() == want


def test_astype_details() -> None:
    """Truncation towards zero, NaN as True, empty arrays, copy= and device=."""
    x = lw.asarray(np.array([1.9, -1.9, 0.5, -0.5]))
    assert lw.astype(x, lw.int32).numpy().tolist() == [1, -1, 0, 0]
    assert lw.astype(lw.asarray(np.array([math.nan, -0.0])), lw.bool).numpy().tolist() == [
        True,
        False,
    ]
    assert lw.astype(lw.zeros((0, 2)), lw.int8).shape == (0, 2)
    assert lw.astype(x, lw.float64, copy=False).numpy().tolist() == x.numpy().tolist()
    assert lw.astype(x, lw.float32, device="cpu").device == "cpu"


def test_what_the_namespace_says_of_itself() -> None:
    """`__array_namespace_info__`: capabilities, devices, default dtypes, dtypes by kind."""
    info = lw.__array_namespace_info__()
    capabilities = info.capabilities()
    assert capabilities["boolean indexing"] is True
    assert capabilities["data-dependent shapes"] is True
    assert capabilities["max dimensions"] is None
    assert info.default_device() in [str(d) for d in info.devices()] or not info.devices()
    defaults = info.default_dtypes()
    assert defaults["real floating"] == lw.asarray(1.0).dtype
    assert defaults["integral"] == lw.asarray(1).dtype
    assert defaults["indexing"] == lw.argmax(lw.zeros((2,))).dtype
    assert info.default_dtypes(device="cpu") == defaults
    everything = info.dtypes()
    assert {d.name for d in ALL} <= set(everything)
    for kind, members in KINDS.items():
        found = info.dtypes(kind=kind)
        assert {d.name for d in members} <= set(found)
        assert all(lw.isdtype(d, kind) for d in found.values())
        assert info.dtypes(device="cpu", kind=kind) == found
    both = info.dtypes(kind=("bool", "signed integer"))
    assert set(both) == {"bool", "int8", "int16", "int32", "int64"}


def test_version_and_constants() -> None:
    """The version of the standard, and the constants as Python floats."""
    assert lw.__array_api_version__ == "2024.12"
    assert (lw.e, lw.pi, lw.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(lw.nan) and lw.newaxis is None
