"""Each legality rule, broken: OptError names the kernel, the axis and the reason."""

from __future__ import annotations

from dataclasses import replace

import bodies
import pytest
from bodies import CPU

from loopwright_core.errors import OptError
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
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
    "symbolic tile": (bodies.row_sums(N), "TILE i 4", "can only loop"),
    "order of an upcast axis": (bodies.matmul(), "UPCAST i 4 · ORDER i j", "has no place"),
    "order names twice": (bodies.matmul(), "ORDER i j i", "twice"),
    "thread is outermost": (bodies.matmul(), "THREAD i 2 · SWAP i/512 j", "stays outermost"),
    "two threads": (bodies.matmul(), "THREAD i 2 · THREAD j 2", "THREAD axis already"),
    "too many threads": (bodies.matmul(), "THREAD i 8", "more than 4"),
    "thread of a reduce": (bodies.matmul(), "THREAD k 2", "not split over threads"),
    "thread of one statement": (bodies.softmax(), "THREAD j 2", "no dim j"),
    "vector along a scan": (bodies.running_sum(), "VECTOR j 4", "runs in order"),
    "thread along a scan": (bodies.running_sum(), "THREAD j 4", "runs in order"),
    "scan order": (bodies.running_sum(), "TILE j 8 · SWAP j/8 j", "descending stride"),
    "scan outer upcast": (bodies.running_sum(), "TILE j 8 · UPCAST j/8 0", "descending stride"),
    "stage of nothing": (bodies.matmul(), "STAGE D @k", "no access D"),
    "stage of a store": (bodies.matmul(), "STAGE C @k", "only loads"),
    "stage of a gather": (bodies.take(), "STAGE B @i", "not affine"),
    "stage twice": (bodies.matmul(), "STAGE A @i · STAGE A @i", "staged already"),
    "stage too large": (bodies.matmul(2048, 2048, 2048), "STAGE B @i", "exceeds"),
    "stage of one element": (bodies.matmul(), "STAGE A @k", "one element"),
    "stage at an upcast": (bodies.matmul(), "UPCAST i 4 · STAGE B @i", "stands in a loop"),
    "stage layout": (bodies.matmul(), "TILE j 64 · STAGE B @j/64 layout j,i", "each axis inside"),
    "stage order": (bodies.matmul(), "TILE j 64 · STAGE B @j/64 order j", "each axis inside"),
    "stage outside threads": (bodies.matmul(), "STAGE B · THREAD i 2", "outside the threads"),
    "stage elsewhere": (bodies.softmax(), "STAGE A.1 @j", "does not run inside"),
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
    "prefetch of nothing": (bodies.matmul(), "PREFETCH D", "no access D"),
    "prefetch twice": (bodies.matmul(), "PREFETCH C · PREFETCH C", "prefetched already"),
    "prefetch of a gather": (bodies.take(), "PREFETCH B", "not affine"),
    "nt store of a load": (bodies.add(), "VECTOR i 16 · NTSTORE A", "not stored to"),
    "nt store that fits": (bodies.add(1024), "VECTOR i 16 · NTSTORE C", "fits the L2"),
    "nt store of scalars": (bodies.add(), "NTSTORE C", "not whole aligned vectors"),
    "nt store of half lines": (bodies.add(), "VECTOR i 4 · NTSTORE C", "not whole aligned"),
    "nt store ragged": (bodies.add((1 << 20) + 1), "VECTOR i 16 · NTSTORE C", "not whole"),
    "no workgroups": (bodies.matmul(), "LOCAL i 8", "needs workgroups"),
    "no shared memory": (bodies.matmul(), "GROUP k 8", "needs workgroups with shared memory"),
    "no tensor cores": (bodies.matmul(), "TC 0", "needs tensor cores"),
    "no phases": (bodies.matmul(), "SPLITK k 4", "several phases"),
}


@pytest.mark.parametrize("case", ILLEGAL)
def test_illegal(case: str) -> None:
    """The step is refused with its reason and the kernel's name; the kernel stays as it is."""
    kernel, text, reason = ILLEGAL[case]
    *first, last = parse(text)
    before = apply_all(kernel, first, CPU)
    kept = before.schedule
    with pytest.raises(OptError) as caught:
        apply_all(before, [last], CPU)
    assert reason in str(caught.value)
    assert "kernel" in str(caught.value)
    assert before.schedule is kept


def test_a_target_without_vectors_or_threads() -> None:
    """What the target lacks is named."""
    scalar: Target = replace(CPU, vector_bytes=(), threads=1)
    with pytest.raises(OptError, match="has no vectors"):
        apply_all(bodies.matmul(), parse("VECTOR j 4"), scalar)
    with pytest.raises(OptError, match="one thread"):
        apply_all(bodies.matmul(), parse("THREAD i 2"), scalar)


def test_orders_that_wait_for_each_other() -> None:
    """A loop order under which statements would wait for each other is refused or nests."""
    kernel = bodies.softmax()
    for text in ("ORDER j.0 j.1 i", "ORDER j i", "SWAP j j.1"):
        try:
            apply_all(kernel, parse(text), CPU)
        except OptError as error:
            assert "wait" in str(error)
