"""Random level-1 values: views of buffers and arithmetic on them, exact on small whole numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

import asts
from asts import cast, op

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import Shape, shape_of
from loopwright_core.ir.uop import Extent, UOp, Variable, const, toposort

# Whole numbers up to here, and so all their sums and products below it, are exact.
_EXACT = {dt.float16: 2.0**11, dt.bfloat16: 2.0**8, dt.float32: 2.0**24, dt.float64: 2.0**53}
_SIZES = (1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 8, 9, 11, 12, 13, 15, 16, 17, 19, 23, 24, 32, 33)


@dataclass(frozen=True)
class Value:
    """`most`: no element is larger in size, where the inputs are the whole numbers drawn."""

    node: UOp
    most: float

    @property
    def shape(self) -> Shape:
        return shape_of(self.node)

    @property
    def dtype(self) -> DType:
        return self.node.dtype


def exact_up_to(dtype: DType) -> float:
    """The size below which sums of whole numbers are exact; integers wrap, so everything is."""
    return _EXACT.get(dtype, float("inf"))


def _limited(node: UOp, most: float) -> Value:
    if node.dtype.is_float:
        return Value(node, most)
    return Value(node, min(most, float(max(abs(int(node.dtype.min)), int(node.dtype.max)))))


@dataclass
class Draw:
    """What a kernel is drawn from. `points`: elements of the largest iteration space.

    `ranges`: the whole numbers in each buffer; slots are given as they come, `finished` renumbers.
    """

    rnd: random.Random
    dtypes: frozenset[DType]
    points: int
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    buffers: list[UOp] = field(default_factory=list)

    def chance(self, p: float) -> bool:
        return self.rnd.random() < p

    def size(self, most: int) -> int:
        return self.rnd.choice([n for n in _SIZES if n <= max(most, 1)])

    def shape(self, rank: int, points: int | None = None) -> tuple[int, ...]:
        """A shape of so many axes whose elements number at most `points`."""
        left = points or self.points
        found = []
        for n in range(rank):
            found.append(
                self.size(max(1, int(left ** (1 / (rank - n) if self.chance(0.6) else 1))))
            )
            left //= found[-1]
        self.rnd.shuffle(found)
        return tuple(found)

    def dtype(self) -> DType:
        common = (dt.float32,) * 8 + (dt.int32, dt.int32, dt.float64, dt.float16, dt.int8, dt.uint8)
        return self.known(*common, dt.bfloat16, dt.int64, dt.bool_, dt.int16)

    def known(self, *dtypes: DType) -> DType:
        """One of these that the target has."""
        return self.rnd.choice([d for d in dtypes if d in self.dtypes])

    # Memory

    def buffer(self, shape: Shape, dtype: DType, low: int = -4, high: int = 4) -> Value:
        """A new buffer, or one that is there already."""
        if dtype.is_bool or dtype.kind == "uint":
            low = max(low, 0)
        same = [b for b in self.buffers if b.dtype is dtype and b.arg.shape == shape]
        same = [b for b in same if self.ranges[b.arg.slot] == (low, high)]
        if same and self.chance(0.35):
            found = self.rnd.choice(same)
        else:
            found = self.output(shape, dtype)
            self.buffers.append(found)
            self.ranges[found.arg.slot] = (low, high)
        return Value(found, 1 if dtype.is_bool else max(abs(low), abs(high)))

    def output(self, shape: Shape, dtype: DType) -> UOp:
        """A buffer to store into."""
        slot = len(self.ranges)
        self.ranges[slot] = (-4, 4)
        if dtype.is_bool or dtype.kind == "uint":
            self.ranges[slot] = (0, 4)
        return asts.buffer(slot, *shape, dtype=dtype)

    def finished(self, *stores: tuple[UOp, UOp]) -> tuple[UOp, dict[int, tuple[int, int]]]:
        """The SINK of these stores, its slots numbered by first use, and the range of each."""
        order = [n for target, value in stores for n in (value, target)]
        slots: dict[int, int] = {}
        made: dict[UOp, UOp] = {}
        for node in toposort(order):
            arg = node.arg
            if node.op is Op.BUFFER:
                arg = type(arg)(slots.setdefault(arg.slot, len(slots)), arg.shape)
            made[node] = UOp(node.op, node.dtype, tuple([made[s] for s in node.src]), arg)
        ranges = {new: self.ranges[old] for old, new in slots.items()}
        return asts.sink(*[(made[target], made[value]) for target, value in stores]), ranges

    # Views

    def leaf(self, shape: Shape, dtype: DType | None = None, depth: int = 2) -> Value:
        """Some view of a buffer, of this shape."""
        dtype = dtype or self.dtype()
        fixed = all(isinstance(n, int) for n in shape)
        if depth == 0 or not shape or self.chance(0.4):
            return self.buffer(shape, dtype)
        views: list[View] = [_turned, _spread, _converted]
        if fixed:
            views += [_flipped, _cut, _cut, _padded, _padded, _merged, _taken, _counted]
        return self.rnd.choice(views)(self, shape, dtype, depth - 1)

    # Arithmetic

    def converted(self, x: Value, dtype: DType) -> Value:
        """The same whole numbers in another dtype, as far as it has them."""
        if x.dtype is dtype:
            return x
        if dtype.is_bool:
            return Value(op(Op.CMPNE, x.node, const(0, x.dtype), dtype=dt.bool_), 1)
        return _limited(cast(x.node, dtype), float("inf") if dtype.kind == "uint" else x.most)

    def fits(self, x: Value, dtype: DType) -> bool:
        return x.most <= exact_up_to(dtype)

    def unary(self, x: Value) -> Value:
        if x.dtype.is_bool:
            return Value(op(Op.XOR, x.node, const(True, dt.bool_)), 1)
        which = self.rnd.randrange(5)
        n = self.rnd.choice((1, 2, 3))
        number = const(n, x.dtype)
        if which == 0:
            return _limited(op(Op.NEG, x.node), x.most if x.dtype.is_float else float("inf"))
        if which == 1 and x.most + n <= exact_up_to(x.dtype):
            return _limited(op(Op.ADD, x.node, number), x.most + n)
        if which == 2 and x.most * n <= exact_up_to(x.dtype):
            return _limited(op(Op.MUL, x.node, number), x.most * n)
        if which == 3:
            return Value(op(Op.MAX, x.node, number), max(x.most, n))
        return Value(op(Op.MIN, x.node, number), max(x.most, n))

    def binary(self, x: Value, y: Value) -> Value:
        """Two values of one shape and dtype in one."""
        dtype, a, b = x.dtype, x.node, y.node
        if dtype.is_bool:
            return Value(op(self.rnd.choice((Op.AND, Op.OR, Op.XOR)), a, b), 1)
        which = self.rnd.choice(("add", "add", "sub", "mul", "mul", "max", "min", "where", "bits"))
        limit, total, product = exact_up_to(dtype), x.most + y.most, x.most * y.most
        if which in ("add", "sub") and total <= limit:
            return _limited(op(Op.ADD if which == "add" else Op.SUB, a, b), self._wrapped(x, total))
        if which == "mul" and product <= limit:
            return _limited(op(Op.MUL, a, b), self._wrapped(x, product))
        if which == "bits" and dtype.is_int:
            return _limited(op(self.rnd.choice((Op.AND, Op.OR, Op.XOR)), a, b), float("inf"))
        if which == "where":
            is_less = op(Op.CMPLT, a, b, dtype=dt.bool_)
            other = self.rnd.choice((a, b, const(2, dtype)))
            chosen = op(Op.WHERE, is_less, self.rnd.choice((a, b)), other, dtype=dtype)
            return Value(chosen, max(x.most, y.most, 2))
        return Value(op(Op.MIN if which == "min" else Op.MAX, a, b), max(x.most, y.most))

    def _wrapped(self, x: Value, most: float) -> float:
        """What can wrap can be anything."""
        safe = x.dtype.is_float or (x.dtype.is_signed and most <= float(int(x.dtype.max)))
        return most if safe else float("inf")

    def joined(self, x: Value, y: Value) -> Value:
        """Two values of one shape, the second in the first one's dtype where that is exact."""
        if not self.fits(y, x.dtype):
            x, y = y, x
        if not self.fits(y, x.dtype):
            return x
        return self.binary(x, self.converted(y, x.dtype))

    def computed(self, shape: Shape, leaves: int) -> Value:
        """Arithmetic over so many leaves."""
        x = self.leaf(shape)
        for _ in range(leaves - 1):
            x = self.joined(x, self.leaf(shape, x.dtype if self.chance(0.6) else None))
            if self.chance(0.3):
                x = self.unary(x)
        return x

    # Reductions

    def combine(self, x: Value, axes: Sequence[int]) -> tuple[str, float]:
        """A combine that is exact on the value, and how large its result can be."""
        n = float(prod([_largest(x.shape[a]) for a in axes]))
        if x.dtype.is_bool:
            return self.rnd.choice(("or", "and", "xor")), 1
        names = ["max", "min"]
        if x.most * n <= exact_up_to(x.dtype):
            names += ["add"] * 5
        if x.dtype.is_int:
            names += ["and", "or", "xor", "mul"]
        name = self.rnd.choice(names)
        if name in ("max", "min"):
            return name, x.most
        return name, self._wrapped(x, x.most * n) if name == "add" else float("inf")

    def reduced(self, x: Value, axes: tuple[int, ...], kept: bool = False) -> Value:
        """A reduce over some axes, repeated along them again if kept."""
        name, most = self.combine(x, axes)
        made = asts.reduce(x.node, name, *axes)
        if kept:
            small = [1 if a in axes else n for a, n in enumerate(x.shape)]
            made = asts.expand(asts.reshape(made, *small), *x.shape)
        return _limited(made, most)

    def scanned(self, x: Value, axis: int) -> Value:
        name, most = self.combine(x, (axis,))
        exclusive, reverse = self.chance(0.3), self.chance(0.3)
        if exclusive and name in ("max", "min", "and"):  # begins with the dtype's own bound
            exclusive = False
        return _limited(asts.scan(x.node, name, axis, exclusive, reverse), most)


