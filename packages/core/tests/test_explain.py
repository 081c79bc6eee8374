"""A schedule in sentences."""

from __future__ import annotations

import pytest
from handmade import F, at, kernel, load, matmul, op

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule, Stage, TensorUse
from loopwright_core.kernel.tails import tail_of
from loopwright_core.plugin.tensor_core import Digit, Operand, TensorCore

K = AxisKind


def scheduled(k: Kernel, *axes: tuple[str, int, int, AxisKind], **more: object) -> Kernel:
    schedule = Schedule(tuple([Axis(*a) for a in axes]), **more)  # type: ignore[arg-type]
    return k.with_schedule(schedule)


def test_a_plain_kernel() -> None:
    """Every dim is one piece and one loop; statements say what they run in."""
    assert matmul().explain() == (
        "i, an output dim, has 4 steps; it is one piece (i/1).",
        "j, an output dim, has 6 steps; it is one piece (j/1).",
        "k, which the sum walks, has 8 steps; it is one piece (k/1).",
        "i/1: a loop over 4 steps of i.",
        "j/1: a loop over 6 steps of j.",
        "k/1: a loop over 8 steps of k.",
        "The sum over k runs inside i/1, j/1, k/1.",
        "The store to C runs inside i/1, j/1.",
    )


def test_a_cpu_schedule() -> None:
    """Threads, lanes, registers, tails, copies and hints, one sentence each."""
    k = scheduled(
        matmul(10, 64, 12),
        ("j", 32, 2, K.THREAD),
        ("i", 4, 3, K.LOOP),
        ("j", 16, 2, K.LOOP),
        ("k", 2, 6, K.REDUCE),
        ("i", 1, 4, K.UPCAST),
        ("j", 1, 8, K.VECTOR),
        ("j", 8, 2, K.UPCAST),
        ("k", 1, 2, K.UPCAST),
        stages=(Stage("B", "j/16", layout=("j/8", "k/2", "k/1", "j/1")),),
        prefetch=(("A", 1),),
        nt_stores=("C",),
    )
    assert k.explain() == (
        "i, an output dim, has 10 steps; it is cut into 3 blocks of 4 (i/4), each into 4 single "
        "steps (i/1).",
        "12 steps in whole blocks are more than 10: the loops over i end early, and the last 2 "
        "steps get a body apart.",
        "j, an output dim, has 64 steps; it is cut into 2 blocks of 32 (j/32), each into 2 of 16 "
        "(j/16), each into 2 of 8 (j/8), each into 8 single steps (j/1).",
        "k, which the sum walks, has 12 steps; it is cut into 6 blocks of 2 (k/2), each into 2 "
        "single steps (k/1).",
        "j/32: 2 worker threads share j, 32 steps each.",
        "i/4: a loop over 3 blocks of 4 steps of i.",
        "j/16: a loop over 2 blocks of 16 steps of j.",
        "k/2: a loop over 6 blocks of 2 steps of k.",
        "i/1: 4 elements along i are held in registers at once.",
        "j/1: 8 lanes of a SIMD value lie along j.",
        "j/8: 2 elements along j are held in registers at once.",
        "k/1: 2 partial results along k are held apart and joined at the end.",
        "The sum over k runs inside j/32, i/4, j/16, k/2.",
        "The store to C runs inside j/32, i/4, j/16.",
        "The sum over k is held in 16 accumulators of 8 lanes: 8 outputs, 2 partial results each.",
        "Inside j/16, what B reads is copied to a local array (2 x 6 x 2 x 8 elements, 768 bytes), "
        "filled 6 times by each thread, laid out as j/8, k/2, k/1, j/1.",
        "A is touched 1 step ahead.",
        "C is written around the cache.",
        "One launch runs on 2 worker threads.",
    )


