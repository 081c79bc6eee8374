"""Fusion: how many kernels an expression becomes, and that cutting it changes no value."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from fusing import checked, fused, size
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright.fuse.partition import MAX_SIZE
from loopwright_core.ir.ops import Op

_seed = itertools.count(1)


def data(*shape: int, dtype: str = "float32") -> Any:
    """Random elements in [-2, 2)."""
    rng = np.random.default_rng(next(_seed))
    return lw.asarray((rng.random(shape) * 4 - 2).astype(dtype), device="cpu")


def softmax(x: Any) -> Any:
    e = lw.exp(x - lw.max(x, axis=-1, keepdims=True))
    return e / lw.sum(e, axis=-1, keepdims=True)


def log_softmax(x: Any) -> Any:
    shifted = x - lw.max(x, axis=-1, keepdims=True)
    return shifted - lw.log(lw.sum(lw.exp(shifted), axis=-1, keepdims=True))


def rms_norm(x: Any) -> Any:
    return x / lw.sqrt(lw.mean(x * x, axis=-1, keepdims=True) + 1e-5) * data(x.shape[-1])


def layer_norm(x: Any) -> Any:
    centred = x - lw.mean(x, axis=-1, keepdims=True)
    variance = lw.mean(centred * centred, axis=-1, keepdims=True)
    return centred / lw.sqrt(variance + 1e-5)


def unit(x: Any) -> Any:
    return x / lw.sqrt(lw.sum(x * x))


def standardise(x: Any) -> Any:
    mean = lw.mean(x, axis=(0, 1), keepdims=True)
    variance = lw.mean((x - mean) ** 2, axis=(0, 1), keepdims=True)
    return (x - mean) / lw.sqrt(variance)


def variance(x: Any) -> Any:
    return lw.var(x, axis=1)


def dense(x: Any) -> Any:
    return lw.gelu(x @ data(x.shape[1], 24) + data(24), approximate="tanh")


def relu_matmul_sum(x: Any) -> Any:
    return lw.sum(lw.relu(x @ data(x.shape[1], 24)), axis=1)


def reduce_of_reduce(x: Any) -> Any:
    return lw.sum(lw.exp(lw.sum(x, axis=1)), axis=0)


def shifted_sum(x: Any) -> Any:
    return x[:-2] + x[1:-1] + x[2:]


ONE_KERNEL = [
    softmax,
    log_softmax,
    rms_norm,
    layer_norm,
    unit,
    standardise,
    variance,
    dense,
    relu_matmul_sum,
    reduce_of_reduce,
    shifted_sum,
]


@pytest.mark.parametrize("f", ONE_KERNEL, ids=lambda f: f.__name__)
@pytest.mark.parametrize("shape", [(37, 20), (5, 64)])
def test_one_kernel(f: Any, shape: tuple[int, int]) -> None:
    """Written-out normalisations, matmuls with epilogues and chained reduces are one kernel."""
    assert len(checked(f(data(*shape)))) == 1


@pytest.mark.parametrize("turned", [False, True], ids=["rows", "columns"])
def test_large_contraction_in_a_reduce_is_a_kernel_of_its_own(turned: bool) -> None:
    """A product that the loop of another reduce would compute is stored, and can be tiled."""
    weights = data(64, 128).mT if turned else data(128, 64)
    product, greatest = checked(lw.max(lw.relu(data(64, 128) @ weights), axis=1))
    for kernel in (product, greatest):
        assert sum(n.op is Op.REDUCE for n in kernel.ast.toposort()) == 1


def test_plain_reduce_in_a_reduce_is_one_kernel_at_any_size() -> None:
    """What reads each element once gains nothing from tiles: it stays in the other's loop."""
    assert len(checked(reduce_of_reduce(data(512, 256) * 0.01))) == 1


def test_chain_reads_each_input_once() -> None:
    """Ten elementwise operations are one kernel with one slot an input and one for the output."""
    x, y = data(33), data(33)
    z = x
    for i in range(10):
        z = [lw.tanh(z), z * y, z + x, z - 0.5][i % 4]
    (kernel,) = checked(z)
    assert len(kernel.buffers) == 3
    assert sum(n.op is Op.BUFFER for n in kernel.ast.toposort()) == 3


