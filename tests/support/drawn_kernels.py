"""Random kernels of every structure: reduces in series and nested, scans, gathers, many outputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import asts
from asts import op

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import Shape
from loopwright_core.ir.uop import UOp, Variable, const
from support.drawn_values import Draw, Value, exact_up_to

Stores = list[tuple[UOp, UOp]]
ROWS = Variable("n", 1, 24)


@dataclass(frozen=True)
class Drawn:
    """A kernel AST, the whole numbers in each buffer, and whether its results on them are exact."""

    kind: str
    ast: UOp
    ranges: dict[int, tuple[int, int]]
    is_exact: bool
    variables: dict[str, int]


def draw(rnd: random.Random, kind: str, dtypes: frozenset[DType], points: int) -> Drawn:
    """A kernel of a kind, over dtypes that a target has, with spaces of about `points` points."""
    d = Draw(rnd, dtypes, points)
    ast, ranges = d.finished(*KINDS[kind](d))
    variables = {ROWS.name: rnd.randint(ROWS.lo, ROWS.hi)} if kind == "symbolic" else {}
    return Drawn(kind, ast, ranges, kind not in INEXACT, variables)


def _store(d: Draw, x: Value) -> tuple[UOp, UOp]:
    """Into a buffer of its own, now and then a turned one or a part of one."""
    shape = x.shape
    if not shape or not all(isinstance(n, int) for n in shape) or d.chance(0.8):
        return d.output(shape, x.dtype), x.node
    sizes = [n for n in shape if isinstance(n, int)]
    if d.chance(0.5):
        axes = list(range(len(sizes)))
        d.rnd.shuffle(axes)
        before = [0] * len(sizes)
        for place, axis in enumerate(axes):
            before[axis] = sizes[place]
        return asts.permute(d.output(tuple(before), x.dtype), *axes), x.node
    starts = [d.rnd.choice((0, 1)) for _ in sizes]
    steps = [d.rnd.choice((1, 1, 2)) for _ in sizes]
    spans = [(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, steps)]
    out = d.output(tuple([stop + 1 for _, stop, _ in spans]), x.dtype)
    return asts.shrink(out, *spans), x.node


def _after(d: Draw, x: Value) -> Value:
    """A little arithmetic behind a reduce."""
    if d.chance(0.4):
        x = d.joined(x, d.leaf(x.shape, x.dtype))
    return d.unary(x) if d.chance(0.3) else x


def elementwise(d: Draw) -> Stores:
    x = d.computed(d.shape(d.rnd.randint(1, 4)), d.rnd.randint(1, 4))
    return [_store(d, x)]


def lines(d: Draw) -> Stores:
    """Outputs of whole vectors, which may be stored around the cache."""
    shape = (d.rnd.choice((3, 4, 5, 7)), d.rnd.choice((32, 64, 96)))
    x = d.leaf(shape, d.known(dt.float32, dt.float32, dt.int32, dt.float64))
    x = d.joined(x, d.leaf(shape))
    return [(d.output(shape, x.dtype), x.node)]


def moved(d: Draw, x: Value) -> Value:
    """Some view of a computed value."""
    sizes = [n for n in x.shape if isinstance(n, int)]
    if not sizes or len(sizes) < len(x.shape):
        return x
    which = d.rnd.randrange(4)
    if which == 0:
        axes = list(range(len(sizes)))
        d.rnd.shuffle(axes)
        return Value(asts.permute(x.node, *axes), x.most)
    if which == 1:
        return Value(asts.flip(x.node, d.rnd.randrange(len(sizes))), x.most)
    if which == 2:
        widths = [(d.rnd.choice((0, 1)), d.rnd.choice((0, 0, 2))) for _ in sizes]
        return Value(asts.pad(x.node, *widths, fill=1), max(x.most, 1))
    spans = [(s, n, d.rnd.choice((1, 1, 2))) for n in sizes for s in (1 if n > 2 else 0,)]
    return Value(asts.shrink(x.node, *spans), x.most)


def reduces(d: Draw) -> Stores:
    """Up to three reduces or scans, in series and nested, with arithmetic and views between."""
    x = d.computed(d.shape(d.rnd.randint(1, 4)), d.rnd.randint(1, 3))
    stores: Stores = []
    for _ in range(d.rnd.choice((1, 1, 2, 2, 3))):
        if not x.shape:
            break
        axes = sorted(
            d.rnd.sample(range(len(x.shape)), 2 if len(x.shape) > 2 and d.chance(0.3) else 1)
        )
        which = d.rnd.random()
        if which < 0.45:
            x = d.reduced(x, tuple(axes))
        elif which < 0.85:
            x = d.joined(x, d.reduced(x, tuple(axes), kept=True))
        else:  # fusion stores one that is read at other places than its running element
            x = _after(d, d.scanned(x, axes[0]))
            break
        x = _after(d, x)
        if d.chance(0.25):
            x = moved(d, x)
        if d.chance(0.15):
            stores.append(_store(d, x))
    stores.append(_store(d, x))
    return stores


def rows(d: Draw) -> Stores:
    """e - sum(e) with e = max(x - max(x), -2) ** 2: the three loops of softmax."""
    shape = d.shape(d.rnd.randint(2, 3))
    axis = d.rnd.randrange(len(shape))
    x = d.leaf(shape, d.known(dt.float32, dt.float32, dt.float64, dt.int32))
    centred = op(Op.SUB, x.node, asts.keep(x.node, "max", axis))
    e = op(Op.MAX, centred, const(-2, x.dtype))
    e = op(Op.MUL, e, e)
    return [_store(d, Value(op(Op.SUB, e, asts.keep(e, "add", axis)), 4 * shape[axis]))]


Dtypes = tuple[tuple[DType, DType], ...]
# What a product reads and what it adds up in.
_PRODUCTS = (
    *((dt.float32, dt.float32),) * 4,
    *((dt.float16, dt.float32), (dt.float16, dt.float32), (dt.bfloat16, dt.float32)),
    *((dt.int8, dt.int32), (dt.uint8, dt.int32), (dt.float64, dt.float64)),
    *((dt.int32, dt.int32), (dt.float16, dt.float16)),
)
_CORE_PRODUCTS = (
    *((dt.float16, dt.float32), (dt.bfloat16, dt.float32), (dt.float32, dt.float32)),
    *((dt.int8, dt.int32), (dt.uint8, dt.int32)),
)


def _operand(d: Draw, rows: int, columns: int, dtype: DType) -> Value:
    """A matrix: plain, turned, or some view."""
    if d.chance(0.3):
        x = d.buffer((columns, rows), dtype)
        return Value(asts.permute(x.node, 1, 0), x.most)
    return d.buffer((rows, columns), dtype) if d.chance(0.8) else d.leaf((rows, columns), dtype)


def _product(d: Draw, m: int, n: int, k: int, inputs: DType, sums: DType) -> Value:
    a, b = _operand(d, m, k, inputs), _operand(d, k, n, inputs)
    if inputs is not sums:
        a, b = d.converted(a, sums), d.converted(b, sums)
    most = a.most * b.most * k
    if most > exact_up_to(sums):
        return d.leaf((m, n), sums)
    return Value(asts.product(a.node, b.node), most)


def product(d: Draw) -> Stores:
    """A matrix product in one of many dtypes, alone, with an epilogue, or the sum of two."""
    return _products(d, d.shape(3), _PRODUCTS)


def core_product(d: Draw) -> Stores:
    """One as large as tensor cores' tiles, or a little smaller or larger."""
    shape = [d.rnd.choice((7, 8, 15, 16, 16, 17, 24, 31, 32, 33)) for _ in range(3)]
    return _products(d, shape, _CORE_PRODUCTS)


