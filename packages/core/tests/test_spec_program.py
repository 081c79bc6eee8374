"""The verifier of level 3 refuses every planted fault and says which rule broke."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from ir_samples import (
    F32,
    I32,
    N,
    buffer,
    end,
    f,
    guarded,
    int_,
    listed,
    loop,
    masked_add,
    param,
    place,
    program,
    row_sum,
    staged,
    store,
    threaded,
    u,
)

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import spec
from loopwright_core.ir.ops import RAW, Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Local, Loop, Program, Register

A, B = buffer(0, (8,)), buffer(1, (8,))
PARAMS = (param(0, (8,), False), param(1, (8,), True))
ZERO, ONE = const(0.0, F32), const(1.0, F32)
V4, M4, I4 = F32.vec(4), dt.bool_.vec(4), I32.vec(4)
ACC = f(Op.DEFINE_REG, ZERO, arg=Register(0, "acc"))
TILE = f(Op.DEFINE_LOCAL, arg=Local(0, "tile", 8))
R = loop(8)
X = f(Op.LOAD, place(A, int_(3)))
TARGET = Target("cpu", "", frozenset({F32, I32}), frozenset({F32, I32, dt.float16}), frozenset())


def line(*roots: UOp) -> Program:
    """Straight-line code."""
    return program(listed(*roots), *PARAMS)


def put(value: UOp, offset: int = 0) -> UOp:
    """B[offset] = value."""
    return store(place(B, int_(offset)), value)


def looped(*inside: UOp) -> Program:
    """Code of one loop over R."""
    return program([R, *[n for n in listed(*inside) if n is not R], end(R)], *PARAMS)


def edited(made: Program, edit: Callable[[list[UOp]], list[UOp]]) -> Program:
    """A program with another list of its one phase."""
    phase = made.phases[0]
    return replace(made, phases=(replace(phase, uops=tuple(edit(list(phase.uops)))),))


def _swap(i: int, j: int) -> Callable[[list[UOp]], list[UOp]]:
    def edit(uops: list[UOp]) -> list[UOp]:
        uops[i], uops[j] = uops[j], uops[i]
        return uops

    return edit


def accumulate(read: UOp, behind: Callable[[UOp, UOp], UOp]) -> Program:
    """A sum in a loop that reads the register through `read`, and behind the loop another way."""
    x = f(Op.LOAD, place(A, R))
    assign = f(Op.ASSIGN, ACC, f(Op.ADD, read, x))
    closing = end(R)
    inside = [n for n in listed(assign) if n not in (ACC, R)]
    result = behind(assign, closing)
    after = [n for n in listed(put(result)) if n not in (ACC, R, closing, *inside)]
    return program([ACC, R, *inside, closing, *after], *PARAMS)


IN_LOOP = f(Op.AFTER, ACC, R)
SECOND = loop(8, 1)
BRANCH = u(Op.IF, dt.void, u(Op.CMPLT, dt.bool_, R, int_(4)), arg=0)


SCOPED = [R, place(A, R), f(Op.LOAD, place(A, R))]


def _end_as_end(uops: list[UOp]) -> list[UOp]:
    return [u(Op.END, n.dtype, *n.src) if n.op is Op.ENDIF else n for n in uops]


def _final(assign: UOp, closing: UOp) -> UOp:
    return f(Op.AFTER, ACC, closing)


FAULTS: list[tuple[str, Program, str]] = [
    ("name", replace(line(put(ONE)), name="two words"), "no C identifier"),
    ("no phase", replace(line(put(ONE)), phases=()), "has no phase"),
    ("slots", program(listed(put(ONE)), PARAMS[1]), "has slot 1, not 0"),
    ("names", program(listed(put(ONE)), PARAMS[0], replace(PARAMS[1], name="A")), "have one name"),
    ("listed leaf", program([int_(0), *listed(put(ONE))], *PARAMS), "a leaf is not listed"),
    ("order", edited(row_sum(), _swap(8, 7)), "does not stand before it"),
    (
        "missing source",
        edited(row_sum(), lambda x: [n for n in x if n.op is not Op.LOAD]),
        "does not stand before",
    ),
    ("twice", program([*listed(X), *listed(put(X))], *PARAMS), "stands twice"),
    (
        "scope",
        program([*SCOPED, end(R), place(B, int_(0)), put(SCOPED[-1])], *PARAMS),
        "outside the",
    ),
    (
        "loop variable behind",
        program([R, end(R), u(Op.CAST, F32, R)], *PARAMS),
        "outside the block",
    ),
    ("unclosed", program([R], *PARAMS), "is never closed"),
    (
        "closed twice",
        program([R, end(R), UOp(Op.END, dt.void, (R,), 1)], *PARAMS),
        "not opened last",
    ),
    ("crossed", program([R, SECOND, end(R), end(SECOND)], *PARAMS), "not opened last"),
    (
        "branch not closed",
        edited(guarded(), lambda x: [n for n in x if n.op is not Op.ENDIF]),
        "not opened last",
    ),
    ("end of an if", edited(guarded(), _end_as_end), "uses IF as a value"),
    ("end of a store", line(u(Op.END, dt.void, put(ONE))), "uses STORE as a value"),
    ("end of a value", line(u(Op.END, dt.void, X)), "closes a LOAD, not RANGE"),
    (
        "index dtype",
        line(put(u(Op.CAST, F32, u(Op.ADD, dt.index, const(1, dt.index), const(2, dt.index))))),
        "no dtype index",
    ),
    (
        "unknown variable",
        line(put(u(Op.CAST, F32, u(Op.VAR, I32, arg=N)))),
        "no variable of the program",
    ),
    (
        "unknown slot",
        line(put(f(Op.LOAD, place(buffer(5, (8,)), int_(0))))),
        "slot 5 is no parameter",
    ),
    ("another shape", line(put(f(Op.LOAD, place(buffer(0, (9,)), int_(0))))), "has shape"),
    (
        "another dtype",
        line(put(u(Op.CAST, F32, u(Op.LOAD, I32, place(buffer(0, (8,), I32), int_(0)))))),
        "parameter A is float32",
    ),
    (
        "thread of one",
        line(put(u(Op.CAST, F32, u(Op.SPECIAL, I32, arg=("thread", 2))))),
        "has one thread",
    ),
    (
        "thread count",
        edited(
            replace(threaded(8, 2), phases=(replace(threaded(8, 2).phases[0], threads=4),)), list
        ),
        "has 4 threads",
    ),
    ("grid", line(put(u(Op.CAST, F32, u(Op.SPECIAL, I32, arg=("gidx0", 2))))), "has no grid"),
    ("a dim", looped(put(u(Op.CAST, F32, u(Op.DIM, I32)))), "DIM is no op of level 3"),
    ("a reduce", line(put(f(Op.REDUCE, X, arg=("add",)))), "REDUCE is no op of level 3"),
    ("barrier", program([u(Op.BARRIER, dt.void)], *PARAMS), "only in a phase with workgroups"),
    ("dtypes", line(put(f(Op.ADD, X, int_(1)))), "have dtypes"),
    ("lanes", line(put(f(Op.ADD, X, const(1.0, V4)))), "lane counts"),
    (
        "mask lanes",
        line(
            put(
                f(
                    Op.LANE,
                    u(Op.WHERE, V4, u(Op.CMPLT, dt.bool_, X, ONE), const(1.0, V4), const(0.0, V4)),
                    arg=0,
                )
            )
        ),
        "lane counts",
    ),
    ("float to int", line(put(u(Op.CAST, F32, u(Op.CAST, I32, X)))), "FTOI does"),
    ("ftoi of int", line(put(u(Op.CAST, F32, u(Op.FTOI, I32, int_(3))))), "FTOI takes a float"),
    (
        "broadcast",
        line(put(f(Op.LANE, u(Op.BROADCAST, V4, int_(1)), arg=0))),
        "makes float32x4 of int32",
    ),
    ("vectorize", line(put(f(Op.LANE, u(Op.VECTORIZE, V4, X, X), arg=0))), "has 2 sources for 4"),
    (
        "vectorize dtype",
        line(put(f(Op.LANE, u(Op.VECTORIZE, V4, X, X, X, int_(1)), arg=0))),
        "takes int32 as a lane",
    ),
    ("lane", line(put(f(Op.LANE, const(1.0, V4), arg=4))), "takes lane 4 of 4"),
    (
        "range dtype",
        program([u(Op.RANGE, dt.int64, int_(3), arg=Loop(0, "i"))], *PARAMS),
        "its extent is int32",
    ),
    ("float range", program([u(Op.RANGE, F32, ONE, arg=Loop(0, "i"))], *PARAMS), "int32 or int64"),
    (
        "loop ids",
        program([R, end(R), loop(9), end(loop(9))], *PARAMS),
        "RANGE of the program has id 0",
    ),
    ("condition", program([u(Op.IF, dt.void, int_(1))], *PARAMS), "a condition is one bool"),
    ("no memory", line(put(f(Op.LOAD, place(ACC, int_(0))))), "which is no memory"),
    ("memory as value", line(put(f(Op.ADD, TILE, X))), "uses memory as a value"),
    ("index as value", line(put(f(Op.ADD, place(A, int_(0)), X))), "uses an INDEX as a value"),
    ("float offset", line(put(f(Op.LOAD, place(A, ONE)))), "an offset is int32"),
    ("valid", line(put(f(Op.LOAD, place(A, int_(0), int_(1)), ZERO))), "valid is int32, not bool"),
    (
        "fill without valid",
        line(put(f(Op.LOAD, place(A, int_(0)), ZERO))),
        "a fill is present exactly",
    ),
    (
        "valid without fill",
        line(put(f(Op.LOAD, place(A, int_(0), const(True, dt.bool_))))),
        "a fill is present",
    ),
    (
        "fill dtype",
        line(put(f(Op.LOAD, place(A, int_(0), const(True, dt.bool_)), int_(0)))),
        "the fill is int32",
    ),
    (
        "mask of 4 on 2",
        line(
            put(
                f(
                    Op.LANE,
                    u(
                        Op.LOAD,
                        F32.vec(2),
                        place(A, int_(0), const(True, M4)),
                        const(0.0, F32.vec(2)),
                    ),
                    arg=0,
                )
            )
        ),
        "2 lanes through an INDEX of 4",
    ),
    (
        "load dtype",
        line(put(u(Op.CAST, F32, u(Op.LOAD, I32, place(A, int_(0)))))),
        "int32 is not the memory's",
    ),
    ("store dtype", line(store(place(B, int_(0)), int_(1))), "int32 is not the memory's float32"),
    ("store hint", line(UOp(Op.STORE, dt.void, (place(B, int_(0)), ONE), "wt")), "no cache hint"),
    ("read-only", line(store(place(A, int_(0)), ONE)), "stores into A, which is only read"),
    ("local size", line(f(Op.DEFINE_LOCAL, arg=Local(0, "t", 0))), "an int from 1"),
    (
        "register value",
        line(f(Op.DEFINE_REG, int_(0), arg=Register(0, "a"))),
        "set to int32 at first",
    ),
    ("assign to memory", line(f(Op.ASSIGN, TILE, ONE)), "uses memory as a value"),
    ("assign to a value", line(f(Op.ASSIGN, X, ONE)), "assigns to a LOAD"),
    ("assign dtype", line(f(Op.ASSIGN, ACC, int_(1))), "assigns int32 to float32"),
    ("after nothing", line(put(f(Op.AFTER, ACC))), "comes after nothing"),
    ("after of a value", looped(put(f(Op.AFTER, X, R))), "neither memory nor register"),
    ("stale in a loop", accumulate(ACC, _final), "in a loop that assigns it"),
    ("stale behind", accumulate(IN_LOOP, lambda a, e: ACC), "which an ASSIGN between them"),
    ("assign behind", accumulate(IN_LOOP, lambda a, e: a), "outside the block"),
    ("past the end", line(put(X, 8)), "certainly leaves B, which has 8"),
    ("before the start", line(put(f(Op.LOAD, place(A, int_(-1))))), "certainly leaves A"),
    ("vector past the end", line(store(place(B, int_(5)), const(0.0, V4))), "certainly leaves B"),
    (
        "loop past the end",
        looped(store(place(B, u(Op.ADD, I32, R, int_(8))), ONE)),
        "certainly leaves B",
    ),
]


@pytest.mark.parametrize(("made", "rule"), [c[1:] for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_faults_are_refused(made: Program, rule: str) -> None:
    """A planted fault raises VerifyError with its rule."""
    with pytest.raises(VerifyError, match=rule):
        spec.verify_program(made)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (f(Op.MAX, X, X), "does not list MAX"),
        (f(Op.EXP, X), "does not list EXP"),
        (f(Op.FMA, X, X, X), "does not list FMA"),
        (u(Op.CAST, F32, u(Op.CDIV, I32, int_(7), int_(2))), "does not list CDIV"),
        (u(Op.CAST, F32, f(Op.ADD, const(1, dt.int64), const(2, dt.int64))), "makes float32 of"),
        (u(Op.CAST, F32, u(Op.ADD, dt.int64, *[const(1, dt.int64)] * 2)), "not compute in int64"),
        (u(Op.CAST, F32, u(Op.ADD, dt.float16, *[const(1, dt.float16)] * 2)), "in float16"),
    ],
)
def test_what_a_target_lacks_is_refused(value: UOp, rule: str) -> None:
    """An op or dtype that the target does not list is refused for that target."""
    with pytest.raises(VerifyError, match=rule):
        spec.verify_program(line(put(value)), TARGET)


def test_what_a_target_lists_is_legal() -> None:
    """The same op is legal for a target that lists it; storage dtypes may be moved."""
    able = replace(TARGET, ops=RAW | {Op.MAX})
    spec.verify_program(line(put(f(Op.MAX, X, f(Op.FMA, X, X, X)))), able)
    half = u(Op.BITCAST, dt.float16, u(Op.BITCAST, dt.uint16, const(1.0, dt.float16)))
    spec.verify_program(
        line(put(u(Op.CAST, F32, half))), replace(able, arith=able.arith | {dt.uint16})
    )
    with pytest.raises(VerifyError, match="has no fused multiply-add"):
        spec.verify_program(line(put(f(Op.FMA, X, X, X))), replace(able, has_fma=False))


def test_legal_programs_pass() -> None:
    """The sample programs, a nested accumulation and a spilled register are legal."""
    for made in (row_sum(), masked_add(), staged(), threaded(), guarded()):
        spec.verify_program(made)
        assert spec.unproved_accesses(made) == 0
    spec.verify_program(accumulate(IN_LOOP, _final))
    spec.verify_program(
        line(put(ONE), u(Op.FENCE, dt.void), u(Op.PREFETCH, dt.void, place(A, int_(0))))
    )


def test_a_gather_is_counted_as_unproved() -> None:
    """An offset that was loaded cannot be decided; a condition on it decides it."""
    ids = buffer(0, (8,), I32)
    params = (param(0, (8,), False, I32), param(1, (8,), True))
    which = u(Op.LOAD, I32, place(ids, int_(0)))
    free = program(listed(store(place(B, which), ONE)), *params)
    spec.verify_program(free)
    assert spec.unproved_accesses(free) == 1
    assert spec.unproved(free)[0].name == "B"
    fits = u(Op.CMPLT, dt.bool_, which, int_(8))
    starts = u(Op.CMPLT, dt.bool_, int_(-1), which)
    valid = u(Op.AND, dt.bool_, starts, fits)
    assert spec.unproved_accesses(program(listed(store(place(B, which, valid), ONE)), *params)) == 0


def test_every_lane_of_a_scatter_is_proved() -> None:
    """Vector offsets are split into lanes: one lane outside is one unproved access."""
    steps = u(Op.VECTORIZE, I4, *[int_(2 * k) for k in range(4)])
    fine = u(Op.ADD, I4, u(Op.BROADCAST, I4, int_(1)), steps)
    assert spec.unproved_accesses(line(store(place(B, fine), const(0.0, V4)))) == 0
    loose = u(Op.ADD, I4, u(Op.BROADCAST, I4, R), steps)
    assert spec.unproved_accesses(looped(store(place(B, loose), const(0.0, V4)))) == 3
