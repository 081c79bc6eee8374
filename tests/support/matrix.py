"""The groups of the numeric matrix: every op of a kind on one dtype and one size, with NumPy's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from array_oracle import BINARY

import loopwright as lw
from loopwright_core.errors import DTypeError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import Host, array, cast, exact, finite, near, rounded, samples, whole

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
# nothing, one, primes, powers of two and their neighbours
SIZES = (0, 1, 2, 3, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 61, 64, 127)
_LONG_SIZES = (4, 15, 37, 63, 65, 128, 129, 257)
# name, our expression, what checks its value
Item = tuple[str, lw.Array, Callable[[str, Any], None]]


def is_(want: Any) -> Callable[[str, Any], None]:
    """Exactly this."""
    return lambda name, got: exact(name, got, want)


def equals(want: Any) -> Callable[[str, Any], None]:
    """Exactly this, where either zero may stand for the other."""
    return lambda name, got: exact(name, got, want, zeros=False)


def about(want: Any, size: Any, n: int, ulps: float = 0.5) -> Callable[[str, Any], None]:
    """Within the bound of n roundings over values of that size in sum."""
    return lambda name, got: near(name, got, want, size, n, ulps)


_UNARY = {
    "abs": np.abs,
    "negative": np.negative,
    "positive": np.positive,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "bitwise_invert": np.invert,
    "logical_not": np.logical_not,
    "square": np.square,
    "sqrt": np.sqrt,
}
_FUNCTIONS = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh")
# NumPy gives floats for whole numbers where ours keep their dtype, or refuse.
_FLOATS_ONLY = {"round", "signbit"}


def _numpy(f: Callable[..., Any], *xs: Host) -> Host | None:
    """NumPy's result, or None where it refuses the dtype."""
    try:
        return np.asarray(f(*xs))
    except TypeError:
        return None


