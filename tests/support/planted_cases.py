"""Kernels and schedules that use every feature of the lowering, for faults planted in them."""

from __future__ import annotations

from collections.abc import Callable

import asts
from asts import buffer, keep, op, reduce, scan, sink
from schedules import TARGET as CPU

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from support.exact_kernels import concat, minus_column_sum, reduce_of_reduce, softmax_like


def elementwise(*shape: int) -> UOp:
    x = buffer(0, *shape)
    return sink((buffer(1, *shape), op(Op.MUL, x, x)))


def transposed(m: int, n: int) -> UOp:
    return sink((buffer(1, n, m), asts.permute(buffer(0, m, n), 1, 0)))


def row_sums(m: int, n: int) -> UOp:
    x = op(Op.ADD, buffer(0, m, n), const(100.0, asts.F))
    return sink((buffer(1, m), reduce(x, "add", 1)))


def rows_and_maxima(m: int, n: int) -> UOp:
    """Two outputs of different dims."""
    x = buffer(0, m, n)
    return sink(
        (buffer(1, m), reduce(x, "add", 1)), (buffer(2, m, n), op(Op.MUL, x, keep(x, "max", 1)))
    )


def half_product(m: int, n: int, k: int) -> UOp:
    """A product of float16 summed in float32."""
    a, b = buffer(0, m, k, dtype=dt.float16), buffer(1, k, n, dtype=dt.float16)
    total = asts.product(asts.cast(a, dt.float32), asts.cast(b, dt.float32))
    return sink((buffer(2, m, n), total))


def padded(m: int, n: int) -> UOp:
    x = asts.pad(buffer(0, m, n), (1, 2), (2, 1), fill=3)
    return sink((buffer(1, m + 3, n + 3), op(Op.NEG, x)))


