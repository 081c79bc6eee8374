"""`lw.jit` and memory: out=, donated arguments, what is kept and what is handed out."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.jit import variants
from loopwright.jit.capture import Captured, share_memory
from loopwright.memory import buffer_node, storage
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    ShapeError,
)
from loopwright_core.ir import dtype as dt
from loopwright_core.plugin.loader import registry


def f32(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@lw.jit
def both(x: Any, y: Any) -> Any:
    """Two kernels: the sum is of rows of a product."""
    z = x @ y
    return z, lw.cumulative_sum(z, axis=0)


def reference(x: Any, y: Any) -> list[np.ndarray[Any, Any]]:
    z = lw.asarray(x) @ lw.asarray(y)
    return [z.numpy(), lw.cumulative_sum(z, axis=0).numpy()]


def test_out_is_written_and_returned() -> None:
    """Arrays of any layout get the results, and the containers given come back."""
    x, y = f32(5, 5), f32(5, 5, seed=1)
    plain = (np.empty((5, 5), np.float32), np.empty((5, 5), np.float32))
    odd = [np.empty((10, 5), np.float32)[::2], np.empty((5, 5), ">f4")]
    for out in (plain, odd):
        assert both(x, y, out=out) is out
        for got, want in zip(out, reference(x, y), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n_before", range(3))
def test_out_that_overlaps(n_before: int) -> None:
    """Results are as if all was computed before anything is written, whatever overlaps."""
    x, y = f32(5, 5), f32(5, 5, seed=1)
    for _ in range(n_before):  # also where the call goes in one step by then
        both(x, y)
    want = reference(x, y)
    memory = np.concatenate([x, y])
    got = both(memory[:5], memory[5:], out=(memory[5:], memory[:5]))
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    memory = np.concatenate([x, y, y])
    both(x, y, out=(memory[2:7], memory[4:9]))  # the later one is written last
    np.testing.assert_array_equal(memory[2:4], want[0][:2])
    np.testing.assert_array_equal(memory[4:9], want[1])
    shift = np.arange(9, dtype=np.float32)
    lw.jit(lambda v: v[::-1] + 0)(shift[:8], out=shift[1:])
    np.testing.assert_array_equal(shift, [0, 7, 6, 5, 4, 3, 2, 1, 0])


def test_out_that_a_constant_is_read_from() -> None:
    """An array the function closed over is read before it is written."""
    table = f32(6)
    before = table.copy()
    f = lw.jit(lambda x: x + lw.asarray(table)[::-1])
    f(f32(6, seed=3), out=table)
    np.testing.assert_array_equal(table, f32(6, seed=3) + before[::-1])


def test_one_result_into_two_arrays() -> None:
    """A value that is returned twice is written twice, whichever array kernels can write."""
    f = lw.jit(lambda x: (x * 2, x * 2, x, x[::-1]))
    x = f32(6)
    for strided in ((0,), (1,), (0, 1), ()):
        out = [
            np.zeros(12, np.float32)[::2] if i in strided else np.zeros(6, np.float32)
            for i in range(4)
        ]
        f(x, out=out)
        for got, want in zip(out, (x * 2, x * 2, x, x[::-1]), strict=True):
            np.testing.assert_array_equal(got, want)


def test_out_of_loopwright_arrays_is_bound_anew() -> None:
    """The array has the result; what was made of it before has the old value."""
    x, out = f32(4), lw.asarray(f32(4, seed=1))
    older = out + 1
    f = lw.jit(lambda x: x * 2)
    assert f(lw.asarray(x), out=out) is out
    np.testing.assert_array_equal(out.numpy(), x * 2)
    np.testing.assert_array_equal(older.numpy(), f32(4, seed=1) + 1)
    assert f(x, out=out) is out
    mixed = np.empty(4, np.float32)
    f(lw.asarray(x), out=mixed)
    np.testing.assert_array_equal(mixed, x * 2)


def test_out_that_does_not_fit_is_refused() -> None:
    """Shape, dtype, number, type, and arrays that are read-only; nothing is written."""
    f = lw.jit(lambda x: x * 2)
    x = f32(4)
    frozen = np.zeros(4, np.float32)
    frozen.flags.writeable = False
    for bad, kind, match in (
        (np.zeros(5, np.float32), ShapeError, r"out has shape \(5,\), the result \(4,\)"),
        (np.zeros(4), DTypeError, "out is of float64, the result of float32"),
        ((frozen, frozen), ArgumentError, "out holds 2 arrays, <lambda> returns 1"),
        (frozen, ArgumentError, "read-only"),
        (np.float32(0), ArgumentTypeError, "out is a float32, not an array"),
        ({1}, ArgumentTypeError, "out is a set"),
    ):
        with pytest.raises(kind, match=match):
            f(x, out=bad)
    assert not frozen.any()
    own = lw.jit(lambda x, out: x + out)  # a parameter of that name is the function's
    np.testing.assert_array_equal(own(x, out=x), x + x)


def test_donated_arrays_are_gone() -> None:
    """The array, views and expressions of it are refused by name; others are not touched."""
    step = lw.jit(lambda x, g: lw.cumulative_sum(x, axis=0) - g, donate="x")
    x = lw.asarray(f32(8)) + 0
    lw.evaluate(x)
    view, expression = x[2:], x * 2
    g = lw.asarray(f32(8, seed=1))
    got = step(x, g)
    want = lw.cumulative_sum(lw.asarray(f32(8)), axis=0) - g
    np.testing.assert_array_equal(got.numpy(), want.numpy())
    for gone in (x, view, expression):
        with pytest.raises(ArgumentError, match=r"donated to <lambda>.*test_jit_memory\.py:\d+"):
            gone.numpy()
    with pytest.raises(ArgumentError, match="donated"):
        step(x, g)
    with pytest.raises(ArgumentError, match="donated"):
        lw.jit(lambda y: y + x)(g)
    g.numpy()
    again = step(got, g)  # the result of one step is the next one's to take
    assert again.shape == (8,)


def address(x: lw.Array) -> int:
    return int(np.asarray(x).__array_interface__["data"][0])


def test_donated_memory_is_used_again() -> None:
    """A result takes the memory of a donated array that only the call holds, and of no other."""

    @lw.jit(donate=0)
    def f(x: Any) -> Any:
        return lw.cumulative_sum(lw.cumulative_sum(x, axis=0)[::-1], axis=0)

    def made() -> lw.Array:
        x = lw.asarray(f32(64)) + 1
        lw.evaluate(x)
        return x

    want = f.__wrapped__(made()).numpy()
    x = made()
    place = address(x)
    got = f(x)
    assert address(got) == place
    np.testing.assert_array_equal(got.numpy(), want)
    x = made()
    held = x.numpy()
    before = held.copy()
    got = f(x)
    assert address(got) != held.ctypes.data
    np.testing.assert_array_equal(held, before)
    np.testing.assert_array_equal(got.numpy(), want)
    user = f32(64) + np.float32(1)
    before = user.copy()
    np.testing.assert_array_equal(f(lw.asarray(user)).numpy(), want)
    np.testing.assert_array_equal(user, before)  # shared, and the user's
    result = f(user)  # given as NumPy's: its owner said so
    np.testing.assert_array_equal(result, want)
    assert np.shares_memory(result, user)


def test_a_donated_argument_that_is_the_result() -> None:
    """It comes back as an array of its own, though the argument is gone."""
    f = lw.jit(lambda x: x, donate=0)
    x = lw.asarray(f32(3)) + 0
    lw.evaluate(x)
    got = f(x)
    np.testing.assert_array_equal(got.numpy(), f32(3))


def test_results_outlive_later_calls() -> None:
    """What a call returned keeps its values through calls of the same kind."""
    x, y = f32(40, 40), f32(40, 40, seed=1)
    kept = [both(x + i, y) for i in range(6)]
    lazy = [both(lw.asarray(x + i), y) for i in range(6)]
    for i in range(6):
        for got, want in zip(kept[i], reference(x + i, y), strict=True):
            np.testing.assert_array_equal(got, want)
        for other, want in zip(lazy[i], kept[i], strict=True):
            np.testing.assert_array_equal(other.numpy(), want)


def test_a_call_in_one_step_holds_its_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when its variant is dropped for newer ones: the last calls are remembered longer."""
    monkeypatch.setattr(variants, "_MOST", 2)
    slots = [lw.asarray(np.zeros(3)) for _ in range(9)]  # those of kernels' own buffers are taken
    held: list[weakref.ref[Any]] = []

    @lw.jit(static="k")
    def f(x: Any, k: int | None = None) -> Any:
        table = np.full(1 << 16, 5, np.float32)
        held.append(weakref.ref(table))
        return x + lw.asarray(table)[:4]

    x = f32(4)
    for k in range(5):
        f(x, k=k)
    gc.collect()
    assert f.n_variants == 2
    assert held[0]() is None  # a dropped variant's that is not remembered
    assert held[1]() is not None
    np.testing.assert_array_equal(f(x, k=1), x + 5)
    assert len(held) == 5 and len(slots) == 9


