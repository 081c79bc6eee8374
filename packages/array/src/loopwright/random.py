"""`lw.random`: random arrays as functions of a key, with the same bits on every device.

A key is an array of two uint32 words. Every element is computed from the key and its own place,
so draws fuse, slices of them cost no more than their own elements, and nothing is kept between
calls: one key and one call always give the same values. `split` makes the keys of further draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright import graph
from loopwright.api import draws
from loopwright.api.arguments import as_shape, flag, integer, number
from loopwright.api.axes import one_axis
from loopwright.api.creation import arange
from loopwright.api.dtypes import broadcast_to, operand
from loopwright.api.elementwise import less
from loopwright.api.indexing import take
from loopwright.api.searching import argsort, searchsorted
from loopwright.api.threefry import (
    DRAW,
    DRAW_MORE,
    FOLD,
    INDEX_BITS,
    SPLIT,
    Words,
    counter_of,
    places,
    threefry,
    wide_word,
)
from loopwright.array import Array, as_device, from_host
from loopwright.memory import is_known, to_numpy
from loopwright.promotion import accumulator, as_dtype, is_weak, joint_device
from loopwright_core.errors import ArgumentError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import const, toposort
from loopwright_core.oracle.tensor import eval_tensor

__all__ = [
    "bernoulli",
    "bits",
    "choice",
    "fold_in",
    "integers",
    "key",
    "normal",
    "permutation",
    "split",
    "uniform",
]


def key(seed: int, *, device: str | None = None) -> Array:
    """The key of a seed, 0 .. 2**64 - 1."""
    seed = integer(seed, "a seed", "key")
    if not 0 <= seed < 1 << 64:
        fail(ArgumentError, f"the seed {seed} is out of range", where="key", fix="0 .. 2**64 - 1")
    return from_host(np.array([seed & 0xFFFFFFFF, seed >> 32], np.uint32), as_device(device), False)


def _words(where: str, key: Any) -> tuple[Words, str]:
    """The two words of a key, and its device."""
    x = operand(where, key)
    if x.shape != (2,) or x.dtype is not dt.uint32:
        fail(
            ArgumentError,
            f"a key is two uint32 words, not {x.dtype} of shape {x.shape}",
            where=where,
            fix="make one with lw.random.key(seed), or some with lw.random.split",
        )
    low, high = [graph.reshape(graph.shrink(x._uop, [(i, 1, 1)]), ()) for i in (0, 1)]
    return (low, high), x.device


def _derived(key: Array, pair: Words) -> tuple[Array, ...]:
    """Keys of two lines of words: computed at once, by the interpreter, where the key is known.

    So a key that was split a thousand times is two words in memory, no expression of a thousand
    steps, and kernels see no difference between one key and another. In a function that is being
    compiled the keys are part of its graph.
    """
    n = graph.shape(pair[0])[0]
    node = graph.concat([graph.reshape(w, (n, 1)) for w in pair], 1)
    if not is_known(node):
        return tuple([Array(node, key.device)[i] for i in range(n)])
    buffers = [leaf for leaf in toposort([node]) if leaf.op is Op.BUFFER]
    values = eval_tensor(node, {leaf.arg.slot: to_numpy(leaf) for leaf in buffers})
    return tuple([from_host(np.array(row), key.device, False) for row in values])


def split(key: Any, n: int = 2) -> tuple[Array, ...]:
    """`n` new keys: `first, second = lw.random.split(key)`."""
    words, _ = _words("split", key)
    n = integer(n, "n", "split")
    if n < 0:
        fail(ArgumentError, f"n={n} is negative", where="split")
    return _derived(operand("split", key), threefry(words, places((n,), SPLIT)))


def fold_in(key: Any, data: Any) -> Array:
    """A new key from a key and an integer, 0 .. 2**60 - 1, such as the number of a step.

    The integer may be a 0-d array, of which the lowest 60 bits count.
    """
    words, _ = _words("fold_in", key)
    if isinstance(data, Array):
        if data.shape or not data.dtype.is_int:
            what = f"{data.dtype} of shape {data.shape}"
            fail(ArgumentError, f"fold_in takes one integer, not {what}", fix="index it first")
        joint_device("fold_in", (operand("fold_in", key), data))
        mask = const((1 << INDEX_BITS) - 1, dt.uint64)
        node = graph.alu(Op.AND, graph.cast(data._uop, dt.uint64), mask)
    else:
        data = integer(data, "data", "fold_in")
        if not 0 <= data < 1 << INDEX_BITS:
            fail(ArgumentError, f"data={data} is out of range", where="fold_in", fix="0 .. 2**60-1")
        node = const(data, dt.uint64)
    low, high = threefry(words, counter_of(node, FOLD))
    pair = graph.reshape(low, (1,)), graph.reshape(high, (1,))
    return _derived(operand("fold_in", key), pair)[0]


def _draw(where: str, key: Any, shape: Any, use: int = DRAW) -> tuple[Words, tuple[int, ...], str]:
    """Two random words for each element of a shape, the shape, the device."""
    words, device = _words(where, key)
    sizes = as_shape(shape, where)
    return threefry(words, places(sizes, use)), sizes, device


def bits(key: Any, shape: Any = (), dtype: Any = dt.uint32) -> Array:
    """Random bits as unsigned integers."""
    found = as_dtype(dtype, "bits")
    if found.kind != "uint":
        fail(DTypeError, f"bits are unsigned integers, not {found}", fix="use lw.random.integers")
    words, _, device = _draw("bits", key, shape)
    word = wide_word(words) if found is dt.uint64 else words[0]
    return Array(graph.cast(word, found), device)


def _float(dtype: Any, where: str) -> DType:
    found = as_dtype(dtype, where)
    if not found.is_float:
        fail(DTypeError, f"{where} gives floats, not {found}", fix="use lw.random.integers")
    return found


def uniform(
    key: Any, shape: Any = (), dtype: Any = dt.float32, low: float = 0.0, high: float = 1.0
) -> Array:
    """Numbers evenly spread over [low, high), also after rounding.

    From 0 to 1 they are multiples of 2**-24 in float32, of 2**-53 in float64.
    """
    found = _float(dtype, "uniform")
    first, last = [float(number(v, n, "uniform")) for v, n in ((low, "low"), (high, "high"))]
    words, _, device = _draw("uniform", key, shape)
    return Array(draws.between(draws.unit(words, found), first, last, found), device)


def normal(
    key: Any, shape: Any = (), dtype: Any = dt.float32, loc: float = 0.0, scale: float = 1.0
) -> Array:
    """Numbers of the normal distribution with mean `loc` and standard deviation `scale`."""
    found = _float(dtype, "normal")
    mean, spread = number(loc, "loc", "normal"), number(scale, "scale", "normal")
    if not spread >= 0:
        fail(ArgumentError, f"scale={scale} is no standard deviation", where="normal", fix=">= 0")
    wide = accumulator(found)
    (radius, angle), sizes, device = _draw("normal", key, shape)
    if wide is dt.float64:
        radius = wide_word((radius, angle))
        angle = wide_word(_draw("normal", key, sizes, DRAW_MORE)[0])
    value = draws.standard_normal(radius, angle, wide)
    if spread != 1:
        value = graph.alu(Op.MUL, value, graph.constant(spread, wide, "normal"))
    if mean != 0:
        value = graph.alu(Op.ADD, value, graph.constant(mean, wide, "normal"))
    return Array(graph.cast(value, found), device)


def integers(
    key: Any,
    shape: Any,
    low: int,
    high: int | None = None,
    dtype: Any = dt.int64,
    endpoint: bool = False,
) -> Array:
    """Integers of [low, high), or [0, low) without `high`; all equally likely.

    `endpoint`: `high` is one of them too.
    """
    first, last = (0, low) if high is None else (low, high)
    first, last = integer(first, "low", "integers"), integer(last, "high", "integers")
    found = as_dtype(dtype, "integers")
    if not found.is_int:
        fail(DTypeError, f"integers are of an integer dtype, not {found}", fix="lw.random.uniform")
    n = last - first + flag(endpoint, "endpoint", "integers")
    if n < 1:
        fail(ArgumentError, f"no integer from {first} up to {last}", where="integers")
    if first < found.min or first + n - 1 > found.max:
        fail(
            ArgumentError,
            f"{found} does not hold all from {first} up to {last}",
            where="integers",
            fix=f"use {found.min} to {found.max}, or another dtype",
        )
    words, sizes, device = _draw("integers", key, shape)
    more = words if n <= 1 << 32 else _draw("integers", key, sizes, DRAW_MORE)[0]
    node = graph.cast(draws.below(n, words, more), found)
    if first:
        node = graph.alu(Op.ADD, node, const(first, found))
    return Array(node, device)


def bernoulli(key: Any, shape: Any = (), p: Any = 0.5) -> Array:
    """True with probability p, a number or an array of floats that broadcasts to the shape."""
    words, sizes, device = _draw("bernoulli", key, shape)
    if not is_weak(p):
        chance = operand("bernoulli", p)
        if not chance.dtype.is_float:
            fail(DTypeError, f"probabilities are floats, not {chance.dtype}", where="bernoulli")
        return less(uniform(key, sizes, chance.dtype), broadcast_to(chance, sizes))
    if not 0 <= p <= 1:
        fail(ArgumentError, f"p={p} is no probability", where="bernoulli", fix="0 to 1")
    found = draws.happens(p, words)
    node = graph.full(sizes, const(found, dt.bool_)) if isinstance(found, bool) else found
    return Array(node, device)


def permutation(key: Any, x: Any, axis: int = 0) -> Array:
    """The slices of an axis in random order; an int stands for 0 .. x-1. Sorts on the host."""
    if is_weak(x):
        n = integer(x, "x", "permutation")
        if n < 0:
            fail(ArgumentError, f"x={n} is negative", where="permutation")
        x = arange(n, device=operand("permutation", key).device)
    values = operand("permutation", x)
    place = one_axis(axis, values.ndim, "permutation")
    joint_device("permutation", (operand("permutation", key), values))
    order = argsort(bits(key, (values.shape[place],), dt.uint64))
    return take(values, order, axis=place)


def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Array:
    """Slices of an axis drawn at random; an int stands for 0 .. a-1.

    Without `replace` no slice is drawn twice; `p` gives each its probability, with replacement.
    Both evaluate on the host.
    """
    where = "choice"
    if is_weak(a):
        a = arange(max(integer(a, "a", where), 0), device=operand(where, key).device)
    values = operand(where, a)
    place, sizes = one_axis(axis, values.ndim, where), as_shape(shape, where)
    joint_device(where, (operand(where, key), values))
    n, n_drawn = values.shape[place], int(np.prod(sizes, dtype=object))
    if n_drawn and not n:
        fail(ShapeError, f"there is nothing to draw from: shape {values.shape}", where=where)
    if not flag(replace, "replace", where):
        if p is not None:
            fail(ArgumentError, "p= draws with replacement", where=where, fix="leave p=None")
        if n_drawn > n:
            fail(ArgumentError, f"{n_drawn} of {n} without replacement", where=where)
        picks = graph.reshape(permutation(key, n)[:n_drawn]._uop, sizes)
        return take(values, Array(picks, values.device), axis=place)
    if p is None:
        return take(values, integers(key, sizes, max(n, 1)), axis=place)
    total = np.cumsum(_probabilities(p, n))
    drawn = uniform(key, sizes, dt.float64)
    shares = from_host(total / total[-1], values.device, False)
    return take(values, searchsorted(shares, drawn, side="right"), axis=place)


def _probabilities(p: Any, n: int) -> np.ndarray[Any, Any]:
    """One probability each for n choices. Raises ArgumentError."""
    chances = operand("choice", p).numpy().astype(np.float64)
    if chances.shape != (n,):
        fail(ShapeError, f"p has shape {chances.shape} for {n} choices", where="choice")
    if not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-6 * max(n, 1):
        fail(ArgumentError, "p are no probabilities", where="choice", fix="they are >= 0, sum 1")
    return chances
