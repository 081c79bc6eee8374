"""Loads and stores: masked, gathered, scattered, guarded, streamed; locals, scratch, threads."""

from __future__ import annotations

import numpy as np
import pytest
from level3 import I32, I64, Builder, assert_same, check, installed, run_c, run_oracle

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp, const
from loopwright_core.program.cstyle import scratch_bytes
from loopwright_core.program.program import Program
from loopwright_render_clang.cpu import host, variant
from loopwright_render_clang.render import render

COMPILERS = sorted(installed())
KINDS = (dt.bool_, dt.uint8, dt.int16, dt.bfloat16, dt.int32, dt.float32, dt.uint64, dt.float64)


def array(dtype: DType, n: int) -> np.ndarray:
    values = np.arange(n) % 2 if dtype.is_bool else np.arange(n) % 100 + 1
    return values.astype(dtype.numpy)


def row_sum() -> Program:
    """The example of docs/ir.md."""
    b = Builder("row_sum")
    n = b.variable("n", 1, 4096)
    a = b.buffer("A", dt.float32, (1, 64))
    c = b.buffer("B", dt.float32, (1,), True)
    b.params[0] = b.params[0].__class__(0, "A", dt.float32, (b.variables[0], 64), False)
    b.params[1] = b.params[1].__class__(1, "B", dt.float32, (b.variables[0],), True)
    a = UOp(Op.BUFFER, dt.float32, (), a.arg.__class__(0, (b.variables[0], 64)))
    c = UOp(Op.BUFFER, dt.float32, (), c.arg.__class__(1, (b.variables[0],)))
    with b.loop(n, "i") as i:
        acc = b.reg(const(0.0, dt.float32), "acc")
        with b.loop(64, "k") as k:
            old = b.after(acc, k)
            x = b.load(a, b.op(Op.ADD, b.op(Op.MUL, i, const(64, I32)), k))
            b.assign(old, b.op(Op.ADD, old, x))
        b.store(c, i, b.after(acc, b.uops[-1]))
    return b.program()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_row_sum(compiler: str) -> None:
    """One text serves every number of rows."""
    program = row_sum()
    verify_program(program)
    for n in (1, 3, 100):
        a = (np.arange(n * 64) % 17).astype(np.float32).reshape(n, 64)
        check(program, [a, np.zeros(n, np.float32)], [n], installed()[compiler])


def test_row_sum_text() -> None:
    """The text of the row sum is what a person would write."""
    assert render(row_sum(), variant("x86-64-v3")).splitlines()[1:] == [
        "void row_sum(const float *restrict A, float *restrict B, int n) {",
        "    for (int i = 0; i < n; i++) {",
        "        float acc = 0.0f;",
        "        for (int k = 0; k < 64; k++) {",
        "            acc += A[i * 64 + k];",
        "        }",
        "        B[i] = acc;",
        "    }",
        "}",
    ]


def masked(dtype: DType, lanes: int, general: bool) -> tuple[Program, list[np.ndarray]]:
    """For every n of 0 .. lanes: load and store the first n lanes at the very end of arrays."""
    b = Builder(f"masked_{dtype}_{lanes}")
    arrays: list[np.ndarray] = []
    for n in range(lanes + 1):
        x = b.buffer(f"x{n}", dtype, (max(n, 1),))
        y = b.buffer(f"y{n}", dtype, (max(n, 1),), True)
        z = b.buffer(f"z{n}", dtype, (lanes,), True)
        arrays += [array(dtype, max(n, 1)), np.zeros(max(n, 1), dtype.numpy)]
        arrays.append(np.zeros(lanes, dtype.numpy))
        if general:
            limit = b.splat(b.add(Op.CAST, I64, const(n, I32)), lanes)
            mask = b.op(Op.CMPLT, b.iota(const(0, I64), lanes), limit)
        else:
            mask = b.lanes(dt.bool_, [k < n for k in range(lanes)])
        zero = b.splat(const(0, dtype), lanes)
        one = b.splat(const(1, dtype), lanes)
        v = b.load(x, 0, lanes, mask, zero)
        w = b.load(x, 0, lanes, mask, one)
        b.store(y, 0, v, mask)
        b.store(z, 0, w)
    return b.program(), arrays


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("general", [False, True], ids=["prefix", "general"])
def test_masked_tails(dtype: DType, general: bool) -> None:
    """A masked access touches its lanes and no byte more, for every number of lanes."""
    lanes = 16 if dtype.bits <= 16 else 32 // dtype.itemsize
    program, arrays = masked(dtype, lanes, general)
    check(program, arrays)


