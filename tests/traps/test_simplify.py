"""Kernels are indexed in their simplest form: no dim of size 1, neighbours merged exactly where
every access and every enclosing reduce walks them as one, names by position."""

from __future__ import annotations

import os
import random
from itertools import permutations

import asts
import numpy as np
import pytest
from asts import buffer, op, reduce, shrink, sink

import loopwright_lower.share as share
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_kernel
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.kernel.access import accesses, dims_below
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.naming import output_names
from loopwright_core.oracle.kernel import run_kernel
from loopwright_lower.indexing import index
from support.drawn_kernels import INEXACT, KINDS, Drawn, draw

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
SEEDS = 400 if LONG else 20
DTYPES = frozenset(dt.ARRAY_DTYPES)


def _drawn(kind: str, seed: int) -> Drawn:
    return draw(random.Random(f"simplify {kind} {seed}"), kind, DTYPES, 200)


def _unmerged(monkeypatch: pytest.MonkeyPatch, ast: UOp) -> Kernel:
    """The kernel as it is before neighbours merge."""

    def alone(nodes: list[UOp], same: dict[UOp, UOp]) -> dict[UOp, tuple[UOp, ...]]:
        return {n: (n,) for n in nodes if n.op is Op.DIM and n not in same}

    with monkeypatch.context() as patch:
        patch.setattr(share, "merge_runs", alone)
        return index(ast)


