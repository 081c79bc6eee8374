"""Arrays are values: assignment never shows through views, readers or the user's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from support.numeric import array, exact


def line(n: int) -> lw.Array:
    return array(np.arange(n, dtype=np.int32))


def test_overlapping_assignment() -> None:
    """A slice assigned from an overlapping one reads what was there before."""
    x = array(np.arange(9, dtype=np.int32).reshape(3, 3))
    x[:, 1:] = x[:, :-1]
    exact("right", x, np.array([[0, 0, 1], [3, 3, 4], [6, 6, 7]], np.int32))
    y = line(6)
    y[:-1] = y[1:]
    exact("left", y, np.array([1, 2, 3, 4, 5, 5], np.int32))
    z = line(6)
    z[:] = z[::-1]
    exact("turned", z, np.arange(6, dtype=np.int32)[::-1])
    w = array(np.arange(9, dtype=np.int32).reshape(3, 3))
    w[:] = w.T
    exact("transposed", w, np.arange(9, dtype=np.int32).reshape(3, 3).T)


def test_halves_change_places() -> None:
    """Two halves, each assigned from the other's old values; with and without arithmetic."""
    for add in (0, 10):
        x = line(8)
        left, right = x[:4] + add, x[4:] + add
        x[:4] = right
        x[4:] = left
        exact("swapped", x, np.roll(np.arange(8, dtype=np.int32), 4) + np.int32(add))


def test_readers_keep_the_old_value() -> None:
    """Views, expressions and copies made before an assignment do not see it; later ones do."""
    x = line(4)
    reader, view, same = x + 10, x[1:], lw.asarray(x, copy=True)
    x[:2] = 7
    after = x * 1
    x[3] = -1
    exact("expression", reader, np.arange(4, dtype=np.int32) + np.int32(10))
    exact("view", view, np.array([1, 2, 3], np.int32))
    exact("copy", same, np.arange(4, dtype=np.int32))
    exact("between", after, np.array([7, 7, 2, 3], np.int32))
    exact("last", x, np.array([7, 7, 2, -1], np.int32))


def test_the_users_memory_is_not_written() -> None:
    """The NumPy array behind an array stays as it is; what was handed out does too."""
    host = np.arange(5.0)
    x = array(host)
    x[1] = 9
    x += 1
    taken = x.numpy()
    x[:] = 0
    exact("zero", x, np.zeros(5))
    exact("host", host, np.arange(5.0))
    exact("taken", taken, np.array([1.0, 10, 3, 4, 5]))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), min_size=1, max_size=6))
@settings(max_examples=25)
def test_any_series_of_assignments(steps: list[tuple[int, bool]]) -> None:
    """Slices with steps, rows, masks and broadcasts, one after another: as NumPy's."""
    host: Any = np.arange(35, dtype=np.int32).reshape(5, 7)
    ours: Any = array(host.copy())
    for seed, lazily in steps:
        rng = np.random.default_rng(seed)
        by = int(rng.choice([-2, -1, 1, 2, 3]))
        keys: list[Any] = [int(rng.integers(-5, 5)), slice(None, None, by), ...]
        key = keys[seed % 3]
        if seed % 5 == 0:
            mask = host % 3 == 0
            host[mask] = seed % 11
            ours[ours % 3 == 0] = seed % 11
        elif seed % 5 == 1:
            host[key] = seed % 13
            ours[key] = seed % 13
        else:
            host[:, ::2], host[key] = host[:, 1:5].copy(), np.arange(7, dtype=np.int32)
            ours[:, ::2] = ours[:, 1:5]
            ours[key] = array(np.arange(7, dtype=np.int32))
        if not lazily:
            lw.evaluate(ours)
    exact("assigned", ours, host)
