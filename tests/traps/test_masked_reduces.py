"""A masked position counts as the reduce's own identity, whatever f(0) is.

Sums of 1/x, exp(x) and x + 100, maxima of negative numbers, with a second reduce that uses the
first, under every tail policy: bounded loops, peeled tails, guards, lanes, groups, padding.
"""

from __future__ import annotations

from collections.abc import Callable

import asts
import pytest
from asts import buffer, keep, op, reduce, sink

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from support.trap_runs import Fill, check, legal, negative, positive

F = asts.F
ONE, HUNDRED = const(1.0, F), const(100.0, F)
# A length that no split divides.
N = 13


def inverse(x: UOp) -> UOp:
    return op(Op.DIV, ONE, x)


def exponential(x: UOp) -> UOp:
    return op(Op.EXP, x)


def shifted(x: UOp) -> UOp:
    return op(Op.ADD, x, HUNDRED)


# What is reduced, where 0 would show: the function, the combine, the data.
CASES: dict[str, tuple[Callable[[UOp], UOp], str, Fill]] = {
    "sum of 1/x": (inverse, "add", positive),
    "sum of exp": (exponential, "add", negative),
    "sum of x + 100": (shifted, "add", negative),
    "product of x": (lambda x: x, "mul", positive),
    "maximum of negative x": (lambda x: x, "max", negative),
    "maximum of 1/x": (inverse, "max", negative),
    "minimum of positive x": (lambda x: x, "min", positive),
    "minimum of exp": (exponential, "min", positive),
}


def alone(f: Callable[[UOp], UOp], combine: str) -> UOp:
    """reduce(f(x)) along rows."""
    return sink((buffer(1, 5), reduce(f(buffer(0, 5, N)), combine, 1)))


def used_again(f: Callable[[UOp], UOp], combine: str) -> UOp:
    """sum(f(x) - reduce(f(x))): the second reduce uses the first."""
    x = buffer(0, 5, N)
    centred = op(Op.SUB, f(x), keep(f(x), combine, 1))
    return sink((buffer(1, 5), reduce(op(Op.MUL, centred, centred), "add", 1)))


FIRST = {
    "cpu": (
        *("", "UNROLL {k} 4", "UPCAST {k} 4", "VECTOR {k} 4", "TILE {k} 4", "THREAD {k} 2"),
        *("UNROLL {k} 4 guard", "UPCAST {k} 4 pad", "VECTOR {k} 4 pad", "THREAD {k} 2 pad"),
    ),
    "cuda": (
        *("", "UNROLL {k} 4", "GROUP {k} 4", "GROUPTOP {k} 3", "UPCAST {k} 2", "SPLITK {k} 4"),
        *("UNROLL {k} 4 pad", "GROUP {k} 4 pad", "SPLITK {k} 4 pad"),
    ),
}
THEN = {
    "cpu": ("", "UPCAST {k}/4 2", "UNROLL {k} 2", "UPCAST i 2"),
    "cuda": ("", "UNROLL {k} 2", "UPCAST {k} 2", "LOCAL i 2", "UPCAST i 2"),
}


def _steps(steps: tuple[str, ...], dim: str) -> tuple[str, ...]:
    return tuple(s.format(k=dim) for s in steps)


@pytest.mark.parametrize("target", FIRST)
@pytest.mark.parametrize("case", CASES)
def test_alone(case: str, target: str) -> None:
    """One reduce under every pair of steps."""
    f, combine, fill = CASES[case]
    ast = alone(f, combine)
    found = legal(ast, target, _steps(FIRST[target], "k"), _steps(THEN[target], "k"))
    assert len(found) >= 8
    for opts in found:
        check(ast, opts, target, fill, rtol=1e-5)


@pytest.mark.parametrize("target", FIRST)
@pytest.mark.parametrize("case", ["sum of 1/x", "sum of exp", "maximum of negative x"])
def test_used_by_a_second_reduce(case: str, target: str) -> None:
    """Two reduces along rows, each under steps of its own."""
    f, combine, fill = CASES[case]
    ast = used_again(f, combine)
    found = legal(ast, target, _steps(FIRST[target], "k"), _steps(FIRST[target], "l"))
    assert len(found) >= 8
    for opts in found:
        check(ast, opts, target, fill, rtol=2e-4)


@pytest.mark.parametrize("target", ["cuda", "metal"])
@pytest.mark.parametrize("n", [2, 3, 7, 9, 15, 17])
def test_groups_of_any_length(n: int, target: str) -> None:
    """x - mean-like sums under GROUP and GROUPTOP, the row shorter and longer than the group."""
    x = op(Op.ADD, buffer(0, 3, n), HUNDRED)
    centred = op(Op.SUB, x, keep(x, "add", 1))
    ast = sink((buffer(1, 3, n), centred))
    for opts in legal(
        ast,
        target,
        ("GROUP j.0 8", "GROUPTOP j.0 4", "GROUP j.0 4 · UNROLL j.0/4 2", "GROUP j.0 0"),
        ("", "LOCAL j 4", "UPCAST j 2", "LOCAL i 2"),
    ):
        check(ast, opts, target, rtol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_products_that_are_padded(target: str) -> None:
    """sum(exp(a) * exp(b)): neither factor is 0 where a tile is filled up."""
    a, b = buffer(0, 5, N), buffer(1, N, 6)
    left = asts.expand(asts.reshape(exponential(a), 5, 1, N), 5, 6, N)
    right = asts.permute(exponential(b), 1, 0)
    right = asts.expand(asts.reshape(right, 1, 6, N), 5, 6, N)
    ast = sink((buffer(2, 5, 6), reduce(op(Op.MUL, left, right), "add", 2)))
    threads = "LOCAL i 2 · LOCAL j 4 · " if target == "cuda" else ""
    for opts in (
        "TILE k 4 · ORDER k/4 i j k",
        "TILE k 4 · STAGE A @k/4",
        "TILE k 4 · STAGE A @k/4 · STAGE B @k/4",
        "TILE k 8 · UNROLL k 2 · STAGE B @k/8",
        "TILE k 8 · UNROLL k 0 · STAGE A @k/8",
    ):
        if "ORDER" in opts and threads:
            continue
        check(ast, threads + opts, target, negative, rtol=1e-4)


@pytest.mark.parametrize("size", [(5, 6, 13), (9, 17, 6), (8, 8, 8)])
def test_tensor_core_tiles_are_padded_by_zero(size: tuple[int, int, int]) -> None:
    """A core multiplies whole tiles: exp(0) beyond an end is no factor, with PADTO or without."""
    m, n, k = size
    a, b = buffer(0, m, k), buffer(1, k, n)
    ast = sink((buffer(2, m, n), asts.product(exponential(a), exponential(b))))
    pads = ("", *(f"PADTO {d} {t}" for d in "ijk" for t in (16, 32)))
    found = legal(ast, "metal", ("TC 0", "TC 0 shape"), pads, ("", "UPCAST i 2"))
    assert len(found) >= 2
    for opts in found:
        check(ast, opts, "metal", negative, rtol=1e-4)
