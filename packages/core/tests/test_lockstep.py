"""Workgroups in lock-step: what races on a device is an error here, and so is an idle barrier."""

from __future__ import annotations

import numpy as np
import pytest
from ir_samples import F32, I32, buffer, end, f, int_, listed, loop, param, place, store, u

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp, const
from loopwright_core.oracle.program import run_program
from loopwright_core.program.program import Estimate, Local, Phase, Program, Register

N = 4  # threads of a workgroup
A, B = buffer(0, (8,)), buffer(1, (8,))
PARAMS = param(0, (8,), False), param(1, (8,), True)
G, T = u(Op.SPECIAL, I32, arg=("gidx0", 2)), u(Op.SPECIAL, I32, arg=("lidx0", N))
ITEM = u(Op.ADD, I32, u(Op.MUL, I32, G, int_(N)), T)
TILE = f(Op.DEFINE_LOCAL, arg=Local(0, "tile", N, shared=True))
OWN = f(Op.DEFINE_LOCAL, arg=Local(1, "own", 2))
X = f(Op.LOAD, place(A, ITEM))
PUT = store(place(TILE, T), X)
MIRROR = u(Op.SUB, I32, int_(N - 1), T)
FIRST = u(Op.CMPLT, dt.bool_, T, int_(1))


def barrier(number: int = 0) -> UOp:
    return u(Op.BARRIER, dt.void, arg=number)


def grid(*uops: UOp, local: tuple[int, ...] | None = (N,), groups: int = 2) -> Program:
    phase = Phase("sample", uops, 1, (int_(groups),), local)
    return Program("sample", (phase,), PARAMS, (), Estimate(0, 0))


def run(program: Program) -> np.ndarray:
    """A = [0, 1, ...]; B as the program leaves it, -1 before."""
    a, b = np.arange(8, dtype=np.float32), np.full(8, -1, np.float32)
    run_program(program, {0: a, 1: b})
    return b


def line(*roots: UOp) -> list[UOp]:
    return listed(*roots)


def through_shared(*between: UOp) -> Program:
    """Each workgroup mirrors its part of A, its threads passing elements on."""
    y = f(Op.LOAD, place(f(Op.AFTER, TILE, PUT), MIRROR))
    body = [*line(PUT), *between]
    body += [n for n in line(store(place(B, ITEM), y)) if n not in body]
    return grid(*body)


def test_mirror() -> None:
    """Elements written before a barrier are read behind it, in each workgroup."""
    program = through_shared(barrier())
    verify_program(program)
    np.testing.assert_array_equal(run(program), [3, 2, 1, 0, 7, 6, 5, 4])


def test_no_barrier_between_write_and_read() -> None:
    """A cell that another thread wrote since the last barrier is not read."""
    with pytest.raises(VerifyError, match=r"reads tile.*no barrier"):
        run(through_shared())


def test_no_barrier_between_read_and_next_write() -> None:
    """A tile rewritten in the next step of a loop waits for its readers."""

    def steps(*first: UOp) -> Program:
        r = loop(2)
        y = f(Op.LOAD, place(f(Op.AFTER, TILE, PUT), MIRROR))
        ahead = [n for n in line(PUT) if n is not PUT]
        body = [*ahead, r, *first, PUT, barrier(1)]
        to = u(Op.ADD, I32, u(Op.MUL, I32, r, int_(N)), T)
        body += [n for n in line(store(place(B, to), y)) if n not in body]
        return grid(*body, end(r), groups=1)

    np.testing.assert_array_equal(run(steps(barrier(0))), [3, 2, 1, 0, 3, 2, 1, 0])
    with pytest.raises(VerifyError, match=r"writes tile.*another thread read"):
        run(steps())


def test_two_writers() -> None:
    """Two threads never write one cell, not even one value; of memory all workgroups see, no two
    threads of the launch."""
    everyone = store(place(TILE, int_(0)), X)
    with pytest.raises(VerifyError, match="two threads write one element of tile"):
        run(grid(*line(everyone)))
    with pytest.raises(VerifyError, match=r"two threads write one element of B|another thread"):
        run(grid(*line(store(place(B, T), X))))


def test_barrier_some_threads_miss() -> None:
    """A branch or a loop that threads leave differently holds no barrier: the verifier sees the
    id in its condition, the interpreter the threads."""
    branch = u(Op.IF, dt.void, FIRST, arg=0)
    program = grid(FIRST, branch, barrier(), end(branch))
    with pytest.raises(VerifyError, match="threads of one group may leave out"):
        verify_program(program)
    with pytest.raises(VerifyError, match="thread 1 does not reach"):
        run(program)
    r = loop(T)
    with pytest.raises(VerifyError, match="thread 0 does not reach"):
        run(grid(r, barrier(), end(r)))


