"""Axes after splits that change nothing, and masks of several axes of one dim."""

from __future__ import annotations

from collections import Counter
from itertools import product

import asts
import pytest
from asts import buffer, op, reduce, sink

from loopwright_core.errors import OptError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_schedule import check_dims
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.indexing import index
from loopwright_opt.apply import apply, apply_all
from loopwright_opt.text import parse
from support.trap_runs import TARGETS, check, legal

SPLITS = {
    "cpu": ("UPCAST", "TILE", "THREAD", "VECTOR", "UNROLL"),
    "cuda": ("UPCAST", "TILE", "LOCAL", "GROUP", "GROUPTOP", "UNROLL", "VECTOR"),
}


def shifted_rows(m: int, n: int) -> UOp:
    """sum(x + 100) along rows: whatever is counted twice or beyond the end shows."""
    x = op(Op.ADD, buffer(0, m, n), const(100.0, asts.F))
    return sink((buffer(1, m), reduce(x, "add", 1)))


@pytest.mark.parametrize("target", SPLITS)
@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_names_after_splits_by_the_whole(size: int, target: str) -> None:
    """Splitting by an axis' own size, more than it, or again and again leaves every name unique,
    and the text of the steps finds the same axes again."""
    plain = index(asts.matmul(size, size, size))
    if not plain.dims:
        return
    names = [d.name for d in plain.dims]
    for first, second in product(SPLITS[target], repeat=2):
        for dim, a, b in product(names, (2, 4, 8, 0), (2, 4, 0)):
            made = plain
            for text in (f"{first} {dim} {a}", f"{second} {dim} {b}", f"TILE {dim} {b}"):
                try:
                    made = apply(made, parse(text)[0], TARGETS[target])
                except OptError:
                    continue
            counts = Counter(axis.name for axis in made.schedule.axes)
            assert max(counts.values()) == 1, str(made.schedule)
            check_dims(made)
            again = apply_all(plain, made.schedule.opts, TARGETS[target])
            assert again.schedule == made.schedule


NO_OPS = ("TILE i 16", "TILE i 8 · TILE i/8 2", "TILE k 32", "TILE k 16 · TILE k/16 2", "")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_results_after_splits_by_the_whole(target: str) -> None:
    """Outer axes of size 1 take part in orders, threads and groups like any other."""
    ast = shifted_rows(8, 16)
    then = {
        "cpu": ("UPCAST i 0", "THREAD i 2", "UNROLL k 0", "SWAP i k", "VECTOR k 8"),
        "cuda": ("LOCAL i 0", "LOCAL i 4", "GROUP k 0", "GROUPTOP k 4", "UNROLL k 0"),
    }[target]
    for opts in legal(ast, target, NO_OPS, then, NO_OPS):
        check(ast, opts, target)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [3, 5, 10, 11, 23])
def test_masks_of_two_expanded_axes(n: int, target: str) -> None:
    """Positions of UPCAST, UNROLL and VECTOR axes of one dim exist or not together: no axis alone
    knows that 4 * a + b is beyond the end."""
    ast = shifted_rows(3, n)
    firsts = ("UPCAST k 2", "UNROLL k 2", "UPCAST k 4", "VECTOR k 4", "GROUP k 2")
    seconds = ("UPCAST k/2 2", "UNROLL k/2 3", "UPCAST k/4 2", "UNROLL k/4 2", "UPCAST k/2 4")
    thirds = ("", "UNROLL k/4 2", "UNROLL k/6 2", "UPCAST i 2")
    found = legal(ast, target, firsts, seconds, thirds)
    assert len(found) >= 6
    for opts in found:
        check(ast, opts, target)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [5, 11])
def test_masks_of_two_expanded_dims(n: int, target: str) -> None:
    """Masks of an upcast output and an unrolled reduce hold together, on every element."""
    ast = asts.matmul(n, n + 2, n)
    lanes = {"cpu": ("VECTOR j 4", ""), "cuda": ("LOCAL j 4", "UPCAST j 4")}[target]
    found = legal(
        ast,
        target,
        ("UPCAST i 4", "UPCAST i 2 · UPCAST i/2 2"),
        ("UNROLL k 4", "UPCAST k 2 · UNROLL k/2 2"),
        lanes,
    )
    assert len(found) >= 4
    for opts in found:
        check(ast, opts, target)