def _products(d: Draw, shape: Sequence[int], dtypes: Dtypes) -> Stores:
    m, n, k = shape
    inputs, sums = d.rnd.choice([p for p in dtypes if set(p) <= d.dtypes])
    x = _product(d, m, n, k, inputs, sums)
    if d.chance(0.15):
        y = _product(d, m, n, k, inputs, sums)
        x = Value(op(Op.ADD, x.node, y.node), x.most + y.most)
    if d.chance(0.3):
        x = _after(d, x)
    if dtypes is _PRODUCTS and d.chance(0.2):
        x = d.reduced(x, (d.rnd.randrange(2),))
    return [_store(d, x)]


def vector_product(d: Draw) -> Stores:
    m, k = d.shape(2)
    a = _operand(d, m, k, dt.float32)
    x = d.buffer((1, k), dt.float32)
    made = op(Op.MUL, a.node, asts.expand(x.node, m, k))
    return [_store(d, _after(d, Value(asts.reduce(made, "add", 1), a.most * x.most * k)))]


def attention(d: Draw) -> Stores:
    """(q @ k) in the loops of softmax, times v."""
    m, n = d.size(8), d.size(12)
    a, b = d.size(5), d.size(8)
    scores = asts.product(d.leaf((m, a), dt.float32).node, d.leaf((a, n), dt.float32).node)
    centred = op(Op.SUB, scores, asts.keep(scores, "max", 1))
    e = op(Op.ADD, op(Op.MAX, centred, const(-3, dt.float32)), const(3, dt.float32))
    if d.chance(0.5):
        e = op(Op.SUB, e, asts.keep(e, "add", 1))
    return [_store(d, Value(asts.product(e, d.leaf((n, b), dt.float32).node), 3e5))]


