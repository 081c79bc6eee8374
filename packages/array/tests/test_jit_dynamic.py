"""`lw.jit(dynamic=)`: compiled once, right at every size, clear where a size would be needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.cache import Cache
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    AxisError,
    DynamicShapeError,
    LoopwrightError,
    ShapeError,
)
from loopwright_core.plugin.loader import registry

N = lw.Variable("n", 1, 300)
M = lw.Variable("m", 1, 40)
SIZES = (1, 2, 61, 64, 300)


def whole(*shape: int, seed: int = 0) -> Any:
    """Small whole numbers: their sums are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


WEIGHTS = lw.asarray(whole(12, 5, seed=9))
EXACT: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: lw.where(x > 0, x * 2 + 1, lw.astype(x, lw.int32)),
    "broadcast": lambda x: x - lw.max(x, axis=0) + x[:, 2:3] * lw.ones((x.shape[0], 12)),
    "sums": lambda x: lw.sum(x, axis=0) + lw.max(x, axis=0) - lw.min(x),
    "rows": lambda x: lw.sum(x, axis=1),
    "argmax": lambda x: lw.argmax(x, axis=0),
    "argmin": lambda x: lw.argmin(x, axis=1),
    "mean": lambda x: lw.mean(x, axis=0),
    "divided": lambda x: lw.sum(x, axis=0) / x.shape[0],
    "times": lambda x: x.shape[0] * x - x * x.shape[0],
    "product rows": lambda x: x @ WEIGHTS,
    "product inner": lambda x: x.T @ x,
    "product both": lambda x: x @ x.T,
    "einsum": lambda x: lw.einsum("ij,ik->jk", x, x),
    "transpose": lambda x: x.T + 1,
    "reshape": lambda x: lw.reshape(x + 1, (x.shape[0], -1, 3)),
    "reshape first": lambda x: lw.reshape(x, (-1, 4, 3)) * 2,
    "slices": lambda x: x[:, 1:9:2] + x[: x.shape[0], ::-1][:, :4],
    "outer": lambda x: lw.expand_dims(x[:, 0], axis=1) * x[None, :, 1],
    "flip": lambda x: lw.flip(x, axis=0),
    "running": lambda x: lw.cumulative_sum(x, axis=0) + lw.cumulative_sum(x, axis=1),
    "concat": lambda x: lw.concat([x, x + 1], axis=1),
    "pad": lambda x: lw.pad(x, ((0, 0), (1, 2))),
    "take": lambda x: lw.take(x, lw.asarray([0, 3, -1]), axis=1),
    "two kernels": lambda x: lw.cumulative_sum(x @ WEIGHTS, axis=0) * 2,
}
CLOSE: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda x: lw.softmax(x, axis=0) + lw.softmax(x),
    "layer_norm": lambda x: lw.layer_norm(x, axis=0) + lw.layer_norm(x),
    "spread": lambda x: lw.std(x, axis=0) + lw.var(x, correction=0.5),
}
SCHEDULES = pytest.mark.parametrize("schedule", ["none", None])


def compare(f: Callable[[Any], Any], schedule: str | None, rtol: float) -> None:
    jitted = lw.jit(f, dynamic={"x": {0: N}})
    with lw.options(**({} if schedule is None else {"schedule": schedule})):
        for n in SIZES:
            x = whole(n, 12, seed=n)
            want = f(lw.asarray(x)).numpy()
            guarded = np.full(want.size + 32, 77, want.dtype)
            out = guarded[16:-16].reshape(want.shape)
            assert jitted(x, out=out) is out
            np.testing.assert_allclose(out, want, rtol=rtol, atol=rtol)
            assert (guarded[:16] == 77).all() and (guarded[-16:] == 77).all()
            np.testing.assert_array_equal(jitted(x), out)
            assert jitted(lw.asarray(x)).shape == want.shape
    assert jitted.n_variants == 2  # of NumPy's arrays and of Loopwright's


@SCHEDULES
@pytest.mark.parametrize("name", EXACT)
def test_every_size_gives_the_static_result(name: str, schedule: str | None) -> None:
    """The result of the function itself, and no byte beside it is written."""
    compare(EXACT[name], schedule, 0)


