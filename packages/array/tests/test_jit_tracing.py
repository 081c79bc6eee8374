"""Tracing: values that are asked for, arrays that leak, errors that leave nothing broken."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.tracing import is_tracing
from loopwright_core.errors import ArgumentTypeError, ShapeError, TraceError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def asks_bool(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def asks_and(x: Any) -> Any:
    return (x[0, 0] > 0) and (x[0, 0] < 3)


def asks_index(x: Any) -> Any:
    return [1, 2, 3][lw.astype(x[0, 0], lw.int64)]


def asks_iteration(x: Any) -> Any:
    return [1 for _ in range(int(x[0, 0]))]


ASKS: list[tuple[Callable[[Any], Any], str, str]] = [
    (asks_bool, r"bool\(x\)", "lw.where"),
    (asks_and, r"bool\(x\)", "lw.where"),
    (asks_index, "x as an index", "static="),
    (asks_iteration, r"int\(x\)", "static="),
    (lambda x: float(x[0, 0]), r"float\(x\)", "static="),
    (lambda x: x[0, 0].item(), r"x\.item\(\)", "static="),
    (lambda x: x.tolist(), r"x\.tolist\(\)", "static="),
    (lambda x: x + np.asarray(x), r"np\.asarray\(x\)", "function of the same name in lw"),
    (lambda x: np.linalg.inv(x @ x.T), "a NumPy function of x", "outside of lw.jit"),
    (lambda x: x.numpy(), r"x\.numpy\(\)", "outside of lw.jit"),
    (lambda x: np.array([x[0, 0], 1]), r"np\.asarray\(x\)", "outside of lw.jit"),
    (lambda x: x[x > 1], r"x\[mask\]", "lw.where"),
    (lambda x: lw.nonzero(x), r"nonzero\(\.\.\.\)", "outside of lw.jit"),
    (lambda x: lw.unique_values(x), r"unique_values\(\.\.\.\)", "outside of lw.jit"),
    (lambda x: 3 in x, "value in x", "outside"),
    (lambda x: pickle.dumps(x), "a pickle of x", "outside"),
    (lambda x: np.from_dlpack(x), r"np\.from_dlpack\(x\)", "outside"),
    (lambda x: f"{x[0, 0]:.3f}", r"format\(x\)", "outside of lw.jit"),
]


@pytest.mark.parametrize("n", range(len(ASKS)))
def test_what_needs_values_names_the_users_line(n: int) -> None:
    """What was asked for, where in the function, in which function, and what to do instead."""
    f, asked, fix = ASKS[n]
    first = f.__code__.co_firstlineno
    last = first + len(inspect.getsource(f).splitlines()) - 1
    with pytest.raises(TraceError, match=asked) as caught:
        lw.jit(f)(X)
    text = str(caught.value)
    assert fix in text
    assert f.__name__ in text
    lines = [line for line in range(first, last + 1) if f"{__file__}:{line})" in text]
    assert lines, text
    note = caught.value.__notes__[-1]
    assert "while lw.jit traced" in note
    assert "x: float32[2, 3]" in note
    assert not is_tracing()


def test_printing_while_tracing_shows_the_kind() -> None:
    """`print(x)` and `repr(x)` work on arrays without values."""
    seen: list[str] = []

    @lw.jit
    def f(x: Any) -> Any:
        seen.extend([str(x), repr(x), f"{x}", str(x + 1)])
        return x

    f(X)
    assert all("shape (2, 3)" in text and "float32" in text for text in seen)


def test_known_values_are_known() -> None:
    """Shapes, dtypes, iteration along an axis and arrays not made of inputs work as ever."""

    @lw.jit
    def f(x: Any) -> Any:
        n = int(lw.asarray([2])[0])
        rows = [row * i for i, row in enumerate(x)]
        assert x.shape == (2, 3)
        assert bool(lw.all(lw.asarray([True])))
        y = copy.copy(x)
        y[0] = 7
        lw.evaluate(y)  # nothing to do yet
        return sum(rows) * n + y[0], y

    got, y = f(X)
    np.testing.assert_array_equal(got, X[1] * 2 + 7)
    np.testing.assert_array_equal(y[1], X[1])
    assert X[0, 1] == 1  # assignments are to the function's own array


def test_leaks_are_told() -> None:
    """A traced array kept outside is refused by the function's name, in any later use."""
    kept: list[lw.Array] = []

    @lw.jit
    def leaky(x: Any) -> Any:
        kept.extend([x, x + 1])
        return x * 2

    np.testing.assert_array_equal(leaky(X), X * 2)
    for array in kept:
        for use in (
            array.numpy,
            lambda array=array: bool(array[0, 0]),
            lambda array=array: (array * 2).numpy(),
            lambda array=array: lw.jit(lambda x: x + array)(X),
            lambda array=array: lw.jit(lambda x: x)(array),
        ):
            with pytest.raises(TraceError, match=r"made while leaky was traced.*return it"):
                use()
    np.testing.assert_array_equal(leaky(X), X * 2)


def test_errors_leave_nothing_broken() -> None:
    """An error of the function passes through, and the next call is traced as if there was none."""
    fails = [True]

    @lw.jit
    def f(x: Any) -> Any:
        if fails[0]:
            raise KeyError("mine")
        return x + 1

    with pytest.raises(KeyError, match="mine"):
        f(X)
    assert not is_tracing()
    assert f.n_variants == 0
    with pytest.raises(ShapeError, match=r"\(2, 3\)"):
        lw.jit(lambda x: x @ x)(X)
    fails[0] = False
    np.testing.assert_array_equal(f(X), X + 1)
    with pytest.raises(ArgumentTypeError, match="dynamic"):
        lw.jit(lambda x: x, dynamic={"x": {0: 1}})


def test_calls_within_a_trace() -> None:
    """`kernels` of a call cannot be asked for while tracing; out= takes arrays that are traced."""
    inner = lw.jit(lambda x: x * 2)

    @lw.jit
    def asks(x: Any) -> Any:
        return inner.kernels(x)

    with pytest.raises(TraceError, match="while another one is traced"):
        asks(X)

    @lw.jit
    def writes(x: Any) -> Any:
        y = lw.zeros_like(x)
        inner(x, out=y)
        return y + 1

    np.testing.assert_array_equal(writes(X), X * 2 + 1)
    with pytest.raises(TraceError, match="out= takes a Loopwright array"):
        lw.jit(lambda x: inner(x, out=np.zeros((2, 3), np.float32)))(X)


def test_a_function_traces_itself_only_when_it_must() -> None:
    """The Python code runs once for each kind of arguments."""
    n = [0]

    @lw.jit
    def f(x: Any, k: int) -> Any:
        n[0] += 1
        return f(x, k - 1) + 1 if k else x

    np.testing.assert_array_equal(f(X, 3), X + 3)
    assert n[0] == 4
    f(X + 1, 3)
    assert n[0] == 4
