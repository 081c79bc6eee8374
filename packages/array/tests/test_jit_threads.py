"""`lw.jit` from several threads, and in processes forked after it was used."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest

import loopwright as lw

# LOOPWRIGHT_LONG=1: a minute of two threads.
SECONDS = 60.0 if os.environ.get("LOOPWRIGHT_LONG") else 3.0


def run_all(works: list[Any]) -> None:
    """Each in a thread of its own; the first error is raised here."""
    errors: list[BaseException] = []

    def guarded(work: Any) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=SECONDS + 120)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_threads_trace_one_function_once() -> None:
    """Threads that come first at once get one variant, each its own results."""
    n = [0]

    @lw.jit
    def f(x: Any) -> Any:
        n[0] += 1
        time.sleep(0.05)
        return lw.cumulative_sum(x * 2, axis=0), x[::-1] + 1

    barrier = threading.Barrier(4)

    def work(k: int) -> None:
        x = np.arange(50) + k
        barrier.wait()
        for _ in range(50):
            one, two = f(x)
            np.testing.assert_array_equal(one, np.cumsum(x * 2))
            np.testing.assert_array_equal(two, x[::-1] + 1)

    run_all([lambda k=k: work(k) for k in range(4)])
    assert n[0] == 1
    assert f.n_variants == 1


def test_a_trace_is_its_threads_own() -> None:
    """While one thread traces, calls of another are calls, not parts of the trace."""
    inside, go_on = threading.Event(), threading.Event()
    other = lw.jit(lambda x: x + 1)

    @lw.jit
    def slow(x: Any) -> Any:
        inside.set()
        assert go_on.wait(30)
        return x * 3

    def second() -> None:
        assert inside.wait(30)
        assert type(other(np.ones(3))) is np.ndarray
        assert float(lw.asarray([2.0])[0]) == 2.0
        go_on.set()

    run_all([lambda: slow(np.ones(3)), second])
    assert other.n_variants == 1


@pytest.mark.filterwarnings("ignore::loopwright.jit.variants.RetraceWarning")
def test_threads_evaluate_and_jit_at_once() -> None:
    """Two threads that trace, call and evaluate for seconds get NumPy's values every time."""
    end = time.monotonic() + SECONDS
    shared = lw.jit(lambda x, y: (lw.cumulative_sum(x @ y, axis=1), lw.sum(x, axis=0)))

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = (3, 8, 17, 64)
        n = 0
        while time.monotonic() < end:
            n += 1
            a, b, c = (int(rng.choice(sizes)) for _ in range(3))
            x, y = rng.integers(-9, 9, (a, b)), rng.integers(-9, 9, (b, c))
            wanted = np.cumsum(x @ y, axis=1), x.sum(axis=0)
            given = (x, y) if n % 2 else (lw.asarray(x), y)
            for got, want in zip(shared(*given), wanted, strict=True):
                np.testing.assert_array_equal(np.asarray(got), want)
            lazy = lw.asarray(x) @ lw.asarray(y)
            np.testing.assert_array_equal((lazy * 2 + n % 5).numpy(), x @ y * 2 + n % 5)
            if n % 20 == 0:
                own = lw.jit(lambda v, k: v * k + 1, static="k")
                np.testing.assert_array_equal(own(x, n % 7), x * (n % 7) + 1)
        assert n > 1

    run_all([lambda: work(0), lambda: work(1)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_call_what_the_parent_has_used() -> None:
    """Forked while another thread traces and calls, a child calls old and new kinds."""
    f = lw.jit(lambda x: lw.cumulative_sum(x[::-1] * 3, axis=0) + 1)
    x = np.arange(100)
    want = np.cumsum(x[::-1] * 3) + 1
    f(x)
    stop = threading.Event()

    def busy() -> None:
        n = 2
        while not stop.is_set():
            n += 1
            f(np.arange(n % 40))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(5):
            time.sleep(0.05)
            child = os.fork()
            if child == 0:
                try:
                    good = (f(x) == want).all() and (f(lw.asarray(x)).numpy() == want).all()
                    good = good and f(np.arange(7)).shape == (7,)
                    os._exit(0 if good else 1)
                except BaseException:
                    os._exit(2)
            deadline = time.monotonic() + 60
            while True:
                pid, status = os.waitpid(child, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > deadline:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    pytest.fail("the child hangs")
                time.sleep(0.01)
            assert os.waitstatus_to_exitcode(status) == 0
    finally:
        stop.set()
        thread.join()
