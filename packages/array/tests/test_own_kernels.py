"""lw.kernel: functions written by hand, as values of the lazy graph."""

from __future__ import annotations

import pickle
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
    text = COUNT.replace("count", "count_once")  # a library of its own
    y = lw.kernel(text, [], ((), lw.int64))
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
    """The result is an input like any array."""
    f = lw.jit(lambda x: x + 1.0)
    np.testing.assert_array_equal(np.asarray(f(twice(X))), 2 * X + 1)


BOTH = """
void both(const float *a, const float *b, float *sum, float *product) {
    for (int i = 0; i < 12; i++) { sum[i] = a[i] + b[i]; product[i] = a[i] * b[i]; }
}
"""


def both(a: Any, b: Any) -> Any:
    return lw.kernel(BOTH, [a, b], [((3, 4), lw.float32), ((12,), lw.float32)])


def chain(x: Any, y: Any) -> Any:
    """Generated and hand-written kernels in turn; an output of each kind, and one never read."""
    total, product = both(lw.exp(x * 0.1), y)
    turned = lw.permute_dims(total, (1, 0)) + 1.0
    first, _ = both(lw.reshape(turned, (12,)), twice(product))
    return first * 2.0, product, lw.sum(total)


def test_it_is_a_launch_of_a_jitted_function() -> None:
    """Within a trace it runs between generated kernels, once a call, over the call's own arrays."""
    f = lw.jit(chain)
    for seed in range(3):
        x, y = np.random.default_rng(seed).standard_normal((2, 12)).astype(np.float32)
        for got, want in zip(f(x, y), chain(lw.asarray(x), lw.asarray(y)), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want.numpy())
    names = [k.name for k in f.kernels(X, X)]
    assert names.count("both") == 1 and names.count("twice") == 1


def test_a_jitted_function_of_nothing_else() -> None:
    """Its arguments may go straight in, and its results out; a result may be an argument too."""
    f = lw.jit(lambda a, b: (both(a, b), a))
    (total, product), same = f(X, X)
    np.testing.assert_array_equal(total, (X + X).reshape(3, 4))
    np.testing.assert_array_equal(product, X * X)
    np.testing.assert_array_equal(same, X)
    out = np.empty(12, np.float32)
    g = lw.jit(twice)
    g(X, out=out)
    np.testing.assert_array_equal(out, 2 * X)
    h = lw.jit(lambda x: twice(x) + 1.0, donate=("x",))
    np.testing.assert_array_equal(h(lw.asarray(X, copy=True)).numpy(), 2 * X + 1)


def test_each_call_of_a_jitted_function_runs_it() -> None:
    """A kernel without inputs runs once a call, not once for all."""
    f = lw.jit(lambda x: lw.kernel(COUNT, [], ((), lw.int64)) + x)
    assert [int(f(np.int64(10))) for _ in range(3)] == [11, 12, 13]


def test_what_a_trace_knows_of_it() -> None:
    """Results have no values in a trace and none after it; what closes over an earlier result
    reads that; an unused call is left out; an empty input has no elements."""
    with pytest.raises(TraceError, match="are not known yet"):
        lw.jit(lambda x: float(twice(x)[0]))(X)
    kept: list[Any] = []
    lw.jit(lambda x: kept.append(twice(x)) or x + 1.0)(X)
    with pytest.raises(TraceError, match="made while"):
        kept[0].numpy()
    before = twice(X)
    np.testing.assert_array_equal(np.asarray(lw.jit(lambda x: twice(before) + x)(X)), 5 * X)
    assert "twice" not in [k.name for k in lw.jit(lambda x: (twice(x), x + 1.0)[1]).kernels(X)]
    text = "void f(const float *none, const float *a, float *b) { b[0] = a[0]; }"
    g = lw.jit(lambda e, x: lw.kernel(text, [e, x], ((1,), lw.float32)))
    assert float(np.asarray(g(np.zeros((0, 3), np.float32), X + 5))[0]) == 5.0


def test_dynamic_axes_are_refused() -> None:
    """A text has fixed sizes."""
    n = lw.Variable("n", 1, 99)
    with pytest.raises(LoopwrightError, match="input 0 has an axis of varying size"):
        lw.jit(lambda x: twice(x), dynamic={"x": {0: n}})(X)


def test_jitted_from_several_threads() -> None:
    """Two threads call one function with hand-written kernels; each gets its own results."""
    f = lw.jit(chain)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x, y = np.random.default_rng(seed).standard_normal((2, 12)).astype(np.float32)
        want = [np.asarray(v) for v in chain(lw.asarray(x), lw.asarray(y))]
        for _ in range(50):
            got = f(x, y)
            if any(not np.array_equal(a, b) for a, b in zip(got, want, strict=True)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_it_is_listed_among_kernels() -> None:
    """`lw.kernels` shows it where it runs, with its text and its launch, until it has run."""
    y = twice(lw.exp(lw.asarray(X))) + 1.0
    views = lw.kernels(y)
    assert [v.name == "twice" for v in views] == [False, True, False]
    own = views[1]
    assert (own.source, own.opts, own.describe()) == (TWICE, (), "twice (hand-written)")
    assert own.launch[0].threads == 1 and own.estimate.bytes == 96
    assert own.explain() == ("its text is hand-written",) and own.compile()
    y.numpy()
    assert lw.kernels(y) == []
    z = both(twice(X), twice(twice(X)))[1]
    assert [v.name for v in lw.kernels(z)] == ["twice", "both"]


def test_inputs_are_values() -> None:
    """What an input is bound to after the call is no input of it, in a trace neither."""

    def f(x: Any) -> Any:
        x = x + 1.0
        y = twice(x)
        x[0] = 100.0
        z = twice(x)
        x += 1.0
        return y, z

    want = 2 * (X + 1)
    for y, z in (f(lw.asarray(X)), lw.jit(f)(lw.asarray(X))):
        np.testing.assert_array_equal(y.numpy(), want)
        np.testing.assert_array_equal(z.numpy(), [200, *want[1:]])


def test_equal_texts_are_loaded_once() -> None:
    """A text used again and again is one library, whose variables last."""
    text = "static int n = 5;\nvoid again(int *out) { out[0] = ++n; }"
    found = [int(lw.kernel(text, [], ((), lw.int32))) for _ in range(3)]  # type: ignore[arg-type]
    assert found == [6, 7, 8]


def test_opts_are_not_for_it() -> None:
    """A schedule given by its name is refused as for any name that no kernel has."""
    f = lw.jit(lambda x: twice(x) + 1.0)
    refused = pytest.raises(ArgumentError, match="twice, and no kernel here has that name")
    with refused, lw.options(opts={"twice": ["UPCAST i 4"]}):
        f(X)


@lw.jit
def jitted_twice(x: Any) -> Any:
    return twice(x + 1.0)


def test_its_jitted_function_is_pickled() -> None:
    """By name, as functions are; its results are pickled as values."""
    again = pickle.loads(pickle.dumps(jitted_twice))
    np.testing.assert_array_equal(again(X), 2 * (X + 1))
    found = pickle.loads(pickle.dumps(again(lw.asarray(X))))
    np.testing.assert_array_equal(found.numpy(), 2 * (X + 1))


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
