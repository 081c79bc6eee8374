"""The interpreter of level 3 refuses what a machine would do silently, and is fast enough."""

from __future__ import annotations

import numpy as np
import pytest
from ir_samples import (
    F32,
    I32,
    buffer,
    end,
    f,
    int_,
    listed,
    loop,
    param,
    place,
    program,
    row_sum,
    store,
    u,
)

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.oracle.program import run_program
from loopwright_core.program.program import Local, Program, Register

A, B = buffer(0, (8,), I32), buffer(1, (8,))
PARAMS = (param(0, (8,), False, I32), param(1, (8,), True))
ONE = const(1.0, F32)
X = u(Op.LOAD, I32, place(A, int_(0)))
TILE = f(Op.DEFINE_LOCAL, arg=Local(0, "tile", 8))
THREAD = u(Op.SPECIAL, I32, arg=("thread", 2))
R = loop(2)
I4, V4 = I32.vec(4), F32.vec(4)


def put(value: UOp) -> UOp:
    return store(place(B, int_(0)), value)


def run(made: Program, first: int = 0) -> np.ndarray:
    """Run with A = [first, 1, 2, ...] and B = 0."""
    a, b = np.arange(8, dtype=np.int32), np.zeros(8, np.float32)
    a[0] = first
    run_program(made, {0: a, 1: b})
    return b


def line(*roots: UOp, threads: int = 1) -> Program:
    return program(listed(*roots), *PARAMS, threads=threads)


def _each_iteration(*inside: UOp) -> Program:
    return program([R, *[n for n in listed(*inside) if n is not R], end(R)], *PARAMS)


def _local_of_last_iteration() -> Program:
    """The first iteration writes a local array, the second reads it."""
    write = store(place(TILE, R), ONE)
    y = f(Op.LOAD, place(f(Op.AFTER, TILE, write), int_(0)))
    body = [R, TILE, *[n for n in listed(write, put(y)) if n not in (R, TILE)], end(R)]
    return program(body, *PARAMS)


CAST_X = u(Op.CAST, F32, X)
RUN_TIME_FAULTS: list[tuple[str, Program, int, str]] = [
    ("store past the end", line(store(place(B, X), ONE)), 8, r"reaches offset \[8\] of B"),
    ("store before", line(store(place(B, X), ONE)), -1, r"reaches offset \[-1\] of B"),
    (
        "load past the end",
        line(put(u(Op.CAST, F32, u(Op.LOAD, I32, place(A, X))))),
        9,
        "of A, which has 8",
    ),
    ("vector past the end", line(store(place(B, X), const(1.0, V4))), 5, r"\[5, 6, 7, 8\] of B"),
    (
        "scatter",
        line(store(place(B, u(Op.VECTORIZE, I4, X, X, X, int_(0))), const(1.0, V4))),
        11,
        "of B",
    ),
    ("local past the end", line(TILE, store(place(TILE, X), ONE)), 8, "of tile, which has 8"),
    (
        "uninitialised local",
        line(TILE, put(f(Op.LOAD, place(TILE, X)))),
        3,
        "before anything wrote it",
    ),
    ("local of another turn", _local_of_last_iteration(), 0, "before anything wrote it"),
    (
        "read-only",
        line(store(place(A, int_(0)), int_(1))),
        0,
        "writes A, a parameter that is only read",
    ),
    ("division by 0", line(put(u(Op.CAST, F32, u(Op.CDIV, I32, int_(1), X)))), 0, "divides by 0"),
    ("remainder by 0", line(put(u(Op.CAST, F32, u(Op.CMOD, I32, int_(1), X)))), 0, "divides by 0"),
    ("smallest by -1", line(put(u(Op.CAST, F32, u(Op.CDIV, I32, X, X)))), 0, "divides by 0"),
    ("shift", line(put(u(Op.CAST, F32, u(Op.CSHL, I32, int_(1), X)))), 32, "amount outside 0..31"),
    (
        "conversion",
        line(put(u(Op.CAST, F32, u(Op.FTOI, dt.int8, CAST_X)))),
        128,
        "outside the range",
    ),
    (
        "threads write",
        line(store(place(B, X), ONE), u(Op.ADD, I32, THREAD, X), threads=2),
        0,
        "thread 1 writes B",
    ),
    ("not computed", program([put(CAST_X)], *PARAMS), 0, "does not stand before it"),
    (
        "crossed",
        program([R, loop(3, 1), end(R)], *PARAMS),
        0,
        "does not close what was opened last",
    ),
    ("unclosed", program([R], *PARAMS), 0, "is never closed"),
    ("barrier", program([u(Op.BARRIER, dt.void)], *PARAMS), 0, "runs no BARRIER yet"),
    ("level 2", line(put(f(Op.REDUCE, ONE))), 0, "REDUCE is no op of a program"),
    (
        "workgroup id",
        line(put(u(Op.CAST, F32, u(Op.SPECIAL, I32, arg=("lidx0", 2))))),
        0,
        "does not supply",
    ),
]


