"""The array object: values, conversions, protocols, depth; the namespace around it."""

from __future__ import annotations

import gc
import subprocess
import sys
import types

import numpy as np
import pytest
from array_oracle import same

import loopwright as lw
from loopwright_core.errors import ArgumentTypeError, DTypeError, ShapeError
from loopwright_core.ir import dtype as dt


def test_attributes() -> None:
    """shape, ndim, size, dtype, device, nbytes and the transposes need no evaluation."""
    x = lw.asarray(np.zeros((2, 3, 4), np.int16)) + 1
    assert (x.shape, x.ndim, x.size, x.nbytes, x.itemsize) == ((2, 3, 4), 3, 24, 48, 2)
    assert x.dtype is lw.int16 and x.T.shape == (4, 3, 2) and x.mT.shape == (2, 4, 3)
    assert "not computed" in repr(x)


def test_dtypes_meet_numpy() -> None:
    """A dtype equals its NumPy counterpart and NumPy takes it as one."""
    assert lw.float32 == np.dtype("float32") and np.dtype("int8") == lw.int8
    assert np.zeros(2, lw.bfloat16).dtype == lw.bfloat16.numpy
    for dtype in dt.ARRAY_DTYPES:
        assert lw.zeros(1, dtype=dtype.numpy).dtype is dtype
        assert lw.zeros(1, dtype=dtype.name).dtype is dtype


def test_dtype_functions() -> None:
    """result_type, can_cast, isdtype, finfo and iinfo."""
    assert lw.result_type(lw.int8, lw.uint8) is lw.int16
    assert lw.result_type(lw.zeros(1, dtype=lw.float32), 1.5) is lw.float32
    assert lw.result_type(np.int32, 1.5) is lw.float64
    assert lw.result_type(lw.float16, lw.bfloat16) is lw.float32
    assert lw.can_cast(lw.int8, lw.int16) and not lw.can_cast(lw.int16, lw.int8)
    assert lw.isdtype(lw.bfloat16, "real floating") and lw.isdtype(lw.int8, ("bool", "integral"))
    assert lw.finfo(lw.float32).eps == np.finfo(np.float32).eps
    assert lw.finfo(lw.bfloat16).max == 3.3895313892515355e38
    assert (lw.iinfo(lw.uint8).max, lw.iinfo(lw.int64).min) == (255, -(2**63))
    with pytest.raises(DTypeError):
        lw.finfo(lw.int8)
    with pytest.raises(ValueError, match="kind of dtype"):
        lw.isdtype(lw.int8, "whole")


def test_in_place_operators_rebind() -> None:
    """x += v changes this object alone, keeps its dtype, and refuses to change its shape."""
    x = lw.asarray(np.arange(3, dtype=np.float32))
    old, alias = x[:], x
    x += 1
    assert alias is x
    same(old, np.arange(3, dtype=np.float32))
    same(x, np.arange(3, dtype=np.float32) + 1)
    whole = lw.asarray([1, 2])
    with pytest.raises(DTypeError):
        whole += 0.5
    with pytest.raises(ShapeError):
        x += lw.zeros((2, 3), dtype=lw.float32)


def test_truth_length_and_iteration_are_refused_where_they_mean_nothing() -> None:
    """Arrays of several elements have no truth, 0-d arrays no length, and none has a hash."""
    x = lw.zeros((2, 3))
    with pytest.raises(ShapeError, match="ambiguous"):
        bool(x)
    with pytest.raises(ArgumentTypeError):
        len(x.sum())
    with pytest.raises(ArgumentTypeError):
        iter(x.sum())
    with pytest.raises(TypeError):
        hash(x)
    assert [row.shape for row in x] == [(3,), (3,)]


def test_deep_expressions() -> None:
    """100,000 operations, and sixty doublings, are built, shown and freed without recursion."""
    x = y = lw.asarray(np.ones(3, np.float32))
    for _ in range(100_000):
        y = y + 1.0
    assert "not computed" in repr(y)
    del y
    gc.collect()
    z = x
    for _ in range(60):
        z = z + z
    assert z.shape == (3,)


def test_the_namespace_is_the_standards() -> None:
    """Every public name exists, functions hide modules of their name, other names are explained."""
    for name in lw.__all__:
        if name not in ("devices", "evaluate", "jit", "kernels", "options", "named_kernel"):
            assert getattr(lw, name, None) is not None or name == "newaxis"
    assert lw.zeros(1).__array_namespace__() is lw
    assert not isinstance(lw.evaluate, types.ModuleType)
    assert lw.__array_api_version__ == "2024.12"
    assert set(lw.__array_namespace_info__().dtypes(kind="integral")) == {d.name for d in dt.INTS}
    with pytest.raises(AttributeError, match="'nothing'"):
        _ = lw.nothing


def test_importing_brings_in_no_compiler() -> None:
    """`import loopwright` loads neither plugins nor the command line's packages."""
    code = (
        "import sys, loopwright\n"
        "bad = [m for m in ('click', 'rich', 'pluggy', 'loopwright_lower', 'loopwright_opt')"
        " if m in sys.modules]\n"
        "print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
