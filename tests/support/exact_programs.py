"""Random array programs whose results are exact: every dtype, edge values, odd memory layouts.

A program is drawn with NumPy's values in hand, so that a step is taken only where its result does
not depend on the order of a sum or on which zero wins; then Loopwright runs the same steps.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import Host, cast, rounded, samples, whole

MOST = 4000  # elements of one value
SMALL = (dt.bfloat16, dt.float8_e4m3fn, dt.float8_e5m2)
_COMMON = (dt.float32,) * 4 + (dt.float64, dt.int32, dt.int64, dt.bool_) * 2
_DTYPES = (*_COMMON, *dt.INTS, *dt.FLOATS)
_SIZES = ((1, 2, 3, 4, 5), (1, 2, 7, 8, 9, 16, 17), (3, 5, 8, 13, 33), (0, 1, 2, 5))

Apply = Callable[..., Any]


class Skip(Exception):
    """What was drawn does not fit the values, or its result is not exact."""


@dataclass
class Step:
    """`apply(xp, *operands)`; `ours` where Loopwright's spelling differs. `wide`: small floats are
    computed in float32 and rounded once at the end."""

    text: str
    sources: tuple[int, ...]
    apply: Apply
    ours: Apply | None = None
    wide: bool = False

    def on_numpy(self, values: Sequence[Host]) -> Host:
        args = [values[s] for s in self.sources]
        small = [a.dtype for a in args if dtype_of(a) in SMALL or (self.wide and _is_half(a))]
        if not small:
            return np.asarray(self.apply(np, *args))
        args = [a.astype(np.float32) if a.dtype in small else a for a in args]
        out = np.asarray(self.apply(np, *args))
        found: Any = dt.from_numpy(small[0])
        return rounded(out, found) if out.dtype == np.float32 else out

    def on_loopwright(self, values: Sequence[lw.Array]) -> lw.Array:
        args = [values[s] for s in self.sources]
        return self.apply(lw, *args) if self.ours is None else self.ours(*args)


@dataclass
class Program:
    """`inputs`, as Loopwright gets them; `values`: NumPy's, of the inputs and of each step."""

    inputs: list[Host]
    values: list[Host]
    steps: list[Step] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def text(self) -> str:
        """The program in lines, for the message of a failure."""
        lines = [
            f"v{k} = {a.dtype} {a.shape}, strides {a.strides}" for k, a in _number(self.inputs)
        ]
        n = len(lines)
        lines += [f"v{k} = {s.text}{list(s.sources)}" for k, s in _number(self.steps, n)]
        return "\n".join(lines)


def _number(items: Sequence[Any], start: int = 0) -> list[tuple[int, Any]]:
    return list(enumerate(items, start))


def dtype_of(x: Host) -> DType:
    found = dt.from_numpy(x.dtype)
    assert found is not None, x.dtype
    return found


def _is_half(x: Host) -> bool:
    return x.dtype == np.float16


def is_float(x: Host) -> bool:
    return dtype_of(x).is_float


def need(condition: bool | np.bool_) -> None:
    if not condition:
        raise Skip


def plain_zeros(*arrays: Host) -> None:
    """No -0.0: which zero is the larger one is left open."""
    for x in arrays:
        if is_float(x):
            wide = x.astype(np.float64)
            need(not np.any((wide == 0) & np.signbit(wide)))


def summable(*arrays: Host) -> None:
    """Small whole numbers: their sums are exact in any order, in the array's own dtype."""
    for x in arrays:
        if is_float(x):
            wide = x.astype(np.float64)
            most = 2.0**6 if dtype_of(x).bits < 16 else 2.0**20
            need(np.all(wide == np.rint(wide)) and np.sum(np.abs(wide)) < most)


def draw_input(rnd: random.Random, shape: tuple[int, ...]) -> Host:
    dtype, seed = rnd.choice(_DTYPES), rnd.randrange(2**30)
    return samples(dtype, shape, seed) if rnd.random() < 0.3 else whole(dtype, shape, seed)


