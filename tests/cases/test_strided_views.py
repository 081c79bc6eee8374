"""Views inside fused kernels: backwards, in steps, from odd places, of permuted memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import loopwright as lw
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from support.numeric import all_exact, array, samples, whole


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_vector_loads_from_odd_places(dtype: DType) -> None:
    """Loads that start 1 to 5 elements in, and rows whose length is no multiple of a vector."""
    x = whole(dtype, (1031,), 1)
    rows = whole(dtype, (40, 3), 2)
    a, r = array(x), array(rows)
    items: list[tuple[str, lw.Array, Any]] = []
    for o in (1, 2, 3, 5):
        items += [(f"from {o}", a[o : o + 1024] + a[:1024], x[o : o + 1024] + x[:1024])]
    all_exact(items, zeros=False)
    all_exact(
        [
            ("columns", r[:, 1:3] + r[:, :2], rows[:, 1:3] + rows[:, :2]),
            ("shifted", a[3:] + a[:-3], x[3:] + x[:-3]),
            ("long rows", lw.reshape(a[1:], (10, 103))[:, 5:], x[1:].reshape(10, 103)[:, 5:]),
        ],
        zeros=False,
    )


@pytest.mark.parametrize("schedule", ["none", "heuristic"])
@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_interleaved_results_of_reversed_memory(dtype: DType, schedule: str) -> None:
    """Values of an array and its reverse, stored side by side: every element is written."""
    x = whole(dtype, (13, 13, 8), 3)
    a = array(x)
    want = np.maximum(x, x[::-1, ::-1, ::-1])
    ours = lw.maximum(a, lw.flip(a))
    with lw.options(schedule=schedule):
        for n in (2, 3):
            all_exact(
                [("side by side", lw.stack([ours] * n, axis=-1), np.stack([want] * n, axis=-1))],
                zeros=False,
            )


@pytest.mark.parametrize("dtype", dt.ARRAY_DTYPES, ids=str)
def test_memory_that_numpy_holds_oddly(dtype: DType) -> None:
    """Arrays shared with NumPy may be reversed, stepped, transposed, broadcast or unaligned."""
    base = samples(dtype, (12, 20), 1)
    raw = np.zeros(base.nbytes + 1, np.uint8)[1:].view(dtype.numpy).reshape(12, 20)
    raw[:] = base
    hosts = {
        "reversed": base[::-1, ::-1],
        "steps": base[1::2, ::3],
        "transposed": base.T,
        "broadcast": np.broadcast_to(base[:1], (5, 20)),
        "unaligned": raw,
        "empty": base[:0],
        "column": base[:, 3],
        "big-endian": base.astype(base.dtype.newbyteorder(">")) if dtype.bits > 8 else base,
    }
    if dtype in (dt.bfloat16,):
        del hosts["big-endian"]
    for name, host in hosts.items():
        want = np.ascontiguousarray(host).astype(dtype.numpy)
        all_exact([(name, lw.where(array(host) == array(host), array(host), array(host)), want)])


@st.composite
def chains(draw: st.DrawFn) -> list[tuple[str, Any]]:
    kinds = ["flip", "permute", "slice", "reshape", "pad", "new axis", "broadcast", "add"]
    return [
        (k, draw(st.integers(0, 10**6))) for k in draw(st.lists(st.sampled_from(kinds), max_size=6))
    ]


def step(v: Any, kind: str, seed: int) -> Any:
    """One view of an array of NumPy or of ours; the seed decides which."""
    xp = np if isinstance(v, np.ndarray) else lw
    rng = np.random.default_rng(seed)
    rank = len(v.shape)
    if kind == "add":
        return v + v
    if kind == "new axis":
        return xp.expand_dims(v, axis=int(rng.integers(0, rank + 1)))
    if kind == "broadcast":
        return xp.broadcast_to(v, (2, *v.shape)) if rank < 5 else v
    if kind == "reshape":
        size = int(np.prod(v.shape))
        cut = next((d for d in (2, 3, 5, 7) if size and size % d == 0 and seed % 2), 1)
        return xp.reshape(v, (cut, size // cut) if size else v.shape)
    if rank == 0:
        return v
    axis = int(rng.integers(0, rank))
    if kind == "flip":
        return xp.flip(v, axis=axis)
    if kind == "permute":
        order = tuple(int(i) for i in rng.permutation(rank))
        return np.transpose(v, order) if xp is np else lw.permute_dims(v, order)
    if kind == "pad":
        widths = tuple((int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(rank))
        return xp.pad(v, widths, constant_values=7) if np.prod(v.shape) < 3000 else v
    size = v.shape[axis]
    start, stop = sorted(int(i) for i in rng.integers(0, size + 1, 2))
    by = int(rng.integers(1, 4))
    key = slice(start, stop, by) if seed % 2 else slice(None, None, -by)
    return v[(slice(None),) * axis + (key,)]


@given(chains(), st.integers(0, 3))
@settings(max_examples=40)
def test_chains_of_views(chain: list[tuple[str, Any]], which: int) -> None:
    """Up to six views of views, with sums between them and a reduction behind them."""
    host: Any = np.arange(60, dtype=np.int32).reshape(
        ((60,), (4, 15), (3, 4, 5), (5, 1, 12))[which]
    )
    ours: Any = array(host)
    for kind, seed in chain:
        host, ours = step(host, kind, seed), step(ours, kind, seed)
    all_exact(
        [
            ("view", ours * 2, np.asarray(host * 2)),
            ("sum", lw.sum(ours), np.asarray(np.sum(host))),
            ("rows", lw.sum(ours, axis=-1), np.asarray(np.sum(host, axis=-1))),
        ]
    )