def test_a_gpu_schedule() -> None:
    """Grid, workgroup, group, shared memory and the launch."""
    k = scheduled(
        matmul(30, 64, 32),
        ("i", 4, 8, K.GLOBAL),
        ("j", 16, 4, K.GLOBAL),
        ("i", 1, 4, K.LOCAL),
        ("j", 4, 4, K.LOCAL),
        ("k", 4, 8, K.GROUP),
        ("k", 2, 2, K.REDUCE),
        ("j", 1, 4, K.UPCAST),
        ("k", 1, 2, K.UNROLL),
        stages=(Stage("B", "k/2"),),
    )
    told = k.explain()
    for sentence in (
        "32 steps in whole blocks are more than 30: what lies beyond the end of i is left out by a "
        "condition.",
        "i/4: the grid has 8 workgroups along i, 4 steps each.",
        "j/4: 4 threads of a workgroup lie along j, 4 steps apart.",
        "k/4: 8 threads of a workgroup share the reduce over k; their parts meet in shared memory.",
        "k/1: 2 steps of k are written out one after another.",
        "Inside k/2, what B reads is copied to shared memory (4 x 8 x 4 x 2 elements, 1.0 KiB), "
        "filled 2 times in each workgroup.",
        "One launch has 8 x 4 workgroups of 4 x 4 x 8 threads (128 threads each).",
    ):
        assert sentence in told


def test_a_split_reduce() -> None:
    """Parts, their scratch, and both launches are told apart."""
    told = scheduled(
        matmul(10, 6, 8),
        ("k", 2, 4, K.THREAD), ("i", 1, 10, K.LOOP), ("j", 1, 6, K.LOOP), ("k", 1, 2, K.REDUCE),
    ).explain()  # fmt: skip
    for sentence in (
        "The sum over k is taken in 4 parts, joined in their order.",
        "The parts wait in 1.0 KiB of scratch for a second launch.",
        "First launch. k/2: 4 worker threads share k, 2 steps each.",
        "First launch. The sum over k runs inside k/2, i/1, j/1, k/1.",
        "First launch. One launch runs on 4 worker threads.",
        "Second launch. The sum over k runs inside i/1, j/1, k/1.",
        "Second launch. The store to C runs inside i/1, j/1.",
    ):
        assert sentence in told, told


def test_locals_off() -> None:
    """Locals that are off are said."""
    loops = ("j", 1, 6, K.LOOP), ("k", 1, 8, K.REDUCE)
    k = scheduled(matmul(), ("i", 1, 4, K.GLOBAL), *loops, no_locals=True)
    assert k.explain()[-2:] == (
        "Locals are off: the runtime chooses the workgroup.",
        "One launch has 4 items.",
    )


def test_tensor_cores() -> None:
    """A tensor core tells its tile, along which dims it lies, and how many threads work on it."""
    a = Operand(4, 2, lane_rows=(Digit(1, 4, 1),), lane_columns=(Digit(4, 2, 1),))
    core = TensorCore("small", (4, 6, 2), 8, (F, F), F, (a, a, a), "mma")
    axes = (
        ("k", 2, 4, K.REDUCE), ("i", 1, 4, K.TENSOR), ("j", 1, 6, K.TENSOR), ("k", 1, 2, K.TENSOR)
    )  # fmt: skip
    tensor = scheduled(matmul(), *axes, tensor_core=TensorUse(core, "i", "j"))
    told = tensor.explain()
    assert "i/1: a tensor core takes 4 steps of i at once." in told
    assert told[-1] == (
        "The tensor core small multiplies tiles of 4 x 6 x 2, rows along i, columns along j, by 8 "
        "threads together."
    )
    assert tensor.describe().endswith("(small)")
    shape = scheduled(matmul(), *axes, tensor_core=TensorUse(core, "i", "j", multiplies=False))
    assert shape.explain()[-1].startswith("Plain multiplications in the shape of small: tiles of")


