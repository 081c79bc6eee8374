"""The interpreter of the three levels, on kernels written by hand."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from ir_samples import (
    F32,
    I32,
    N,
    Sample,
    at,
    buffer,
    f,
    guarded,
    kernel,
    load,
    masked_add,
    matmul,
    row_sum,
    samples,
    sink,
    staged,
    threaded,
    u,
)

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import spec
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.kernel.dims import Dim
from loopwright_core.oracle import kernel as kernel_oracle
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.oracle.tensor import eval_tensor, run_tensor

SAMPLES = samples()


def _same(sample: Sample, result: np.ndarray) -> None:
    if sample.name == "softmax":
        np.testing.assert_allclose(result, sample.expected, rtol=3e-7)
    else:
        np.testing.assert_array_equal(result, sample.expected)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: s.name)
def test_levels_agree_with_numpy(sample: Sample) -> None:
    """Levels 1 and 2 of one computation give NumPy's result, and both are legal."""
    spec.verify_tensor(sample.tensor)
    spec.verify_kernel(sample.kernel)
    for run, node in ((run_tensor, sample.tensor), (run_kernel, sample.kernel)):
        buffers = sample.buffers()
        run(node, buffers)
        _same(sample, buffers[len(sample.inputs)])


@pytest.mark.parametrize("most", [4, 13, 40, 90, 200])
def test_chunks_change_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel cut into parts of its iteration space stores what the whole stores."""
    monkeypatch.setattr(kernel_oracle, "MAX_POINTS", most)
    sample = matmul(7, 5, 4)
    buffers = sample.buffers()
    run_kernel(sample.kernel, buffers)
    _same(sample, buffers[2])


def test_a_reduce_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One output element that needs more points than fit is refused, not swapped."""
    monkeypatch.setattr(kernel_oracle, "MAX_POINTS", 3)
    with pytest.raises(VerifyError, match="more than the interpreter holds"):
        run_kernel(matmul().kernel, matmul().buffers())


def test_scans_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dim of a scan stays whole when a kernel is cut."""
    monkeypatch.setattr(kernel_oracle, "MAX_POINTS", 8)
    for sample in SAMPLES:
        if sample.name.startswith("cumsum"):
            buffers = sample.buffers()
            run_kernel(sample.kernel, buffers)
            _same(sample, buffers[1])


def test_movement_is_numpys() -> None:
    """SHRINK with steps, FLIP, PERMUTE, PAD, IOTA and WINDOW give NumPy's elements."""
    x = np.arange(60, dtype=np.float32).reshape(5, 12)
    a = buffer(0, (5, 12))

    def run(node: UOp) -> np.ndarray:
        return eval_tensor(node, {0: x})

    same = np.testing.assert_array_equal
    same(run(f(Op.SHRINK, a, arg=((1, 5, 2), (3, 12, 4)))), x[1:5:2, 3:12:4])
    same(run(f(Op.FLIP, a, arg=(1,))), x[:, ::-1])
    same(run(f(Op.PERMUTE, a, arg=(1, 0))), x.T)
    padded = f(Op.PAD, a, const(-1.0, F32), arg=((0, 1), (2, 0)))
    same(run(padded), np.pad(x, ((0, 1), (2, 0)), constant_values=-1))
    same(run(u(Op.IOTA, I32, arg=((3, 4), 0))), np.indices((3, 4))[0])
    windows = run(f(Op.WINDOW, a, arg=(1, 3, 2, 4)))
    same(windows, np.stack([x[:, k * 4 : k * 4 + 4 : 2][:, :2] for k in range(3)], axis=-1))
    same(run(u(Op.CONCAT, F32, a, a, arg=0)), np.concatenate([x, x]))


def test_stores_through_views() -> None:
    """A STORE writes the elements its view names and no others."""
    out = np.zeros((4, 6), np.float32)
    b = buffer(0, (4, 6))
    view = f(
        Op.FLIP, f(Op.PERMUTE, f(Op.SHRINK, b, arg=((1, 4, 2), (0, 6, 3))), arg=(1, 0)), arg=(0,)
    )
    run_tensor(sink((view, u(Op.IOTA, F32, arg=((2, 2), 0)))), {0: out})
    expected = np.zeros((4, 6), np.float32)
    expected[1:4:2, 0:6:3].T[::-1] = [[0, 0], [1, 1]]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "and", "or", "xor"])