def elementwise(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Arithmetic, comparisons, logic, bits, rounding and functions."""
    x, y = samples(dtype, (n,), seed), samples(dtype, (n,), seed + 1)
    a, b = array(x), array(y)
    for name, f in BINARY.items():
        u, v = x, y
        w = b
        if "shift" in name and dtype.is_int:
            v = np.abs(y.astype(np.int64) % (dtype.bits + 3)).astype(dtype.numpy)
            w = array(v)
        want = _numpy(f, u, v)
        if want is None:
            with pytest.raises(DTypeError):
                getattr(lw, name)(a, w)
            continue
        yield name, getattr(lw, name)(a, w), is_(want)
    for name, f in (("maximum", np.maximum), ("minimum", np.minimum)):
        yield name, getattr(lw, name)(a, b), equals(f(x, y))
    for name, f in _UNARY.items():
        if name in _FLOATS_ONLY and not dtype.is_float:
            continue
        want = _numpy(f, x)
        if want is None:
            with pytest.raises(DTypeError):
                getattr(lw, name)(a)
            continue
        compare = equals if name == "sign" else is_  # the sign of a zero's sign is open
        yield name, getattr(lw, name)(a), compare(want)
    for name in _FUNCTIONS:
        want = _numpy(getattr(np, name), x)
        if want is None:
            continue
        out: Any = dt.from_numpy(want.dtype)
        wide = x.astype(out.numpy).astype(np.longdouble if out.bits == 64 else np.float64)
        wide = getattr(np, name)(wide)
        ulps = {64: 2.0, 32: 1.5}.get(out.bits, 0.6)
        yield name, getattr(lw, name)(a), about(wide, 0, 0, ulps)
    yield "where", lw.where(a == b, a, b), is_(np.where(x == y, x, y))
    yield "chain", (a * b + a) * b, is_((x * y + x) * y)


def casts(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """To every dtype, and on from there."""
    x = samples(dtype, (n,), seed)
    a = array(x)
    for other in dt.ARRAY_DTYPES:
        want = cast(x, other)
        yield f"to {other}", lw.astype(a, other), is_(want)
        if other is not dtype:
            yield (
                f"to {other} and back",
                lw.astype(lw.astype(a, other), dtype),
                is_(cast(want, dtype)),
            )


def reductions(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """sum, prod, mean, max, min, any, all, argmax, argmin over rows and columns."""
    for axis in (0, 1):
        x, z = samples(dtype, (n, m), seed), whole(dtype, (n, m), seed)
        a, c = array(x), array(z)
        length = x.shape[axis]
        wide = np.float64 if dtype.is_float else None
        total = z.astype(wide).sum(axis=axis) if wide else x.sum(axis=axis)
        source = c if wide else a
        is_total = equals(rounded(total, dtype) if wide else total)
        yield f"sum {axis}", lw.sum(source, axis=axis), is_total
        kept = equals(np.expand_dims(rounded(total, dtype) if wide else total, axis))
        yield f"sum keepdims {axis}", lw.sum(source, axis=axis, keepdims=True), kept
        p = np.where(np.arange(n * m).reshape(n, m) % 11 == 0, 2, z).astype(dtype.numpy)
        p = np.where(
            p.astype(np.float64) == 0, 1, np.clip(p.astype(np.float64), -1, 1 + (length < 60))
        )
        p = p.astype(dtype.numpy) if wide else x
        product = p.astype(wide).prod(axis=axis) if wide else x.prod(axis=axis)
        is_product = is_(rounded(product, dtype) if wide else product)
        yield f"prod {axis}", lw.prod(array(p), axis=axis), is_product
        yield f"any {axis}", lw.any(c, axis=axis), is_((z != 0).any(axis=axis))
        yield f"all {axis}", lw.all(c, axis=axis), is_((z != 0).all(axis=axis))
        yield from _real_reductions(dtype, axis, finite(dtype, (n, m), seed + 2))
        if length:
            yield from _extremes(axis, x, a)
        elif dtype.is_float or n * m:
            yield f"mean of nothing {axis}", lw.mean(a, axis=axis), _nans(x, axis)


def _nans(x: Host, axis: int) -> Callable[[str, Any], None]:
    shape = tuple(s for k, s in enumerate(x.shape) if k != axis)
    return is_(np.full(shape, np.nan, x.dtype))


def _real_reductions(dtype: DType, axis: int, x: Host) -> Iterator[Item]:
    """Sums of any floats, within the bound of their roundings; means of anything."""
    n = x.shape[axis]
    wide = x.astype(np.longdouble)
    size = np.abs(wide).sum(axis=axis)
    if dtype.is_float:
        yield f"real sum {axis}", lw.sum(array(x), axis=axis), about(wide.sum(axis=axis), size, n)
    if n:
        mean = wide.mean(axis=axis)
        yield f"mean {axis}", lw.mean(array(x), axis=axis), about(mean, size / n, n + 2)


def _extremes(axis: int, x: Host, a: lw.Array) -> Iterator[Item]:
    order = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    for name in ("max", "min"):
        want = getattr(order, name)(axis=axis).astype(x.dtype)
        yield f"{name} {axis}", getattr(lw, name)(a, axis=axis), equals(want)
        at = getattr(order, f"arg{name}")(axis=axis)
        yield f"arg{name} {axis}", getattr(lw, f"arg{name}")(a, axis=axis), is_(at)


def chained_reductions(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Two reduces over one axis, and reduces of reduces."""
    z = whole(dtype, (n, m), seed, 2)
    c = array(z)
    wide = z.astype(np.float64) if dtype.is_float else z
    out = dtype.numpy if dtype.is_float else wide.sum().dtype
    yield "all sums", lw.sum(c), equals(np.asarray(wide.sum()).astype(out))
    total = wide.sum(axis=1)
    if dtype.is_float:
        total = rounded(total, dtype).astype(np.float64)
    sums = lw.sum(c, axis=1)
    yield "sum of sums", lw.sum(sums), equals(np.asarray(total.sum()).astype(out))
    if n:
        yield "max of sums", lw.max(sums), equals(np.asarray(total.max()).astype(out))
        yield "argmin of sums", lw.argmin(sums), is_(np.asarray(total.argmin()))
    if not m:
        return
    high, low = wide.max(axis=1, keepdims=True), wide.min(axis=1, keepdims=True)
    top, bottom = lw.max(c, axis=1, keepdims=True), lw.min(c, axis=1, keepdims=True)
    hits = lw.sum(lw.astype(c == top, lw.int32), axis=1)
    yield "count of maxima", hits, is_((wide == high).astype(np.int32).sum(axis=1))
    yield "above the lowest", lw.any(c > bottom, axis=1), is_((wide > low).any(axis=1))
    apart = (wide != low).sum(axis=0)
    yield "columns apart", lw.sum(c != bottom, axis=0), is_(apart)
    yield "sum of maxima", lw.sum(lw.max(c, axis=1)), equals(np.asarray(high.sum()).astype(out))
    if dtype.is_float and dtype.bits >= 32:
        x = finite(dtype, (n, m), seed)
        e = np.exp(x.astype(np.longdouble) - x.astype(np.longdouble).max(axis=1, keepdims=True))
        want = e / e.sum(axis=1, keepdims=True)
        yield "softmax", lw.softmax(array(x), axis=1), about(want, want, m + 20)


def pads(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """A constant around the data: seen through views, arithmetic and reductions."""
    x, z = samples(dtype, (n, m), seed), whole(dtype, (n, m), seed)
    a, c = array(x), array(z)
    widths = ((1, 2), (0, 3))
    fill = True if dtype.is_bool else 2
    p, q = lw.pad(a, widths, constant_values=fill), np.pad(x, widths, constant_values=fill)
    yield "pad", p, is_(q)
    yield "slice of pad", p[-2:, -3:], is_(q[-2:, -3:])
    yield "flip of pad", lw.flip(p)[:2], is_(np.flip(q)[:2])
    around = ((2, 0), (1, 1))
    zero = np.zeros((), dtype.numpy)
    want = np.pad(q, around, constant_values=zero)
    yield "pad of pad", lw.pad(p, around), is_(want)
    yield "compare", p == lw.flip(p, axis=0), is_(q == np.flip(q, axis=0))
    r, s = lw.pad(c, widths, constant_values=fill), np.pad(z, widths, constant_values=fill)
    wide = s.astype(np.float64) if dtype.is_float else s
    out = dtype.numpy if dtype.is_float else wide.sum().dtype
    yield "sum of pad", lw.sum(r, axis=1), equals(wide.sum(axis=1).astype(out))
    yield "max of pad", lw.max(r, axis=0), equals(wide.max(axis=0).astype(dtype.numpy))
    yield "min of pad", lw.min(r, axis=1), equals(wide.min(axis=1).astype(dtype.numpy))
    yield "argmax of pad", lw.argmax(r, axis=1), is_(wide.argmax(axis=1))
    if dtype.is_float:
        yield (
            "1 / pad",
            1 / r,
            is_((1 / s.astype(np.float32 if dtype.bits < 64 else None)).astype(dtype.numpy)),
        )


def views(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Flips, steps, permutations and reshapes, copied and computed with."""
    x = samples(dtype, (n, m), seed)
    a = array(x)
    plans: dict[str, Callable[[Any], Any]] = {
        "rows back": lambda v: v[::-1],
        "columns back": lambda v: v[:, ::-1],
        "steps": lambda v: v[::2, 1::3],
        "steps back": lambda v: v[::-2, ::-1],
        "transposed": lambda v: v.T,
        "transposed steps": lambda v: v.T[1::2, ::-1],
        "flat": lambda v: v.reshape(-1) if isinstance(v, np.ndarray) else lw.reshape(v, (-1,)),
        "flat back": lambda v: (
            np.reshape(v.T, -1)[::-1] if isinstance(v, np.ndarray) else lw.reshape(v.T, (-1,))[::-1]
        ),
        "new axes": lambda v: v[:, None, ::-1, None],
        "odd start": lambda v: v[1:, 1:],
    }
    for name, f in plans.items():
        yield name, f(a), is_(np.ascontiguousarray(f(x)))
        yield f"{name} compared", f(a) == f(a), is_(f(x) == f(x))
        if not dtype.is_bool:
            yield f"{name} negated", -f(a), is_(-f(x))
    square = samples(dtype, (n, n), seed)
    s = array(square)
    yield (
        "with its transpose",
        lw.where(s == s.T, s, s.T),
        is_(np.where(square == square.T, square, square.T)),
    )
    yield (
        "permuted",
        lw.permute_dims(lw.stack([s, s.T]), (2, 0, 1)),
        is_(np.ascontiguousarray(np.transpose(np.stack([square, square.T]), (2, 0, 1)))),
    )


def broadcasts(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Axes of size 1 and missing axes repeat, in arithmetic and by hand."""
    full, row = samples(dtype, (n, m), seed), samples(dtype, (m,), seed + 1)
    column, one = samples(dtype, (n, 1), seed + 2), samples(dtype, (), seed + 3)
    a, r, c, o = (array(v) for v in (full, row, column, one))
    for name, f, g in (("+", lw.add, np.add), ("*", lw.multiply, np.multiply)):
        yield f"full {name} row", f(a, r), is_(g(full, row))
        yield f"column {name} full", f(c, a), is_(g(column, full))
        yield f"column {name} row", f(c, r), is_(g(column, row))
        yield f"full {name} one", f(a, o), is_(g(full, one))
    yield "row < column", r < c, is_(row < column)
    yield (
        "column to full",
        lw.broadcast_to(c, (n, m)),
        is_(np.ascontiguousarray(np.broadcast_to(column, (n, m)))),
    )
    yield (
        "one to cube",
        lw.broadcast_to(o, (2, n, m)),
        is_(np.ascontiguousarray(np.broadcast_to(one, (2, n, m)))),
    )
    z = whole(dtype, (m,), seed)
    wide = np.broadcast_to(z.astype(np.float64) if dtype.is_float else z, (n, m))
    out = dtype.numpy if dtype.is_float else wide.sum().dtype
    yield (
        "sum of rows",
        lw.sum(lw.broadcast_to(array(z), (n, m)), axis=0),
        equals(
            rounded(wide.sum(axis=0), dtype) if dtype.is_float else wide.sum(axis=0).astype(out)
        ),
    )


def matmuls(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Matrix by matrix, plain and transposed, by vector, in batches."""
    k = (n + m) // 2
    for name, make in (("whole", whole), ("real", finite)):
        x, y = make(dtype, (n, k), seed), make(dtype, (k, m), seed + 1)
        transposed = array(np.ascontiguousarray(x.T)).T
        cases = [
            ("nn", array(x), array(y), x, y),
            ("tn", transposed, array(y), x, y),
            ("nt", array(x), array(np.ascontiguousarray(y.T)).T, x, y),
            ("vector", array(x), array(y)[:, 0] if m else None, x, y[:, 0] if m else None),
            ("from vector", array(x)[0] if n else None, array(y), x[0] if n else None, y),
        ]
        for kind, a, b, u, v in cases:
            if a is None or b is None:
                continue
            if dtype.is_float:
                u, v = u.astype(np.longdouble), v.astype(np.longdouble)
                size = np.abs(u) @ np.abs(v)
                yield (
                    f"{name} {kind}",
                    lw.matmul(a, b),
                    about(u @ v, size, 0 if name == "whole" else k),
                )
            else:
                yield f"{name} {kind}", lw.matmul(a, b), is_(u @ v)
    x, y = whole(dtype, (2, n, 3), seed), whole(dtype, (3, m), seed)
    wide = (x.astype(np.float64) @ y.astype(np.float64)) if dtype.is_float else x @ y
    yield "batch", array(x) @ array(y), equals(rounded(wide, dtype) if dtype.is_float else wide)


def concats(dtype: DType, n: int, m: int, seed: int) -> Iterator[Item]:
    """Arrays one after another along each axis, computed pieces and empty ones too."""
    x, y = samples(dtype, (n, m), seed), samples(dtype, (3, m), seed + 1)
    a, b = array(x), array(y)
    none = np.zeros((0, m), dtype.numpy)
    yield "rows", lw.concat([a, b, a]), is_(np.concatenate([x, y, x]))
    yield "with nothing", lw.concat([array(none), b]), is_(np.concatenate([none, y]))
    yield (
        "columns",
        lw.concat([a, a[:, :1], a], axis=1),
        is_(np.concatenate([x, x[:, :1], x], axis=1)),
    )
    yield "flat", lw.concat([a, b], axis=None), is_(np.concatenate([x, y], axis=None))
    yield (
        "computed",
        lw.concat([lw.where(a == a, a, a), lw.flip(b)]),
        is_(np.concatenate([x, np.flip(y)])),
    )
    yield "stacked", lw.stack([a, a[::-1]], axis=1), is_(np.stack([x, x[::-1]], axis=1))
    joined = lw.concat([a, b])
    both = np.concatenate([x, y])
    yield "used", joined == joined[::-1], is_(both == both[::-1])


GROUPS: dict[str, Callable[[DType, int, int, int], Iterator[Item]]] = {
    "elementwise": elementwise,
    "cast": casts,
    "reduce": reductions,
    "reduce of reduce": chained_reductions,
    "pad": pads,
    "views": views,
    "broadcast": broadcasts,
    "matmul": matmuls,
    "concat": concats,
}


def check(group: str, dtype: DType, n: int, m: int, seed: int = 0) -> None:
    """Evaluate all of a group together and compare every value."""
    with np.errstate(all="ignore"):
        items = list(GROUPS[group](dtype, n, m, seed))
        lw.evaluate(*[expression for _, expression, _ in items])
        for name, expression, compare in items:
            compare(f"{group}, {name}, {dtype}, n={n}, m={m}", expression.numpy())


def rows() -> list[tuple[str, DType, int, int]]:
    """(group, dtype, n, m): in the short form each pair of group, dtype and n once or more."""
    names = list(GROUPS)
    sizes = (*SIZES, *_LONG_SIZES) if LONG else SIZES
    out = []
    for i, dtype in enumerate(dt.ARRAY_DTYPES):
        for j, n in enumerate(sizes):
            m = SIZES[(5 * j + 3 * i + 1) % (len(SIZES) - 1)]
            chosen = names if LONG else [names[(i + j) % len(names)]]
            out += [(group, dtype, n, m) for group in chosen]
    return out


def cells(*groups: str) -> pytest.MarkDecorator:
    """The rows of some groups, as a test's parameters."""
    found = [pytest.param(*r, id="-".join(map(str, r))) for r in rows() if r[0] in groups]
    return pytest.mark.parametrize(("group", "dtype", "n", "m"), found)
