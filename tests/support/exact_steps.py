"""The steps that random exact programs are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import loopwright as lw
from support.exact_programs import (
    MOST,
    SMALL,
    Draw,
    Step,
    convert,
    is_float,
    need,
    plain_zeros,
    summable,
)


def binary(d: Draw) -> Step:
    names = ["add", "subtract", "multiply"]
    names += ["divide"] if is_float(d.x) else ["bitwise_and", "bitwise_or", "bitwise_xor"]
    if d.dtype.is_int:
        names += ["floor_divide", "remainder"]
    name, other = d.rnd.choice(names), d.partner()
    y = d.values[other]
    need(d.x.dtype != bool or name in ("add", "multiply") or name.startswith("bitwise"))
    if name in ("floor_divide", "remainder"):
        need(y.dtype.kind in "iu")
    return Step(name, (d.at, other), lambda xp, a, b: getattr(xp, name)(a, b))


def number(d: Draw) -> Step:
    need(not d.dtype.is_bool)
    values = (0, 1, 2, 7, True, 100) if d.dtype.is_int else (0, 3, -1, 0.5, -0.0, 1.5, math.inf)
    name, value = d.rnd.choice(("add", "subtract", "multiply", "rsub")), d.rnd.choice(values)
    if d.dtype in SMALL and isinstance(value, int):
        value = float(value)

    def apply(xp: Any, x: Any) -> Any:
        return value - x if name == "rsub" else getattr(xp, name)(x, value)

    return d.one(f"{name} {value}", apply)


def compare(d: Draw) -> Step:
    name = d.rnd.choice(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))
    return Step(name, (d.at, d.partner()), lambda xp, a, b: getattr(xp, name)(a, b))


def unary(d: Draw) -> Step:
    names = ["square", "negative", "abs", "bitwise_invert"]
    if is_float(d.x):
        names[3:] = ["floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "sqrt"]
    if d.dtype.is_bool:
        names = ["logical_not", "bitwise_invert"]
    name = d.rnd.choice(names)
    return d.one(name, lambda xp, x: getattr(xp, name)(x))


def choose(d: Draw) -> Step:
    mask, other = d.mask(), d.like()
    return Step("where", (mask, d.at, other), lambda xp, m, a, b: xp.where(m, a, b))


def extreme(d: Draw) -> Step:
    name, other = d.rnd.choice(("maximum", "minimum")), d.like()
    plain_zeros(d.x, d.values[other])
    return Step(name, (d.at, other), lambda xp, a, b: getattr(xp, name)(a, b))


def clip(d: Draw) -> Step:
    need(not d.dtype.is_bool and d.dtype not in SMALL)
    plain_zeros(d.x)
    low, high = d.rnd.randint(1, 3), d.rnd.randint(3, 5)
    return d.one(f"clip {low} {high}", lambda xp, x: xp.clip(x, low, high))


def shift(d: Draw) -> Step:
    need(d.dtype.is_int)
    other, name = d.like(), d.rnd.choice(("bitwise_left_shift", "bitwise_right_shift"))
    need(not np.any(d.values[other] < 0))
    return Step(name, (d.at, other), lambda xp, a, b: getattr(xp, name)(a, b))


def _axes(d: Draw) -> Any:
    n = d.x.ndim
    which = d.rnd.random()
    if not n or which < 0.2:
        return None
    return d.axis if which < 0.7 else tuple(sorted(d.rnd.sample(range(n), d.rnd.randint(1, n))))


def reduce(d: Draw) -> Step:
    axis, kept = _axes(d), d.rnd.random() < 0.4
    names = ["sum", "sum", "max", "min", "any", "all"]
    names += ["mean"] if is_float(d.x) else ["prod"]
    name = d.rnd.choice(names)
    if name in ("max", "min"):
        need(d.x.size > 0)
        plain_zeros(d.x)
    elif name in ("sum", "mean"):
        need(name == "sum" or d.x.size > 0)
        summable(d.x)
    return d.one(
        f"{name} {axis} {kept}",
        lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=kept),
        wide=name in ("sum", "mean"),
    )


def position(d: Draw) -> Step:
    need(d.x.size > 0)
    axis = d.axis if d.x.ndim and d.rnd.random() < 0.8 else None
    name, kept = d.rnd.choice(("argmax", "argmin")), d.rnd.random() < 0.4
    return d.one(
        f"{name} {axis} {kept}", lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=kept)
    )


def running(d: Draw) -> Step:
    need(d.x.ndim > 0 and not d.dtype.is_bool and d.dtype not in SMALL)
    summable(d.x)
    axis, initial = d.axis, d.rnd.random() < 0.4
    return d.one(
        f"cumulative_sum {axis} {initial}",
        lambda xp, x: xp.cumulative_sum(x, axis=axis, include_initial=initial),
        wide=True,
    )


def product(d: Draw) -> Step:
    need(d.x.ndim > 0 and not d.dtype.is_bool)
    n = d.x.shape[-1]
    other = d.pick(lambda v: v.dtype == d.x.dtype and v.ndim > 0 and v.shape[max(-2, -v.ndim)] == n)
    y = d.values[other]
    summable(d.x, y)
    if is_float(d.x):
        need(np.max(np.abs(d.x.astype(np.float64)), initial=0) * np.sum(np.abs(y)) < 2**20)
    return Step("matmul", (d.at, other), lambda xp, a, b: xp.matmul(a, b), wide=True)


def part(d: Draw) -> Step:
    key: list[Any] = []
    for n in d.x.shape:
        ends = [d.rnd.choice((None, d.rnd.randint(-n - 2, n + 2))) for _ in range(2)]
        step = d.rnd.choice((1, 1, 2, 3, -1, -1, -2, -3, 100, -100))
        is_index = n > 0 and d.rnd.random() < 0.15
        key.append(d.rnd.randrange(-n, n) if is_index else slice(*ends, step))
    if d.rnd.random() < 0.2:
        key.insert(d.rnd.randint(0, len(key)), None)
    if d.rnd.random() < 0.2:
        key[-1:] = [Ellipsis]
    return d.one(f"part {key}", lambda xp, x: x[tuple(key)])


def pad(d: Draw) -> Step:
    widths = [(d.rnd.choice((0, 0, 1, 2, 5)), d.rnd.choice((0, 0, 1, 3))) for _ in d.x.shape]
    fill = d.rnd.randint(0, 1)
    return d.one(f"pad {widths} {fill}", lambda xp, x: xp.pad(x, widths, constant_values=fill))


def move(d: Draw) -> Step:
    axes = list(range(d.x.ndim))
    d.rnd.shuffle(axes)
    axis, n = d.axis if axes else None, d.rnd.randint(-4, 9)
    name = d.rnd.choice(("permute_dims", "flip", "roll"))
    if name == "permute_dims":
        return d.one(f"permute {axes}", lambda xp, x: xp.permute_dims(x, tuple(axes)))
    if name == "flip":
        return d.one(f"flip {axis}", lambda xp, x: xp.flip(x, axis=axis))
    return d.one(f"roll {n} {axis}", lambda xp, x: xp.roll(x, n, axis=axis))


def join(d: Draw) -> Step:
    need(d.x.ndim > 0)
    axis = d.axis
    if d.rnd.random() < 0.4:
        return Step(f"stack {axis}", (d.at, d.like(), d.at), lambda xp, *x: xp.stack(x, axis=axis))

    def fits(v: Any) -> bool:
        if v.dtype != d.x.dtype or v.ndim != d.x.ndim:
            return False
        return np.delete(v.shape, axis).tolist() == np.delete(d.x.shape, axis).tolist()

    sources = (d.at, *[d.pick(fits) for _ in range(d.rnd.randint(1, 3))])
    return Step(f"concat {axis}", sources, lambda xp, *x: xp.concat(x, axis=axis))


def reshape(d: Draw) -> Step:
    sizes, left = [], d.x.size
    need(left > 0)
    for prime in (2, 3, 5, 7):
        while left % prime == 0 and len(sizes) < 4:
            sizes.append(prime)
            left //= prime
    d.rnd.shuffle(sizes)
    flat = d.rnd.random() < 0.3
    shape = (-1,) if flat else (*sizes, left)
    return d.one(f"reshape {shape}", lambda xp, x: xp.reshape(x, shape))


def spread(d: Draw) -> Step:
    axis, n = d.axis if d.x.ndim else None, d.rnd.randint(1, 3)
    name = d.rnd.choice(("repeat", "tile", "broadcast_to", "expand_dims"))
    if name == "repeat":
        return d.one(f"repeat {n} {axis}", lambda xp, x: xp.repeat(x, n, axis=axis))
    if name == "tile":
        return d.one(f"tile {n}", lambda xp, x: xp.tile(x, n))
    if name == "broadcast_to":
        shape = (n, *[n if size == 1 else size for size in d.x.shape])
        return d.one(f"broadcast_to {shape}", lambda xp, x: xp.broadcast_to(x, shape))
    return d.one("expand_dims", lambda xp, x: xp.expand_dims(x, axis=0))


def take(d: Draw) -> Step:
    """Indices that the program computes, where some value can be one."""
    need(d.x.ndim > 0)
    axis, n = d.axis, d.x.shape[d.axis]
    index = d.pick(
        lambda v: (
            v.dtype.kind in "iu"
            and v.ndim < 3
            and 0 < v.size <= MOST // max(d.x.size, 1)
            and -n <= int(v.min())
            and int(v.max()) < n
        )
    )
    return Step(f"take {axis}", (d.at, index), lambda xp, x, at: xp.take(x, at, axis=axis))


def assign(d: Draw) -> Step:
    """Part of a copy replaced by a number, or by the same part backwards: they overlap."""
    need(d.x.ndim > 0)
    key = []
    for n in d.x.shape:
        ends = [d.rnd.choice((None, d.rnd.randint(-n - 1, n + 1))) for _ in range(2)]
        key.append(slice(*ends, d.rnd.choice((1, 1, 2, -1, -2))))
    back = (slice(None, None, -1),) * d.x.ndim
    overlaps = d.rnd.random() < 0.5

    def apply(xp: Any, x: Any) -> Any:
        x = x.copy() if xp is np else x[...]
        x[tuple(key)] = x[tuple(key)][back] + x.dtype.type(0) if xp is np and overlaps else 1
        return x

    def ours(x: Any) -> Any:
        x = x[...]
        x[tuple(key)] = x[tuple(key)][back] if overlaps else 1
        return x

    return d.one(f"assign {key} {overlaps}", apply, ours)


def assign_masked(d: Draw) -> Step:
    def apply(xp: Any, x: Any, mask: Any) -> Any:
        x = x.copy() if xp is np else x[...]
        x[mask] = 1
        return x

    return Step("assign to a mask", (d.at, d.mask()), apply)


def triangle(d: Draw) -> Step:
    need(d.x.ndim > 1)
    name, k = d.rnd.choice(("tril", "triu")), d.rnd.randint(-3, 3)
    return d.one(f"{name} {k}", lambda xp, x: getattr(xp, name)(x, k=k))


def neighbours(d: Draw) -> Step:
    need(d.x.ndim > 0 and d.x.shape[d.axis] > 2)
    axis, n = d.axis, d.rnd.randint(1, 3)
    if d.rnd.random() < 0.5:
        need(not d.dtype.is_bool)
        return d.one(f"diff {axis}", lambda xp, x: xp.diff(x, axis=axis))
    return d.one(
        f"windows {n} {axis}",
        lambda xp, x: np.lib.stride_tricks.sliding_window_view(x, n, axis=axis),
        lambda x: lw.sliding_window_view(x, n, axis=axis),
    )


STEPS = (
    *(binary, binary, binary, number, compare, unary, unary, choose, extreme, clip, shift),
    *(convert, convert, reduce, reduce, reduce, position, running, product),
    *(part, part, pad, move, move, join, reshape, spread, spread, take, take),
    *(assign, assign_masked, triangle, neighbours),
)
