"""Which dims reduces and scans bind, and where their values live."""

from __future__ import annotations

from itertools import chain, combinations
from math import prod

import asts
import numpy as np
import pytest
from asts import buffer, keep, op, reduce, scan, sink

import loopwright as lw
from loopwright_core.errors import OptError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_lower.indexing import index
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from support.trap_runs import TARGETS, check, legal

SHAPE = (3, 4, 5)
SUBSETS = tuple(chain.from_iterable(combinations(range(3), n) for n in range(4)))


def times_a_sum(under: tuple[int, ...]) -> UOp:
    """x[i,j,m] * sum_k y[.., k], where the sum depends on the dims `under` alone."""
    own = tuple(SHAPE[n] for n in under)
    total = reduce(buffer(1, *own, 6), "add", len(own))
    spread = asts.reshape(total, *(SHAPE[n] if n in under else 1 for n in range(3)))
    value = op(Op.MUL, buffer(0, *SHAPE), asts.expand(spread, *SHAPE))
    return sink((buffer(2, *SHAPE), value))


@pytest.mark.parametrize("under", SUBSETS, ids=str)
def test_outputs_merge_apart_from_reduces(under: tuple[int, ...]) -> None:
    """Neighbouring outputs merge only where a reduce below has both or neither, and results are
    right under steps on each dim."""
    ast = times_a_sum(under)
    runs: list[list[int]] = [[0]]
    for n in (1, 2):
        if (n in under) == (n - 1 in under):
            runs[-1].append(n)
        else:
            runs.append([n])
    outputs = [d for d in index(ast).dims if not d.is_reduce]
    assert [d.size for d in outputs] == [prod(SHAPE[n] for n in run) for run in runs]
    check(ast)
    check(ast, target="cuda")
    last = outputs[-1].name
    for opts in legal(ast, "cpu", (f"VECTOR {last} 4", f"TILE {last} 2"), ("UNROLL k 4", "")):
        check(ast, opts)
    for opts in legal(ast, "cuda", (f"LOCAL {last} 4", "LOCAL i 2"), ("GROUP k 4", "UPCAST i 2")):
        check(ast, opts, "cuda")


def _whole(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("n", [12, 512, 513, 700, 1025])
def test_one_axis_under_two_scans(n: int) -> None:
    """A cumulative sum of a cumulative sum, and reduces of them, whatever the length."""
    x = _whole(3, n)
    once = np.cumsum(x, axis=1, dtype=np.float32)
    twice = np.cumsum(once, axis=1, dtype=np.float32)
    a = lw.asarray(x)
    first = lw.cumulative_sum(a, axis=1)
    second = lw.cumulative_sum(first, axis=1)
    np.testing.assert_array_equal(second.numpy(), twice)
    np.testing.assert_array_equal(lw.sum(first, axis=1).numpy(), once.sum(axis=1))
    centred = a - lw.max(a, axis=1, keepdims=True)
    expected = np.cumsum(x - x.max(axis=1, keepdims=True), axis=1, dtype=np.float32)
    np.testing.assert_array_equal(lw.cumulative_sum(centred, axis=1).numpy(), expected)
    np.testing.assert_array_equal(lw.sum(a * first, axis=1).numpy(), (x * once).sum(axis=1))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [20, 513])
def test_two_scans_in_one_kernel(n: int, target: str) -> None:
    """The same in one nest: both scans and what reads them share the loop."""
    x = buffer(0, 2, n)
    ast = sink((buffer(1, 2, n), scan(op(Op.SUB, scan(x, "add", 1), x), "add", 1)))
    for opts in legal(ast, target, ("", "TILE j 8", "UPCAST j 4"), ("", "UPCAST i 2", "LOCAL i 2")):
        check(ast, opts, target)


def two_in_series(n: int) -> UOp:
    """e - sum(e) with e = (x - max(x))**2 along rows."""
    x = buffer(0, 5, n)
    centred = op(Op.SUB, x, keep(x, "max", 1))
    e = op(Op.MUL, centred, centred)
    return sink((buffer(1, 5, n), op(Op.SUB, e, keep(e, "add", 1))))


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("n", [1, 7, 8, 16])
def test_first_reduce_without_a_loop(n: int, target: str) -> None:
    """A reduce whose loop is used up by UNROLL, UPCAST, VECTOR or GROUP is still ready before the
    second one asks for it."""
    ast = two_in_series(n)
    whole = ("UNROLL j.0 0", "UPCAST j.0 0", "VECTOR j.0 8", "GROUP j.0 0", "")
    second = ("", "UNROLL j.1 0", "UNROLL j.1 4", "GROUP j.1 4")
    for opts in legal(ast, target, whole, second, ("", "UPCAST i 2")):
        check(ast, opts, target)


@pytest.mark.parametrize("target", ["cuda", "metal"])
@pytest.mark.parametrize("n", [8, 16, 13])
def test_group_unrolled_to_nothing(n: int, target: str) -> None:
    """A GROUP axis whose every step is written out leaves no threads and no barrier."""
    ast = sink((buffer(1, 5), reduce(buffer(0, 5, n), "add", 1)))
    for opts in legal(
        ast, target, ("GROUP k 8", "GROUP k 0"), ("UNROLL k/1 0", "UNROLL k/1 8"), ("", "LOCAL i 2")
    ):
        program = check(ast, opts, target)
        if "UNROLL k/1 0" in opts or "GROUP k 8" in opts:
            assert all(u.op is not Op.BARRIER for u in program.phases[0].uops), opts
    used = two_in_series(n)
    for opts in legal(used, target, ("GROUP j.0 4",), ("UNROLL j.0/1 0",), ("", "GROUP j.1 4")):
        check(used, opts, target)