def strided(m: int, n: int) -> UOp:
    x = asts.flip(asts.shrink(buffer(0, m, n), (1, m, 2), (0, n, 3)), 1)
    rows, columns = -(-(m - 1) // 2), -(-n // 3)
    return sink((buffer(1, rows, columns), op(Op.NEG, x)))


def column_scan(m: int, n: int) -> UOp:
    return sink((buffer(1, m, n), scan(buffer(0, m, n), "add", 0)))


KERNELS: dict[str, Callable[[], UOp]] = {
    "matmul": lambda: asts.matmul(5, 7, 6),
    "halves": lambda: half_product(9, 7, 17),
    "conv": lambda: asts.conv(2, 5, 4, 2, 3),
    "softmax": lambda: asts.softmax(3, 11),
    "softmax-like": softmax_like,
    "column sums": minus_column_sum,
    "reduce of reduce": reduce_of_reduce,
    "argmax": lambda: asts.argmax(4, 13),
    "row scan": lambda: asts.cumsum(3, 9),
    "reverse scan": lambda: asts.cumsum(3, 9, exclusive=True, reverse=True),
    "column scan": lambda: column_scan(7, 5),
    "gather": lambda: asts.take(6, 5, 4),
    "concat": concat,
    "rows": lambda: row_sums(5, 13),
    "two outputs": lambda: rows_and_maxima(5, 9),
    "elementwise": lambda: elementwise(3, 37),
    "transpose": lambda: transposed(7, 9),
    "padded": lambda: padded(4, 5),
    "strided": lambda: strided(7, 10),
    "attention": lambda: asts.attention(3, 5, 4, 3),
}
TARGETS: dict[str, Target] = {"cpu": CPU, "cuda": cuda("sm_80"), "metal": metal()}

# (kernel, target, opts)
CASES: tuple[tuple[str, str, str], ...] = (
    # A CPU: tails peeled, bounded and guarded, lanes, tiles, copies, kept values, threads.
    ("matmul", "cpu", ""),
    ("matmul", "cpu", "UPCAST i 2 · VECTOR j 4 · UNROLL k 4"),
    ("matmul", "cpu", "TILE k 4 · ORDER k/4 i j k · STAGE B @k/4 layout j,k"),
    ("matmul", "cpu", "TILE i 2 · TILE j 3 · ORDER j/3 i/2 k i j"),
    ("matmul", "cpu", "UPCAST k 4 · THREAD i 2 · PREFETCH B"),
    ("matmul", "cpu", "TILE k 2 · ORDER k/2 i j k"),
    ("conv", "cpu", ""),
    ("conv", "cpu", "VECTOR m 4 · UPCAST j 2 · STAGE A @j/2 halo"),
    ("conv", "cpu", "UNROLL l 0 · TILE m 3 · STAGE B @i"),
    ("softmax", "cpu", "VECTOR j.0 4 · VECTOR j.1 4 · VECTOR j 4"),
    ("softmax-like", "cpu", "KEEP v0 @i · UNROLL j.1 3 · VECTOR j 8"),
    ("softmax-like", "cpu", "TILE i 3 · UPCAST j.0 4 · THREAD i/3 2"),
    ("column sums", "cpu", "TILE j 8 · VECTOR j/1 4"),
    ("column sums", "cpu", "UPCAST i.0 2 · UPCAST i 4"),
    ("reduce of reduce", "cpu", "TILE k 4 · UNROLL l 4"),
    ("argmax", "cpu", "UPCAST k 3"),
    ("row scan", "cpu", "UPCAST i 2 · UPCAST j 2"),
    ("reverse scan", "cpu", "TILE j 4"),
    ("column scan", "cpu", "TILE j 2 · ORDER j/2 i j"),
    ("gather", "cpu", "VECTOR j 4 · UPCAST i 3"),
    ("concat", "cpu", "UPCAST i 2 · VECTOR j 4"),
    ("two outputs", "cpu", "UPCAST i 2 · VECTOR j 4"),
    ("elementwise", "cpu", "VECTOR i 8 · UPCAST i/8 2"),
    ("transpose", "cpu", "TILE i 4 · TILE j 4 · ORDER i/4 j/4 i j · STAGE A @j/4"),
    ("padded", "cpu", "VECTOR j 4"),
    ("strided", "cpu", "UPCAST i 2"),
    ("attention", "cpu", "UPCAST j 2"),
    ("rows", "cpu", "THREAD k 2"),
    ("column sums", "cpu", "THREAD i.0 2 · VECTOR j 4"),
    # Grids: guards of launches, groups, tiles, values passed between threads.
    ("matmul", "cuda", ""),
    ("matmul", "cuda", "LOCAL i 2 · LOCAL j 4 · TILE k 4 · STAGE A @k/4 · STAGE B @k/4"),
    ("matmul", "metal", "LOCAL i 4 · LOCAL j 4 · UPCAST i/4 2 · UNROLL k 2"),
    ("matmul", "cuda", "GROUP k 4"),
    ("matmul", "cuda", "GROUPTOP k 2 · LOCAL j 4 · UPCAST i 2"),
    ("matmul", "metal", "LOCAL i 2 · TILE k 2 · STAGE A @k/2 · UPCAST j 4"),
    ("conv", "cuda", "LOCAL m 2 · UPCAST i 2 · UNROLL l 0"),
    ("conv", "metal", "GROUP k 2 · LOCAL j 2"),
    ("softmax", "cuda", "GROUP j.0 4 · GROUP j.1 4 · LOCAL j 8"),
    ("softmax-like", "cuda", "GROUPTOP j.0 4 · GROUP j.1 8 · LOCAL j 4"),
    ("softmax-like", "metal", "TILE i 3 · GROUP j.1 4 · LOCAL j 8"),
    ("softmax-like", "cuda", "LOCAL i 4 · UPCAST j 2"),
    ("column sums", "cuda", "LOCAL j 4"),
    ("column sums", "metal", "GROUP i.0 4 · LOCAL j 8 · LOCAL i 2"),
    ("column sums", "cuda", "LOCAL i 0 · LOCAL j 0 · SWAP i/1 j/1"),
    ("reduce of reduce", "cuda", "GROUP k 4 · UNROLL l 3"),
    ("argmax", "cuda", "GROUP k 4"),
    ("argmax", "metal", "GROUPTOP k 4 · LOCAL i 2"),
    ("row scan", "cuda", "LOCAL i 2"),
    ("reverse scan", "cuda", ""),
    ("gather", "cuda", "LOCAL j 4 · LOCAL i 2"),
    ("concat", "metal", "LOCAL i 2 · LOCAL j 4"),
    ("rows", "cuda", "GROUP k 8"),
    ("rows", "metal", "GROUP k 4 · UPCAST i 2 · UNROLL k/4 2"),
    ("rows", "cuda", "TILE i 2 · GROUPTOP k 4"),
    ("two outputs", "cuda", "GROUP j.0 4 · LOCAL j 4"),
    ("two outputs", "metal", "LOCAL i 2"),
    ("elementwise", "cuda", "LOCAL i 8 · UPCAST i/8 2"),
    ("elementwise", "metal", "UPCAST i 4 · LOCAL i/4 8"),
    ("transpose", "cuda", "LOCAL i 4 · LOCAL j 4 · STAGE A @j/4"),
    ("padded", "cuda", "LOCAL i 2 · LOCAL j 4"),
    ("strided", "cuda", "LOCAL j 2"),
    ("attention", "cuda", "LOCAL j 2 · UPCAST i 3"),
    ("rows", "cuda", "SPLITK k 4"),
    ("rows", "metal", "SPLITK k 2 · GROUP k 0 · LOCAL i 2"),
    ("matmul", "cuda", "SPLITK k 2 · LOCAL j 4"),
    ("argmax", "metal", "SPLITK k 4"),
    # Tensor cores, tiles padded in every dim.
    ("matmul", "metal", "TC 0"),
    ("halves", "cuda", "TC 0"),
)


def build(kernel: str, target: str, opts: str) -> tuple[Kernel, Program]:
    """The kernel without a schedule, and its program under one."""
    plain = index(KERNELS[kernel]())
    chosen = TARGETS[target]
    scheduled = apply_all(plain, parse(opts), chosen) if opts else plain
    return plain, lower(scheduled, chosen)
