"""A kernel is used again only where everything it was made from is the same."""

from __future__ import annotations

from typing import Any

import numpy as np

import loopwright as lw
from loopwright_core.ir import dtype as dt
from support.numeric import array, exact

X = np.array([10, 20, 3])


def test_dtypes() -> None:
    """One expression in every dtype, in turn and back again."""
    order = [d for d in dt.ARRAY_DTYPES if not d.is_bool]
    for dtype in (*order, *order[::-1]):
        got = lw.astype(array(X, dtype), lw.float32) * 2.0 + 1.0
        exact(str(dtype), got, np.array([21, 41, 7], np.float32))


def test_which_operands_are_the_same() -> None:
    """a + a, a + b, b + a, a - b, b - a, a - a: neither order nor sameness is mixed up."""
    x, y = np.array([1.0, 2, 3]), np.array([10.0, 20, 30])
    a, b = array(x), array(y)
    for _ in range(2):
        exact("a + a", a + a, x + x)
        exact("a + b", a + b, x + y)
        exact("a - b", a - b, x - y)
        exact("b - a", b - a, y - x)
        exact("a - a", a - a, x - x)
        exact("a - b + a", a - b + a, x - y + x)
        exact("a - b + b", a - b + b, x - y + y)
        c = array(x.copy())
        exact("a - copy", a - c, x - x)


def test_shapes_and_strides() -> None:
    """Equal sizes under other shapes, broadcasts and transposes are other kernels."""
    n = np.arange(10.0)
    s = np.add.outer(n, n)
    t = np.arange(100.0).reshape(10, 10)
    a, b = array(s), array(t)
    exact("outer", array(n[:, None]) + array(n[None, :]), s)
    exact("dense", a + b, s + t)
    exact("transposed", a + b.T, s + t.T)
    exact("both", (a.T + b.T), s.T + t.T)
    exact("flipped", a + b[::-1], s + t[::-1])
    exact("row", a + b[0], s + t[0])
    exact("column", a + b[:, :1], s + t[:, :1])
    exact("flat", lw.reshape(a, (100,)) + lw.reshape(b, (100,)), (s + t).reshape(100))
    exact("cut", lw.reshape(a, (4, 25)) + lw.reshape(b, (4, 25)), (s + t).reshape(4, 25))
    for axis in (0, 1):
        exact(f"sum {axis}", lw.sum(b, axis=axis), t.sum(axis=axis))


def test_constants() -> None:
    """Constants that are equal for Python, or nearly: 0.0 and -0.0, 1 and True and 1.0, 2 and 3."""
    x = np.array([1.0, 2, 3], np.float32)
    a = array(x)
    exact("2", a * 2.0, x * 2)
    exact("3", a * 3.0, x * 3)
    with np.errstate(divide="ignore"):
        exact("-0.0", 1.0 / (a * -0.0), np.full(3, -np.inf, np.float32))
        exact("0.0", 1.0 / (a * 0.0), np.full(3, np.inf, np.float32))
    i = array(np.array([1, 2, 3], np.int32))
    exact("1", i + 1, np.array([2, 3, 4], np.int32))
    exact("True", i + True, np.array([2, 3, 4], np.int32))
    exact("1.0", i + 1.0, np.array([2.0, 3, 4]))
    exact(
        "next to 1",
        a + float(np.nextafter(np.float32(1), 2, dtype=np.float32)),
        x + np.nextafter(np.float32(1), 2, dtype=np.float32),
    )
    exact("float64", array(x.astype(float)) + (1 + 2**-52), x.astype(float) + (1 + 2**-52))
    fills: list[Any] = [0.0, -0.0, np.nan, 1]
    for fill in fills:
        exact(
            f"pad {fill}",
            lw.pad(a, ((1, 0),), constant_values=fill),
            np.pad(x, (1, 0), constant_values=fill),
        )
    for by in (1, 2):
        exact(f"shift {by}", i << by, np.array([1, 2, 3], np.int32) << by)


def test_views_and_axes() -> None:
    """Slices, axes, pads and concats that differ by one number are other kernels."""
    host = np.arange(24).reshape(4, 6)
    a = array(host)
    for start in (0, 1, 2):
        exact(f"[{start}:]", a[start:] * 2, host[start:] * 2)
        exact(f"columns {start}", a[:, start : start + 3] * 2, host[:, start : start + 3] * 2)
    for axis in (0, 1):
        exact(f"max {axis}", lw.max(a, axis=axis), host.max(axis=axis))
        exact(f"cumsum {axis}", lw.cumulative_sum(a, axis=axis), host.cumsum(axis=axis))
        exact(f"flip {axis}", lw.flip(a, axis=axis) * 2, np.flip(host, axis=axis) * 2)
    for before, after in ((0, 1), (1, 0), (1, 1)):
        want = np.pad(host, (before, after))
        exact(f"pad {before} {after}", lw.pad(a, ((before, after),) * 2), want)


def test_options() -> None:
    """A kernel built under given opts is not the one built without."""
    x = np.arange(64, dtype=np.float32)
    for opts in ([], ["UPCAST i 4"], ["VECTOR i 4"], ["UPCAST i 2"], []):
        with lw.options(opts=opts) if opts else lw.options(schedule="none"):
            y = array(x) * 5 + 2
            (kernel,) = lw.kernels(y)
            assert list(kernel.opts) == opts
            exact(str(opts), y, x * 5 + 2)