@pytest.mark.parametrize("compiler", [c for c in COMPILERS if c != "gcc"])
def test_masked_tails_elsewhere(compiler: str) -> None:
    """The other compilers agree about masked access."""
    for dtype in (dt.float32, dt.int64, dt.uint8):
        program, arrays = masked(dtype, 8 if dtype.bits == 8 else 32 // dtype.itemsize, True)
        check(program, arrays, compiler=installed()[compiler])


def gathers(dtype: DType, lanes: int, offset: DType) -> tuple[Program, list[np.ndarray]]:
    b = Builder(f"gather_{dtype}_{offset}")
    n = 4 * lanes
    x = b.buffer("x", dtype, (n,))
    p = b.buffer("p", offset, (n,))
    outs = [b.buffer(f"o{k}", dtype, (n,), True) for k in range(5)]
    order = np.random.default_rng(3).permutation(n)
    arrays = [array(dtype, n), order.astype(offset.numpy)]
    arrays += [np.zeros(n, dtype.numpy) for _ in outs]
    with b.loop(4, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32))
        where = b.load(p, at, lanes)
        v = b.load(x, where, lanes)
        b.store(outs[0], at, v)
        b.store(outs[1], where, v)
        few = b.op(Op.CMPLT, where, b.splat(const(n // 2, offset), lanes))
        w = b.load(x, where, lanes, few, b.splat(const(1, dtype), lanes))
        b.store(outs[2], at, w)
        b.store(outs[3], where, w, few)
        strides = b.lanes(I32, [4 * k for k in range(lanes)])
        b.store(outs[4], at, b.load(x, b.op(Op.ADD, b.splat(i, lanes), strides), lanes))
    return b.program(), arrays


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_gather_and_scatter(dtype: DType) -> None:
    """Vector offsets read and write one element a lane, with and without a mask."""
    offset = I64 if dtype.bits == 64 else I32
    program, arrays = gathers(dtype, 8, offset)
    verify_program(program)
    check(program, arrays)


def test_guarded_access() -> None:
    """A scalar condition guards scalar and vector loads and stores."""
    b = Builder()
    x = b.buffer("x", dt.float32, (16,))
    y = b.buffer("y", dt.float32, (16,), True)
    z = b.buffer("z", dt.float32, (20,), True)
    w = b.buffer("w", dt.float32, (16,), True)
    with b.loop(20, "i") as i:
        inside = b.op(Op.CMPLT, i, const(16, I32))
        v = b.load(x, i, 1, inside, const(-1.0, dt.float32))
        b.store(z, i, v)
        b.store(y, i, b.op(Op.ADD, v, v), inside)
    with b.loop(3, "j") as j:
        inside = b.op(Op.CMPLT, j, const(2, I32))
        at = b.op(Op.MUL, j, const(8, I32))
        fill = b.splat(const(2.0, dt.float32), 8)
        v = b.load(x, at, 8, inside, fill)
        b.store(w, at, b.op(Op.MUL, v, fill), inside)
    outputs = [np.zeros(n, "f4") for n in (16, 20, 16)]
    check(b.program(), [array(dt.float32, 16), *outputs])


def test_branches() -> None:
    """IF runs its body under its condition, nested in loops."""
    b = Builder()
    out = b.buffer("out", dt.int32, (10,), True)
    with b.loop(10, "i") as i:
        odd = b.op(Op.CMPEQ, b.op(Op.CMOD, i, const(2, I32)), const(1, I32))
        branch = b.add(Op.IF, dt.void, odd, arg=1)
        b.store(out, i, b.op(Op.MUL, i, i))
        b.add(Op.ENDIF, dt.void, branch)
    check(b.program(), [np.zeros(10, np.int32)])


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.int16, dt.uint32], ids=str)
def test_streaming_stores(dtype: DType) -> None:
    """Stores around the cache write the same, at addresses of any alignment."""
    lanes = 32 // dtype.itemsize
    b = Builder()
    x = b.buffer("x", dtype, (4 * lanes,))
    y = b.buffer("y", dtype, (4 * lanes,), True)
    z = b.buffer("z", dtype, (4 * lanes + 1,), True)
    with b.loop(4, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32))
        b.add(Op.PREFETCH, dt.void, b.index(x, at))
        b.store(z, b.op(Op.ADD, at, const(1, I32)), b.load(x, at, lanes), arg="nt")
        b.store(y, at, b.load(x, at, lanes), arg="nt")
    b.add(Op.FENCE, dt.void)
    outputs = [np.zeros(4 * lanes + n, dtype.numpy) for n in (0, 1)]
    check(b.program(), [array(dtype, 4 * lanes), *outputs])


