"""Recurrent layers: a few dozen steps, written out one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import loopwright as lw
from onnx_suite.registry import operator

State = tuple[lw.Array, ...]
Step = Callable[[lw.Array, State], State]


def _run(
    x: lw.Array,
    starts: Sequence[lw.Array | None],
    hidden: int,
    direction: str,
    layout: int,
    step_of: Callable[[int], Step],
) -> tuple[lw.Array, ...]:
    """(all states, the last of each kind); x is (time, batch, inputs), or batch first."""
    if layout:
        x = lw.moveaxis(x, 0, 1)
        starts = [None if s is None else lw.moveaxis(s, 0, 1) for s in starts]
    n_ways = 2 if direction == "bidirectional" else 1
    outs, lasts = [], []
    for way in range(n_ways):
        is_back = direction == "reverse" or way == 1
        zeros = lw.zeros((x.shape[1], hidden), dtype=x.dtype)
        state: State = tuple([zeros if s is None else s[way] for s in starts])
        step, line = step_of(way), []
        for t in range(x.shape[0])[:: -1 if is_back else 1]:
            state = step(x[t], state)
            line.append(state[0])
        outs.append(lw.stack(line[:: -1 if is_back else 1]))
        lasts.append(state)
    y = lw.stack(outs, axis=1)
    ends = [lw.stack([state[i] for state in lasts]) for i in range(len(starts))]
    if layout:
        return (lw.permute_dims(y, (2, 0, 1, 3)), *[lw.moveaxis(e, 0, 1) for e in ends])
    return (y, *ends)


def _biases(b: lw.Array | None, way: int, n: int, like: lw.Array) -> list[lw.Array]:
    if b is None:
        return [lw.zeros((like.shape[1] // n,), dtype=like.dtype)] * 2 * n
    size = b.shape[1] // (2 * n)
    return [b[way, i * size : (i + 1) * size] for i in range(2 * n)]


def _gates(w: lw.Array, way: int, n: int) -> list[lw.Array]:
    size = w.shape[1] // n
    return [w[way, i * size : (i + 1) * size].T for i in range(n)]


@operator("RNN")
def rnn(
    x: lw.Array,
    w: lw.Array,
    r: lw.Array,
    b: lw.Array | None = None,
    lengths: lw.Array | None = None,
    start: lw.Array | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    layout: int = 0,
) -> tuple[lw.Array, ...]:
    def step_of(way: int) -> Step:
        b_w, b_r = _biases(b, way, 1, w)
        return lambda x, s: (lw.tanh(x @ w[way].T + s[0] @ r[way].T + b_w + b_r),)

    return _run(x, [start], hidden_size, direction, layout, step_of)


@operator("GRU")
def gru(
    x: lw.Array,
    w: lw.Array,
    r: lw.Array,
    b: lw.Array | None = None,
    lengths: lw.Array | None = None,
    start: lw.Array | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    layout: int = 0,
    linear_before_reset: int = 0,
) -> tuple[lw.Array, ...]:
    def step_of(way: int) -> Step:
        w_z, w_r, w_h = _gates(w, way, 3)
        r_z, r_r, r_h = _gates(r, way, 3)
        biases = _biases(b, way, 3, w)

        def step(x: lw.Array, state: State) -> State:
            (h,) = state
            z = lw.sigmoid(x @ w_z + h @ r_z + biases[0] + biases[3])
            reset = lw.sigmoid(x @ w_r + h @ r_r + biases[1] + biases[4])
            if linear_before_reset:
                new = lw.tanh(x @ w_h + reset * (h @ r_h + biases[5]) + biases[2])
            else:
                new = lw.tanh(x @ w_h + (reset * h) @ r_h + biases[5] + biases[2])
            return ((1 - z) * new + z * h,)

        return step

    return _run(x, [start], hidden_size, direction, layout, step_of)


@operator("LSTM")
def lstm(
    x: lw.Array,
    w: lw.Array,
    r: lw.Array,
    b: lw.Array | None = None,
    lengths: lw.Array | None = None,
    start: lw.Array | None = None,
    cell: lw.Array | None = None,
    peepholes: lw.Array | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    layout: int = 0,
) -> Any:
    def step_of(way: int) -> Step:
        w_i, w_o, w_f, w_c = _gates(w, way, 4)
        r_i, r_o, r_f, r_c = _gates(r, way, 4)
        biases = _biases(b, way, 4, w)
        peeps = [lw.zeros((hidden_size,), dtype=x.dtype)] * 3
        if peepholes is not None:
            peeps = [peepholes[way, i * hidden_size : (i + 1) * hidden_size] for i in range(3)]

        def step(x: lw.Array, state: State) -> State:
            h, c = state
            keep_in = lw.sigmoid(x @ w_i + h @ r_i + biases[0] + biases[4] + peeps[0] * c)
            forget = lw.sigmoid(x @ w_f + h @ r_f + biases[2] + biases[6] + peeps[2] * c)
            c = forget * c + keep_in * lw.tanh(x @ w_c + h @ r_c + biases[3] + biases[7])
            out = lw.sigmoid(x @ w_o + h @ r_o + biases[1] + biases[5] + peeps[1] * c)
            return out * lw.tanh(c), c

        return step

    return _run(x, [start, cell], hidden_size, direction, layout, step_of)
