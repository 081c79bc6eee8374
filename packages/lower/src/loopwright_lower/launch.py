"""Launch sizes: any number of axes on at most three hardware dimensions, each within its limit.

Neighbouring axes are merged where their product fits; a large one is split into the next
dimension, by the smallest divisor or else rounded up with the tail masked. Where a symbolic axis,
which has a dimension of its own, leaves no room in that order, axes are permuted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from math import prod
from typing import NoReturn

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Extent, UOp, Variable

# Hardware has three dimensions; a target without limits is launched as if they were this large.
_UNLIMITED = (2**31 - 1,) * 3
# How many divisors are tried before a size is rounded up.
_TRIES = 1 << 16


@dataclass(frozen=True)
class Id:
    """What one position of a launch recovers from the hardware ids: 0 <= value < bound."""

    value: UOp
    bound: Extent


@dataclass(frozen=True)
class Run:
    """Positions `first` up to `last` (not included) on hardware dimensions of these sizes."""

    first: int
    last: int
    sizes: tuple[Extent, ...]


@dataclass(frozen=True)
class Launch:
    """`ids` by position, outermost first; `sizes` by hardware dimension, the fastest first.
    `largest`: one more than the largest number that the ids are recovered from."""

    ids: tuple[Id, ...]
    sizes: tuple[Extent, ...]
    largest: int = 1


def launch(
    kind: str, names: tuple[str, ...], sizes: tuple[Extent, ...], limits: tuple[int, ...] | None
) -> Launch:
    """Positions of these sizes (outermost first) on ids called `kind0`, `kind1`, `kind2`.

    Raises LoweringError naming an axis and the limit where the launch cannot hold them all.
    """
    limits = (limits or _UNLIMITED)[:3]
    for order, used in _orders(sizes, len(limits)):
        inward = tuple([sizes[n] for n in order])
        runs = _best(inward, tuple([limits[d] for d in used]))
        if runs is not None:
            return _launch(kind, runs, inward, order, used)
    _fail(names[::-1], sizes[::-1], limits)


def _orders(
    sizes: tuple[Extent, ...], n_dims: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(positions, hardware dimensions) in the order they are given to each other: the innermost
    position to the fastest dimension, then all others. Numbers keep their order: they merge."""
    dims = tuple(range(n_dims))
    inward = tuple(range(len(sizes)))[::-1]
    yield inward, dims
    symbols = [n for n in inward if isinstance(sizes[n], Variable)]
    if not symbols:
        return
    orders = [tuple([n for n in inward if n not in symbols])]
    for n in symbols:
        orders = [(*o[:at], n, *o[at:]) for o in orders for at in range(len(o) + 1)]
    for used in permutations(dims):
        for order in orders:
            yield order, used


def _launch(
    kind: str,
    runs: tuple[Run, ...],
    inward: tuple[Extent, ...],
    order: tuple[int, ...],
    used: tuple[int, ...],
) -> Launch:
    """The ids of runs that take hardware dimensions in the order `used`."""
    ids: dict[int, Id] = {}
    launched: dict[int, Extent] = {}
    largest = 1
    for run in runs:
        linear: UOp = integer.add(0, 0)
        scale = 1
        for size in run.sizes:
            dim = used[len(launched)]
            special = UOp(Op.SPECIAL, dt.index, (), (f"{kind}{dim}", size))
            linear = integer.add(linear, integer.mul(special, scale))
            launched[dim] = size
            scale *= size if isinstance(size, int) else size.hi
        largest = max(largest, scale)
        recovered = _recover(linear, inward[run.first : run.last], run.sizes)
        ids.update(zip(order[run.first : run.last], recovered, strict=True))
    sizes = tuple([launched.get(d, 1) for d in range(max(launched, default=0) + 1)])
    return Launch(tuple([ids[n] for n in range(len(ids))]), sizes, largest)


