"""Einstein sums against NumPy."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from array_oracle import oracle, same

import loopwright as lw
from loopwright_core.errors import ArgumentError, ArgumentTypeError, ShapeError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of


def _whole(shape: tuple[int, ...], dtype: Any = np.int64) -> np.ndarray[Any, Any]:
    low = 0 if np.dtype(dtype).kind in "ub" else -3
    return np.random.default_rng(len(shape)).integers(low, 4, shape).astype(dtype)


CASES: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ba,cb", ((2, 3), (4, 2))),
    ("Ba,aC", ((2, 3), (3, 4))),
    (" i j , j k -> k i ", ((2, 3), (3, 4))),
    ("i,i", ((3,), (3,))),
    ("i,j", ((3,), (4,))),
    ("ij->ji", ((2, 3),)),
    ("ji", ((2, 3),)),
    ("ij->", ((2, 3),)),
    ("ij->j", ((2, 3),)),
    ("ii", ((3, 3),)),
    ("ii->i", ((3, 3),)),
    ("iji->j", ((3, 2, 3),)),
    ("iiji->ij", ((3, 3, 2, 3),)),
    ("ijij->ji", ((2, 3, 2, 3),)),
    ("ii,i->i", ((3, 3), (3,))),
    ("iij,jjk->ik", ((2, 2, 3), (3, 3, 4))),
    ("...ij,...jk->...ik", ((5, 1, 2, 3), (6, 3, 4))),
    ("...ij,...jk", ((5, 1, 2, 3), (6, 3, 4))),
    ("i...,i...->...", ((3, 2, 4), (3, 4))),
    ("i...->...i", ((3, 2, 4),)),
    ("...,...", ((2, 3), (3,))),
    ("...i->...", ((3,),)),
    ("i->...i", ((3,),)),
    ("ij,ij->ij", ((1, 3), (2, 3))),
    ("ij,ij->", ((1, 3), (2, 1))),
    ("ij,jk->ik", ((2, 1), (3, 4))),
    (",ij->ij", ((), (2, 3))),
    (",", ((), ())),
    ("ij,kl->il", ((2, 3), (4, 5))),
    ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
    ("ij,jk,kl,lm->im", ((2, 3), (3, 4), (4, 5), (5, 2))),
    ("bij,bjk,k,b->bi", ((2, 3, 4), (2, 4, 5), (5,), (2,))),
    ("i,i,i,j->j", ((3,), (3,), (3,), (2,))),
    ("ij,jk->ik", ((2, 0), (0, 4))),
    ("ij,jk->ik", ((0, 3), (3, 4))),
    ("ij,jk,kl->il", ((2, 0), (0, 4), (4, 3))),
    ("ii->i", ((0, 0),)),
]


@pytest.mark.parametrize(("subscripts", "shapes"), CASES)
@pytest.mark.parametrize("optimize", [True, False, "greedy", "optimal"])
def test_as_numpy(
    subscripts: str, shapes: tuple[tuple[int, ...], ...], optimize: bool | str
) -> None:
    """Explicit, implicit, diagonals, ellipses and broadcasting, in every order of products."""
    values = [_whole(shape) for shape in shapes]
    got = lw.einsum(subscripts, *[lw.asarray(v) for v in values], optimize=optimize)
    same(got, np.einsum(subscripts, *values))


def drawn(seed: int) -> tuple[str, list[np.ndarray[Any, Any]]]:
    """Subscripts of one to six operands of up to five axes, and whole numbers for them."""
    rng = random.Random(f"einsum {seed}")
    letters = rng.sample("abcdefghijXY", rng.randint(1, 7))
    extents = {x: rng.choice([1, 2, 2, 3, 4]) for x in letters}
    terms = [
        [rng.choice(letters) for _ in range(rng.randint(0, min(5, len(letters) + 1)))]
        for _ in range(rng.randint(1, 6))
    ]
    used = sorted({x for term in terms for x in term})
    output = rng.sample(used, rng.randint(0, min(len(used), 4)))
    hidden: list[tuple[int, ...]] = [()] * len(terms)
    dots = [""] * len(terms)
    if rng.random() < 0.3:
        hidden = [rng.choice([(), (2,), (1,), (3, 2), (3, 1)]) for _ in terms]
        dots = ["..."] * len(terms)
    shapes = [(*h, *[extents[x] for x in t]) for h, t in zip(hidden, terms, strict=True)]
    text = ",".join(d + "".join(t) for d, t in zip(dots, terms, strict=True))
    return f"{text}->{dots[0]}{''.join(output)}", [_whole(shape) for shape in shapes]


@pytest.mark.parametrize("seed", range(70))
def test_drawn_expressions(seed: int) -> None:
    """Products of many operands, outer ones, diagonals, sums of what occurs once, ellipses."""
    subscripts, values = drawn(seed)
    got = lw.einsum(subscripts, *values)
    want = np.einsum(subscripts, *values, optimize=True)
    same(got, want)
    if seed % 7 == 0:
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float16, np.float32, np.bool_])
def test_dtypes(dtype: Any) -> None:
    """Integers wrap in their own dtype, bool is any-of-all, small floats round once."""
    a, b, c = _whole((3, 40), dtype), _whole((40, 5), dtype), _whole((5, 2), dtype)
    want = np.einsum("ij,jk,kl->il", a, b, c)
    if dtype == np.float16:
        wide = [v.astype(np.float32) for v in (a, b, c)]
        want = np.einsum("ij,jk,kl->il", *wide).astype(np.float16)
    same(lw.einsum("ij,jk,kl->il", *[lw.asarray(v) for v in (a, b, c)]), want)


def test_promotion_and_numbers() -> None:
    """Operands meet in their promoted dtype; Python numbers take the arrays'."""
    a, b = _whole((3,), np.int16), _whole((3,), np.float32)
    same(lw.einsum("i,i->i", lw.asarray(a), b), np.einsum("i,i->i", a, b))
    same(lw.einsum("i,->i", lw.asarray(b), 2), b * 2)


