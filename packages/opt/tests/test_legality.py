"""Each legality rule, broken: OptError names the kernel, the axis and the reason."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import replace

import bodies
import core_cases
import pytest
from bodies import CPU, GPU

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_opt import legality
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse

N = Variable("n", 1, 100)

ILLEGAL: dict[str, tuple[Kernel, str, str]] = {
    "no such dim": (bodies.matmul(), "UPCAST m 4", "no dim m"),
    "no such axis": (bodies.matmul(), "UPCAST i/2 4", "no axis i/2"),
    "amount 1": (bodies.matmul(), "UPCAST i 1", "2 or more"),
    "upcast too large": (bodies.matmul(), "UPCAST i 17", "more than the target's 16"),
    "upcast whole too large": (bodies.matmul(), "UPCAST i 0", "more than the target's 16"),
    "unroll too large": (bodies.matmul(), "UNROLL k 64", "more than 32"),
    "unroll an output": (bodies.matmul(), "UNROLL i 4", "for reduce axes"),
    "inner axis by no divisor": (bodies.matmul(), "TILE j 256 · UPCAST j 6", "does not divide"),
    "peeled where loops lie inside": (
        bodies.matmul(m=1001),
        "TILE i 4 · UPCAST i/4 4 peel",
        "loops lie inside what is expanded",
    ),
    "loops inside what is peeled": (
        bodies.matmul(m=1001),
        "UPCAST i 16 peel · TILE i/16 4 · UPCAST i/64 2",
        "loops lie inside what is expanded",
    ),
    "upcast twice": (bodies.matmul(), "UPCAST i 4 · UPCAST i 2", "UPCAST already"),
    "no such lanes": (bodies.matmul(), "VECTOR j 5", "no vector of 5 lanes"),
    "lanes of no buffer's dtype": (bodies.matmul(), "VECTOR j 32", "no vector of 32 lanes"),
    "two vectors": (bodies.matmul(), "VECTOR j 4 · VECTOR i 4", "two VECTOR axes"),
    "two vectors in a reduce": (bodies.matmul(), "VECTOR j 4 · VECTOR k 4", "two VECTOR axes"),
    "too many copies": (
        bodies.matmul(),
        "UPCAST i 16 · UPCAST j 16 · UNROLL k 4",
        "written out 1024 times",
    ),
    "symbolic upcast": (bodies.row_sums(N), "UPCAST i 4", "can only loop"),
    "symbolic vector": (bodies.row_sums(N), "VECTOR i 4", "can only loop"),
    "symbolic split in threads again": (
        bodies.row_sums(N),
        "THREAD i 4 · UPCAST i 4",
        "can only loop",
    ),
    "symbolic slices of one step": (bodies.row_sums(N), "THREAD i 0", "in fewer slices than that"),
    "symbolic slices that are padded": (bodies.row_sums(N), "THREAD i 4 pad", "no ragged end"),
    "symbolic tile": (bodies.row_sums(N), "TILE i 4", "can only loop"),
    "order of an upcast axis": (bodies.matmul(), "UPCAST i 4 · ORDER i j", "has no place"),
    "order names twice": (bodies.matmul(), "ORDER i j i", "twice"),
    "order that waits for itself": (bodies.chain(), "ORDER k i j", "wait for each other"),
    "a loop less that waits for itself": (
        bodies.softmax(64, 8),
        "ORDER j.1 j i j.0 · UPCAST j 0",
        "wait for each other",
    ),
    "thread is outermost": (bodies.matmul(), "THREAD i 2 · SWAP i/512 j", "stays outermost"),
    "two threads": (bodies.matmul(), "THREAD i 2 · THREAD j 2", "THREAD axis already"),
    "too many threads": (bodies.matmul(), "THREAD i 8", "more than 4"),
    "three pages": (bodies.add(), "STREAM i 3", "2 or 4 pages"),
    "stream across rows": (bodies.column_sums(4096, 4096), "STREAM k 4", "with stride 1"),
    "stream of little": (bodies.add(4096), "STREAM i 4", "fits the L2"),
    "stream of odd runs": (bodies.add(1 << 20), "TILE i 1022 · STREAM i 4", "equal runs"),
    "stream along a scan": (bodies.running_sum(), "STREAM j 4", "runs in order"),
    "split of an output": (bodies.matmul(), "SPLITK i 4", "for reduce axes"),
    "symbolic split": (bodies.symbolic_sum(N), "SPLITK k 4", "can only loop"),
    "split twice": (bodies.matmul(), "SPLITK k 4 · SPLITK k 2", "lie outside"),
    "split of parts": (bodies.matmul(), "SPLITK k 4 · UPCAST k/256 2", "4 parts already"),
    "some parts a thread": (bodies.matmul(), "SPLITK k 4 · THREAD k/256 2", "4 parts already"),
    "split of an inner axis": (bodies.matmul(), "TILE k 64 · SPLITK k 4", "lie outside"),
    "split inside a reduce": (bodies.sum_of_sums(), "SPLITK l 2", "inside a reduce over k"),
    "threads inside a reduce": (bodies.sum_of_sums(), "THREAD l 2", "inside a reduce over k"),
    "split that waits": (bodies.softmax(), "SPLITK j.1 4", "waits for another reduce"),
    "parts inside": (bodies.matmul(), "SPLITK k 4 · SWAP k/256 k", "stand around k/256"),
    "split beside threads": (bodies.two_sums(), "THREAD k 2 · SPLITK l 2", "over no threads"),
    "copy for two launches": (
        bodies.scaled_sums(),
        "STAGE A · SPLITK k 2",
        "read in two launches",
    ),
    "thread of one statement": (bodies.softmax(), "THREAD j 2", "no dim j"),
    "vector along a scan": (bodies.running_sum(), "VECTOR j 4", "runs in order"),
    "thread along a scan": (bodies.running_sum(), "THREAD j 4", "runs in order"),
    "scan order": (bodies.running_sum(), "TILE j 8 · SWAP j/8 j", "descending stride"),
    "scan outer upcast": (bodies.running_sum(), "TILE j 8 · UPCAST j/8 0", "descending stride"),
    "stage of nothing": (bodies.matmul(), "STAGE D @k", "no access D"),
    "stage of a store elsewhere": (bodies.matmul(), "STAGE C @k", "does not run inside k"),
    "halo of a store": (bodies.matmul(64, 64, 64), "STAGE C halo", "is of a load"),
    "stage of many stores to one": (bodies.all_to_one(), "STAGE B", "stored to one place"),
    "stage of a store that is read": (bodies.in_place(64), "STAGE A.1", "is read in this kernel"),
    "stage of a gather": (bodies.take(), "STAGE B @i", "not affine"),
    "stage twice": (bodies.matmul(), "STAGE A @i · STAGE A @i", "staged already"),
    "stage too large": (bodies.matmul(2048, 2048, 2048), "STAGE B @i", "exceeds"),
    "stage of one element": (bodies.matmul(), "STAGE A @k", "one element"),
    "stage at an upcast": (bodies.matmul(), "UPCAST i 4 · STAGE B @i", "stands in a loop"),
    "stage layout": (bodies.matmul(), "TILE j 64 · STAGE B @j/64 layout j,i", "each axis inside"),
    "stage order": (bodies.matmul(), "TILE j 64 · STAGE B @j/64 order j", "each axis inside"),
    "stage outside threads": (bodies.matmul(), "STAGE B · THREAD i 2", "outside the threads"),
    "stage elsewhere": (bodies.softmax(), "STAGE A.1 @j", "does not run inside"),
    "stage in no common loop": (bodies.twice_read(), "SWAP i j.0 · STAGE A @i", "run in one loop"),
    "converted copy of plain readers": (bodies.matmul(), "STAGE B @i cast", "not every reader"),
    "halo of converted elements": (
        bodies.converted(),
        "STAGE A halo cast",
        "layout, order and type",
    ),
    "stage word": (bodies.matmul(), "STAGE B @i behind", "not understood"),
    "split of a staged axis": (
        bodies.matmul(),
        "TILE j 64 · STAGE B @j/64 layout k,j · VECTOR j 16",
        "each axis inside",
    ),
    "stage axis expanded": (
        bodies.matmul(64, 64, 64),
        "TILE j 8 · STAGE B @j/8 · UPCAST j/8 0",
        "which this step changes",
    ),
    "halo with a layout": (bodies.stencil(), "STAGE A layout i,k halo", "own layout"),
    "symbolic stage": (bodies.row_sums(N), "STAGE A", "without a size"),
    "keep of nothing": (bodies.matmul(), "KEEP v0 @i", "no shared value"),
    "keep elsewhere": (bodies.softmax(), "KEEP v0 @j", "does not run inside"),
    "keep in no common loop": (bodies.softmax(), "SWAP i j.1 · KEEP v0 @i", "run in one loop"),
    "keep twice": (bodies.softmax(), "KEEP v0 @i · KEEP v0 @i", "kept already"),
    "keep with a layout": (bodies.softmax(), "KEEP v0 @i layout j", "axis only"),
    "keep at two places at once": (bodies.added_transpose(), "KEEP v0", "at two places"),
    "keep that waits for itself": (bodies.shares(), "KEEP v0", "wait for each other"),
    "keep behind its only reader": (
        bodies.weighted_squares(),
        "KEEP v0 @i",
        "wait for each other",
    ),
    "keep at another step of a shared loop": (
        bodies.transposed_twice(),
        "KEEP v0",
        "in the loop over i v0 is read at other steps than its own",
    ),
    "keep along a reverse scan": (bodies.reverse_scan(), "KEEP v0", "backwards along one of"),
    "keep of joined parts": (
        bodies.exponents_of_sums(),
        "SPLITK k 4 · KEEP v0",
        "reads the joined parts of a reduce over k",
    ),
    "keep of a reduce": (bodies.kept_reduce(), "KEEP v0 @i", "is a REDUCE itself"),
    "prefetch of nothing": (bodies.matmul(), "PREFETCH D", "no access D"),
    "prefetch twice": (bodies.matmul(), "PREFETCH C · PREFETCH C", "prefetched already"),
    "prefetch of a gather": (bodies.take(), "PREFETCH B", "not affine"),
    "prefetch of one gathered row": (bodies.take_one(), "PREFETCH B", "not affine"),
    "prefetch of now": (bodies.matmul(), "PREFETCH C 0", "one step ahead"),
    "stage of an output": (bodies.in_place(), "STAGE A", "is written in this kernel"),
    "stage under another's mask": (bodies.masked(), "STAGE A @i", "depends on other dims"),
    "halo under a mask of two": (bodies.masked(by_sum=True), "STAGE A halo", "no bound of one"),
    "keep of shifted values": (bodies.outer(shift=1), "KEEP v0", "at shifted places"),
    "keep of repeated values": (bodies.outer(), "KEEP v0", "repeats it along another dim"),
    "nt store twice": (bodies.add(), "VECTOR i 16 · NTSTORE C · NTSTORE C", "already"),
    "nt store of what is read": (bodies.in_place(), "NTSTORE A", "is read in this kernel"),
    "nt store of a load": (bodies.add(), "VECTOR i 16 · NTSTORE A", "not stored to"),
    "nt store that fits": (bodies.add(1024), "VECTOR i 16 · NTSTORE C", "fits the L2"),
    "nt store of scalars": (bodies.add(), "NTSTORE C", "not whole aligned vectors"),
    "nt store of half lines": (bodies.add(), "VECTOR i 4 · NTSTORE C", "not whole aligned"),
    "nt store ragged": (bodies.add((1 << 20) + 1), "VECTOR i 16 · NTSTORE C", "not whole"),
    "no workgroups": (bodies.matmul(), "LOCAL i 8", "needs workgroups"),
    "no shared memory": (bodies.matmul(), "GROUP k 8", "needs workgroups with shared memory"),
    "no tensor cores": (bodies.matmul(), "TC 0", "needs tensor cores"),
}


ILLEGAL_WITH_WORKGROUPS: dict[str, tuple[Kernel, str, str]] = {
    "peeled on the grid": (bodies.matmul(), "UPCAST i 3 peel", "along what is GLOBAL"),
    "local of a reduce": (bodies.matmul(), "LOCAL k 8", "for output axes"),
    "local twice": (bodies.matmul(), "LOCAL i 8 · LOCAL i 4", "LOCAL already"),
    "local of an upcast": (bodies.matmul(), "UPCAST i 4 · LOCAL i 2", "UPCAST already"),
    "local along a scan": (bodies.running_sum(), "LOCAL j 4", "runs in order"),
    "local by no divisor": (bodies.matmul(), "TILE j 64 · LOCAL j 6", "does not divide"),
    "symbolic local": (bodies.row_sums(N), "LOCAL i 4", "can only loop"),
    "local amount": (bodies.matmul(), "LOCAL i 1", "2 or more"),
    "too many threads": (bodies.matmul(), "LOCAL i 64 · LOCAL j 32", "2048 threads are more"),
    "too many with a group": (bodies.matmul(), "LOCAL i 64 · GROUP k 32", "2048 threads are more"),
    "group of an output": (bodies.matmul(), "GROUP i 8", "GROUP is for reduce axes"),
    "grouptop of an output": (bodies.matmul(), "GROUPTOP i 8", "GROUPTOP is for reduce axes"),
    "group of an unroll": (bodies.matmul(), "UNROLL k 4 · GROUP k 2", "UNROLL already"),
    "nested group": (bodies.sum_of_sums(), "GROUP l 4", "runs inside a reduce over k"),
    "locals after NOLOCALS": (bodies.matmul(), "NOLOCALS · LOCAL i 8", "to the runtime"),
    "group after NOLOCALS": (bodies.matmul(), "NOLOCALS · GROUP k 8", "to the runtime"),
    "NOLOCALS after a local": (bodies.matmul(), "LOCAL i 8 · NOLOCALS", "LOCAL already"),
    "NOLOCALS twice": (bodies.matmul(), "NOLOCALS · NOLOCALS", "holds already"),
    "shared memory of parts": (
        bodies.matmul(),
        "UPCAST i 16 · UPCAST j 4 · GROUP k 256",
        "65536 bytes of shared memory",
    ),
    "shared memory of tiles": (
        bodies.matmul(),
        "TILE k 512 · LOCAL i 16 · LOCAL j 16 · STAGE A @k/512 · STAGE B @k/512",
        "65536 bytes of shared memory",
    ),
    "shared memory that grows": (
        bodies.matmul(),
        "TILE k 512 · LOCAL i 16 · STAGE A @k/512 · UPCAST i/16 4",
        "bytes of shared memory",
    ),
    "nt store on a grid": (bodies.add(), "NTSTORE C", "for CPU targets"),
    "across workgroups": (
        bodies.centred(),
        "SWAP j i.0",
        "read at other ids, along j/1",
    ),
    "across workgroups of a tile": (
        bodies.centred(m=64, n=1),
        "SWAP j i.0 · TILE j 4",
        "read at other ids, along j/1",
    ),
    "running value across workgroups": (
        bodies.repeated_running_sum(),
        "SWAP i j",
        "a running value would be read at other ids, along j/1",
    ),
    "parts beyond the grid": (
        bodies.matmul(1 << 31, 1 << 16, 1 << 20),
        "SPLITK k 1048576",
        "workgroups are more than the target's",
    ),
    "tile of part of the grid": (
        bodies.rows_and_all(),
        "TILE i 2 · UPCAST i 0 · STAGE C @i/2",
        "at one step of the grid's j/1 only",
    ),
    "shared memory of kept values": (
        bodies.softmax(n=16384),
        "LOCAL j 32 · KEEP v0 @i",
        "65536 bytes of shared memory",
    ),
    "converted copy together": (
        bodies.converted(),
        "LOCAL j 8 · STAGE A @i cast",
        "elements as they lie",
    ),
    "stage around the grid": (bodies.matmul(), "STAGE A @i", "inside j/1 of the grid"),
    "keep around the grid": (bodies.softmax(), "KEEP v0", "inside i/1 of the grid"),
    "group apart from its reduce": (
        bodies.centred(),
        "GROUP i.0 8 · SWAP i.0 j",
        "other loops stand between the group",
    ),
}


CASES = [(CPU, case) for case in ILLEGAL.values()]
CASES += [(GPU, case) for case in ILLEGAL_WITH_WORKGROUPS.values()]
CASES += [(target, rest) for target, *rest in core_cases.CASES.values()]
NAMES = [*ILLEGAL, *ILLEGAL_WITH_WORKGROUPS, *core_cases.CASES]


@pytest.mark.parametrize(("target", "case"), CASES, ids=NAMES)
def test_illegal(target: Target, case: tuple[Kernel, str, str]) -> None:
    """The step is refused with its reason and the kernel's name; the kernel stays as it is."""
    kernel, text, reason = case
    *first, last = parse(text)
    before = apply_all(kernel, first, target)
    kept = before.schedule
    with pytest.raises(OptError) as caught:
        apply_all(before, [last], target)
    assert reason in str(caught.value)
    assert "kernel" in str(caught.value)
    assert before.schedule is kept


