"""`lw.jit`: calls like an earlier one go in one step, and give what all others give."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.jit import Jitted
from loopwright_core.errors import ArgumentError

X = np.arange(6, dtype=np.float32)
Y = X[::-1].copy()
TWICE = "void twice(const float *a, float *b) { for (int i = 0; i < 6; i++) b[i] = 2 * a[i]; }"


def own(values: Any = X) -> lw.Array:
    return lw.asarray(np.array(values), device="cpu")


@pytest.fixture
def n_slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many calls were taken apart since it was asked last."""
    seen: list[int] = []
    before = Jitted._call

    def counted(self: Jitted, *args: Any) -> Any:
        seen.append(1)
        return before(self, *args)

    def count() -> int:
        found = len(seen)
        seen.clear()
        return found

    monkeypatch.setattr(Jitted, "_call", counted)
    return count


CALLS: dict[
    str, tuple[Callable[..., Any], Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]]
] = {
    "numpy": (lambda x, y: x + y, lambda: ((X, Y), {})),
    "arrays": (lambda x, y: x - y, lambda: ((own(), own(Y)), {})),
    "both": (lambda x, y: x - y, lambda: ((own(), Y), {})),
    "computed": (lambda x: x * 3, lambda: ((_computed(),), {})),
    "hand-written": (lambda x: x * 3, lambda: ((lw.kernel(TWICE, [X], ((6,), lw.float32)),), {})),
    "number": (lambda x, s: x * s, lambda: ((X, 0.5), {})),
    "integer": (lambda x, n: x[n:], lambda: ((X, 2), {})),
    "text": (lambda x, how: x + len(how), lambda: ((X, "abc"), {})),
    "keywords": (lambda x, y=None, s=1.0: (x - y) * s, lambda: ((X,), {"y": Y, "s": 2.0})),
    "containers": (
        lambda t, u: {"a": t["p"][0] - t["q"], "b": u[1] * 2},
        lambda: (({"p": (X, 3.0), "q": Y}, [None, own()]), {}),
    ),
    "results": (lambda x: [x + 1, x + 2], lambda: ((X,), {})),
    "nested results": (lambda x: ((x + 1,), {"k": [x + 2, 3.5]}), lambda: ((own(),), {})),
    "scratch": (lambda x: lw.cumulative_sum(lw.cumulative_sum(x)[::-1]), lambda: ((own(),), {})),
}


def _computed() -> lw.Array:
    x = own() + 1
    lw.evaluate(x)
    return x


def leaves(value: Any) -> Any:
    """The same containers around NumPy's arrays, each with its type."""
    if isinstance(value, (lw.Array, np.ndarray)):
        return type(value).__name__, np.asarray(value).tolist()
    if isinstance(value, dict):
        return {k: leaves(v) for k, v in value.items()}
    return type(value)(map(leaves, value)) if isinstance(value, (tuple, list)) else value


@pytest.mark.parametrize("name", CALLS)
def test_later_calls_go_in_one_step(name: str, n_slow: Callable[[], int]) -> None:
    """The second call like it is not taken apart any more, and its result is the same, in memory of
    its own."""
    f, make = CALLS[name]
    jitted = lw.jit(f)
    args, kwargs = make()
    want = leaves(jitted(*args, **kwargs))
    assert n_slow() == 1
    found = []
    for _ in range(3):
        args, kwargs = make()
        found.append(jitted(*args, **kwargs))
    assert n_slow() == 0
    for got in found:
        assert leaves(got) == want


def test_out_goes_in_one_step(n_slow: Callable[[], int]) -> None:
    """Where NumPy's arrays are given that fit and share no memory."""
    f = lw.jit(lambda x, y: (x + y, x - y))
    for make in (lambda a: a.copy(), own):
        out = (np.empty(6, np.float32), np.empty(6, np.float32))
        f(make(X), make(Y), out=out)
        n_slow()
        for kind in (tuple, list):
            given = kind([np.zeros(6, np.float32) for _ in range(2)])
            assert f(make(X), make(Y), out=given) is given
            assert [a.tolist() for a in given] == [(X + Y).tolist(), (X - Y).tolist()]
        assert n_slow() == 0