def odd_layout(rnd: random.Random, x: Host) -> Host:
    """The same values read-only, backwards, spread, unaligned, in Fortran's or the other byte
    order."""
    kind = rnd.randrange(8)
    if kind == 0:
        x = x.copy()
        x.flags.writeable = False
    elif kind == 1 and x.dtype.kind in "iuf":
        x = x.astype(x.dtype.newbyteorder(">"))
    elif kind == 2 and x.ndim:
        x = np.asfortranarray(x)
    elif kind == 3 and x.ndim:
        x = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    elif kind == 4 and x.ndim:
        spread = np.zeros([2 * n for n in x.shape], x.dtype)[(slice(None, None, 2),) * x.ndim]
        spread[...] = x
        x = spread
    elif kind == 5 and x.size:
        unaligned = np.zeros(x.nbytes + 1, np.uint8)[1:].view(x.dtype).reshape(x.shape)
        unaligned[...] = x
        x = unaligned
    return x


class Draw:
    """One step drawn over the values so far: `x` is the operand, `at` its number."""

    def __init__(self, rnd: random.Random, values: list[Host]) -> None:
        self.rnd, self.values = rnd, values
        recent = max(0, len(values) - 1 - rnd.randrange(4))
        self.at = rnd.randrange(len(values)) if rnd.random() < 0.4 else recent
        self.x = values[self.at]
        self.dtype = dtype_of(self.x)
        n = self.x.ndim
        self.axis = rnd.randrange(-n, n) if n else 0

    def pick(self, fits: Callable[[Host], bool]) -> int:
        """The number of some value that fits; Skip where none does."""
        found = [k for k, v in enumerate(self.values) if fits(v)]
        need(bool(found))
        return self.rnd.choice(found)

    def like(self) -> int:
        """A value of x's shape and dtype."""
        return self.pick(lambda v: v.shape == self.x.shape and v.dtype == self.x.dtype)

    def partner(self) -> int:
        """A value that broadcasts with x, of a dtype that both sides promote alike."""
        return self.pick(self._broadcasts) if self.rnd.random() < 0.5 else self.like()

    def _broadcasts(self, v: Host) -> bool:
        if v.dtype != self.x.dtype and (self.dtype in SMALL or dtype_of(v) in SMALL):
            return False
        try:
            return math.prod(np.broadcast_shapes(v.shape, self.x.shape)) <= MOST
        except ValueError:
            return False

    def mask(self) -> int:
        return self.pick(lambda v: v.shape == self.x.shape and v.dtype == bool)

    def one(self, text: str, apply: Apply, ours: Apply | None = None, wide: bool = False) -> Step:
        """A step of x alone."""
        return Step(text, (self.at,), apply, ours, wide)


def convert(d: Draw) -> Step:
    """A cast to any dtype, by the rules that are the project's own."""
    wanted = d.rnd.choice(_DTYPES)
    step = d.one(f"astype {wanted}", lambda xp, x: cast(x, wanted), lambda x: lw.astype(x, wanted))
    step.on_numpy = lambda values: cast(values[d.at], wanted)  # type: ignore[method-assign]
    return step


def make(seed: int, kinds: Sequence[Callable[[Draw], Step]]) -> Program:
    """A program of 5 to 30 steps, and which of its values are evaluated together."""
    rnd = random.Random(seed)
    base = [rnd.choice(rnd.choice(_SIZES)) for _ in range(rnd.randint(0, 3))]
    values = []
    for _ in range(rnd.randint(1, 4)):
        sizes = [1 if rnd.random() < 0.15 else n for n in base][rnd.choice((0, 0, 0, 1)) :]
        values.append(draw_input(rnd, tuple(sizes)))
    program = Program([odd_layout(rnd, x) for x in values], values)
    wanted = rnd.randint(5, 30)
    for _ in range(300):
        if len(program.steps) == wanted:
            break
        try:
            with np.errstate(all="ignore"):
                step = rnd.choice(kinds)(Draw(rnd, values))
                new = step.on_numpy(values)
        except (Skip, TypeError, ValueError):  # NumPy has no such operation on these arrays
            continue
        if new.size <= MOST and new.ndim <= 5:
            values.append(new)
            program.steps.append(step)
    first = len(program.inputs)
    if program.steps:
        drawn = [rnd.randrange(first, len(values)) for _ in range(rnd.randint(0, 5))]
        program.kept = sorted({len(values) - 1, *drawn})
    return program
