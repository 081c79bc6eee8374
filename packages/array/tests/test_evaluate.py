"""Evaluation: kernels run in order, results stay, work is shared, threads do not disturb."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import memory
from loopwright.evaluate import make_plan, users_line
from loopwright_core import pipeline
from loopwright_core.errors import ArgumentError, DeviceError, LoopwrightError
from loopwright_core.ir.ops import Op
from loopwright_core.plugin.loader import registry


def data(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def array(*shape: int, seed: int = 0) -> Any:
    return lw.asarray(data(*shape, seed=seed), device="cpu")


def test_results_stay() -> None:
    """An evaluated array holds a BUFFER; looking at it again launches nothing."""
    y = array(3, 4) + 1.0
    assert y._uop.op is not Op.BUFFER
    y.numpy()
    node = y._uop
    assert node.op is Op.BUFFER
    lw.evaluate(y)
    y.numpy()
    assert y._uop is node


def test_several_arrays_share_work() -> None:
    """What two arrays both need is computed by one kernel, once."""
    x, w = array(20, 30), array(30, 20, seed=1)
    scores = x @ w
    a, b = scores - lw.max(scores, axis=0), lw.sum(scores, axis=0)
    plan = make_plan([a._uop, b._uop], "cpu")
    reads_w = [k for k in plan.kernels if any(n is w._uop for n in k.buffers)]
    assert len(reads_w) == 1
    lw.evaluate(a, b)
    want = data(20, 30) @ data(30, 20, seed=1)
    np.testing.assert_allclose(a.numpy(), want - want.max(axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(b.numpy(), want.sum(axis=0), rtol=1e-4, atol=1e-4)


def test_the_same_array_twice() -> None:
    """One array given twice, and two names of one expression, are computed once."""
    x = array(5)
    y, z = x * 2.0, x * 2.0
    lw.evaluate(y, y, z)
    assert y._uop is z._uop


def test_views_need_no_kernel() -> None:
    """Reshapes of memory and arrays without elements launch nothing."""
    x = array(4, 6)
    for view in (lw.reshape(x, (24,)), x[0:0], x):
        assert make_plan([view._uop], "cpu").kernels == ()
        assert view.numpy().shape == view.shape
    turned = x.T
    assert len(make_plan([turned._uop], "cpu").kernels) == 1
    np.testing.assert_array_equal(turned.numpy(), data(4, 6).T)


def test_intermediates_are_freed() -> None:
    """Memory between kernels is gone after the evaluation; inputs and results stay."""
    gc.collect()
    before = len(memory._storages)
    x = array(30, 20)
    e = lw.exp(x)
    y = e / lw.sum(e, axis=0)
    y = lw.cumulative_sum(lw.cumulative_sum(y, axis=0), axis=1)
    y.numpy()
    del e
    gc.collect()
    assert len(memory._storages) - before == 2


def test_intermediates_share_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty steps in a row need memory for three arrays: two that alternate, and the result."""
    device = type(registry().device("cpu"))
    sizes: list[int] = []
    allocate = device.allocate

    def counted(self: Any, n_bytes: int) -> Any:
        sizes.append(n_bytes)
        return allocate(self, n_bytes)

    monkeypatch.setattr(device, "allocate", counted)
    y = array(30, 30)
    want = data(30, 30).astype(np.float64)
    for _ in range(20):
        y = y - lw.mean(y, axis=0) * 0.5
        want = want - want.mean(axis=0) * 0.5
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)
    assert len([n for n in sizes if n == 30 * 30 * 4]) <= 3


def test_old_expressions_keep_the_old_value() -> None:
    """Assignment rebinds: what was built before sees what was there before."""
    x = array(4)
    y = x + 1.0
    x[1] = 50.0
    np.testing.assert_array_equal(y.numpy(), data(4) + np.float32(1))
    assert x.numpy()[1] == 50.0


def test_long_expressions() -> None:
    """20,000 operations in a row run as a few kernels, one compiled for all of them."""
    x = lw.asarray(np.linspace(-1, 1, 100), device="cpu")
    want = x.numpy().copy()
    for i in range(20_000):
        x = (x + 1.0) if i % 2 else (x * 0.5)
        want = (want + 1.0) if i % 2 else (want * 0.5)
    assert len({k.ast for k in make_plan([x._uop], "cpu").kernels}) <= 4
    np.testing.assert_array_equal(x.numpy(), want)


