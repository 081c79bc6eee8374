"""Draws of legal and nearly legal arguments, each a call to make of NumPy and of Loopwright."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Host = np.ndarray[Any, Any]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
DTYPES = ["bool", *INTS, *FLOATS]
EXTENTS = [0, 1, 1, 2, 3, 5, 7, 11]
NUMBERS = [0, 1, -1, 2, 7, 127, 128, 256, -129, 2**31, 2**63, True, False]
NUMBERS += [0.0, -0.0, 0.5, -1.5, 1e30, float("nan"), float("inf"), -float("inf")]

EXACT_UNARY = ["abs", "bitwise_invert", "ceil", "floor", "isfinite", "isinf", "isnan"]
EXACT_UNARY += ["logical_not", "negative", "positive", "round", "sign", "sqrt", "square", "trunc"]
ROUNDED_UNARY = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh", "exp"]
ROUNDED_UNARY += ["exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh"]
EXACT_BINARY = ["add", "subtract", "multiply", "divide", "floor_divide", "remainder", "equal"]
EXACT_BINARY += ["not_equal", "less", "less_equal", "greater", "greater_equal", "copysign"]
EXACT_BINARY += ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "maximum"]
EXACT_BINARY += ["bitwise_right_shift", "logical_and", "logical_or", "logical_xor", "minimum"]
EXACT_BINARY += ["nextafter"]
ROUNDED_BINARY = ["atan2", "hypot", "logaddexp"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]
OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift"]
OPERATORS += ["rshift", *COMPARISONS, "divmod"]
REDUCTIONS = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "min", "mean", "prod"]
REDUCTIONS += ["std", "sum", "var"]


@dataclass
class Call:
    """What to call of a namespace, with what, and how many ULP the answers may lie apart."""

    make: Callable[..., Any]
    arrays: list[Any]
    ulps: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    has_signed_zeros: bool = True


def values(rng: random.Random, shape: tuple[int, ...], dtype: str, plain: bool = False) -> Host:
    """Limits and special values among random ones; `plain`: small whole numbers, sums of exact."""
    host = np.random.default_rng(rng.randrange(2**32))
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return host.integers(0, 2, shape).astype(bool)
    if plain:
        return host.integers(0 if kind.kind == "u" else -3, 4, shape).astype(kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        x = host.integers(info.min, info.max, shape, kind, endpoint=True)
        special = [info.min, info.max, info.max // 2, 0, 1, 2, 7, info.min // 2]
    else:
        limits = np.finfo(kind)
        x = (host.normal(size=shape) * host.choice([0.01, 1, 4, 100], shape)).astype(kind)
        special = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, 0.5, 2.5, -2.5, limits.max]
        special += [limits.min, limits.tiny, limits.smallest_subnormal, limits.eps]
    picked = host.choice(np.array(special, kind), shape)
    return np.where(host.random(shape) < 0.5, picked, x).astype(kind)


def sizes(rng: random.Random, low: int = 0, high: int = 4) -> tuple[int, ...]:
    return tuple([rng.choice(EXTENTS) for _ in range(rng.randint(low, high))])


def partner(rng: random.Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another."""
    other = tuple([n if rng.random() < 0.7 else 1 for n in shape])
    return other[rng.randint(0, len(other)) :] if rng.random() < 0.4 else other


def axis(rng: random.Random, n_axes: int, several: bool = True) -> Any:
    """None, an axis, a tuple of axes; negative ones; now and then one that does not exist."""
    chance = rng.random()
    if chance < 0.2:
        return None
    if chance < 0.25:
        return n_axes + 1
    if n_axes == 0:
        return () if several else None
    if several and chance < 0.6:
        chosen = rng.sample(range(n_axes), rng.randint(0, n_axes))
        return tuple([a - n_axes if rng.random() < 0.4 else a for a in chosen])
    return rng.randrange(-n_axes, n_axes)


def function(name: str) -> Callable[..., Any]:
    return lambda xp, *arrays, **settings: getattr(xp, name)(*arrays, **settings)


def unary(rng: random.Random) -> Call:
    name = rng.choice(EXACT_UNARY + ROUNDED_UNARY)
    x = values(rng, sizes(rng), rng.choice(DTYPES))
    return Call(function(name), [x], 0 if name in EXACT_UNARY else 4)