def captured(n: int) -> Captured:
    """A chain of n kernels."""

    @lw.jit
    def f(x: Any) -> Any:
        for _ in range(n):
            x = lw.cumulative_sum(x[::-1] * 2, axis=0)
        return x

    return f.captured(np.arange(16))


def test_temporaries_share_memory() -> None:
    """A chain needs two blocks at any length; the table's parts are in order."""
    found = captured(9)
    assert len(found.kernels) == 9
    assert [row.kind for row in found.table] == ["input", "output", "temporary", "temporary"]
    assert found.first_temporary == 2
    assert [row.n_bytes for row in found.table] == [128] * 4
    rows = [set(kernel.rows) for kernel in found.kernels]
    assert all(len(pair) == 2 for pair in rows)


def test_blocks_are_as_few_as_can_be() -> None:
    """Blocks equal the most temporaries alive at once; no two of one step or lifetime share."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        n_steps = int(rng.integers(1, 12))
        spans = [sorted(rng.integers(0, n_steps, 2).tolist()) for _ in range(rng.integers(1, 15))]
        nodes = [buffer_node(dt.uint8, (int(rng.integers(1, 99)),)) for _ in spans]
        uses = [
            [
                (node, node.arg.shape[0])
                for node, span in zip(nodes, spans, strict=True)
                if step in span
            ]
            for step in range(n_steps)
        ]
        sizes, places = share_memory(uses)
        alive = [
            [n for n, (a, b) in zip(nodes, spans, strict=True) if a <= step <= b]
            for step in range(n_steps)
        ]
        assert len(sizes) == max(map(len, alive))
        for together in alive:
            assert len({places[node] for node in together}) == len(together)
        assert all(sizes[places[node]] >= node.arg.shape[0] for node in nodes)


@pytest.mark.parametrize("without", ["sequences", "one step"])
def test_devices_that_offer_less(without: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels launched one by one, or called with tables of memory, give the same results."""

    def scaled(x: Any, s: float) -> Any:
        return both.__wrapped__(x, x.T * s)

    x = f32(5, 5)
    wanted = lw.jit(scaled)(x, 2.0)
    if without == "sequences":
        monkeypatch.delattr("loopwright_render_clang.device.CpuDevice.load_sequence")
    else:
        monkeypatch.setattr("loopwright_render_clang.numpy_call.layout", lambda: None)
    f = lw.jit(scaled)
    for _ in range(3):
        for got, want in zip(f(x, 2.0), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    out = (np.zeros((5, 5), np.float32), np.zeros((5, 5), np.float32))
    f(x, 2.0, out=out)
    for got, want in zip(out, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
    plain = lw.jit(both.__wrapped__)
    plain(x, x)
    assert not plain._recent


def test_calls_in_one_step_take_what_they_were_made_for_only() -> None:
    """Other dtypes, shapes, strides, byte orders, subclasses and scalars get their own variants,
    though the last call went in one step."""
    f = lw.jit(lambda x: x * 2)
    x = f32(4, 4)

    class Mine(np.ndarray):  # type: ignore[type-arg]
        pass

    others = [
        x.astype(np.float64),
        x.view(np.int32),
        x.astype(">f4"),
        x[:2],
        x.T,
        x[::2, ::2],
        np.concatenate([x, x], axis=1)[:, :4],
        x.reshape(2, 8),
        x.reshape(16),
        x[None],
        x.view(Mine),
        x[0, 0],
        x[:0],
        np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 4),
    ]
    for other in others:
        assert f._recent or other is others[0]
        np.testing.assert_array_equal(f(x), x * 2)
        got = f(other)
        np.testing.assert_array_equal(got, np.asarray(other) * 2)
        assert got.dtype == np.asarray(other).dtype.newbyteorder("=")


def test_copies_within_a_trace_are_copies() -> None:
    """asarray(x, copy=True) of a traced array is a value of its own, also where x comes in as it
    is: what is written to the shared memory of x later is not seen by it."""
    memory = np.arange(6.0).reshape(2, 3)
    x = lw.asarray(memory)
    same, turned = lw.jit(
        lambda a: (lw.asarray(a, copy=True), lw.asarray(a.mT, copy=True)), name="copies"
    )(x)
    memory[0] = 9.0
    np.testing.assert_array_equal(same.numpy(), np.arange(6.0).reshape(2, 3))
    np.testing.assert_array_equal(turned.numpy(), np.arange(6.0).reshape(2, 3).T)


def test_a_donated_array_is_one_calls() -> None:
    """Of threads that donate one array at once one gets it, and those that read it at that time get
    its values or are refused: nobody sees memory that is written meanwhile."""
    step = lw.jit(lambda x: lw.cumulative_sum(x, axis=0) * 2.0, donate=0)
    read = lw.jit(lambda x: x + 0.0)
    host = f32(30_000)
    want = step(lw.asarray(host, copy=True)).numpy()
    read(lw.asarray(host))
    wrong: list[str] = []
    for _ in range(30):
        x = lw.asarray(host) + 0.0
        lw.evaluate(x)
        start, done = threading.Barrier(4), []

        def call(
            f: Any, expected: Any, x: lw.Array = x, start: Any = start, done: Any = done
        ) -> None:
            start.wait()
            try:
                got = f(x).numpy()
            except ArgumentError as error:
                assert "donated" in str(error)
                return
            if not np.array_equal(got, expected):
                wrong.append("other values")
            if f is step:
                done.append(got)

        tasks = [(step, want), (step, want), (read, host), (read, host)]
        threads = [threading.Thread(target=call, args=task) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 1
    assert wrong == []


def test_who_held_the_storage_is_refused() -> None:
    """A call that has found an array but not its memory when another takes it is refused."""
    x = lw.asarray(f32(8)) + 0.0
    lw.evaluate(x)
    held = storage(x._uop)
    step = lw.jit(lambda x: x * 2.0, donate=0)
    step(x)
    for use in (lambda: held.on(step), held.numpy, lambda: held.move("other")):
        with pytest.raises(ArgumentError, match="donated to <lambda>"):
            use()


def test_what_fails_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no memory for results the donated array is as it was."""
    step = lw.jit(lambda x, y: (x * 2.0 + y, lw.cumulative_sum(x)), donate=(0, 1))
    x, y = lw.asarray(f32(8)) + 0.0, lw.asarray(f32(8)) + 1.0
    lw.evaluate(x, y)
    step.captured(x, y)
    device = registry().device("cpu")

    def refuse(n_bytes: int) -> Any:
        raise DeviceError("no memory")

    keep = np.asarray(x), np.asarray(y)  # so that results need memory of their own
    with monkeypatch.context() as patched:
        patched.setattr(device, "allocate", refuse)
        with pytest.raises(DeviceError, match="no memory"):
            step(x, y)
    np.testing.assert_array_equal(x.numpy(), f32(8))
    first, _ = step(x, y)
    np.testing.assert_allclose(first.numpy(), keep[0] * 2 + keep[1])
    z = lw.asarray(f32(8)) + 0.0
    lw.evaluate(z)
    with pytest.raises(ArgumentError, match="donated"):
        step(z, y)
    np.testing.assert_array_equal(z.numpy(), f32(8))


def test_one_array_donated_twice_in_a_call() -> None:
    """It is both arguments, and its memory is nobody's result."""
    step = lw.jit(lambda x, y: lw.cumulative_sum(x) - y, donate=(0, 1))
    x = lw.asarray(f32(8)) + 0.0
    lw.evaluate(x)
    np.testing.assert_allclose(step(x, x).numpy(), np.cumsum(f32(8)) - f32(8), rtol=1e-5)