def _memory(kernel: Kernel, drawn: Drawn) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(5)
    found = {}
    for b in kernel.buffers:
        lo, hi = drawn.ranges.get(b.arg.slot, (0, 1))
        shape = [n if isinstance(n, int) else drawn.variables[n.name] for n in b.arg.shape]
        found[b.arg.slot] = rng.integers(lo, hi + 1, shape).astype(b.dtype.numpy)
    return found


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in INEXACT])
def test_merged_equals_unmerged(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random kernels give the same bits over merged dims and over the dims they were made of."""
    for seed in range(SEEDS):
        drawn = _drawn(kind, seed)
        merged, plain = index(drawn.ast), _unmerged(monkeypatch, drawn.ast)
        verify_kernel(merged)
        assert len(merged.dims) <= len(plain.dims)
        expected, actual = _memory(plain, drawn), _memory(plain, drawn)
        with np.errstate(all="ignore"):
            run_kernel(plain, expected, drawn.variables)
            run_kernel(merged, actual, drawn.variables)
        for slot, values in expected.items():
            np.testing.assert_array_equal(actual[slot], values, err_msg=f"{kind} {seed}")


def _could_merge(kernel: Kernel) -> list[tuple[Dim, Dim]]:
    """Pairs (outer, inner) that nothing in the kernel tells from one dim: by strides alone."""
    owner: dict[str, set[frozenset[str]]] = {}
    seen: set[str] = set()
    for node in kernel.nodes:
        if node.op is Op.REDUCE:
            bound = frozenset(s.arg.name for s in node.src if s.op is Op.DIM)
            for name in bound:
                owner.setdefault(name, set()).add(bound)
        elif node.op is not Op.INDEX and node.dtype is not dt.index:
            seen |= dims_below(tuple([s for s in node.src if s.dtype is dt.index]))
    touched = accesses(kernel)
    for a in touched:
        seen |= a.opaque
    found = []
    for a, b in permutations(kernel.dims, 2):
        if a.is_reduce is not b.is_reduce or a.is_symbolic or b.is_symbolic:
            continue
        if {a.name, b.name} & seen or owner.get(a.name) != owner.get(b.name):
            continue
        assert isinstance(b.size, int)
        steps = [(c.stride(a.name), c.stride(b.name)) for c in touched]
        whole = all(_is_whole(c.shape, one) for c, (_, one) in zip(touched, steps) if one)
        if whole and any(one for _, one in steps) and all(s == b.size * one for s, one in steps):
            found.append((a, b))
    return found


def _is_whole(shape: tuple[object, ...], stride: int) -> bool:
    """Whether a stride is one step along some dimension of a view, not several."""
    step, steps = 1, set()
    for n in reversed(shape):
        steps.add(step)
        step *= n if isinstance(n, int) else 1
    return stride in steps


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_walks_as_one_is_merged(kind: str) -> None:
    """No two dims are left that every access walks as one, and none has size 1."""
    for seed in range(SEEDS):
        kernel = index(_drawn(kind, seed).ast)
        assert _could_merge(kernel) == [], f"{kind} {seed}"
        assert all(d.size != 1 for d in kernel.dims)


def test_rows_of_a_matrix_merge() -> None:
    """Rows 1 to m are one run of memory, beside other rows or not; columns are not."""
    x, out = buffer(0, 7, 5), buffer(1, 6, 5)
    later, earlier = shrink(x, (1, 7, 1), (0, 5, 1)), shrink(x, (0, 6, 1), (0, 5, 1))
    kernel = index(sink((out, op(Op.SUB, later, earlier))))
    assert [d.size for d in kernel.dims] == [30]
    verify_kernel(kernel)
    columns = shrink(x, (0, 7, 1), (1, 5, 1))
    assert [d.size for d in index(sink((buffer(1, 7, 4), columns))).dims] == [7, 4]
    every_other = shrink(x, (0, 7, 2), (0, 5, 1))
    assert [d.size for d in index(sink((buffer(1, 4, 5), every_other))).dims] == [4, 5]
    parts = shrink(buffer(1, 9, 2, 5), (2, 9, 1), (0, 2, 1), (0, 5, 1))
    joined = sink((parts, op(Op.NEG, buffer(0, 7, 2, 5))))
    assert [d.size for d in index(joined).dims] == [70]


def test_dims_merge_inside_an_index() -> None:
    """What one access walks as rows and columns and another as one line is one dim."""
    line = asts.reshape(asts.reshape(asts.buffer(1, 24), 24), 4, 6)
    kernel = index(sink((buffer(2, 4, 6), op(Op.ADD, buffer(0, 4, 6), line))))
    assert [d.size for d in kernel.dims] == [24]
    part = asts.reshape(shrink(buffer(1, 30), (5, 29, 1)), 4, 6)
    kernel = index(sink((buffer(2, 4, 6), op(Op.ADD, buffer(0, 4, 6), part))))
    assert [d.size for d in kernel.dims] == [24]
    verify_kernel(kernel)


def test_windows_over_rows_merge() -> None:
    """A window over rows alone walks rows and columns as one; one over both does not; a row is
    never merged with the window over it."""
    x = buffer(0, 9, 5)
    rows = asts.permute(asts.window(x, 0, 3), 0, 2, 1)
    kernel = index(sink((buffer(1, 7, 5), reduce(rows, "add", 1))))
    assert [(d.size, d.is_reduce) for d in kernel.dims] == [(35, False), (3, True)]
    both = asts.window(asts.window(x, 0, 3), 1, 3)
    kernel = index(sink((buffer(1, 7, 3), reduce(both, "add", 2, 3))))
    assert [d.size for d in kernel.dims] == [7, 3, 3, 3]


def test_diagonals_do_not_merge() -> None:
    """An index that holds its neighbour too, (i + j, j), is no run."""
    x = asts.window(buffer(0, 8), 0, 4)  # (5, 4): i + w
    square = buffer(1, 5, 4)
    kernel = index(sink((buffer(2, 5, 4), op(Op.ADD, x, square))))
    assert [d.size for d in kernel.dims] == [5, 4]


def test_size_one_dims_are_dropped() -> None:
    """Output and reduce axes of size 1 have no dim, wherever they stand."""
    x = buffer(0, 1, 4, 1, 6, 1)
    total = reduce(x, "add", 2, 3)
    kernel = index(sink((buffer(1, 1, 4, 1), total)))
    assert [(d.name, d.size) for d in kernel.dims] == [("i", 4), ("k", 6)]
    assert index(sink((buffer(1, 1), reduce(buffer(0, 1, 1), "max", 1)))).dims == ()


def test_names_by_position() -> None:
    """Outputs are i, j, m, n, o, p in nest order, reduces over their data i.0, .., others k, l, k2;
    equal kernels have equal names however they were written."""
    names = output_names()
    assert [next(names) for _ in range(6)] == ["i", "j", "m", "n", "o", "p"]
    shape = (2, 3, 2, 3, 2, 3)
    turned = asts.permute(buffer(0, *shape[::-1]), *range(6)[::-1])
    kernel = index(sink((buffer(1, *shape), op(Op.NEG, turned))))
    assert [d.name for d in kernel.dims] == ["i", "j", "m", "n", "o", "p"]
    assert [d.size for d in kernel.dims] == list(shape)
    softmax = index(asts.softmax(4, 9))
    assert [d.name for d in softmax.dims] == ["i", "j", "j.0", "j.1"]
    columns = index(sink((buffer(1, 4, 9), asts.softmax_of(buffer(0, 4, 9), 0))))
    assert sorted(d.name for d in columns.dims) == ["i", "i.0", "i.1", "j"]
    conv = index(asts.conv(2, 6, 5, 3, 3))
    assert [d.name for d in conv.dims if d.is_reduce] == ["k", "l", "k2"]
    assert [d.name for d in index(asts.matmul(5, 7, 6)).dims] == ["i", "j", "k"]


def test_equal_kernels_are_identical() -> None:
    """The same graph over reshaped buffers and views is the same body."""
    flat = sink((buffer(1, 24), op(Op.NEG, buffer(0, 24))))
    square = sink((buffer(1, 24), op(Op.NEG, asts.reshape(asts.reshape(buffer(0, 24), 4, 6), 24))))
    assert index(flat).body is index(square).body
    assert all(n.op is not Op.MOD for n in toposort((index(square).body,)))
