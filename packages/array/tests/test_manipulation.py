"""Moving elements, joining, padding and windows against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from array_oracle import same

import loopwright as lw
from loopwright_core.errors import ArgumentError, AxisError, ShapeError

X = np.arange(24).reshape(2, 3, 4).astype(np.float32)
Both = Callable[[Any, Any], Any]

_CASES: dict[str, Both] = {
    "reshape": lambda p, a: p.reshape(a, (4, -1)),
    "permute_dims": lambda p, a: p.permute_dims(a, (2, 0, 1)),
    "moveaxis": lambda p, a: p.moveaxis(a, 0, -1),
    "moveaxis of two": lambda p, a: p.moveaxis(a, (0, 1), (2, 0)),
    "expand_dims": lambda p, a: p.expand_dims(a, axis=1),
    "expand_dims of two": lambda p, a: p.expand_dims(a, axis=(0, -1)),
    "squeeze": lambda p, a: p.squeeze(a[:1]),
    "squeeze of one": lambda p, a: p.squeeze(a[:1, :, :1], axis=0),
    "flip": lambda p, a: p.flip(a),
    "flip of two": lambda p, a: p.flip(a, axis=(0, 2)),
    "concat": lambda p, a: p.concat([a, a[:, :1]], axis=1),
    "concat flat": lambda p, a: p.concat([a, a[0]], axis=None),
    "concat of nothing": lambda p, a: p.concat([a, a[:0]]),
    "stack": lambda p, a: p.stack([a, a + 1], axis=-1),
    "unstack": lambda p, a: p.unstack(a, axis=1)[1],
    "roll": lambda p, a: p.roll(a, -5, axis=1),
    "roll flat": lambda p, a: p.roll(a, 7),
    "roll of two": lambda p, a: p.roll(a, (1, 2), axis=(0, 2)),
    "repeat": lambda p, a: p.repeat(a, 3, axis=1),
    "repeat flat": lambda p, a: p.repeat(a, 2),
    "repeat by counts": lambda p, a: p.repeat(a, [1, 0, 2], axis=1),
    "tile": lambda p, a: p.tile(a, (2, 1, 3)),
    "tile with fewer": lambda p, a: p.tile(a, 2),
    "tile with more": lambda p, a: p.tile(a, (2, 1, 1, 1)),
    "pad": lambda p, a: p.pad(a, ((0, 1), (2, 0), (1, 1))),
    "pad of all": lambda p, a: p.pad(a, 1, constant_values=5),
    "pad of nothing": lambda p, a: p.pad(a, 0),
    "pad with six values": lambda p, a: p.pad(a, 1, constant_values=((1, 2), (3, 4), (5, 6))),
    "pad edge": lambda p, a: p.pad(a, ((1, 1), (2, 1), (3, 2)), mode="edge"),
    "pad reflect": lambda p, a: p.pad(a, ((1, 1), (2, 1), (3, 2)), mode="reflect"),
    "pad symmetric": lambda p, a: p.pad(a, ((1, 1), (2, 1), (3, 2)), mode="symmetric"),
    "pad wrap": lambda p, a: p.pad(a, ((1, 1), (2, 1), (3, 2)), mode="wrap"),
    "pad of empty": lambda p, a: p.pad(a[:0], 1, constant_values=3),
    "pad, shrink, flip": lambda p, a: p.flip(p.pad(a, 1, constant_values=2)[1:, ::2]),
    "tril": lambda p, a: p.tril(a, k=-1),
    "triu": lambda p, a: p.triu(a, k=1),
    "broadcast_to": lambda p, a: p.broadcast_to(a[:, :1], (5, 2, 3, 4)),
    "broadcast_arrays": lambda p, a: p.broadcast_arrays(a[0, 0], a[:, :, :1])[0],
    "T": lambda p, a: a.T,
    "mT": lambda p, a: a.mT,
    "take": lambda p, a: p.take(a, np.array([[2, 0], [-1, 1]]), axis=1),
    "diff": lambda p, a: p.diff(a, axis=1, n=2),
    "diff of prepended": lambda p, a: p.diff(a, prepend=a[..., :1]),
}


@pytest.mark.parametrize("name", _CASES)
def test_as_numpy(name: str) -> None:
    """Shape, dtype and values are NumPy's."""
    same(_CASES[name](lw, lw.asarray(X)), _CASES[name](np, X))


@pytest.mark.parametrize("name", [n for n in _CASES if "pad" not in n or n == "pad"])
def test_of_constants(name: str) -> None:
    """A constant array moves like any other, and stays one constant where it can."""
    ones = np.ones((2, 3, 4), np.float32)
    same(_CASES[name](lw, lw.ones((2, 3, 4), dtype=lw.float32)), _CASES[name](np, ones))


def test_sliding_windows() -> None:
    """Windows over several axes, with stride and dilation."""
    view = np.lib.stride_tricks.sliding_window_view
    a = lw.asarray(X)
    same(lw.sliding_window_view(a, (2, 3), axis=(1, 2)), view(X, (2, 3), axis=(1, 2)))
    same(lw.sliding_window_view(a, 2, axis=2, stride=2), view(X, 2, axis=2)[:, :, ::2])
    want = view(X, 3, axis=2)[..., ::2]
    same(lw.sliding_window_view(a, 2, axis=2, dilation=2), want)


def test_joined_dtypes_are_promoted() -> None:
    """concat and stack find the common dtype of their arrays."""
    a, b = np.ones(2, np.int8), np.ones(2, np.uint8)
    same(lw.concat([a, b]), np.concat([a, b]))
    same(lw.stack([a, b.astype(np.float32)]), np.stack([a, b.astype(np.float32)]))


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda a: lw.reshape(a, (5, -1)), ShapeError),
        (lambda a: lw.permute_dims(a, (0, 1)), ArgumentError),
        (lambda a: lw.permute_dims(a, (0, 1, 1)), ArgumentError),
        (lambda a: lw.squeeze(a, axis=0), ShapeError),
        (lambda a: lw.flip(a, axis=3), AxisError),
        (lambda a: lw.concat([a, a[0]]), ShapeError),
        (lambda a: lw.stack([a, a[0]]), ShapeError),
        (lambda a: lw.pad(a, -1), ArgumentError),
        (lambda a: lw.pad(a, 1, mode="nope"), ArgumentError),
        (lambda a: lw.broadcast_to(a, (3, 2)), ShapeError),
        (lambda a: lw.sliding_window_view(a, 9, axis=0), ShapeError),
        (lambda a: lw.moveaxis(a, (0, 1), 0), ArgumentError),
        (lambda a: lw.expand_dims(a, axis=5), AxisError),
    ],
)
def test_errors(call: Callable[[lw.Array], Any], kind: type[Exception]) -> None:
    """Wrong shapes and axes are refused at the call, as the error NumPy raises there."""
    with pytest.raises(kind):
        call(lw.asarray(X))