def test_many_inputs() -> None:
    """A sum of 200 arrays."""
    arrays = [array(10, seed=i) for i in range(200)]
    total, want = arrays[0], data(10)
    for i in range(1, 200):
        total, want = total + arrays[i], want + data(10, seed=i)
    np.testing.assert_array_equal(total.numpy(), want)


def test_threads() -> None:
    """Threads evaluate at once, the same and different expressions, each with its own options."""
    shared = array(50, 40)
    sums = lw.sum(shared * 2.0, axis=1)
    results: dict[int, Any] = {}

    def work(i: int) -> None:
        with lw.options(schedule="none" if i % 2 else "heuristic"):
            mine = lw.asarray(np.full(10 + i % 3, i, np.float64), device="cpu")
            results[i] = (float(lw.sum(mine * 3.0).item()), sums.numpy().copy())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i in range(12):
        assert results[i][0] == 3.0 * i * (10 + i % 3)
        np.testing.assert_allclose(results[i][1], (data(50, 40) * 2).sum(axis=1), rtol=1e-4)


def test_one_compile_for_equal_kernels() -> None:
    """Forty equal steps are one built kernel."""
    u = array(16, 16)
    for _ in range(40):
        inner = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25
        rows = lw.concat([u[1:-1, :1], inner, u[1:-1, -1:]], axis=1)
        u = lw.concat([u[:1], rows, u[-1:]], axis=0)
    assert len(lw.kernels(u)) == 1
    want = data(16, 16)
    for _ in range(40):
        new = want.copy()
        around = want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:]
        new[1:-1, 1:-1] = around * np.float32(0.25)
        want = new
    np.testing.assert_array_equal(u.numpy(), want)


def test_wrong_arguments() -> None:
    """What is no array, and devices that are not there, are clear errors."""
    with pytest.raises(TypeError, match="not ndarray"):
        lw.evaluate(np.zeros(3))
    with pytest.raises(DeviceError, match="no device 'nowhere'"):
        lw.kernels(array(3) + 1.0, device="nowhere")


def test_failures_name_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error at evaluation says from which line of the user's code it was asked for."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise LoopwrightError("planted")

    monkeypatch.setattr(pipeline, "build", refuse)
    y = array(3) + 1.0
    with pytest.raises(LoopwrightError, match="planted") as caught:
        y.numpy()
    (note,) = caught.value.__notes__
    assert Path(__file__).name in note
    assert Path(__file__).name in users_line()
    assert y._uop.op is not Op.BUFFER


def test_opts_for_one_kernel_are_refused_for_several() -> None:
    """A plain list of opts with two different kernels asks which one is meant."""
    x = array(12, 16)
    y = lw.exp(x) - lw.sum(lw.exp(x), axis=0)
    with lw.options(opts=["VECTOR j 4"]), pytest.raises(ArgumentError, match="2 different kernels"):
        y.numpy()
    names = [k.name for k in lw.kernels(y)]
    with lw.options(opts={names[1]: ["UPCAST i 4"]}):
        assert lw.kernels(y)[1].opts == ("UPCAST i 4",)
        y.numpy()
    want = np.exp(data(12, 16).astype(np.float64))
    np.testing.assert_allclose(y.numpy(), want - want.sum(axis=0), rtol=1e-4, atol=1e-4)


def test_lines_typed_at_a_prompt_are_the_users() -> None:
    """A prompt's code has no file, and is named all the same; what decorators write is not."""
    from loopwright import callers

    found: dict[str, str] = {}
    for name in ("<stdin>", "<ipython-input-1-abc>", "<string>"):
        space = {"users_line": callers.users_line, "__name__": "elsewhere"}
        exec(compile("\n\nline = users_line()", name, "exec"), space)
        found[name] = str(space["line"])
    assert found.pop("<string>").startswith(__file__)
    assert list(found.values()) == [f"{name}:3" for name in found]