def five_point(u: Any) -> Any:
    return (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25


def shrinking(u: Any) -> Any:
    return five_point(u)


def interior_by_concat(u: Any) -> Any:
    middle = lw.concat([u[1:-1, :1], five_point(u), u[1:-1, -1:]], axis=1)
    return lw.concat([u[:1], middle, u[-1:]], axis=0)


def interior_by_where(u: Any) -> Any:
    inside = np.zeros(u.shape, np.bool_)
    inside[1:-1, 1:-1] = True
    return lw.where(lw.asarray(inside, device="cpu"), lw.pad(five_point(u), ((1, 1), (1, 1))), u)


def interior_by_assignment(u: Any) -> Any:
    new = u + 0.0
    new[1:-1, 1:-1] = five_point(u)
    return new


@pytest.mark.parametrize(
    "step", [shrinking, interior_by_concat, interior_by_where, interior_by_assignment]
)
def test_jacobi(step: Any) -> None:
    """Forty steps are at most forty kernels, and their size grows linearly with the steps."""
    sizes = []
    for n_steps in (10, 20, 40):
        u = data(100, 100)
        for _ in range(n_steps):
            u = step(u)
        kernels = fused(u)
        assert len(kernels) <= n_steps
        sizes.append(size(kernels))
    assert sizes[2] - sizes[1] <= 2.5 * (sizes[1] - sizes[0])
    u = data(14, 13)
    for _ in range(5):
        u = step(u)
    checked(u)


def test_jacobi_kernels_repeat() -> None:
    """Equal steps are one and the same kernel AST: compiled once."""
    u = data(32, 32)
    for _ in range(40):
        u = interior_by_concat(u)
    assert len({k.ast for k in fused(u)}) == 1


def test_matmul_under_softmax_is_stored() -> None:
    """Scores that a softmax reads three times are computed once; attention is three kernels."""
    q, k, v = data(12, 8), data(20, 8), data(20, 8)
    scores = q @ k.T
    kernels = checked(softmax(scores))
    assert len(kernels) == 2
    assert len(checked(softmax(scores) @ v)) == 3


def test_costly_value_read_shifted_is_stored() -> None:
    """An exp read through five shifted views is stored once; a cheap product is repeated."""
    e = lw.exp(data(64, 48))
    views = [e[1:-1, 1:-1], e[:-2, 1:-1], e[2:, 1:-1], e[1:-1, :-2], e[1:-1, 2:]]
    kernels = checked(sum(views[1:], views[0]))
    assert len(kernels) == 2
    p = data(64) * 2.0
    assert len(checked(p[:-1] + p[1:])) == 1


def test_reduce_over_outer_axis_is_stored() -> None:
    """A column mean is not recomputed in every row."""
    x = data(40, 30)
    assert len(checked(x - lw.mean(x, axis=0))) == 2


def test_small_table_times_many_rows_is_stored() -> None:
    """A costly vector broadcast over rows is computed once, a cheap one where it is used."""
    w = data(48)
    assert len(checked(data(64, 48) * lw.exp(lw.sin(w)))) == 2
    x = data(64, 48)
    assert len(checked(lw.exp(x[:, :1]) * x)) == 1


def test_outputs_share_kernels() -> None:
    """Outputs over equal dims that share work, or use each other, are one kernel; others not."""
    x, w = data(16, 12), data(12, 16)
    assert len(checked(lw.sin(x), lw.cos(x))) == 1
    assert len(checked(lw.sin(x), lw.cos(data(16, 12)))) == 2
    assert len(checked(lw.sin(x), lw.sum(x, axis=1))) == 2
    assert len(checked(lw.sum(x, axis=1), lw.max(x, axis=1))) == 1
    assert len(checked(lw.mean(x, axis=1), lw.var(x, axis=1))) == 1
    assert len(checked(x @ w, x @ data(12, 16))) == 2
    y = x @ w
    (kernel,) = checked(y, lw.relu(y))
    assert len(kernel.outputs) == 2
    z = lw.relu(y)
    assert len(checked(z, z / lw.sum(z))) == 2  # the second needs all of the first


def test_outputs_that_would_wait_for_each_other_are_apart() -> None:
    """Two outputs of equal dims where one needs all of the other are two kernels, in order."""
    x = data(16, 12)
    y = lw.exp(x) * x
    z = y - lw.max(y, axis=0)
    kernels = checked(z, y)
    assert len(kernels) == 3


def test_concat_and_stack() -> None:
    """Operands are computed into their slices; a concat of concats stays one buffer."""
    x, y = data(4, 5), data(3, 5)
    (kernel,) = checked(lw.concat([lw.exp(x), y * 2.0, x[:1]], axis=0))
    assert [s.op for s in kernel.ast.src] == [Op.STORE] * 3 and len(kernel.outputs) == 1
    nested = lw.concat([lw.concat([x, y], axis=0), lw.concat([y, x], axis=0)], axis=0)
    assert len(checked(nested)) == 1
    assert len(checked(lw.stack([x, x + 1.0], axis=1))) == 1
    assert len(checked(lw.concat([x, y], axis=0) * 2.0 + 1.0)) == 2
    many = checked(lw.stack([data(10) + 1.0 for _ in range(100)]))
    assert 2 <= len(many) <= 10
    assert len(checked(lw.concat([x, y], axis=0)[::-1])) == 1


def test_scan_runs_along_output_dims() -> None:
    """A running sum joins what reads it at its own index; all else reads it from memory."""
    x = data(6, 10)
    running = lw.cumulative_sum(lw.exp(x), axis=1)
    assert len(checked(running + 1.0)) == 1
    assert len(checked(running[:, ::2])) == 2
    assert len(checked(lw.sum(running, axis=1))) == 2
    assert len(checked(lw.cumulative_sum(running, axis=0))) == 2
    backwards = lw.flip(lw.cumulative_sum(lw.flip(x, axis=1), axis=1), axis=1)
    assert len(checked(backwards)) == 1
    half = lw.astype(x, lw.float16)
    assert len(checked(lw.flip(lw.cumulative_sum(half, axis=1), axis=1))) == 1


def test_gather() -> None:
    """Picked elements of a computed value are computed where they are picked."""
    x, w = data(9, 6), data(6, 5)
    at = lw.asarray(np.array([0, 3, -1, 3]), device="cpu")
    assert len(checked(lw.take(lw.exp(x), at, axis=0))) == 1
    assert len(checked(lw.take(x @ w, at + 1, axis=1))) == 1
    many = lw.asarray(np.arange(600) % 9, device="cpu")
    assert len(checked(lw.take(x @ w, many, axis=0))) == 2


def test_argmax_values_used_together() -> None:
    """The position of the largest element joins further work like any reduce."""
    x = data(9, 6)
    assert len(checked(lw.argmax(x, axis=1))) == 1
    assert len(checked(lw.argmax(x, axis=1) * 2, lw.argmin(x, axis=1))) <= 2


def test_views_of_a_result() -> None:
    """A reshape of a result is stored by the kernel that computes it."""
    x = data(6, 10)
    assert len(checked(lw.reshape(softmax(x), (60,)))) == 1
    assert len(checked(lw.reshape(lw.sum(x, axis=1), (2, 3)))) == 1


def test_long_chain_is_cut_into_kernels_that_repeat() -> None:
    """30,000 operations are cut into pieces that are few different kernels."""
    y = data(100)
    for i in range(30_000):
        y = (y + 1.0) if i % 2 else (y * 0.5)
    kernels = fused(y)
    assert len(kernels) < 2 * 30_000 / MAX_SIZE + 2
    assert len({k.ast for k in kernels}) <= 5
    assert max(len(k.ast.toposort()) for k in kernels) < 2 * MAX_SIZE


def test_two_running_values_stay_in_one_kernel() -> None:
    """Where a kernel is full and two values go on, one kernel computes both."""
    a, b = data(50), data(50)
    for _ in range(2000):
        a, b = b, b * 0.5 + a * 0.25
    assert len(checked(b)) < 40


@pytest.mark.parametrize("n_max", [None, 3, 8, 31])
def test_max_buffers(n_max: int | None) -> None:
    """No kernel exceeds the target's number of buffers; without a limit 200 inputs are one."""
    inputs = [data(10) for _ in range(200)]
    chain = inputs[0]
    for x in inputs[1:]:
        chain = chain + x
    tree = inputs
    while len(tree) > 1:
        tree = [a + b for a, b in zip(tree[::2], tree[1::2], strict=False)] + (
            tree[-1:] if len(tree) % 2 else []
        )
    for total in (chain, tree[0]):
        kernels = checked(total, max_buffers=n_max)
        assert n_max is not None or len(kernels) == 1
        assert all(n_max is None or len(k.buffers) <= n_max for k in kernels)


def test_doubling() -> None:
    """x + x sixty times is sixty operations, not 2**60."""
    x = data(10)
    for _ in range(60):
        x = x + x
    (kernel,) = checked(x)
    assert len(kernel.ast.toposort()) < 70


def test_equal_structure_equal_kernel() -> None:
    """The AST depends on structure alone: other inputs give the same object."""
    first, second = fused(softmax(data(8, 9))), fused(softmax(data(8, 9)))
    assert [k.ast for k in first] == [k.ast for k in second]
    buffers = [n.arg.slot for n in first[0].ast.toposort() if n.op is Op.BUFFER]
    assert sorted(buffers) == list(range(len(buffers)))


UNARY = [lw.exp, lw.tanh, lambda x: x * 2.0, lambda x: -x, lambda x: x[::-1], lambda x: x.T]
REDUCES = [lw.sum, lw.max, lw.mean]


@st.composite
def expressions(draw: Any) -> list[Any]:
    """Random graphs over square arrays: elementwise, views, reduces, concats, scans, gathers."""
    n = draw(st.integers(1, 4))
    values = [data(n, n), data(n, n)]
    for _ in range(draw(st.integers(1, 9))):
        a = values[draw(st.integers(0, len(values) - 1))]
        b = values[draw(st.integers(0, len(values) - 1))]
        kind = draw(st.integers(0, 9))
        if kind < 3:
            values.append(draw(st.sampled_from(UNARY))(a))
        elif kind < 5:
            values.append(a * b + a)
        elif kind == 5:
            f, axis = draw(st.sampled_from(REDUCES)), draw(st.integers(0, 1))
            values.append(a - f(b, axis=axis, keepdims=True))
        elif kind == 6:
            axis = draw(st.integers(0, 1))
            joined = lw.concat([a, b], axis=axis)
            values.append(joined[:n, :n] if draw(st.booleans()) else joined[-n:, -n:])
        elif kind == 7:
            values.append(lw.cumulative_sum(a, axis=draw(st.integers(0, 1))))
        elif kind == 8:
            at = lw.astype(lw.abs(b), lw.int64)
            values.append(lw.take(a, at[0] % n, axis=draw(st.integers(0, 1))))
        else:
            values.append(lw.pad(a, ((1, 1), (1, 1)))[:n, 1 : n + 1] @ b)
    count = draw(st.integers(1, 3))
    return [values[-1], *values[2 : 1 + count]]


@settings(max_examples=150, deadline=None)
@given(expressions(), st.sampled_from([None, 4, 6]))
def test_cutting_changes_no_value(outputs: list[Any], max_buffers: int | None) -> None:
    """Random graphs give the same elements fused as unfused, whatever the limits."""
    lazy = [o for o in outputs if o._uop.op is not Op.BUFFER]
    unique = list({o._uop: o for o in lazy}.values())
    if unique:
        checked(*unique, max_buffers=max_buffers)


def test_outputs_that_walk_an_array_along_other_axes_stay_apart() -> None:
    """Sums over the rows of one array share a kernel with other sums over rows; a sum over its
    columns walks it in another order, and would make the loops of one of them slow."""
    x = lw.asarray(np.ones((64, 64), np.float32))
    y = lw.asarray(np.ones(64, np.float32))
    assert len(lw.kernels(lw.sum(x, axis=1), lw.max(x, axis=1))) == 1
    assert len(lw.kernels(lw.sum(x, axis=0), lw.sum(x, axis=1))) == 2
    assert len(lw.kernels(y + x @ y, y + y @ x)) == 2