@pytest.mark.parametrize(
    ("made", "first", "what"),
    [c[1:] for c in RUN_TIME_FAULTS],
    ids=[c[0] for c in RUN_TIME_FAULTS],
)
def test_faults_are_refused_at_run_time(made: Program, first: int, what: str) -> None:
    """A fault that only values show raises VerifyError, naming the node."""
    with pytest.raises(VerifyError, match=what):
        run(made, first)


def test_threads_may_not_read_what_another_writes() -> None:
    """A cell that thread 0 writes and thread 1 reads is an error, whatever the order run."""
    own = store(place(B, THREAD), ONE)
    other = f(Op.LOAD, place(B, int_(0)))
    last = store(place(B, u(Op.ADD, I32, THREAD, int_(4))), other)
    with pytest.raises(VerifyError, match="thread 1 reads B"):
        run(line(own, last, threads=2))


def test_lanes_off_stay_off() -> None:
    """Masked lanes of loads, stores, gathers and scatters touch nothing."""
    mask = u(Op.VECTORIZE, dt.bool_.vec(4), *[const(k == 1, dt.bool_) for k in range(4)])
    far = u(Op.VECTORIZE, I4, int_(99), int_(2), int_(-5), X)
    y = u(Op.LOAD, I4, place(A, far, mask), const(7, I4))
    wide = u(Op.CAST, V4, y)
    assert run(line(store(place(B, int_(4)), wide)), 50).tolist() == [0, 0, 0, 0, 7, 2, 7, 7]
    assert run(line(store(place(B, far, mask), wide)), 50).tolist() == [0, 0, 2, 0, 0, 0, 0, 0]
    off = const(False, dt.bool_)
    nothing = line(store(place(B, int_(77), off), ONE))
    assert run(nothing).tolist() == [0] * 8


def test_registers_are_variables() -> None:
    """A register keeps its value from turn to turn; vectors and lanes work on it."""
    acc = u(Op.DEFINE_REG, V4, const(0.0, V4), arg=Register(0, "acc"))
    inside = u(Op.AFTER, V4, acc, R)
    assign = u(Op.ASSIGN, V4, inside, u(Op.ADD, V4, inside, const(1.5, V4)))
    closing = end(R)
    last = u(Op.LANE, F32, u(Op.AFTER, V4, acc, closing), arg=3)
    body = [acc, R, inside]
    body += [n for n in listed(assign) if n not in body and n.op is not Op.DEFINE_REG]
    body += [closing, last.src[0], last, place(B, int_(0)), put(last)]
    constants = listed(const(0.0, V4), const(1.5, V4))
    body = [*constants, *[n for n in body if n not in constants]]
    assert run(program(body, *PARAMS))[0] == 3.0


def test_long_loops() -> None:
    """64,000 turns of the row sum's inner loop add up to what NumPy says."""
    x = np.arange(64_000, dtype=np.float32).reshape(1000, 64) % 9
    out = np.zeros(1000, np.float32)
    run_program(row_sum(), {0: x, 1: out}, {"n": 1000})
    assert (out == x.sum(axis=1)).all()


def test_results_written_over() -> None:
    """An output's element is not written again before somebody read it, but where the place
    itself is loaded: there the last one counts."""
    first, second = put(ONE), put(const(2.0, F32))
    with pytest.raises(VerifyError, match=r"writes B at 0, which holds a result nobody read"):
        run(line(first, second))
    old = f(Op.LOAD, place(f(Op.AFTER, B, first), int_(0)))
    assert run(line(first, put(u(Op.ADD, F32, old, ONE))))[0] == 2
    assert run(_each_iteration(store(place(B, X), CAST_X)), 3)[3] == 3