def windows(d: Draw) -> Stores:
    """Pooling, or a convolution, over an image with or without a pad."""
    channels, size, stride = d.size(4), d.rnd.choice((2, 3)), d.rnd.choice((1, 1, 2))
    high, wide = d.rnd.choice((4, 5, 7)), d.rnd.choice((5, 8, 12, 17))
    if d.chance(0.4):
        found = asts.conv(channels, high, wide, d.size(5), size, stride)
        (store,) = found.src
        for n in found.toposort():
            if n.op is Op.BUFFER:
                d.ranges[n.arg.slot] = (-4, 4)
        return [(store.src[0], store.src[1])]
    x = d.leaf((channels, high, wide), d.known(dt.float32, dt.float32, dt.int32))
    if d.chance(0.5):
        x = Value(asts.pad(x.node, (0, 0), (1, 0), (0, 1), fill=d.rnd.choice((0, 2))), x.most)
    tiles = asts.window(asts.window(x.node, 1, size, stride), 2, size, d.rnd.choice((1, 2)))
    return [_store(d, _after(d, d.reduced(Value(tiles, x.most), (3, 4))))]


def extremes(d: Draw) -> Stores:
    """Where the largest or smallest elements are, and their values, of rows or columns."""
    shape = d.shape(d.rnd.randint(1, 3))
    axis = d.rnd.randrange(len(shape))
    x = d.computed(shape, d.rnd.randint(1, 2))
    where = asts.iota(axis, *shape, dtype=dt.int64)
    pair = UOp(Op.REDUCE, dt.void, (x.node, where), (d.rnd.choice(("argmax", "argmin")), (axis,)))
    found = Value(asts.item(pair, 1, dt.int64), 64)
    if d.chance(0.3):
        return [_store(d, Value(asts.item(pair, 0, x.dtype), x.most)), _store(d, found)]
    return [_store(d, d.joined(found, d.leaf(found.shape, dt.int64)) if d.chance(0.2) else found)]


def moments(d: Draw) -> Stores:
    """Count, mean and squares of rows that are one number each: exact in any grouping."""
    shape = d.shape(2)
    x = d.leaf((shape[0], 1), dt.float32)
    return _moments(d, Value(asts.expand(x.node, *shape), x.most))


def _moments(d: Draw, x: Value) -> Stores:
    ones = asts.expand(asts.reshape(const(1, x.dtype), 1, 1), *x.shape)
    parts = (ones, x.node, const(0, x.dtype))
    made = UOp(Op.REDUCE, dt.void, parts, ("welford", (1,)))
    return [_store(d, Value(asts.item(made, n, x.dtype), x.most)) for n in range(3)]


def spread_moments(d: Draw) -> Stores:
    return _moments(d, d.leaf(d.shape(2), dt.float32))