def _recover(linear: UOp, sizes: tuple[Extent, ...], launched: tuple[Extent, ...]) -> list[Id]:
    """Each position's value by division; the outermost takes what rounding up added."""
    if len(sizes) == 1 and isinstance(sizes[0], Variable):
        return [Id(linear, sizes[0])]
    found = []
    rest, total = linear, prod(n for n in launched if isinstance(n, int))
    for size in sizes[:-1]:
        assert isinstance(size, int)
        found.append(Id(integer.mod(rest, size), size))
        rest, total = integer.floordiv(rest, size), -(-total // size)
    return [*found, Id(rest, total)]


def _best(sizes: tuple[Extent, ...], limits: tuple[int, ...]) -> tuple[Run, ...] | None:
    """The runs that launch least, then those that split least, then those that merge least."""

    def cost(runs: tuple[Run, ...]) -> tuple[int, int, int]:
        launched = prod(n for run in runs for n in run.sizes if isinstance(n, int))
        used = sum(len(run.sizes) for run in runs)
        return launched, used - len(runs), -len(runs)

    return min(_ways(sizes, 0, limits), key=cost, default=None)


def _ways(
    sizes: tuple[Extent, ...], first: int, limits: tuple[int, ...]
) -> Iterator[tuple[Run, ...]]:
    if first == len(sizes):
        yield ()
        return
    for last in range(first + 1, len(sizes) + 1):
        for used in range(1, len(limits) + 1):
            made = _fit(sizes[first:last], limits[:used])
            if made is None:
                continue
            for rest in _ways(sizes, last, limits[used:]):
                yield (Run(first, last, made), *rest)


def _fit(sizes: tuple[Extent, ...], limits: tuple[int, ...]) -> tuple[Extent, ...] | None:
    """Some neighbouring positions on all these dimensions, or None where they do not fit."""
    numbers = [n for n in sizes if isinstance(n, int)]
    if len(numbers) < len(sizes):  # a symbolic size has a dimension of its own
        (only, *others) = sizes
        fits = not others and len(limits) == 1
        return (only,) if fits and isinstance(only, Variable) and only.hi <= limits[0] else None
    return factor(prod(numbers), limits)


def factor(total: int, limits: tuple[int, ...]) -> tuple[int, ...] | None:
    """Sizes within the limits whose product is the total, or just above it; each 2 or more
    behind the first.

    >>> factor(102400, (65535, 65535)), factor(65537, (65535, 65535)), factor(9, (2, 4))
    ((51200, 2), (32769, 2), None)
    """
    if len(limits) == 1:
        return (total,) if total <= limits[0] else None
    least = max(2, -(-total // limits[0]))
    most = prod(limits[1:])
    for outer in range(least, min(most, total, least + _TRIES) + 1):
        if total % outer == 0:
            rest = factor(outer, limits[1:])
            if rest is not None:
                return (total // outer, *rest)
    rest = factor(least, limits[1:]) if least <= most else None
    if rest is None:
        return None
    return (-(-total // prod(rest)), *rest)


def _fail(names: tuple[str, ...], sizes: tuple[Extent, ...], limits: tuple[int, ...]) -> NoReturn:
    """Names the axis that needs most of what the launch has not."""
    for name, size in zip(names, sizes):
        if isinstance(size, Variable) and size.hi > max(limits):
            fail(
                LoweringError,
                f"axis {name} may take {size.hi} values, and a launch has at most {max(limits)} "
                "along one dimension",
                fix="Give the variable a smaller bound",
            )
    largest = max(zip(sizes, names), key=lambda p: p[0] if isinstance(p[0], int) else p[0].hi)
    total = prod(n if isinstance(n, int) else n.hi for n in sizes)
    limit = " x ".join(map(str, limits))
    fail(
        LoweringError,
        f"the launch needs {total} ids, most of them for axis {largest[1]} of size {largest[0]}, "
        f"and the target has {limit}",
        fix="Split the axis and keep part of it as a loop",
    )