def test_branches_and_loops_of_threads() -> None:
    """Threads left out of a branch keep their registers and touch no memory."""
    acc = f(Op.DEFINE_REG, const(0.0, F32), arg=Register(0, "acc"))
    r = loop(T)
    inside = f(Op.AFTER, acc, r)
    total = f(Op.ADD, inside, const(1.0, F32))
    after = f(Op.AFTER, acc, end(r))
    count = [acc, r, inside, total, f(Op.ASSIGN, inside, total), end(r), after]
    body = [*count, *[n for n in line(store(place(B, ITEM), after)) if n not in (*count,)]]
    np.testing.assert_array_equal(run(grid(*body)), [0, 1, 2, 3] * 2)
    branch = u(Op.IF, dt.void, FIRST, arg=0)
    far = store(place(B, u(Op.MUL, I32, T, int_(100))), const(5.0, F32))
    few = [n for n in line(far) if n is not far]
    assert run(grid(FIRST, *few, branch, far, end(branch), groups=1))[0] == 5


def test_private_arrays() -> None:
    """An array that is not shared is each thread's own, uninitialised in each."""
    put = store(place(OWN, int_(1)), X)
    y = f(Op.LOAD, place(f(Op.AFTER, OWN, put), int_(1)))
    program = grid(*line(put, store(place(B, ITEM), y)))
    np.testing.assert_array_equal(run(program), np.arange(8))
    z = f(Op.LOAD, place(OWN, int_(0)))
    with pytest.raises(VerifyError, match="own before anything wrote it"):
        run(grid(*line(store(place(B, ITEM), z))))


def test_shared_memory_starts_empty() -> None:
    """A workgroup sees nothing of what the one before it left in shared memory."""
    branch = u(Op.IF, dt.void, u(Op.CMPLT, dt.bool_, G, int_(1)), arg=0)
    y = f(Op.LOAD, place(f(Op.AFTER, TILE, end(branch)), T))
    ahead = [*branch.src, *[n for n in line(PUT) if n is not PUT]]
    body = [*ahead, branch, PUT, end(branch)]
    body += [n for n in line(store(place(B, ITEM), y)) if n not in body]
    with pytest.raises(VerifyError, match="tile before anything wrote it"):
        run(grid(*body))


def test_lanes() -> None:
    """Vectors of each thread lie on the last axis, masks and gathers included."""
    two, ints = F32.vec(2), I32.vec(2)
    start = u(Op.MUL, I32, T, int_(2))
    steps = u(Op.VECTORIZE, ints, int_(1), int_(0))
    swapped = u(Op.ADD, ints, u(Op.BROADCAST, ints, start), steps)
    mask = u(Op.CMPLT, dt.bool_.vec(2), swapped, const(7, ints))
    pair = u(Op.LOAD, two, place(A, swapped, mask), const(9.0, two))
    program = grid(*line(store(place(B, start), pair)), groups=1)
    np.testing.assert_array_equal(run(program), [1, 0, 3, 2, 5, 4, 9, 6])


def test_runtime_chooses_the_workgroup() -> None:
    """Without a local size the grid counts threads."""
    one = u(Op.SPECIAL, I32, arg=("gidx0", 8))
    program = grid(*line(store(place(B, one), f(Op.LOAD, place(A, one)))), local=None, groups=8)
    verify_program(program)
    np.testing.assert_array_equal(run(program), np.arange(8))


ILLEGAL = {
    "no such id": (grid(*line(store(place(B, u(Op.SPECIAL, I32, arg=("lidx1", 2))), X))), "1 dim"),
    "another size": (
        grid(*line(store(place(B, u(Op.SPECIAL, I32, arg=("lidx0", 3))), X))),
        "has 4",
    ),
    "no id": (grid(*line(store(place(B, u(Op.SPECIAL, I32, arg=("warp", 4))), X))), "is no id"),
    "barrier without a workgroup": (grid(barrier(), local=None), "phase with workgroups"),
    "shared without a workgroup": (grid(TILE, local=None), "phase with workgroups"),
    "empty": (grid(groups=0), "launches nothing"),
    "four dimensions": (grid(local=(1, 1, 1, 1)), "up to three"),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal(case: str) -> None:
    """Launches, ids and barriers that no device runs are refused."""
    program, why = ILLEGAL[case]
    with pytest.raises(VerifyError, match=why):
        verify_program(program)