def average_pool(size: int, kernel: int, stride: int, pad: int) -> UOp:
    """A 3-D average pool with padding that counts."""
    x = asts.pad(buffer(0, 2, size, size, size), (0, 0), *[(pad, pad)] * 3)
    for axis in (1, 2, 3):
        x = asts.window(x, axis, kernel, stride)
    total = reduce(x, "add", 4, 5, 6)
    out = (size + 2 * pad - kernel) // stride + 1
    scaled = op(Op.MUL, total, const(1 / kernel**3, asts.F))
    return sink((buffer(1, 2, out, out, out), scaled))


@pytest.mark.parametrize(("kernel", "stride", "pad"), [(8, 5, 1), (2, 3, 1), (4, 2, 2)])
def test_accumulators_of_windows(kernel: int, stride: int, pad: int) -> None:
    """Accumulators open around all three reduce loops, whichever loops stand between them."""
    ast = average_pool(12 if kernel == 8 else 6, kernel, stride, pad)
    dims = index(ast).dims
    outputs = [d.name for d in dims if not d.is_reduce]
    reduces = [d.name for d in dims if d.is_reduce]
    last, inner = outputs[-1], reduces[-1]
    orders = ("", f"SWAP {last} {reduces[0]}", f"ORDER {reduces[0]} {' '.join(outputs)}")
    steps = ("", f"UNROLL {inner} 0", f"UPCAST {reduces[0]} 2", f"UPCAST {last} 2")
    found = legal(ast, "cpu", steps, orders)
    assert len(found) >= 8
    for opts in found:
        check(ast, opts)
    groups = (f"GROUP {reduces[0]} 2", f"GROUPTOP {inner} 2", "")
    for opts in legal(ast, "cuda", groups, (f"LOCAL {last} 2", f"UNROLL {inner} 0")):
        check(ast, opts, "cuda")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_steps_in_order(exclusive: bool, reverse: bool, target: str) -> None:
    """However a scan's loop is cut, written out and surrounded, its steps run in order."""
    ast = sink((buffer(1, 6, 13), scan(buffer(0, 6, 13), "add", 1, exclusive, reverse)))
    found = legal(
        ast,
        target,
        ("", "UPCAST j 4", "TILE j 4", "TILE j 4 · UPCAST j 2", "UPCAST j 0"),
        ("", "UPCAST i 4", "TILE i 2", "VECTOR i 4", "LOCAL i 4"),
        ("", "SWAP i j", "ORDER j i"),
    )
    assert len(found) >= 8
    for opts in found:
        check(ast, opts, target)


def test_scan_steps_out_of_order_are_refused() -> None:
    """An order of a scan's own axes, or copies of an outer one, that would mix its steps."""
    plain = index(sink((buffer(1, 6, 16), scan(buffer(0, 6, 16), "add", 1))))
    for opts in ("TILE j 4 · SWAP j/4 j/1", "TILE j 4 · UPCAST j/4 2", "VECTOR j 4"):
        with pytest.raises(OptError):
            apply_all(plain, parse(opts), TARGETS["cpu"])


def exponent_like_used_twice() -> UOp:
    """v[i,j] * sum_k sum_l v[i,k] * w[l] with v = x * x: the sum repeats v along l, so that only
    the store, which waits for the sum, computes v once."""
    x = buffer(0, 5, 7)
    v = op(Op.MUL, x, x)
    left = asts.expand(asts.reshape(v, 5, 7, 1), 5, 7, 3)
    right = asts.expand(asts.reshape(buffer(1, 3), 1, 1, 3), 5, 7, 3)
    total = reduce(op(Op.MUL, left, right), "add", 1, 2)
    spread = asts.expand(asts.reshape(total, 5, 1), 5, 7)
    return sink((buffer(2, 5, 7), op(Op.MUL, v, spread)))


@pytest.mark.parametrize(
    "ast",
    [exponent_like_used_twice(), two_in_series(13), asts.softmax(4, 9), asts.layer_norm(4, 8)],
    ids=["waits", "softmax-like", "softmax", "layer norm"],
)
def test_kept_values_have_a_writer_that_waits_for_no_reader(ast: UOp) -> None:
    """KEEP is refused where the only writer runs behind a reader, and right everywhere else."""
    plain = index(ast)
    dims = [d.name for d in plain.dims]
    keeps = tuple(f"KEEP v{n} @{d}" for n in range(len(plain.shared)) for d in ["", *dims])
    orders = ("", *(f"SWAP {a} {b}" for a, b in combinations(dims, 2)))
    for opts in legal(ast, "cpu", orders, keeps):
        check(ast, opts, rtol=1e-5)


def test_the_writer_would_wait() -> None:
    """The case above in which the writer depends on its reader: no axis can hold the value."""
    ast = exponent_like_used_twice()
    assert index(ast).shared
    assert legal(ast, "cpu", ("KEEP v0 @i", "KEEP v0 @j", "KEEP v0")) == []