@SCHEDULES
@pytest.mark.parametrize("name", CLOSE)
def test_every_size_gives_the_static_result_but_for_rounding(
    name: str, schedule: str | None
) -> None:
    """As above, where sums round: they may be added in another order."""
    compare(CLOSE[name], schedule, 1e-5)


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda x, w: x + w[0],
    lambda x, w: x - lw.max(x, axis=0),
    lambda x, w: lw.clip(x @ w, -9, 9),
    lambda x, w: lw.flip(x, axis=0),
    lambda x, w: lw.where(x > w[1], x, -x),
    lambda x, w: lw.clip(lw.cumulative_sum(x, axis=0), -9, 9),
    lambda x, w: lw.reshape(lw.reshape(x, (x.shape[0], 2, 4)), (-1, 8)) * 2,
    lambda x, w: lw.concat([x[:, 4:], x[:, :4]], axis=1),
    lambda x, w: lw.clip(x.T @ x, -9, 9)[0] + x,
    lambda x, w: x * lw.expand_dims(lw.sign(lw.sum(x, axis=1)), axis=1),
]


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int) -> None:
    """Operations in any order give at each size what they give without lw.jit."""
    chosen = np.random.default_rng(seed).integers(0, len(OPERATIONS), 4)

    def program(x: Any, w: Any) -> Any:
        for i in chosen:
            x = OPERATIONS[i](x, w)
        return x, lw.sum(x, axis=0)

    jitted = lw.jit(program, dynamic={"x": {0: N}})
    w = whole(8, 8, seed=seed)
    for n in (1, 13, 300):
        x = whole(n, 8, seed=n)
        for got, want in zip(jitted(x, w), program(lw.asarray(x), lw.asarray(w)), strict=True):
            np.testing.assert_array_equal(got, want.numpy())
    assert jitted.n_variants == 1


def test_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sizes are run, each kernel is compiled once."""
    device = registry().device("cpu")
    compiled: list[str] = []
    compile_ = type(device).compile
    monkeypatch.setattr(
        type(device),
        "compile",
        lambda self, source, program: compiled.append(source) or compile_(self, source, program),
    )
    monkeypatch.setattr(Cache, "get", lambda self, kind, key: None)
    once = lw.Variable("once", 1, 123)
    jitted = lw.jit(lambda x: lw.sum(x * 3, axis=1), dynamic={"x": {0: once}})
    for n in (1, 5, 64, 123):
        np.testing.assert_array_equal(jitted(whole(n, 6)), (whole(n, 6) * 3).sum(axis=1))
    assert len(compiled) == 1


def test_several_variables() -> None:
    """Each axis has a Variable of its own; one Variable in two arguments is one size."""
    jitted = lw.jit(lambda x, y: (x @ y, x.T), dynamic={"x": {0: M, -1: N}, "y": {0: N}})
    for m, n in ((1, 1), (1, 300), (40, 1), (3, 17), (40, 300)):
        x, y = whole(m, n), whole(n, 4, seed=1)
        for order in (x, np.asfortranarray(x)):
            product, turned = jitted(order, y)
            np.testing.assert_array_equal(product, x @ y)
            np.testing.assert_array_equal(turned, x.T)
    with pytest.raises(ShapeError, match="axis 0 of y is 6, and n is 5"):
        jitted(whole(2, 5), whole(6, 4))
    with pytest.raises(ShapeError, match="n"):
        lw.jit(lambda x, y: x + y, dynamic={"x": {0: N}, "y": {0: M}})(whole(3), whole(3))
    with pytest.raises(ShapeError, match="n and 3"):
        lw.jit(lambda x, y: x + y, dynamic={"x": {0: N}})(whole(3), whole(3))


def test_donated_memory() -> None:
    """A result takes a donated array's memory only where their sizes are equal at every value."""
    jitted = lw.jit(
        lambda x: (lw.cumulative_sum(x, axis=0), lw.ones((300,))),
        dynamic={"x": {0: N}},
        donate="x",
    )
    for n in (1, 300, 5):
        x = whole(n)
        running, ones = jitted(lw.asarray(x, copy=True))
        np.testing.assert_array_equal(running.numpy(), x.cumsum())
        np.testing.assert_array_equal(ones.numpy(), np.ones(300))


def test_memory_is_of_the_size_of_the_call() -> None:
    """Results and temporaries take what the call needs: bounds may lie beyond any memory."""
    huge = lw.Variable("huge", 1, 1 << 40)
    jitted = lw.jit(
        lambda x, y: lw.cumulative_sum(lw.cumulative_sum(x, axis=0)[:, ::-1], axis=1) * y,
        dynamic={"x": {0: huge}},
    )
    assert len(jitted.captured(whole(3, 5), 0.5).kernels) > 1
    for n in (1, 3, 50):
        x = whole(n, 5)
        want = x.cumsum(axis=0)[:, ::-1].cumsum(axis=1) * 0.5
        np.testing.assert_array_equal(jitted(x, 0.5), want)