def test_reduces_of_every_dtype(dtype: dt.DType, combine: str) -> None:
    """Combines of small integers are exact in every dtype; of nothing they give the identity."""
    if dtype.is_float and combine in ("and", "or", "xor"):
        return
    x = np.random.default_rng(3).integers(0, 3, (4, 5)).astype(dtype.numpy)
    plain = x.astype(np.int64)
    rows = {
        "add": plain.sum(1) if not dtype.is_bool else plain.max(1),
        "mul": plain.prod(1),
        "max": plain.max(1),
        "min": plain.min(1),
        "and": np.bitwise_and.reduce(plain, 1),
        "or": np.bitwise_or.reduce(plain, 1),
        "xor": np.bitwise_xor.reduce(plain, 1),
    }
    node = u(Op.REDUCE, dtype, buffer(0, (4, 5), dtype), arg=(combine, (1,)))
    np.testing.assert_array_equal(eval_tensor(node, {0: x}), rows[combine].astype(dtype.numpy))
    node = u(Op.REDUCE, dtype, buffer(0, (4, 0), dtype), arg=(combine, (1,)))
    empty = eval_tensor(node, {0: np.zeros((4, 0), dtype.numpy)})
    with np.errstate(all="ignore"):
        joined = eval_tensor(
            u(Op.REDUCE, dtype, buffer(0, (4, 6), dtype), arg=(combine, (1,))),
            {0: np.concatenate([x, empty[:, None]], axis=1)},
        )
    np.testing.assert_array_equal(joined, rows[combine].astype(dtype.numpy))


@pytest.mark.parametrize("combine", ["argmax", "argmin"])
def test_extremes_with_nan_and_ties(combine: str) -> None:
    """The first extreme wins, a NaN beats every number, the first NaN beats later ones."""
    nan = np.nan
    x = np.array([[1, 3, 3, 1], [nan, 9, nan, 0], [5, nan, 2, nan], [2, 2, 2, 2]], np.float32)
    a = buffer(0, (4, 4))
    pair = u(Op.REDUCE, dt.void, a, u(Op.IOTA, I32, arg=((4, 4), 1)), arg=(combine, (1,)))
    found = eval_tensor(u(Op.ITEM, I32, pair, arg=1), {0: x})
    np.testing.assert_array_equal(found, getattr(np, combine)(x, axis=1))


def test_welford_and_logsumexp() -> None:
    """The combines of several values give mean, variance and log-sum-exp."""
    x = np.random.default_rng(5).normal(3, 2, (3, 37))
    a = buffer(0, (3, 37), dt.float64)
    f64 = dt.float64
    one, zero = const(1.0, f64), const(0.0, f64)
    ones = u(Op.EXPAND, f64, u(Op.RESHAPE, f64, one, arg=(1, 1)), arg=(3, 37))
    whole = u(Op.REDUCE, dt.void, ones, a, zero, arg=("welford", (1,)))
    n, mean, squares = [eval_tensor(u(Op.ITEM, f64, whole, arg=k), {0: x}) for k in range(3)]
    np.testing.assert_array_equal(n, 37)
    np.testing.assert_allclose(mean, x.mean(1), rtol=1e-14)
    np.testing.assert_allclose(squares / 37, x.var(1), rtol=1e-13)
    pair = u(Op.REDUCE, dt.void, a, one, arg=("logsumexp", (1,)))
    top, total = [eval_tensor(u(Op.ITEM, f64, pair, arg=k), {0: x}) for k in range(2)]
    np.testing.assert_allclose(top + np.log(total), np.log(np.exp(x).sum(1)), rtol=1e-14)
    empty = u(Op.REDUCE, dt.void, buffer(0, (2, 0), f64), one, arg=("logsumexp", (1,)))
    assert eval_tensor(u(Op.ITEM, f64, empty, arg=1), {0: np.zeros((2, 0))}).tolist() == [0, 0]