def with_locals(sizes: list[int], threads: int) -> tuple[Program, list[np.ndarray]]:
    """Each thread writes through its local arrays."""
    b = Builder("with_locals")
    b.threads = threads
    out = b.buffer("out", dt.float32, (threads * len(sizes),), True)
    thread = UOp(Op.SPECIAL, I32, (), ("thread", threads)) if threads > 1 else const(0, I32)
    start = b.op(Op.MUL, thread, const(1000, I32))
    first = b.op(Op.MUL, thread, const(len(sizes), I32))
    for number, size in enumerate(sizes):
        local = b.local(dt.float32, size, "stage")
        with b.loop(size, "i") as i:
            shifted = b.op(Op.ADD, i, start)
            store = b.store(local, i, b.op(Op.CAST, shifted, dtype=dt.float32))
        later = b.after(local, store, b.uops[-1])
        at = b.op(Op.ADD, first, const(number, I32))
        b.store(out, at, b.load(later, const(size - 1, I32)))
    return b.program(), [np.zeros(threads * len(sizes), np.float32)]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_local_arrays(threads: int) -> None:
    """Small arrays are on the stack, large ones in the thread's own scratch memory."""
    program, arrays = with_locals([100, 5000, 9000, 300], threads)
    verify_program(program)
    assert scratch_bytes(program) == 36032  # 9000 floats in whole cache lines
    check(program, arrays)
    assert "scratch" in render(program, host())
    small, arrays = with_locals([100, 300], threads)
    assert scratch_bytes(small) == 0
    check(small, arrays)


def test_phases() -> None:
    """Phases run in order; each sees what the one before it wrote."""
    b = Builder("two")
    x = b.buffer("x", dt.float32, (64,))
    part = b.buffer("part", dt.float32, (4,), True)
    out = b.buffer("out", dt.float32, (1,), True)
    b.threads = 4
    thread = UOp(Op.SPECIAL, I32, (), ("thread", 4))
    acc = b.reg(const(0.0, dt.float32), "acc")
    with b.loop(16, "i") as i:
        at = b.op(Op.ADD, b.op(Op.MUL, thread, const(16, I32)), i)
        old = b.after(acc, i)
        b.assign(old, b.op(Op.ADD, old, b.load(x, at)))
    b.store(part, thread, b.after(acc, b.uops[-1]))
    b.next_phase()
    acc = b.reg(const(0.0, dt.float32), "acc")
    with b.loop(4, "i") as i:
        old = b.after(acc, i)
        b.assign(old, b.op(Op.ADD, old, b.load(part, i)))
    b.store(out, 0, b.after(acc, b.uops[-1]))
    check(b.program(), [array(dt.float32, 64), np.zeros(4, "f4"), np.zeros(1, "f4")])


def test_order_of_reads_and_writes() -> None:
    """A value read before a store keeps its value, though it is used once and later."""
    b = Builder()
    y = b.buffer("y", dt.int32, (4,), True)
    first = b.load(y, 0)
    store = b.store(y, 0, const(7, I32))
    second = b.load(b.after(y, store), 0)
    b.store(b.after(y, store), 1, first)
    b.store(b.after(y, store), 2, second)
    reg = b.reg(const(1, I32), "r")
    before = b.op(Op.ADD, reg, const(10, I32))
    new = b.assign(reg, const(5, I32))
    b.store(b.after(y, store), 3, b.op(Op.ADD, before, new))
    program = b.program()
    data = np.array([1, 2, 3, 4], np.int32)
    (got,) = run_c(program, [data])
    assert got.tolist() == [7, 1, 7, 16]
    assert_same([got], run_oracle(program, [data]))


def test_register_as_offset() -> None:
    """An offset that is a register is read where its INDEX stands."""
    b = Builder()
    y = b.buffer("y", dt.int32, (4,), True)
    reg = b.reg(const(1, I32), "r")
    where = b.index(y, reg)
    new = b.assign(reg, const(3, I32))
    b.add(Op.STORE, dt.void, where, const(9, I32))
    b.store(y, new, const(8, I32))
    (got,) = run_c(b.program(), [np.zeros(4, np.int32)])
    assert got.tolist() == [0, 9, 0, 8]


def test_truth_register_in_all_lanes() -> None:
    """A register of one truth value, spread over lanes, is read where it is spread."""
    b = Builder()
    x, y = b.buffer("x", dt.float32, (8,)), b.buffer("y", dt.float32, (24,), True)
    reg = b.reg(const(True, dt.bool_), "r")
    v = b.load(x, 0, 8)
    zero = b.splat(const(0.0, dt.float32), 8)
    spread = b.splat(reg, 8)
    new = b.assign(reg, const(False, dt.bool_))
    b.store(y, 0, b.op(Op.WHERE, spread, v, zero))
    b.store(y, 8, v, spread)
    b.store(y, 16, b.op(Op.WHERE, b.splat(new, 8), v, zero))
    (got,) = run_c(b.program(), [np.ones(8, np.float32), np.zeros(24, np.float32)])
    assert got.tolist() == [1.0] * 16 + [0.0] * 8


def test_a_bound_is_read_once() -> None:
    """A loop's bound that the body changes is the one before the loop."""
    b = Builder()
    y = b.buffer("y", dt.int32, (8,), True)
    with b.loop(b.load(y, 0), "i") as i:
        b.store(y, b.op(Op.CMOD, i, const(2, I32)), const(1, I32))
        b.store(y, b.op(Op.ADD, i, const(2, I32)), const(5, I32))
    (got,) = run_c(b.program(), [np.array([3, 0, 0, 0, 0, 0, 0, 0], np.int32)])
    assert got.tolist() == [1, 1, 5, 5, 5, 0, 0, 0]