def rules() -> set[str]:
    """Every function of the package `legality` that refuses a step, as `module.function`."""
    found = set()
    for info in pkgutil.iter_modules(legality.__path__):
        module = importlib.import_module(f"{legality.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = function.__module__ == module.__name__
            if own and "refuse" in function.__code__.co_names:
                found.add(f"{info.name}.{name}")
    return found


def broken(target: Target, kernel: Kernel, text: str) -> str:
    """The rule that refuses the last step."""
    with pytest.raises(OptError) as caught:
        apply_all(kernel, parse(text), target)
    frame = caught.traceback[-3]  # the rule calls `refuse`, which calls `fail`
    return f"{frame.path.stem}.{frame.name}"


def test_every_rule_is_broken() -> None:
    """Each rule refuses some step of the tables above, and says why in one sentence of its own."""
    found = {broken(target, kernel, text) for target, (kernel, text, _) in CASES}
    found |= {broken(target, kernel, text) for target, kernel, text in ELSEWHERE}
    assert rules() - found == set()
    for name in rules():
        module, _, function = name.partition(".")
        rule = getattr(importlib.import_module(f"{legality.__name__}.{module}"), function)
        assert rule.__doc__, name


SMALL_GRID = replace(GPU, global_max=(64, 16, 4))
SCALAR = replace(CPU, vector_bytes=(), threads=1)
# Rules that ask what only other targets lack.
ELSEWHERE: list[tuple[Target, Kernel, str]] = [
    (SCALAR, bodies.matmul(), "VECTOR j 4"),
    (SMALL_GRID, bodies.matmul(m=64, n=33), "TILE j 32 · TILE i 48 · TILE j/32 4"),
]


def test_a_target_without_vectors_or_threads() -> None:
    """What the target lacks is named."""
    with pytest.raises(OptError, match="has no vectors"):
        apply_all(bodies.matmul(), parse("VECTOR j 4"), SCALAR)
    with pytest.raises(OptError, match="one thread"):
        apply_all(bodies.matmul(), parse("THREAD i 2"), SCALAR)