def test_extents_may_be_variables() -> None:
    """Levels 1 and 2 of a row sum over [n, 64] run for any n."""
    a, out = buffer(0, (N, 64)), buffer(1, (N,))
    tensor = sink((out, f(Op.REDUCE, a, arg=("add", (1,)))))
    i, k = Dim("i", N).uop, Dim("k", 64, True).uop
    row = f(Op.REDUCE, load(a, (N, 64), i, k), k, arg=("add",))
    made = kernel(sink((at(out, (N,), i), row)), i, k)
    spec.verify_tensor(tensor)
    spec.verify_kernel(made)
    for n in (1, 3, 50):
        x = np.random.default_rng(n).integers(-9, 9, (n, 64)).astype(np.float32)
        for run, node in ((run_tensor, tensor), (run_kernel, made)):
            sums = np.zeros(n, np.float32)
            run(node, {0: x, 1: sums}, {"n": n})
            np.testing.assert_array_equal(sums, x.sum(1))


def test_values_are_dropped_after_their_last_use() -> None:
    """A chain of 300 ops over 8 MB arrays holds a few of them at a time."""
    n = 1_000_000
    i = Dim("i", n).uop
    a, out = buffer(0, (n,)), buffer(1, (n,))
    chain, scalar = a, load(a, (n,), i)
    for _ in range(300):
        chain, scalar = f(Op.ADD, chain, const(1.0, F32)), f(Op.ADD, scalar, const(1.0, F32))
    x, y = np.zeros(n, np.float32), np.zeros(n, np.float32)
    tracemalloc.start()
    run_tensor(sink((out, chain)), {0: x, 1: y})
    run_kernel(sink((at(out, (n,), i), scalar)), {0: x, 1: y})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 8 * n
    assert (y == 300).all()


def test_a_load_sees_memory_before_the_kernel() -> None:
    """A kernel that updates a buffer in place reads what it held before."""
    b = buffer(0, (6,))
    i = Dim("i", 6).uop
    body = sink((at(b, (6,), i), f(Op.ADD, load(b, (6,), i), const(1.0, F32))))
    x = np.arange(6, dtype=np.float32)
    run_kernel(kernel(body, i), {0: x})
    np.testing.assert_array_equal(x, np.arange(1, 7))


@pytest.mark.parametrize("n", [1, 5, 100])
def test_row_sum_of_a_variable_extent(n: int) -> None:
    """The manual's level-3 example runs for any n, and its accesses are proved by intervals."""
    made = row_sum()
    spec.verify_program(made)
    assert spec.unproved_accesses(made) == 0
    x = np.random.default_rng(n).integers(-9, 9, (n, 64)).astype(np.float32)
    out = np.zeros(n, np.float32)
    run_program(made, {0: x, 1: out}, {"n": n})
    np.testing.assert_array_equal(out, x.sum(1))


def test_masked_lanes_touch_no_memory() -> None:
    """The last vector reaches over the end of both arrays, under a mask."""
    made = masked_add()
    spec.verify_program(made)
    assert spec.unproved_accesses(made) == 0
    x, out = np.arange(10, dtype=np.float32), np.zeros(10, np.float32)
    run_program(made, {0: x, 1: out})
    np.testing.assert_array_equal(out, x + 1)


def test_local_arrays_threads_and_branches() -> None:
    """Local arrays, threads and IF run, are legal, and are proved in bounds."""
    x = np.arange(8, dtype=np.float32)
    for made, expected in (
        (staged(8), x[::-1]),
        (threaded(8, 2), x * x),
        (guarded(8), np.append(x[1:], 77)),
    ):
        spec.verify_program(made)
        assert spec.unproved_accesses(made) == 0
        out = np.full(8, 77, np.float32)
        run_program(made, {0: x, 1: out})
        np.testing.assert_array_equal(out, expected)


def test_memory_that_does_not_fit_is_refused() -> None:
    """A missing array, a wrong dtype, size or variable is told by name."""
    made = row_sum()
    good = {0: np.zeros((2, 64), np.float32), 1: np.zeros(2, np.float32)}
    for change, variables, what in (
        ({1: None}, {"n": 2}, "was not given"),
        ({1: np.zeros(2)}, {"n": 2}, "is float64"),
        ({1: np.zeros(3, np.float32)}, {"n": 2}, "has 3 elements"),
        ({0: np.zeros((64, 2), np.float32).T}, {"n": 2}, "not contiguous"),
        ({}, {}, "has no value"),
        ({}, {"n": N.hi + 1}, "outside"),
    ):
        given = {k: v for k, v in {**good, **change}.items() if v is not None}
        with pytest.raises(VerifyError, match=what):
            run_program(made, given, variables)