def scans(d: Draw) -> Stores:
    """Running sums and the like, alone, repeated by their reader, or of one another."""
    shape = d.shape(d.rnd.randint(1, 3))
    x = d.computed(shape, d.rnd.randint(1, 2))
    axis = d.rnd.randrange(len(shape))
    x = d.scanned(x, axis)
    if len(shape) > 1 and d.chance(0.3):  # those of one axis run in one direction
        x = d.scanned(_after(d, x), axis - 1 if axis else axis + 1)
    if d.chance(0.3):
        x = Value(asts.expand(asts.reshape(x.node, 1, *shape), 3, *shape), x.most)
    return [_store(d, _after(d, x))]


def joins(d: Draw) -> Stores:
    """Concatenation: several stores side by side in one buffer."""
    shape = list(d.shape(2))
    axis, dtype = d.rnd.randrange(2), d.dtype()
    cuts = [0]
    for _ in range(d.rnd.randint(2, 3)):
        cuts.append(cuts[-1] + d.rnd.randint(1, 9))
    whole: Shape = tuple([cuts[-1] if a == axis else n for a, n in enumerate(shape)])
    out = d.output(whole, dtype)
    stores = []
    for start, stop in pairwise(cuts):
        part = tuple([stop - start if a == axis else n for a, n in enumerate(shape)])
        spans = [(start, stop, 1) if a == axis else (0, n, 1) for a, n in enumerate(shape)]
        x = d.converted(d.computed(part, d.rnd.randint(1, 2)), dtype)
        stores.append((asts.shrink(out, *spans), x.node))
    return stores


def outputs(d: Draw) -> Stores:
    """Several outputs of one input: itself, its sums, its largest, each changed a little."""
    shape = d.shape(2)
    x = d.computed(shape, 1)
    stores = [_store(d, _after(d, x))]
    for _ in range(d.rnd.randint(1, 2)):
        axis = d.rnd.randrange(2)
        y = d.reduced(x, (axis,)) if d.chance(0.6) else d.joined(x, d.reduced(x, (axis,), True))
        stores.append(_store(d, _after(d, y)))
    return stores


def symbolic(d: Draw) -> Stores:
    """Rows whose number is known at launch only."""
    wide = d.size(20)
    shape: Shape = (ROWS, wide) if d.chance(0.8) else (ROWS,)
    x = d.computed(shape, d.rnd.randint(1, 3))
    if d.chance(0.7):
        axis = d.rnd.randrange(len(shape))
        x = d.reduced(x, (axis,)) if d.chance(0.5) else d.joined(x, d.reduced(x, (axis,), True))
    return [_store(d, _after(d, x))]


def softmax(d: Draw) -> Stores:
    shape = d.shape(2)
    return [
        _store(d, Value(asts.softmax_of(d.leaf(shape, dt.float32).node, d.rnd.randrange(2)), 1))
    ]


def attention_on_reals(d: Draw) -> Stores:
    found = asts.attention(d.size(5), d.size(9), d.size(4), d.size(6))
    for n in found.toposort():
        if n.op is Op.BUFFER:
            d.ranges[n.arg.slot] = (-4, 4)
    (store,) = found.src
    return [(store.src[0], store.src[1])]


def layer_norm(d: Draw) -> Stores:
    found = asts.layer_norm(*d.shape(2))
    d.ranges.update({0: (-4, 4), 1: (-4, 4)})
    (store,) = found.src
    return [(store.src[0], store.src[1])]


KINDS: dict[str, Callable[[Draw], Stores]] = {
    f.__name__.replace("_", " "): f
    for f in (
        *(elementwise, lines, reduces, rows, product, core_product, vector_product, attention),
        *(windows, extremes, moments, scans, joins, outputs, symbolic),
        *(spread_moments, softmax, attention_on_reals, layer_norm),
    )
}
# These round on whole numbers too: they run on real ones, within bounds.
INEXACT = frozenset({"spread moments", "softmax", "attention on reals", "layer norm"})
# How often each kind is drawn, where a case has no reason for another.
WEIGHTS = dict.fromkeys(KINDS, 1)
WEIGHTS |= {"reduces": 8, "product": 3, "elementwise": 2, "outputs": 2, "core product": 0}