def test_halo_keep_and_scan() -> None:
    """A window counts buffer dimensions; a kept value counts its own dims; a scan runs."""
    i, k = Dim("i", 16), Dim("k", 3, True)
    index = at(0, (18,), UOp(Op.ADD, dt.index, (i.uop, k.uop)))
    total = UOp(Op.REDUCE, F, (load(index), k.uop), ("max",))
    window = scheduled(
        kernel((i, k), (at(1, (16,), i.uop), total)),
        ("i", 4, 4, K.LOOP), ("i", 1, 4, K.LOOP), ("k", 1, 3, K.REDUCE),
        stages=(Stage("A", "i/4", "halo"),),
    )  # fmt: skip
    assert window.explain()[-1] == (
        "Inside i/4, the window of A is copied to a local array (6 elements, 24 bytes), filled 4 "
        "times."
    )
    x = op(Op.EXP, load(at(0, (16,), i.uop)))
    running = UOp(Op.SCAN, F, (x, i.uop), ("add",))
    scan = kernel((i,), (at(1, (16,), i.uop), running))
    kept = Kernel("s", scan.body, scan.dims, scan.schedule, ((x,),)).with_schedule(
        Schedule((Axis("i", 1, 16, K.LOOP),), (Stage("v0", "", "keep"),))
    )
    assert "The running sum over i runs inside i/1." in kept.explain()
    assert kept.explain()[-1] == (
        "v0 is kept outside every loop for all its readers (16 elements, 64 bytes), filled once."
    )


def test_symbolic_dims() -> None:
    """A dim of unknown extent says between what it lies."""
    n = Variable("n", 1, 100)
    i = Dim("i", n)
    k = kernel((i,), (at(1, (n,), i.uop), load(at(0, (n,), i.uop))))
    assert k.explain()[:2] == (
        "i, an output dim, has between 1 and 100 steps, known at launch; it is one piece (i/1).",
        "i/1: a loop over n steps of i.",
    )


def test_a_schedule_without_its_kernel() -> None:
    """Cuts, kinds, order and copies are told by the schedule alone."""
    k = scheduled(
        matmul(10, 6, 8),
        ("i", 4, 3, K.LOOP), ("j", 1, 6, K.LOOP), ("k", 1, 8, K.REDUCE), ("i", 1, 4, K.UPCAST),
        stages=(Stage("B", "i/4"), Stage("v0", "", "keep")),
    )  # fmt: skip
    assert k.schedule.explain() == (
        "i is cut into 3 blocks of 4 (i/4), each into 4 single steps (i/1).",
        "j is one piece (j/1).",
        "k is one piece (k/1).",
        "i/4: a loop over 3 blocks of 4 steps of i.",
        "j/1: a loop over 6 steps of j.",
        "k/1: a loop over 8 steps of k.",
        "i/1: 4 elements along i are held in registers at once.",
        "From outside in, the nest is i/4, j/1, k/1.",
        "B is held in a local copy inside i/4.",
        "v0 is kept outside every loop.",
    )


@pytest.mark.parametrize(
    ("size", "axes", "tail"),
    [
        (12, (("i", 4, 3, K.LOOP), ("i", 1, 4, K.UPCAST)), "exact"),
        (10, (("i", 4, 3, K.LOOP), ("i", 1, 4, K.UPCAST)), "peel"),
        (10, (("i", 4, 3, K.LOOP), ("i", 1, 4, K.LOOP)), "peel"),
        (3, (("i", 1, 4, K.UPCAST),), "guard"),
        (10, (("i", 4, 3, K.UPCAST), ("i", 1, 4, K.LOOP)), "guard"),
    ],
)
def test_tails(size: int, axes: tuple[tuple[str, int, int, AxisKind], ...], tail: str) -> None:
    """Whole blocks need none; loops outside all that is expanded peel; the rest is guarded."""
    assert tail_of(Dim("i", size), [Axis(*a) for a in axes]) == tail
    masked = "guard" if tail == "peel" else tail
    for policy in ("guard", "pad"):
        assert tail_of(Dim("i", size), [Axis(*a) for a in axes], policy) == masked