def test_methods_and_sizes_of_traced_arrays() -> None:
    """Shapes are used as users write them; counts of elements are products."""

    def f(x: Any) -> Any:
        assert x.ndim == 2 and x.size == x.shape[0] * 12 and x.size // x.shape[0] == 12
        assert x.shape[0] == x.shape[0] and x.shape[0] >= 1 and not x.shape[0] > 300
        assert x.shape != (301, 12) and str(x.shape) == "(n, 12)"
        x += 1
        return x.reshape(x.shape[0], -1, 6)

    jitted = lw.jit(f, dynamic={"x": {0: N}})
    for n in (1, 9):
        np.testing.assert_array_equal(jitted(whole(n, 12)), (whole(n, 12) + 1).reshape(n, 2, 6))


REFUSED: dict[str, Callable[[Any], Any]] = {
    "merge": lambda x: lw.reshape(x, (-1,)),
    "split": lambda x: lw.reshape(x, (2, -1, 12)),
    "slice": lambda x: x[1:],
    "step": lambda x: x[::2],
    "first": lambda x: x[0],
    "last": lambda x: x[-1],
    "pad": lambda x: lw.pad(x, ((1, 0), (0, 0))),
    "concat": lambda x: lw.concat([x, x]),
    "arange": lambda x: lw.arange(x.shape[0]),
    "range": lambda x: x + sum(range(x.shape[0])),
    "if": lambda x: x if x.shape[0] == 7 else x + 1,
    "more": lambda x: x if x.shape[0] > 7 else x + 1,
    "length": lambda x: x * len(x),
    "rows": lambda x: sum(row for row in x),
    "plus": lambda x: lw.zeros((x.shape[0] + 1, 2)),
    "roll": lambda x: lw.roll(x, 1, axis=0),
    "repeat": lambda x: lw.repeat(x, 2, axis=0),
    "unstack": lambda x: lw.unstack(x),
    "diff": lambda x: lw.diff(x, axis=0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_size_is_refused(name: str) -> None:
    """It raises DynamicShapeError, and Python says at which line of the function."""
    with pytest.raises(DynamicShapeError) as caught:
        lw.jit(REFUSED[name], dynamic={"x": {0: N}})(whole(7, 12))
    assert "n" in str(caught.value)
    assert any(entry.path.name == "test_jit_dynamic.py" for entry in caught.traceback[1:])


def calls_of(f: Callable[..., Any]) -> list[Callable[[Any], Any]]:
    return [lambda x: f(x), lambda x: f(x, x), lambda x: f(x, axis=0)]


def test_every_function_is_right_or_says_why_not() -> None:
    """No function of the namespace fails otherwise than by an error of ours, or gives another
    result than without dynamic=."""
    apart = {"jit", "evaluate", "kernels", "options", "devices", "empty_like"}
    x, n_right = whole(7, 12) + 6, 0
    for name in sorted(set(lw.__all__) - apart):
        function = getattr(lw, name)
        if not callable(function) or isinstance(function, type):
            continue
        for call in calls_of(function):
            try:
                want = call(lw.asarray(x))
            except Exception:
                continue
            if not isinstance(want, lw.Array):
                continue
            try:
                got = lw.jit(call, dynamic={"x": {0: N}})(x)
            except LoopwrightError:
                continue
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
            n_right += 1
    assert n_right > 100


def test_sizes_out_of_range_and_wrong_settings() -> None:
    """The argument, its axis and the range are named."""
    few = lw.jit(lambda x, k=1: x + k, dynamic={"x": {0: lw.Variable("few", 2, 8)}})
    for n in (0, 1, 9):
        with pytest.raises(ShapeError, match=f"axis 0 of x is {n}, and few goes from 2 to 8"):
            few(whole(n))
    np.testing.assert_array_equal(few(whole(2)), whole(2) + 1)
    np.testing.assert_array_equal(few(whole(8)), whole(8) + 1)
    with pytest.raises(AxisError, match="x has 0 axes"):
        few(np.float32(1))
    with pytest.raises(ArgumentTypeError, match="x has dynamic axes and is no array"):
        few([whole(3)])
    for wrong, message in (
        ({"z": {0: N}}, "no parameter 'z'"),
        ({"x": {0: lw.Variable("n", 5, 2)}}, "range"),
        ({"x": {0: lw.Variable("n", 0, 2)}}, "range"),
        ({"x": {0: lw.Variable("a b", 1, 2)}}, "identifier"),
        ({"x": {0: N, 1: lw.Variable("n", 1, 2)}}, "two Variables"),
    ):
        with pytest.raises(ArgumentError, match=message):
            lw.jit(lambda x: x, dynamic=wrong)
    for odd in ({"x": N}, {"x": {0: 5}}, {"x": {"a": N}}, 3):
        with pytest.raises(ArgumentTypeError, match="does not say"):
            lw.jit(lambda x: x, dynamic=odd)  # type: ignore[arg-type]
