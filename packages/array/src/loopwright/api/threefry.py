"""Random words: Threefry-2x32, which turns a key and a counter into two words of 32 bits."""

from __future__ import annotations

import math

from loopwright import graph
from loopwright_core.errors import ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const

Words = tuple[UOp, UOp]

# How far the second word turns left in each round, again from the front after eight.
_TURNS = (13, 15, 26, 6, 17, 29, 16, 24)
_N_ROUNDS = 20
_PARITY = 0x1BD11BDA

# What a counter's highest four bits say: what its words are for. Draws, the keys of `split` and
# those of `fold_in` never share a counter, so that a key may serve all three.
INDEX_BITS = 60
DRAW, DRAW_MORE, SPLIT, FOLD = range(4)


def _word(value: int) -> UOp:
    return const(value & 0xFFFFFFFF, dt.uint32)


def _turned(x: UOp, by: int) -> UOp:
    """The bits of x moved left, those that leave coming in at the right."""
    left, right = graph.alu(Op.SHL, x, _word(by)), graph.alu(Op.SHR, x, _word(32 - by))
    return graph.alu(Op.OR, left, right)


def threefry(key: Words, counter: Words) -> Words:
    """The block of a counter under a key.

    Source: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3",
    SC 2011: the turns of Threefry-2x32, its 20 rounds and the parity constant.
    """
    parity = graph.alu(Op.XOR, graph.alu(Op.XOR, key[0], key[1]), _word(_PARITY))
    schedule = (*key, parity)
    a, b = [graph.alu(Op.ADD, c, k) for c, k in zip(counter, key)]
    for i in range(_N_ROUNDS):
        a = graph.alu(Op.ADD, a, b)
        b = graph.alu(Op.XOR, _turned(b, _TURNS[i % 8]), a)
        if i % 4 == 3:
            n = i // 4 + 1
            a = graph.alu(Op.ADD, a, schedule[n % 3])
            b = graph.alu(Op.ADD, b, graph.alu(Op.ADD, schedule[(n + 1) % 3], _word(n)))
    return a, b


def counter_of(index: UOp, use: int) -> Words:
    """The counter of a place (an integer node, below 2**60) for one use."""
    wide = graph.cast(index, dt.uint64)
    high = graph.cast(graph.alu(Op.SHR, wide, const(32, dt.uint64)), dt.uint32)
    return graph.cast(wide, dt.uint32), graph.alu(Op.OR, high, _word(use << INDEX_BITS - 32))


def places(shape: tuple[int, ...], use: int) -> Words:
    """The counters of an array's elements: their places in row-major order."""
    n = math.prod(shape)
    if n > 1 << INDEX_BITS:
        fail(ShapeError, f"shape {shape} has more than 2**{INDEX_BITS} random elements")
    high = _word(use << INDEX_BITS - 32)
    if n <= 1 << 32:
        return graph.reshape(graph.iota((n,), 0, dt.uint32), shape), high
    return counter_of(graph.reshape(graph.iota((n,), 0), shape), use)


def wide_word(words: Words) -> UOp:
    """Two words as one of 64 bits, the first one low."""
    low, high = [graph.cast(w, dt.uint64) for w in words]
    return graph.alu(Op.OR, low, graph.alu(Op.SHL, high, const(32, dt.uint64)))