def _pair(rng: random.Random) -> list[Any]:
    """Two arrays that broadcast, or an array and a Python number on either side."""
    shape, dtype = sizes(rng), rng.choice(DTYPES)
    x = values(rng, shape, dtype)
    if rng.random() < 0.4:
        pair = [x, rng.choice(NUMBERS)]
        return pair if rng.random() < 0.5 else pair[::-1]
    return [x, values(rng, partner(rng, shape), rng.choice([dtype, rng.choice(DTYPES)]))]


def binary(rng: random.Random) -> Call:
    name = rng.choice(EXACT_BINARY + ROUNDED_BINARY)
    pair = [7 if type(v) is int and v == 2**63 else v for v in _pair(rng)]  # as in `operators`
    call = Call(function(name), pair, 0 if name in EXACT_BINARY else 4)
    # which of 0.0 and -0.0 is the larger is another one in NumPy's loops for vectors
    call.has_signed_zeros = name not in ("maximum", "minimum")
    return call


def operators(rng: random.Random) -> Call:
    name = rng.choice(OPERATORS)
    f = divmod if name == "divmod" else getattr(operator, name)
    pair = _pair(rng)
    if name in COMPARISONS:  # NumPy has no answer to 2**63 beside bool
        pair = [7 if type(v) is int and v == 2**63 else v for v in pair]
    return Call(lambda xp, a, b: f(a, b), pair)


def clip(rng: random.Random) -> Call:
    shape, dtype = sizes(rng), rng.choice([*INTS, *FLOATS])
    low, high = (rng.choice([None, 0, 1, -1, 127, 300, -(2**40), 2**64]) for _ in "ab")
    x = values(rng, shape, dtype)
    if rng.random() < 0.3:
        y = values(rng, partner(rng, shape), rng.choice(INTS))
        return Call(lambda xp, x, y: xp.clip(x, low, y), [x, y], has_signed_zeros=False)
    return Call(lambda xp, x: xp.clip(x, low, high), [x], has_signed_zeros=False)


def reduction(rng: random.Random) -> Call:
    """Function or method; of floats only sums that are exact in any order."""
    name, dtype, shape = rng.choice(REDUCTIONS), rng.choice(DTYPES), sizes(rng)
    has_method = name != "count_nonzero" and rng.random() < 0.3
    inexact = name in ("mean", "std", "var")
    x = values(rng, shape, dtype, name in ("sum", "prod") or inexact)
    if name == "prod":
        x = np.asarray(np.where(x > 0, x.dtype.type(1), x))
    if name == "sum" and dtype in FLOATS and rng.random() < 0.2:
        x = -np.abs(x * 0)  # -0.0
    given: dict[str, Any] = {"axis": axis(rng, len(shape), not name.startswith("arg"))}
    if rng.random() < 0.5:
        given["keepdims"] = rng.random() < 0.7
    if name in ("std", "var") and not has_method:
        given["correction"] = rng.choice([0, 1, 0.5, 100])
    make = (lambda xp, x, **s: getattr(x, name)(**s)) if has_method else function(name)
    return Call(make, [x], 16 if inexact else 0, given)


def running(rng: random.Random) -> Call:
    name, dtype, shape = rng.choice(["sum", "prod"]), rng.choice(DTYPES), sizes(rng, 1, 3)
    x = values(rng, shape, dtype, True)
    if dtype in FLOATS:
        x = np.sign(x) if name == "prod" else x
    place = rng.randrange(-len(shape), len(shape))
    initial = rng.random() < 0.3
    if dtype in FLOATS and not initial and rng.random() < 0.3:
        x = -np.abs(x)  # -0.0 too
    return Call(function(f"cumulative_{name}"), [x], 0, {"axis": place, "include_initial": initial})


def product(rng: random.Random) -> Call:
    """matmul, tensordot, outer and einsum of small whole numbers: exact in any order."""
    a, b, c = (rng.choice(EXTENTS) for _ in range(3))
    x = values(rng, (a, b), rng.choice(DTYPES), True)
    y = values(rng, (b, c), rng.choice(DTYPES), True)
    made: list[Callable[..., Any]] = [
        lambda xp, x, y: x @ y,
        lambda xp, x, y: xp.tensordot(x, y, axes=1),
        lambda xp, x, y: xp.einsum("ij,jk->ki", x, y),
        lambda xp, x, y: xp.vecdot(x, xp.matrix_transpose(y)[:1, :]),
    ]
    # the sign of a 0 that BLAS makes of one product differs among NumPy's own ways
    chosen = rng.choice(made)
    return Call(lambda xp, x, y: chosen(xp, x, y) + 0, [x, y])


