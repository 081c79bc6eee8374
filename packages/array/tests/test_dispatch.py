"""NumPy's own functions on lazy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.dispatch import _RENAMED, _SAME
from loopwright_core.errors import ArgumentTypeError

VALUES = np.array([[1.0, 2.5, 3.0], [0.5, 2.0, 4.0]], np.float32)


def lazy(values: np.ndarray[Any, Any] = VALUES) -> lw.Array:
    return lw.asarray(values, device="cpu")


@pytest.mark.parametrize(
    "f",
    [
        np.sin,
        np.abs,
        lambda x: np.power(x, 2),
        lambda x: np.matmul(x, np.transpose(x)),
        lambda x: np.transpose(x, axes=(1, 0)),
        lambda x: VALUES + x,
        lambda x: np.less(VALUES, x),
        lambda x: np.float32(2) / x,
        np.sum,
        lambda x: np.sum(x, 0),
        lambda x: np.max(x, axis=1, keepdims=True),
        lambda x: np.std(x, ddof=1),
        lambda x: np.concatenate([x, VALUES], axis=1),
        lambda x: np.stack((x, x), 1),
        lambda x: np.where(x > 1, x, 0),
        lambda x: np.clip(x, a_min=1, a_max=3),
        lambda x: np.pad(x, 1),
        lambda x: np.reshape(x, (3, 2)),
        lambda x: np.full_like(x, 3),
        np.arctan,
        np.sinh,
        np.real,
        np.conjugate,
        lambda x: np.arctan2(VALUES, x),
        lambda x: np.nextafter(x, np.float32(0)),
        lambda x: np.isin(x, [2.5, 4.0], invert=True),
        lambda x: np.einsum("ij,kj->ik", x, VALUES),
    ],
)  # fmt: skip
def test_dispatched(f: Callable[[Any], Any]) -> None:
    """A function that we have too gives a lazy array of NumPy's values, shape and dtype."""
    got, want = f(lazy()), f(VALUES)
    assert isinstance(got, lw.Array)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        np.median,
        np.linalg.norm,
        lambda x: np.cumsum([x, x], axis=0),
        lambda x: np.array_equal(x, x),
    ],
)  # fmt: skip
def test_numpys_alone(f: Callable[[Any], Any]) -> None:
    """A function that only NumPy has gets computed values."""
    got = f(lazy())
    assert not isinstance(got, lw.Array)
    np.testing.assert_allclose(got, f(VALUES), rtol=1e-6)


def test_names_of_the_table_exist() -> None:
    """Every name that is dispatched is one of NumPy's and one of ours."""
    for name in _SAME:
        assert hasattr(np, name) and name in lw.__all__
    for theirs, ours in _RENAMED.items():
        assert hasattr(np, theirs) and ours in lw.__all__


def test_out_is_written() -> None:
    """`out=` and an in-place operator write a NumPy array and give it back."""
    target = np.empty_like(VALUES)
    assert np.sqrt(lazy(), out=target) is target
    np.testing.assert_allclose(target, np.sqrt(VALUES), rtol=1e-6)
    mine = kept = VALUES.copy()
    mine += lazy()
    assert mine is kept
    np.testing.assert_array_equal(mine, 2 * VALUES)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (np.modf, r"no modf for lazy arrays.*np.modf\(x.numpy\(\)\)"),
        (np.add.reduce, "add.reduce does not work on lazy arrays.*lw.sum"),
        (lambda x: np.add(x, 1, dtype=np.float64), "takes no dtype=.*lw.astype"),
        (lambda x: np.add(x, 1, out=x), "does not write into a lazy array"),
        (lambda x: np.sum(x, initial=3), "takes no initial=.*lw.sum"),
        (lambda x: np.round(x, 2), "takes no decimals=.*lw.round"),
    ],
)
def test_refused_clearly(f: Callable[[Any], Any], message: str) -> None:
    """What we lack is refused by name, with what to write instead."""
    with pytest.raises(ArgumentTypeError, match=message):
        f(lazy())


def test_strangers_answer_themselves() -> None:
    """Another type's own protocol comes before ours."""

    class Other:
        def __array_ufunc__(self, *args: Any, **settings: Any) -> str:
            return "other"

        def __array_function__(self, *args: Any) -> str:
            return "other"

    assert np.add(lazy(), Other()) == "other"
    assert np.concatenate([lazy(), Other()]) == "other"