def test_chain_is_contracted_in_pairs() -> None:
    """A long chain of matrices is a row of small reductions, not one over all letters."""
    sizes = [2, 40, 40, 40, 3]
    values = [_whole(pair) for pair in pairwise(sizes)]
    node = lw.einsum("ab,bc,cd,de->ae", *[lw.asarray(v) for v in values])._uop
    reduces = [n for n in node.toposort() if n.op is Op.REDUCE]
    assert [len(n.arg[1]) for n in reduces] == [1, 1, 1]
    assert max(len(shape_of(s)) for n in reduces for s in n.src) == 3


@pytest.mark.parametrize("dtype", [lw.float32, lw.bfloat16, lw.int8, lw.bool])
def test_matrix_product_is_matmul(dtype: Any) -> None:
    """The same node, so that whatever speeds up a matmul speeds up its einsum."""
    a, b = [lw.asarray(_whole(s)).astype(dtype) for s in ((2, 3, 4), (2, 4, 5))]
    assert lw.einsum("bij,bjk->bik", a, b)._uop is lw.matmul(a, b)._uop


def test_view_of_small_floats_is_exact() -> None:
    """A transpose or a diagonal of bfloat16 makes no arithmetic."""
    x = lw.asarray(_whole((3, 3), np.float32)).astype(lw.bfloat16)
    for subscripts in ("ij->ji", "ii->i"):
        ops = [n.op for n in lw.einsum(subscripts, x)._uop.toposort()]
        assert Op.MUL not in ops and Op.REDUCE not in ops
        assert ops.count(Op.CAST) == 1  # the one to bfloat16


def test_runs_compiled() -> None:
    """Kernels and NumPy agree on an attention-like sum; np.einsum of lazy arrays is ours."""
    rng = np.random.default_rng(3)
    q, k = rng.normal(size=(2, 5, 3, 8)), rng.normal(size=(2, 7, 3, 8))
    want = np.einsum("bqhd,bkhd->bhqk", q, k)
    got = np.einsum("bqhd,bkhd->bhqk", lw.asarray(q), lw.asarray(k), optimize=True)
    assert isinstance(got, lw.Array)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(oracle(got), want, rtol=1e-12, atol=1e-12)


ERRORS = [
    ("ii", [(1, 3)], ShapeError, "no diagonal over 'i': 1 and 3"),
    ("ij,jk", [(2, 3), (4, 5)], ShapeError, r"'j' is 3 and, in operand 1 of shape \(4, 5\), 4"),
    ("...,...", [(2,), (3,)], ShapeError, "an axis of '...' is 2 and"),
    ("i->ii", [(3,)], ArgumentError, "the result names 'i' twice"),
    ("ij->k", [(3, 3)], ArgumentError, "the result's 'k' occurs in no operand"),
    ("ij", [(3,)], ArgumentError, "term 'ij' for operand 0 of 1 axes"),
    ("i", [(3, 3)], ArgumentError, "name every axis, or write '...'"),
    ("i,j", [(3,)], ArgumentError, "2 terms for 1 operands"),
    ("i", [(3,), (3,)], ArgumentError, "1 terms for 2 operands"),
    ("i.j", [(2, 3)], ArgumentError, "'.' that is not part"),
    ("......", [(2, 3)], ArgumentError, "'.' that is not part"),
    ("i$", [(2, 3)], ArgumentError, r"'\$' is no letter"),
    ("i->->j", [(3,)], ArgumentError, "'-' is no letter"),
    ("...i->i", [(2, 3)], ArgumentError, "no place for the axes of '...'"),
    ("é", [(2,)], ArgumentError, "'é' is no letter"),
]


@pytest.mark.parametrize(("subscripts", "shapes", "kind", "message"), ERRORS)
def test_errors(
    subscripts: str, shapes: list[tuple[int, ...]], kind: type[Exception], message: str
) -> None:
    """What NumPy refuses is refused too, with the letter and the operand."""
    values = [np.ones(shape) for shape in shapes]
    with pytest.raises(ValueError):
        np.einsum(subscripts, *values)
    with pytest.raises(kind, match=message):
        lw.einsum(subscripts, *[lw.asarray(v) for v in values])


def test_errors_of_arguments() -> None:
    """Subscripts that are no text, an unknown order, and a setting of NumPy's alone."""
    x = lw.ones((2, 2))
    with pytest.raises(ArgumentTypeError, match="subscripts are a text, got Array"):
        lw.einsum(x, [0, 1])  # type: ignore[arg-type]  # NumPy's other form
    with pytest.raises(ArgumentError, match="optimize='best'"):
        lw.einsum("ij", x, optimize="best")
    with pytest.raises(ArgumentTypeError, match="takes no dtype="):
        np.einsum("ij", x, dtype=np.float32)