def key(rng: random.Random, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Ints, slices, index arrays, new axes and an ellipsis, which may stand for no axis."""
    parts: list[Any] = []
    for n in shape:
        chance = rng.random()
        if chance < 0.1:
            break
        if chance < 0.3:
            parts.append(rng.randrange(-n, n) if n and rng.random() < 0.95 else n)
        elif chance < 0.65 or n == 0:
            ends = [rng.choice([None, rng.randint(-9, 9)]) for _ in "ab"]
            parts.append(slice(*ends, rng.choice([None, 1, 2, -1, -3])))
        else:
            host = np.random.default_rng(rng.randrange(2**32))
            parts.append(host.integers(-n, n, rng.choice([(2,), (1,), (3, 1)])))
    for extra in (None, Ellipsis):
        if rng.random() < 0.3:
            parts.insert(rng.randint(0, len(parts)), extra)
    return tuple(parts)


def reading(rng: random.Random) -> Call:
    shape = sizes(rng)
    at = key(rng, shape)
    return Call(lambda xp, x: x[at], [values(rng, shape, rng.choice(DTYPES))])


def writing(rng: random.Random) -> Call:
    """x[key] = 1: the same whatever the order in which elements named twice are written."""
    shape = sizes(rng)
    at = key(rng, shape)

    def make(xp: Any, x: Any) -> Any:
        x = xp.asarray(x, copy=True)
        x[at] = 1
        return x

    return Call(make, [values(rng, shape, rng.choice(DTYPES))])


def moving(rng: random.Random) -> Call:
    """Functions that move elements and compute none."""
    shape = sizes(rng, 1, 3)
    n = len(shape)
    place = rng.randrange(-n, n)
    order = rng.sample(range(n), n)
    shift = rng.randint(-9, 9)
    made: list[Callable[..., Any]] = [
        lambda xp, x: xp.flip(x, axis=place),
        lambda xp, x: xp.roll(x, shift, axis=place),
        lambda xp, x: xp.permute_dims(x, order),
        lambda xp, x: xp.moveaxis(x, place, 0),
        lambda xp, x: xp.expand_dims(x, place),
        lambda xp, x: xp.reshape(x, (-1, 1)),
        lambda xp, x: xp.concat([x, x], axis=place),
        lambda xp, x: xp.stack([x, x], axis=place),
        lambda xp, x: xp.unstack(x, axis=place),
        lambda xp, x: xp.repeat(x, abs(shift) % 4, axis=place),
        lambda xp, x: xp.tile(x, (2, 1)),
        lambda xp, x: xp.pad(x, abs(shift) % 3),
        lambda xp, x: xp.take(x, xp.asarray([0, shift % 3]), axis=place),
        lambda xp, x: xp.sort(x, axis=place),
        lambda xp, x: xp.diff(x, axis=place),
    ]
    chosen = rng.choice(made)
    x = values(rng, shape, rng.choice(DTYPES))
    if chosen is made[12] and shape[place] < 3:  # computed indices outside read 0
        chosen = made[0]
    return Call(lambda xp, x: chosen(xp, x), [x])


def number(rng: random.Random) -> Call:
    """Python's conversions of arrays of any size."""
    f = rng.choice([bool, float, complex, len, operator.index])
    shape = rng.choice([(), (), (2,), (3, 1)])
    return Call(lambda xp, x: f(x), [values(rng, shape, rng.choice(DTYPES))])


def counted(rng: random.Random) -> Call:
    x = values(rng, sizes(rng, 1, 1), rng.choice(["bool", "uint8", "int8"]), True)
    if rng.random() < 0.5:
        return Call(lambda xp, x: xp.bincount(abs(x) if x.dtype != bool else x), [x])
    y = values(rng, sizes(rng, 1, 2), rng.choice(["int16", "float32", "float64"]), True)
    return Call(lambda xp, y: tuple(xp.histogram(y, bins=5)), [y])


def numbers(rng: random.Random) -> Call:
    first = rng.choice([0, 5, -3, 127, 250, 300])
    last, step = first + rng.randint(-3, 40), rng.choice([1, 2, -1, 200])
    dtype = rng.choice(INTS)
    return Call(lambda xp: xp.arange(first, last, step, dtype=getattr(xp, dtype)), [])


FAMILIES = {
    f.__name__: f
    for f in (
        *(unary, binary, operators, clip, reduction, running, product, reading, writing, moving),
        *(number, counted, numbers),
    )
}
