"""Where arithmetic, sizes and names end: results NumPy's or those the numerics state, no crash."""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import LoopwrightError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import array, cast, exact

INTS = [d for d in dt.ARRAY_DTYPES if d.is_int]
FLOATS = [d for d in dt.ARRAY_DTYPES if d.is_float]
# lengths around one vector and a few vectors with a rest
LENGTHS = (1, 3, 8, 37, 67)


def repeated(values: list[Any], dtype: DType, n: int) -> np.ndarray[Any, Any]:
    """At least n values, going round."""
    return np.resize(np.array(values, dtype.numpy), max(n, len(values)))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_division(dtype: DType) -> None:
    """INT_MIN // -1 wraps, x // 0 and x % 0 are 0, signs are floored: by data and by constants."""
    low, high = int(dtype.min), int(dtype.max)
    values = [0, 1, 7, high, low, high - 1, low + 1, 100]
    divisors = [0, 1, 2, 3, 7, high, 8] + ([] if low == 0 else [-1, -2, -7, low])
    x = repeated(values, dtype, 67)
    a = array(x)
    got, want = [], []
    with np.errstate(all="ignore"):
        for d in divisors:
            y = np.full_like(x, d)
            for f, g in ((lw.floor_divide, np.floor_divide), (lw.remainder, np.remainder)):
                got += [f(a, array(y)), f(a, d), f(d, a)]
                want += [g(x, y), g(x, y), g(y, x)]
    lw.evaluate(*got)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        exact(f"{dtype} {i}", g, w)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_shifts(dtype: DType) -> None:
    """By the width or more, and by negative counts, every bit leaves: 0, or -1 of negatives."""
    low, high = int(dtype.min), int(dtype.max)
    x = repeated([1, high, low, high // 3, low // 3], dtype, 37)
    a = array(x)
    got, want = [], []
    amounts = [0, 1, dtype.bits - 1, dtype.bits, dtype.bits + 1, 100]
    for n in amounts + ([] if low == 0 else [-1, low]):
        count = n if 0 <= n < dtype.bits else None
        left = np.left_shift(x, x.dtype.type(n)) if count is not None else np.zeros_like(x)
        right = x >> x.dtype.type(count if count is not None else dtype.bits - 1)
        if count is None:
            right = np.where(x < 0, right, 0).astype(x.dtype)
        for by in (n, array(np.full_like(x, n))):
            got += [lw.bitwise_left_shift(a, by), lw.bitwise_right_shift(a, by)]
            want += [left, right]
    lw.evaluate(*got)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        exact(f"{dtype} {i}", g, w)


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_float_to_integer(source: DType) -> None:
    """Truncates, saturates, NaN is 0: the same for data of any length and for constants."""
    inside = [0.0, -0.0, 1.9, -1.9, 0.5, -0.5, 127.5, 255.9]
    values = [*inside, math.inf, -math.inf, math.nan, 1e5, -1e5, 3e9, -3e9, 1e19, -1e19, 2e19, 1e30]
    with np.errstate(all="ignore"):
        for n in (len(values), 67):
            x = repeated(values, source, n)
            got = [lw.astype(array(x), d) for d in INTS]
            lw.evaluate(*got)
            for g, d in zip(got, INTS, strict=True):
                exact(f"{source} to {d}", g, cast(x, d))
        for value in (math.inf, -math.inf, math.nan, 1e30):
            x = np.full(3, value).astype(source.numpy)
            full = lw.full((3,), value, dtype=source, device="cpu")
            for d in (dt.int8, dt.uint8, dt.int32, dt.uint64):
                exact(f"{value} {source} to {d}", lw.astype(full, d), cast(x, d))


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_nothing(dtype: DType) -> None:
    """Arrays of size 0: shapes and dtypes stay NumPy's, sums are 0, products 1, means NaN."""
    host = np.zeros((2, 0, 3), dtype.numpy)
    x = array(host)
    kept = dtype.numpy if dtype.is_float else np.sum(host, axis=1).dtype
    exact("sum", lw.sum(x, axis=1), np.zeros((2, 3), kept))
    exact("prod", lw.prod(x, axis=1), np.ones((2, 3), kept))
    exact("sum of nothing", lw.sum(x, axis=0), np.zeros((0, 3), kept))
    exact("total", lw.sum(x), np.zeros((), kept))
    exact("any", lw.any(x, axis=1), np.zeros((2, 3), bool))
    exact("all", lw.all(x, axis=1), np.ones((2, 3), bool))
    mean = dtype.numpy if dtype.is_float else np.float64
    exact("mean", lw.mean(x, axis=1), np.full((2, 3), np.nan, mean))
    for f in (lw.max, lw.min, lw.argmax, lw.argmin):
        for axis in (1, None):
            with pytest.raises(ValueError, match="empty"):
                f(x, axis=axis)
    exact("max of no rows", lw.max(x[:, :, :0], axis=0), np.zeros((0, 0), dtype.numpy))
    a, b = array(np.zeros((4, 0), dtype.numpy)), array(np.zeros((0, 5), dtype.numpy))
    exact("matmul", a @ b, np.zeros((4, 5), dtype.numpy))
    exact("no rows", b @ array(np.zeros((5, 2), dtype.numpy)), np.zeros((0, 2), dtype.numpy))
    exact("pad", lw.pad(x, ((0, 0), (1, 1), (0, 0))), np.zeros((2, 2, 3), dtype.numpy))
    exact("where", lw.where(x == x, x, x), host)
    exact("flip", lw.flip(x), host)
    exact("reshape", lw.reshape(x, (0, 7)), host.reshape(0, 7))
    exact("broadcast", lw.broadcast_to(x[:1, :, :1], (5, 0, 4)), np.zeros((5, 0, 4), dtype.numpy))


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_zero_dimensions(dtype: DType) -> None:
    """0-d arrays go through arithmetic, reductions, views and indexing."""
    host = np.array(3, dtype.numpy)
    x = array(host)
    total = (
        np.asarray(host.astype(np.float64).sum().astype(dtype.numpy))
        if dtype.is_float
        else host.sum()
    )
    exact("sum", lw.sum(x), np.asarray(total))
    exact("max", lw.max(x), host)
    exact("argmax", lw.argmax(x), np.asarray(0))
    exact("any", lw.any(x), np.asarray(True))
    exact("new axis", x[None], host[None])
    exact("whole", x[...], host)
    exact("reshape", lw.reshape(x, (1, 1)), host.reshape(1, 1))
    exact("broadcast", lw.broadcast_to(x, (2, 5)), np.full((2, 5), host))
    exact("compare", x == x, np.asarray(True))
    exact("element", array(np.array([1, 3], dtype.numpy))[1], host)
    exact("permute", lw.permute_dims(x, ()), host)
    exact("stack", lw.stack([x, x]), np.stack([host, host]))
    if not dtype.is_bool:
        exact("plus", x + array(np.ones(9, dtype.numpy)), (host + np.ones(9, dtype.numpy)))


def test_hundred_thousand_operations() -> None:
    """A chain of 100,000 operations is evaluated, in more than one kernel, to NumPy's bits."""
    x = np.arange(5, dtype=np.int32)
    y = array(x)
    for i in range(50_000):
        y = (y + (i % 7)) ^ 3
    want = x.copy()
    for i in range(50_000):
        want = (want + np.int32(i % 7)) ^ np.int32(3)
    exact("chain", y, want)


def test_doubling_sixty_times() -> None:
    """x + x sixty times over is sixty operations, not 2**60."""
    x = array(np.ones(3))
    for _ in range(60):
        x = x + x
    exact("doubled", x, np.full(3, 2.0**60))


@pytest.mark.parametrize("n", [31, 32, 33, 200])
def test_many_inputs(n: int) -> None:
    """An expression of hundreds of arrays is cut into kernels that the device takes."""
    hosts = [np.full(7, i + 1, np.int64) for i in range(n)]
    arrays = [array(h) for h in hosts]
    total = arrays[0]
    for a in arrays[1:]:
        total = total + a
    exact("sum", total, np.sum(hosts, axis=0))
    exact("concat", lw.concat(arrays), np.concatenate(hosts))
    exact("sum of stack", lw.sum(lw.stack(arrays), axis=0), np.sum(hosts, axis=0))
    weighted = lw.where(total > 0, arrays[0] * arrays[-1], total)
    exact("reused", weighted, hosts[0] * hosts[-1])


@pytest.mark.parametrize(
    ("value", "dtypes"),
    [
        (2**63, "int8 int16 int32 int64 uint8 uint16 uint32"),
        (2**64, "int64 uint64"),
        (-(2**63) - 1, "int64"),
        (-1, "uint8 uint64"),
        (128, "int8"),
        (2**2000, "int64 uint64"),
    ],
)
def test_constants_out_of_range(value: int, dtypes: str) -> None:
    """A Python integer the dtype cannot hold raises OverflowError where it is written."""
    for name in dtypes.split():
        x = array(np.zeros(2, name))
        with pytest.raises(OverflowError):
            x + value
        with pytest.raises(OverflowError):
            lw.full((2,), value, dtype=getattr(lw, name))
        np.zeros(2, name) == value  # noqa: B015  # NumPy compares beyond the range
        exact("compare", x == value, np.zeros(2, bool))
        exact("less", x < value, np.zeros(2, name) < value)


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_constants(dtype: DType) -> None:
    """Every extreme constant reaches the kernel's text and the result exactly."""
    if dtype.is_bool:
        values: list[Any] = [True, False]
    elif dtype.is_int:
        low, high = int(dtype.min), int(dtype.max)
        values = [low, high, low + 1, high - 1, high // 2 + 1, 0, 1]
    else:
        values = [math.inf, -math.inf, math.nan, -0.0, 0.0, 1e-45, 5e-324, 0.1, 1 / 3, 1e10, 3.4e38]
        values += [float(lw.finfo(dtype).max), float(lw.finfo(dtype).smallest_normal), -2.5]
    mask = np.array([True, False, True])
    m = array(mask)
    zero = np.zeros(3, dtype.numpy)
    with np.errstate(all="ignore"):
        got = [
            lw.where(m, lw.full((3,), v, dtype=dtype, device="cpu"), array(zero)) for v in values
        ]
        want = [
            np.where(
                mask, cast(np.array(v), dtype) if dtype.is_float else dtype.numpy.type(v), zero
            )
            for v in values
        ]
    lw.evaluate(*got)
    for value, g, w in zip(values, got, want, strict=True):
        exact(f"{dtype} {value}", g, w.astype(dtype.numpy))


NAMES = ["double", "float4", "asm", "kernel", "device", "constant", "half", "main", "exp", "int"]
NAMES += ["restrict", "register", "inline", "_Bool", "threadIdx", "data0", "memcpy", "free", "NULL"]
NAMES += ["a b", "3x", "é", "x" * 300, "", "a-b", "__x"]


@pytest.mark.parametrize("name", NAMES, ids=lambda n: repr(n[:12]))
def test_kernel_names(name: str) -> None:
    """Keywords, library functions, what is no identifier: each names a kernel that runs."""
    f = lw.named_kernel(name, lambda v: lw.exp(v * 0.0) + v)
    exact(name, f(array(np.array([1.0, 2.0], np.float32))), np.array([2.0, 3.0], np.float32))


def _device_missing() -> Any:
    return lw.asarray([1.0], device="no_such_device") + 1


WRONG: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "shapes": (lambda: array(np.zeros((2, 3))) + array(np.zeros(4)), ValueError),
    "matmul": (lambda: array(np.zeros((2, 3))) @ array(np.zeros((2, 3))), ValueError),
    "reshape": (lambda: lw.reshape(array(np.zeros(6)), (4, 2)), ValueError),
    "broadcast": (lambda: lw.broadcast_to(array(np.zeros(6)), (4,)), ValueError),
    "concat": (lambda: lw.concat([array(np.zeros((2, 3))), array(np.zeros((2, 4)))]), ValueError),
    "stack": (lambda: lw.stack([array(np.zeros(3)), array(np.zeros(4))]), ValueError),
    "axis": (lambda: lw.sum(array(np.zeros((2, 3))), axis=2), IndexError),
    "axis twice": (lambda: lw.sum(array(np.zeros((2, 3))), axis=(0, -2)), ValueError),
    "permutation": (lambda: lw.permute_dims(array(np.zeros((2, 3))), (0, 0)), ValueError),
    "flip": (lambda: lw.flip(array(np.zeros(3)), axis=1), IndexError),
    "index": (lambda: array(np.zeros(3))[3], IndexError),
    "indices": (lambda: array(np.zeros(3))[0, 0], IndexError),
    "dtype": (lambda: array(np.zeros(3)) & 1, TypeError),
    "complex": (lambda: array(np.zeros(3)) + 1j, TypeError),
    "complex array": (lambda: lw.asarray(np.zeros(3, complex)), TypeError),
    "text": (lambda: lw.asarray(np.array(["a"])), TypeError),
    "no dtype": (lambda: lw.zeros(3, dtype="float7"), TypeError),
    "operand": (lambda: lw.add(array(np.zeros(3)), "a"), TypeError),
    "device": (_device_missing, RuntimeError),
    "pad": (lambda: lw.pad(array(np.zeros((2, 3))), ((1, 1), (1, 1), (1, 1))), ValueError),
    "negative pad": (lambda: lw.pad(array(np.zeros(3)), ((-1, 1),)), ValueError),
    "size": (lambda: lw.zeros((-1,)), ValueError),
    "step": (lambda: array(np.zeros(3))[::0], ValueError),
    "max of nothing": (lambda: lw.max(array(np.zeros(0))), ValueError),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors_where_the_user_wrote_it(what: str) -> None:
    """A LoopwrightError that is NumPy's kind too, raised by the wrong call, before evaluation."""
    call, kind = WRONG[what]
    with pytest.raises(LoopwrightError) as caught:
        call()
    assert isinstance(caught.value, kind), repr(caught.value)
    assert len(str(caught.value)) > 15
    own = traceback.extract_tb(caught.value.__traceback__)[1]
    start = inspect.getsourcelines(call)[1]
    assert own.filename == __file__ and own.lineno is not None and own.lineno >= start
