"""More groups of the numeric matrix: what kernels need beyond elementwise operations and sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from random_oracle import host_below, host_wide

import loopwright as lw
from loopwright.api.threefry import DRAW_MORE
from loopwright_core.errors import OutOfBoundsError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.matrix import LONG, SIZES, Item, equals, is_
from support.numeric import Host, array, rounded, samples, whole


def _wide(x: Host) -> Host:
    """Floats as float64, which NumPy's functions take and which holds small sums exactly."""
    return x.astype(np.float64) if x.dtype.kind not in "iub" else x


def _once(x: Host, dtype: DType) -> Host:
    """An exact result, rounded once to a float dtype."""
    return rounded(x, dtype) if dtype.is_float else x.astype(dtype.numpy)


def _patches(x: Host, sizes: Any, strides: Any, dilations: Any) -> Host:
    """(N, C, places..., taps...) of (N, C, spatial...)."""
    n = len(sizes)
    for a, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        count = (x.shape[2 + a] - (size - 1) * dilation - 1) // stride + 1
        at = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        x = np.moveaxis(np.take(x, at, axis=2 + a), 3 + a, -1)
    assert x.ndim == 2 + 2 * n
    return x


def convolutions(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """One and two spatial axes, strides, dilations, groups, channels last."""
    x, w = whole(dtype, (2, 2, n), seed, 2), whole(dtype, (4, 2, 3), seed + 1, 2)
    padded = _wide(np.pad(x, ((0, 0), (0, 0), (2, 3))))
    for stride, dilation in ((1, 1), (2, 2)):
        seen = _patches(padded, (3,), (stride,), (dilation,))
        want = np.einsum("ncpt,dct->ndp", seen, _wide(w))
        got = lw.conv(array(x), array(w), None, stride, ((2, 3),), dilation)
        yield f"line, stride {stride}", got, equals(_once(want, dtype))
    apart = np.concatenate(
        [
            np.einsum(
                "ncpt,dct->ndp",
                _patches(padded[:, g : g + 1], (3,), (1,), (1,)),
                _wide(w)[2 * g : 2 * g + 2, :1],
            )
            for g in (0, 1)
        ],
        axis=1,
    )
    got = lw.conv(array(x), array(w[:, :1]), padding=((2, 3),), groups=2)
    yield "groups", got, equals(_once(apart, dtype))
    y, v = whole(dtype, (1, n, 5, 2), seed, 1), whole(dtype, (3, 2, 2, 3), seed + 1, 1)
    first = _wide(np.pad(np.moveaxis(y, -1, 1), ((0, 0), (0, 0), (1, 1), (0, 2))))
    seen = _patches(first, (2, 3), (1, 2), (1, 1))
    want = np.einsum("ncpqst,dcst->npqd", seen, _wide(v))
    got = lw.conv(array(y), array(v), None, (1, 2), ((1, 1), (0, 2)), layout="NHWC")
    yield "plane", got, equals(_once(want, dtype))


def pools(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Greatest elements, also among NaN and infinities, and means of windows."""
    x = samples(dtype, (2, 3, n), seed)
    least = np.array(dtype.min).astype(dtype.numpy)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 2)), constant_values=least)
    want = _wide(_patches(padded, (3,), (2,), (1,))).max(axis=-1)
    got = lw.max_pool(array(x), 3, 2, ((1, 2),))
    yield "max", got, equals(want.astype(dtype.numpy))
    if not (dtype.is_float and dtype.bits >= 32):
        return
    z = whole(dtype, (1, 2, n, 5), seed)
    padded = np.pad(_wide(z), ((0, 0), (0, 0), (2, 2), (1, 1)))
    seen = _patches(padded, (4, 2), (1, 2), (1, 1))
    mean = lw.avg_pool(array(z), (4, 2), (1, 2), (2, 1))
    yield "mean", mean, equals((seen.sum(axis=(-2, -1)) / 8).astype(dtype.numpy))


def gathers(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Slices and elements at given and at computed indices; those outside read 0, and of an empty
    axis nothing is read."""
    x = samples(dtype, (n, m), seed)
    a, rng = array(x), np.random.default_rng([seed, 3])
    if n and m:
        rows, columns = rng.integers(-n, n, (2, 5)), rng.integers(-m, m, (2, 5))
        yield "rows", lw.take(a, rows, axis=0), is_(x[rows])
        yield "elements", a[rows, columns], is_(x[rows, columns])
        along = rng.integers(-m, m, (n, 3))
        want = np.take_along_axis(x, along % m, axis=1)
        yield "along", lw.take_along_axis(a, along, axis=1), is_(want)
    computed = array(np.arange(7)) * 3 - 9
    at = np.arange(7) * 3 - 9
    inside = (at >= -n) & (at < n)
    want = np.zeros((7, m), dtype.numpy)
    want[inside] = x[at[inside]]
    if n:
        yield "computed", lw.take(a, computed, axis=0), is_(want)
    else:
        with pytest.raises(OutOfBoundsError):
            lw.take(a, computed, axis=0)


def scatters(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Slices, masks and rows assigned to, and sums by key."""
    x, row = samples(dtype, (n, m), seed), samples(dtype, (m,), seed + 1)
    plans: dict[str, Any] = {
        "steps": (slice(None, None, 3), slice(1, None)),
        "steps back": (slice(None, None, -2),),
        "a column": (slice(None), -1) if m else (slice(None),),
    }
    for name, key in plans.items():
        a, b = array(x), x.copy()
        value = row[0] if name == "a column" and m else row[1:] if name == "steps" else row
        a[key] = array(value)
        b[key] = value
        yield name, a, is_(b)
    mask = np.random.default_rng(seed).random(n) < 0.5
    a, b = array(x), x.copy()
    a[array(mask)] = array(row)
    b[mask] = row
    yield "masked", a, is_(b)
    z, new = whole(dtype, (n, 3), seed, 2), whole(dtype, (9, 3), seed + 1, 1)
    keys = array(np.arange(9)) * 5 % 8
    at = np.arange(9) * 5 % 8
    total = _wide(z).copy()
    np.add.at(total, at[at < n], _wide(new)[at < n])
    yield "by key", lw.scatter_add(array(z), keys, array(new)), equals(_once(total, dtype))


def running(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Running sums and products along both axes, differences of neighbours."""
    z = whole(dtype, (n, m), seed, 1)
    c = array(z)
    signs = np.where(z.astype(np.float64) < 0, -1, 1).astype(dtype.numpy)
    signs[n // 2 : n // 2 + 3] *= signs.dtype.type(2 - dtype.is_bool)
    wide = _wide(z)
    for axis in (0, 1):
        want = np.cumsum(wide, axis=axis)
        want = _once(want, dtype) if dtype.is_float else want
        yield f"sums {axis}", lw.cumulative_sum(c, axis=axis), equals(want)
        product = np.cumprod(_wide(signs), axis=axis)
        product = _once(product, dtype) if dtype.is_float else product
        yield f"products {axis}", lw.cumulative_prod(array(signs), axis=axis), equals(product)
    first = lw.cumulative_sum(c, axis=0, include_initial=True)
    want = np.cumsum(np.concatenate([np.zeros((1, m), wide.dtype), wide]), axis=0)
    yield "with the first", first, equals(_once(want, dtype) if dtype.is_float else want)
    if not dtype.is_bool:
        apart = wide[:, 1:] - wide[:, :-1]
        yield "differences", lw.diff(c, axis=1), equals(apart.astype(dtype.numpy))


def sums_of_products(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Einstein sums of one to three operands, diagonals, ellipses."""
    a, b = whole(dtype, (n, m), seed, 1), whole(dtype, (3, m), seed + 1, 1)
    square, line = whole(dtype, (n, n), seed, 1), whole(dtype, (n,), seed + 1, 1)
    for subscripts, values in (
        ("ij,kj->ik", (a, b)),
        ("ij,kj->jki", (a, b)),
        ("...i->i...", (a,)),
        ("ii->i", (square,)),
        ("ij,i,kj->k", (a, line, b)),
    ):
        exact = np.einsum(subscripts, *[_wide(v) for v in values])
        got = lw.einsum(subscripts, *[array(v) for v in values])
        yield subscripts, got, equals(_once(exact, dtype))


def orders(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Sorted elements and their positions, both ways and stable; NaN last."""
    x = samples(dtype, (3, n), seed)
    a, wide = array(x), _wide(x)
    order = np.argsort(wide, axis=1, kind="stable")
    yield "positions", lw.argsort(a), is_(order)
    yield "sorted", lw.sort(a), is_(np.take_along_axis(x, order, axis=1))
    yield "a column", lw.sort(a, axis=0), is_(np.sort(wide, axis=0, kind="stable").astype(x.dtype))
    z = whole(dtype, (n,), seed)
    flipped = np.flip(np.argsort(np.flip(_wide(z)), kind="stable"))
    yield "descending", lw.argsort(array(z), descending=True), is_(n - 1 - flipped)
    line = np.sort(_wide(z)).astype(dtype.numpy)
    places = np.searchsorted(_wide(line), _wide(z[:5]), side="right")
    yield "places", lw.searchsorted(array(line), array(z[:5]), side="right"), is_(places)
    yield "values", lw.unique_values(array(z)), is_(np.unique(_wide(z)).astype(dtype.numpy))


def draws(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Random elements are those of their words, whatever the shape."""
    key = lw.random.key(seed, device="cpu")
    at = np.arange(n * m).reshape(n, m)
    words, more = host_wide(key.numpy(), at), host_wide(key.numpy(), at, DRAW_MORE)
    if dtype.is_bool:
        half = words < np.uint64(1 << 63)
        yield "bernoulli", lw.random.bernoulli(key, (n, m)), is_(half)
    elif dtype.is_float:
        bits = 1 - round(np.log2(lw.finfo(dtype).eps))
        kept = words if dtype.bits == 64 else words << np.uint64(32)
        want = (kept >> np.uint64(64 - bits)).astype(np.float64) / 2.0**bits
        yield "uniform", lw.random.uniform(key, (n, m), dtype), is_(want.astype(dtype.numpy))
        normal = lw.random.normal(key, (n, m), dtype)
        yield "normal again", normal[::-1], is_(lw.random.normal(key, (n, m), dtype).numpy()[::-1])
    else:
        low, high = int(dtype.min), int(dtype.max)
        for first, size in ((low, high - low + 1), (low + 3, (high - low) * 3 // 4)):
            found = host_below(size, words.ravel(), more.ravel())
            want = np.array([first + v for v in found], dtype.numpy).reshape(n, m)
            got = lw.random.integers(key, (n, m), first, first + size, dtype)
            yield f"integers, {size}", got, is_(want)


GROUPS: dict[str, Callable[[DType, int, int, int], Iterator[Item]]] = {
    "conv": convolutions,
    "pool": pools,
    "gather": gathers,
    "scatter": scatters,
    "cumulative": running,
    "einsum": sums_of_products,
    "sort": orders,
    "random": draws,
}


def check(group: str, dtype: DType, n: int, m: int) -> None:
    """Evaluate all of a group together and compare every value."""
    with np.errstate(all="ignore"):
        items = list(GROUPS[group](dtype, n, m, n + 100))
        lw.evaluate(*[expression for _, expression, _ in items])
        for name, expression, compare in items:
            compare(f"{group}, {name}, {dtype}, n={n}, m={m}", expression.numpy())


def rows() -> list[tuple[str, DType, int, int]]:
    """(group, dtype, n, m): in the short form each pair of group and dtype, group and n."""
    dtypes, n_sizes = dt.ARRAY_DTYPES, len(SIZES)
    out = []
    for g, group in enumerate(GROUPS):
        for i in range(len(dtypes) * n_sizes if LONG else n_sizes):
            dtype, j = dtypes[i % len(dtypes)], (i + i // len(dtypes) * LONG + 3 * g) % n_sizes
            out.append((group, dtype, SIZES[j], SIZES[(5 * j + 3 * i + 1) % (n_sizes - 1)]))
    return out


def cells() -> pytest.MarkDecorator:
    """The rows as a test's parameters."""
    found = [pytest.param(*r, id="-".join(map(str, r))) for r in rows()]
    return pytest.mark.parametrize(("group", "dtype", "n", "m"), found)
