"""lw.kernel: functions written by hand, as values of the lazy graph."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    CompileError,
    LoopwrightError,
    TraceError,
)

X = np.arange(12, dtype=np.float32)
TWICE = """
void twice(const float *restrict a, float *restrict b) {
    for (int i = 0; i < 12; i++) b[i] = 2.0f * a[i];
}
"""


def twice(x: Any) -> Any:
    return lw.kernel(TWICE, [x], ((12,), lw.float32))


def test_it_stands_among_other_kernels() -> None:
    """Its inputs may be lazy, and its results are operands like all others."""
    y = twice(lw.asarray(X) + 1.0)
    np.testing.assert_array_equal((lw.sqrt(y) + y[::-1]).numpy(), _after(2 * (X + 1)))
    np.testing.assert_array_equal(y.numpy(), 2 * (X + 1))
    np.testing.assert_array_equal(lw.reshape(twice(X), (3, 4)).numpy(), (2 * X).reshape(3, 4))


def _after(y: Any) -> Any:
    return np.sqrt(y) + y[::-1]


COUNT = """
static int n = 0;
void count(long long *out) { out[0] = ++n; }
"""


def test_it_runs_once_and_only_when_needed() -> None:
    """However often a result is used, by however many threads, the function is called once."""
    y = lw.kernel(COUNT, [], ((), lw.int64))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(int(y + 0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1, 1, 1, 1]
    assert int(y) == 1


def test_several_results_and_threads() -> None:
    """A list or a tuple of outputs gives a tuple; each thread is told its number."""
    text = """
    void parts(const double *a, double *b, unsigned char *c, int thread) {
        for (int i = thread * 3; i < thread * 3 + 3; i++) { b[i] = a[i] + 1; c[i] = thread; }
    }
    """
    given = lw.asarray(np.arange(6.0))
    outputs: list[Any] = [((6,), lw.float64), ((2, 3), lw.uint8)]
    for several in (outputs, tuple(outputs)):
        found: Any = lw.kernel(text, [given], several, 2)
        b, c = found
        np.testing.assert_array_equal(b.numpy(), np.arange(6.0) + 1)
        np.testing.assert_array_equal(c.numpy(), [[0] * 3, [1] * 3])


def test_a_jitted_function_takes_its_results() -> None:
    """The result is an input like any array; within a trace a kernel is refused at the user's
    line."""
    f = lw.jit(lambda x: x + 1.0)
    np.testing.assert_array_equal(np.asarray(f(twice(X))), 2 * X + 1)
    with pytest.raises(TraceError, match="runs by itself and is not traced"):
        lw.jit(lambda x: twice(x))(lw.asarray(X))


def test_the_compilers_message_has_the_users_lines() -> None:
    """What the compiler refuses is told with the line in the text that was given."""
    text = "void f(const float *a, float *b) {\n\n    b[0] = nobody;\n}\n"
    with pytest.raises(CompileError, match=r"f:3:\d+: error: .nobody. undeclared"):
        lw.kernel(text, [X], ((1,), lw.float32)).numpy()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("void f(const double *a, float *b) {}", ArgumentTypeError, r"takes 'const double \*a'"),
        ("void f(const long *a, float *b) {}", ArgumentTypeError, r"takes 'const long \*a'"),
        ("void f(const size_t *a, float *b) {}", ArgumentTypeError, r"takes 'const size_t \*a'"),
        ("void f(const float *a) {}", ArgumentError, "1 pointers for 2 arrays"),
        ("int f;", ArgumentError, "no function void NAME"),
        (
            "void f(float *a, float *b) {}\nvoid g(void) {}",
            ArgumentError,
            "several functions: f, g",
        ),
    ],
)
def test_texts_that_do_not_fit(text: str, kind: type[LoopwrightError], message: str) -> None:
    """Pointers that are not the arrays', and functions that cannot be told, are named at once."""
    with pytest.raises(kind, match=message):
        lw.kernel(text, [X], ((12,), lw.float32))


def test_comments_are_no_code() -> None:
    """Functions and commas within comments of the text are not looked at."""
    text = """
/*
void old(float *x) {}
*/
void f(const float *a /* read, 12 of them */, float *b) { b[0] = a[1]; } // void g(
"""
    y = lw.kernel(text, [X], ((1,), lw.float32))
    np.testing.assert_array_equal(y.numpy(), X[1:2])  # type: ignore[union-attr]


def test_arguments_that_are_none() -> None:
    """Sources, inputs, outputs and launches of other kinds are refused."""
    for arguments in (
        (4, [X], ((12,), lw.float32)),
        (TWICE, lw.asarray(X), ((12,), lw.float32)),
        (TWICE, [X], [4]),
        (TWICE, [X], 4),
        (TWICE, [X], "f32"),
    ):
        with pytest.raises(ArgumentTypeError):
            lw.kernel(*arguments)  # type: ignore[arg-type]
    for launch in (0, -1, True, ((4,), (256,))):
        with pytest.raises(ArgumentError, match="number of threads"):
            lw.kernel(TWICE, [X], ((12,), lw.float32), launch)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="no function void other"):
        lw.kernel(TWICE, [X], ((12,), lw.float32), name="other")
    with pytest.raises(ArgumentError, match="at least one output"):
        lw.kernel(TWICE, [X], [])