def test_out_that_does_not_fit_takes_the_long_way(n_slow: Callable[[], int]) -> None:
    """Other dtypes, strides and shared memory give what they give without an earlier call; what is
    refused is refused, and nothing is written."""
    table = X.copy()
    f = lw.jit(lambda x: (x[::-1] + lw.asarray(table), x * 2))
    f(X, out=(np.empty(6, np.float32), np.empty(6, np.float32)))
    memory = np.zeros(20, np.float32)
    want = (X[::-1] + table, X * 2)
    odd: list[Callable[[], tuple[Any, Any]]] = [
        lambda: (memory[:12:2], memory[13:19]),
        lambda: (np.zeros(6, ">f4"), memory[:6]),
        lambda: (own(), memory[:6]),
        lambda: (table, memory[:6]),
    ]
    for make in odd:
        n_slow()
        out = make()
        f(X, out=out)
        assert n_slow() == 1
        for got, wanted in zip(out, want, strict=True):
            np.testing.assert_array_equal(np.asarray(got), wanted)
        table[:] = X
    given = X.copy()
    f(given, out=(given, memory[:6]))
    np.testing.assert_array_equal(given, want[0])
    out = memory[0:6], memory[3:9]  # the later one is written last
    f(X, out=out)
    np.testing.assert_array_equal(memory[:9], [*want[0][:3], *want[1]])
    memory[:] = 7
    memory.flags.writeable = False
    with pytest.raises(ArgumentError, match="read-only"):
        f(X, out=(memory[:6], memory[6:12]))
    for bad in (np.zeros(6, np.float32), (np.zeros(6, np.float32),), 3, (np.zeros(6), X.copy())):
        with pytest.raises((ArgumentError, TypeError)):
            f(X, out=bad)
    assert (memory == 7).all()


def test_other_values_are_other_calls() -> None:
    """Numbers, texts, keys, and kinds of containers that differ are told apart, zeros by sign."""
    f = lw.jit(lambda x, s: lw.copysign(x, s) if isinstance(s, float) else x + s)
    for s in (0.5, -0.5, 0.0, -0.0, 1, True, 2, np.float32(3), float("nan")):
        for _ in range(2):
            want = np.copysign(X, np.float32(s)) if isinstance(s, float) else X + s
            np.testing.assert_array_equal(np.asarray(f(X, s)), want)
    g = lw.jit(lambda t: t["a"] - t["b"])
    trees: list[Any] = [{"a": X, "b": Y}, {"b": Y, "a": X}, OrderedDict(a=X, b=Y)]
    trees += [{"a": own(), "b": Y}, {"a": X, "b": Y, "c": X}, {"a": X, "b": 2.0}]
    for _ in range(2):
        for tree in trees:
            np.testing.assert_array_equal(np.asarray(g(tree)), np.asarray(tree["a"] - tree["b"]))
    h = lw.jit(lambda t: len(t) * t[0] if isinstance(t, list) else t[0])
    for _ in range(2):
        for given in ([X, Y], (X, Y), [X], (X,), [X, Y, Y]):
            np.testing.assert_array_equal(
                h(given), len(given) * X if isinstance(given, list) else X
            )
    k = lw.jit(lambda x, y=0.0: x - y)
    for _ in range(2):
        np.testing.assert_array_equal(k(x=X, y=Y), X - Y)
        np.testing.assert_array_equal(k(y=Y, x=X), X - Y)
        np.testing.assert_array_equal(k(X, Y), X - Y)
        np.testing.assert_array_equal(k(X), X)


def test_arrays_that_are_not_there() -> None:
    """Donated ones are refused, permuted and lazy ones computed, after calls in one step too."""
    f = lw.jit(lambda x: x + 1)
    step = lw.jit(lambda x: x * 2, donate=0)
    square = X.reshape(2, 3)
    for _ in range(2):
        np.testing.assert_array_equal(f(own(square)).numpy(), square + 1)
        np.testing.assert_array_equal(f(own(square) * 2).numpy(), square * 2 + 1)
        turned = lw.permute_dims(own(square.T), (1, 0))
        np.testing.assert_array_equal(f(turned).numpy(), square + 1)
    turned = own(X[:4].reshape(2, 2)).T  # of the shape that its memory has
    other = own(X[:4].reshape(2, 2))
    for _ in range(2):
        np.testing.assert_array_equal(f(turned).numpy(), turned.numpy() + 1)
        np.testing.assert_array_equal(f(other).numpy(), other.numpy() + 1)
    x = f(own(square))
    np.testing.assert_array_equal(step(x).numpy(), (square + 1) * 2)
    with pytest.raises(ArgumentError, match="donated"):
        f(x)


def test_results_are_values() -> None:
    """A result that is written to, or whose argument is, changes no other array."""
    f = lw.jit(lambda x: x + 1)
    f(own())
    x = own()
    y = f(x)
    z = f(y)
    y[0] = 100
    x[1] = 50
    np.testing.assert_array_equal(z.numpy(), X + 2)
    np.testing.assert_array_equal(y.numpy(), [100, *(X + 1)[1:]])