def _largest(n: Extent) -> int:
    return n.hi if isinstance(n, Variable) else n


View = Callable[[Draw, Shape, DType, int], Value]


def _turned(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    axes = list(range(len(shape)))
    d.rnd.shuffle(axes)
    before: list[Extent] = [0] * len(shape)
    for place, axis in enumerate(axes):
        before[axis] = shape[place]
    x = d.leaf(tuple(before), dtype, depth)
    return Value(asts.permute(x.node, *axes), x.most)


def _spread(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    x = d.leaf(tuple([1 if d.chance(0.6) else n for n in shape]), dtype, depth)
    return Value(asts.expand(x.node, *shape), x.most)


def _converted(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    return d.converted(d.leaf(shape, d.dtype(), depth), dtype)


def _flipped(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    x = d.leaf(shape, dtype, depth)
    axes = [a for a in range(len(shape)) if d.chance(0.6)] or [0]
    return Value(asts.flip(x.node, *axes), x.most)


def _cut(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    spans, sizes = [], []
    for n in shape:
        assert isinstance(n, int)
        start, step = d.rnd.choice((0, 0, 1, 2)), d.rnd.choice((1, 1, 1, 2, 3))
        stop = start + (n - 1) * step + 1
        spans.append((start, stop, step))
        sizes.append(stop + d.rnd.choice((0, 0, 1, 3)))
    x = d.leaf(tuple(sizes), dtype, depth)
    return Value(asts.shrink(x.node, *spans), x.most)


def _padded(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    widths, sizes = [], []
    for n in shape:
        assert isinstance(n, int)
        before = d.rnd.choice((0, 0, 1, 2)) if n > 3 else 0
        after = d.rnd.choice((0, 1, n // 3)) if n > 4 else 0
        widths.append((before, after))
        sizes.append(n - before - after)
    x = d.leaf(tuple(sizes), dtype, depth)
    fill = d.rnd.choice((0, 0, 1, 3))
    return Value(
        asts.pad(x.node, *widths, fill=min(fill, 1) if dtype.is_bool else fill), x.most + 3
    )


def _merged(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    """Axes that are one in memory, or one axis that is two."""
    at = d.rnd.randrange(len(shape))
    n = shape[at]
    assert isinstance(n, int)
    if len(shape) > 1 and at + 1 < len(shape) and d.chance(0.5):
        m = shape[at + 1]
        assert isinstance(m, int)
        before: Shape = (*shape[:at], n * m, *shape[at + 2 :])
    else:
        part = next((p for p in (4, 3, 2, 5, 7) if n % p == 0), 1)
        before = (*shape[:at], n // part, part, *shape[at + 1 :])
    x = d.leaf(before, dtype, depth)
    return Value(asts.reshape(x.node, *shape), x.most)


def _taken(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    """Elements at indices from memory, some of them negative or out of range."""
    axis, rows = d.rnd.randrange(len(shape)), d.size(12)
    x = d.leaf((*shape[:axis], rows, *shape[axis + 1 :]), dtype, depth)
    indices = d.buffer((shape[axis],), d.rnd.choice((dt.int32, dt.int64)), -rows - 1, rows)
    return Value(asts.gather(x.node, indices.node, axis), x.most)


def _counted(d: Draw, shape: Shape, dtype: DType, depth: int) -> Value:
    sizes = [n for n in shape if isinstance(n, int)]
    axis = d.rnd.randrange(len(sizes))
    count = asts.iota(axis, *sizes, dtype=dt.int32)
    x = Value(op(Op.AND, count, const(3, dt.int32)), 3)
    return d.converted(x, dtype)
