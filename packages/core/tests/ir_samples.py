"""Small legal IR of every level, with NumPy's answers: what oracle and spec tests share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.integer import add, and_, ge, lt, sub, where
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Buffer, Extent, UOp, Variable, const
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import initial_schedule
from loopwright_core.program.program import (
    Estimate,
    Local,
    Loop,
    Param,
    Phase,
    Program,
    Register,
)

F32, I32 = dt.float32, dt.int32


def u(op: Op, dtype: DType, *src: UOp, arg: Any = None) -> UOp:
    """A node."""
    return UOp(op, dtype, src, arg)


def f(op: Op, *src: UOp, arg: Any = None) -> UOp:
    """A float32 node."""
    return UOp(op, F32, src, arg)


def buffer(slot: int, shape: tuple[Extent, ...], dtype: DType = F32) -> UOp:
    return u(Op.BUFFER, dtype, arg=Buffer(slot, shape))


def sink(*stores: tuple[UOp, UOp]) -> UOp:
    """A SINK of STOREs, from (view or INDEX, value) pairs."""
    return u(Op.SINK, dt.void, *[u(Op.STORE, dt.void, to, value) for to, value in stores])


def at(b: UOp, shape: tuple[Extent, ...], *indices: UOp, valid: UOp = TRUE) -> UOp:
    """A level-2 INDEX."""
    return u(Op.INDEX, b.dtype, b, *indices, valid, arg=shape)


def load(b: UOp, shape: tuple[Extent, ...], *indices: UOp, valid: UOp = TRUE) -> UOp:
    """A level-2 LOAD with fill 0."""
    return u(Op.LOAD, b.dtype, at(b, shape, *indices, valid=valid), const(0, b.dtype))


def kernel(body: UOp, *dims: UOp) -> Kernel:
    """A kernel over those DIM nodes with its initial schedule."""
    found = tuple([d.arg for d in dims])
    return Kernel("sample", body, found, initial_schedule(found))


@dataclass(frozen=True)
class Sample:
    """One computation at levels 1 and 2; the output's slot comes after the inputs'."""

    name: str
    tensor: UOp
    kernel: Kernel
    inputs: tuple[np.ndarray[Any, Any], ...]
    expected: np.ndarray[Any, Any]

    def buffers(self) -> dict[int, np.ndarray[Any, Any]]:
        """Inputs and an output of garbage, by slot."""
        out = np.full(self.expected.shape, 77, self.expected.dtype)
        return dict(enumerate((*self.inputs, out)))


_rng = np.random.default_rng(7)


def _ints(*shape: int) -> np.ndarray[Any, Any]:
    return _rng.integers(-9, 10, shape).astype(np.float32)


def matmul(n: int = 5, m: int = 3, k: int = 4) -> Sample:
    a, b, c = buffer(0, (n, k)), buffer(1, (k, m)), buffer(2, (n, m))
    x = f(Op.EXPAND, f(Op.RESHAPE, a, arg=(n, 1, k)), arg=(n, m, k))
    y = f(Op.RESHAPE, f(Op.PERMUTE, b, arg=(1, 0)), arg=(1, m, k))
    product = f(Op.MUL, x, f(Op.EXPAND, y, arg=(n, m, k)))
    tensor = sink((c, f(Op.REDUCE, product, arg=("add", (2,)))))
    i, j, r = Dim("i", n).uop, Dim("j", m).uop, Dim("k", k, True).uop
    product = f(Op.MUL, load(a, (n, k), i, r), load(b, (k, m), r, j))
    body = sink((at(c, (n, m), i, j), f(Op.REDUCE, product, r, arg=("add",))))
    left, right = _ints(n, k), _ints(k, m)
    return Sample("matmul", tensor, kernel(body, i, j, r), (left, right), left @ right)


def softmax() -> Sample:
    a, c = buffer(0, (4, 6)), buffer(1, (4, 6))

    def row(x: UOp, combine: str) -> UOp:
        reduced = f(Op.REDUCE, x, arg=(combine, (1,)))
        return f(Op.EXPAND, f(Op.RESHAPE, reduced, arg=(4, 1)), arg=(4, 6))

    e = f(Op.EXP, f(Op.SUB, a, row(a, "max")))
    tensor = sink((c, f(Op.DIV, e, row(e, "add"))))
    i, j = Dim("i", 4).uop, Dim("j", 6).uop
    j0, j1 = Dim("j.0", 6, True).uop, Dim("j.1", 6, True).uop
    top = f(Op.REDUCE, load(a, (4, 6), i, j0), j0, arg=("max",))

    def shifted(j: UOp) -> UOp:
        return f(Op.EXP, f(Op.SUB, load(a, (4, 6), i, j), top))

    total = f(Op.REDUCE, shifted(j1), j1, arg=("add",))
    body = sink((at(c, (4, 6), i, j), f(Op.DIV, shifted(j), total)))
    x = _ints(4, 6)
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    expected = (wide / wide.sum(axis=1, keepdims=True)).astype(np.float32)
    return Sample("softmax", tensor, kernel(body, i, j, j0, j1), (x,), expected)


def conv() -> Sample:
    """A 3 by 3 correlation over an image padded by one."""
    a, w, c = buffer(0, (6, 7)), buffer(1, (3, 3)), buffer(2, (6, 7))
    padded = f(Op.PAD, a, const(0.0, F32), arg=((1, 1), (1, 1)))
    tiles = f(Op.WINDOW, f(Op.WINDOW, padded, arg=(0, 3, 1, 1)), arg=(1, 3, 1, 1))
    weights = f(Op.EXPAND, f(Op.RESHAPE, w, arg=(1, 1, 3, 3)), arg=(6, 7, 3, 3))
    tensor = sink((c, f(Op.REDUCE, f(Op.MUL, tiles, weights), arg=("add", (2, 3)))))
    i, j = Dim("i", 6).uop, Dim("j", 7).uop
    k, m = Dim("k", 3, True).uop, Dim("l", 3, True).uop
    y, x = sub(add(i, k), 1), sub(add(j, m), 1)
    valid = and_(ge(y, 0), lt(y, 6), ge(x, 0), lt(x, 7))
    product = f(Op.MUL, load(a, (6, 7), y, x, valid=valid), load(w, (3, 3), k, m))
    body = sink((at(c, (6, 7), i, j), f(Op.REDUCE, product, k, m, arg=("add",))))
    image, filt = _ints(6, 7), _ints(3, 3)
    views = np.lib.stride_tricks.sliding_window_view(np.pad(image, 1), (3, 3))
    expected = (views * filt).sum(axis=(2, 3))
    return Sample("conv", tensor, kernel(body, i, j, k, m), (image, filt), expected)


def argmax() -> Sample:
    a, c = buffer(0, (4, 9)), buffer(1, (4,), I32)
    places = u(Op.IOTA, I32, arg=((4, 9), 1))
    pair = u(Op.REDUCE, dt.void, a, places, arg=("argmax", (1,)))
    tensor = sink((c, u(Op.ITEM, I32, pair, arg=1)))
    i, k = Dim("i", 4).uop, Dim("k", 9, True).uop
    values = (load(a, (4, 9), i, k), u(Op.CAST, I32, k))
    pair = u(Op.REDUCE, dt.void, *values, k, arg=("argmax",))
    body = sink((at(c, (4,), i), u(Op.ITEM, I32, pair, arg=1)))
    x = _ints(4, 9)
    x[1, 5] = np.nan
    x[2] = 3
    return Sample("argmax", tensor, kernel(body, i, k), (x,), x.argmax(axis=1).astype(np.int32))


def cumsum(exclusive: bool = False, reverse: bool = False) -> Sample:
    a, c = buffer(0, (3, 8)), buffer(1, (3, 8))
    tensor = sink((c, f(Op.SCAN, a, arg=("add", 1, exclusive, reverse))))
    i, j = Dim("i", 3).uop, Dim("j", 8).uop
    running = f(Op.SCAN, load(a, (3, 8), i, j), j, arg=("add", exclusive, reverse))
    body = sink((at(c, (3, 8), i, j), running))
    x = _ints(3, 8)
    walked = x[:, ::-1] if reverse else x
    sums = np.cumsum(walked, axis=1, dtype=np.float32)
    sums = sums - walked if exclusive else sums
    expected = sums[:, ::-1] if reverse else sums
    name = f"cumsum-{exclusive}-{reverse}"
    return Sample(name, tensor, kernel(body, i, j), (x,), np.ascontiguousarray(expected))


def gather() -> Sample:
    """Rows by index; a negative one from the end, one out of range reads 0."""
    y, ids, c = buffer(0, (5, 3)), buffer(1, (4,), I32), buffer(2, (4, 3))
    tensor = sink((c, f(Op.GATHER, y, ids, arg=0)))
    i, j = Dim("i", 4).uop, Dim("j", 3).uop
    at_ = u(Op.CAST, dt.index, load(ids, (4,), i))
    row = where(lt(at_, 0), add(at_, 5), at_)
    value = load(y, (5, 3), row, j, valid=and_(ge(row, 0), lt(row, 5)))
    body = sink((at(c, (4, 3), i, j), value))
    table = _ints(5, 3)
    wanted = np.array([4, -2, 9, -6], np.int32)
    expected = np.array([table[4], table[3], [0] * 3, [0] * 3], np.float32)
    return Sample("gather", tensor, kernel(body, i, j), (table, wanted), expected)


def reduce_of_reduce() -> Sample:
    """The largest row sum, a scalar."""
    a, c = buffer(0, (5, 6)), buffer(1, ())
    rows = f(Op.REDUCE, a, arg=("add", (1,)))
    tensor = sink((c, f(Op.REDUCE, rows, arg=("max", (0,)))))
    k, m = Dim("k", 5, True).uop, Dim("l", 6, True).uop
    rows = f(Op.REDUCE, load(a, (5, 6), k, m), m, arg=("add",))
    body = sink((at(c, ()), f(Op.REDUCE, rows, k, arg=("max",))))
    x = _ints(5, 6)
    return Sample("reduce_of_reduce", tensor, kernel(body, k, m), (x,), x.sum(axis=1).max())


def samples() -> list[Sample]:
    """All of them."""
    scans = [cumsum(e, r) for e in (False, True) for r in (False, True)]
    return [matmul(), softmax(), conv(), argmax(), *scans, gather(), reduce_of_reduce()]


# Level 3.


def param(slot: int, shape: tuple[Extent, ...], is_output: bool, dtype: DType = F32) -> Param:
    return Param(slot, "ABCDEFGH"[slot], dtype, shape, is_output)


def program(
    uops: Sequence[UOp],
    *params: Param,
    variables: tuple[Variable, ...] = (),
    threads: int = 1,
) -> Program:
    """A program of one phase."""
    phase = Phase("sample", tuple(uops), threads)
    return Program("sample", (phase,), params, variables, Estimate(0, 0))


def place(storage: UOp, offset: UOp, *valid: UOp) -> UOp:
    """A level-3 INDEX."""
    return u(Op.INDEX, storage.dtype, storage, offset, *valid)


def int_(value: int) -> UOp:
    return const(value, I32)


def loop(extent: UOp | int, number: int = 0) -> UOp:
    size = extent if isinstance(extent, UOp) else int_(extent)
    return u(Op.RANGE, size.dtype, size, arg=Loop(number, f"r{number}"))


def end(opener: UOp) -> UOp:
    return u(Op.END if opener.op is Op.RANGE else Op.ENDIF, dt.void, opener)


def store(index: UOp, value: UOp) -> UOp:
    return u(Op.STORE, dt.void, index, value)


def listed(*roots: UOp) -> list[UOp]:
    """The nodes of straight-line code in order, leaves left out."""
    seen: dict[UOp, None] = {}
    for root in roots:
        for node in root.toposort():
            if node.op not in (Op.CONST, Op.VAR, Op.BUFFER, Op.SPECIAL):
                seen.setdefault(node)
    return list(seen)


N = Variable("n", 1, 4096)


def row_sum() -> Program:
    """The example of the IR's manual: the row sums of A[n, 64] into B[n]."""
    a, b = buffer(0, (N, 64)), buffer(1, (N,))
    r0, r1 = loop(u(Op.VAR, I32, arg=N), 0), loop(64, 1)
    acc = f(Op.DEFINE_REG, const(0.0, F32), arg=Register(0, "acc"))
    inside = f(Op.AFTER, acc, r1)
    offset = u(Op.ADD, I32, u(Op.MUL, I32, r0, int_(64)), r1)
    index = place(a, offset)
    x = f(Op.LOAD, index)
    total = f(Op.ADD, inside, x)
    assign = f(Op.ASSIGN, inside, total)
    e1, out = end(r1), place(b, r0)
    final = f(Op.AFTER, acc, e1)
    body = [r0, acc, r1, inside, offset.src[0], offset, index, x, total, assign, e1]
    body += [final, out, store(out, final), end(r0)]
    return program(body, param(0, (N, 64), False), param(1, (N,), True), variables=(N,))


def masked_add(n: int = 10, lanes: int = 4) -> Program:
    """B = A + 1 in vectors, the last one under a mask of lanes."""
    a, b = buffer(0, (n,)), buffer(1, (n,))
    vec, ints, mask = F32.vec(lanes), I32.vec(lanes), dt.bool_.vec(lanes)
    r = loop(-(-n // lanes))
    first = u(Op.MUL, I32, r, int_(lanes))
    steps = u(Op.VECTORIZE, ints, *[int_(k) for k in range(lanes)])
    each = u(Op.ADD, ints, u(Op.BROADCAST, ints, first), steps)
    inside = u(Op.CMPLT, mask, each, const(n, ints))
    x = u(Op.LOAD, vec, place(a, first, inside), const(0.0, vec))
    y = u(Op.ADD, vec, x, const(1.0, vec))
    body = listed(store(place(b, first, inside), y))
    body = [r, *[node for node in body if node is not r], end(r)]
    return program(body, param(0, (n,), False), param(1, (n,), True))


def staged(n: int = 6) -> Program:
    """B[i] = A[n-1-i] through a local array."""
    a, b = buffer(0, (n,)), buffer(1, (n,))
    tile = f(Op.DEFINE_LOCAL, arg=Local(0, "tile", n))
    r0, r1 = loop(n, 0), loop(n, 1)
    x = f(Op.LOAD, place(a, r0))
    put = store(place(tile, r0), x)
    e0 = end(r0)
    full = f(Op.AFTER, tile, e0)
    back = u(Op.SUB, I32, int_(n - 1), r1)
    y = f(Op.LOAD, place(full, back))
    write = store(place(b, r1), y)
    body = [tile, r0, place(a, r0), x, place(tile, r0), put, e0, full, r1, back]
    body += [place(full, back), y, place(b, r1), write, end(r1)]
    return program(body, param(0, (n,), False), param(1, (n,), True))


def threaded(n: int = 8, threads: int = 2) -> Program:
    """B = A * A, each thread a part."""
    a, b = buffer(0, (n,)), buffer(1, (n,))
    t = u(Op.SPECIAL, I32, arg=("thread", threads))
    r = loop(n // threads)
    i = u(Op.ADD, I32, u(Op.MUL, I32, t, int_(n // threads)), r)
    x = f(Op.LOAD, place(a, i))
    body = listed(store(place(b, i), f(Op.MUL, x, x)))
    body = [r, *[node for node in body if node is not r], end(r)]
    return program(body, param(0, (n,), False), param(1, (n,), True), threads=threads)


def guarded(n: int = 7) -> Program:
    """B[i] = A[i+1] where that exists, by IF; else B keeps what it held."""
    a, b = buffer(0, (n,)), buffer(1, (n,))
    r = loop(n)
    following = u(Op.ADD, I32, r, int_(1))
    fits = u(Op.CMPLT, dt.bool_, following, int_(n))
    branch = u(Op.IF, dt.void, fits, arg=0)
    x = f(Op.LOAD, place(a, following))
    body = [r, following, fits, branch, place(a, following), x, place(b, r)]
    body += [store(place(b, r), x), end(branch), end(r)]
    return program(body, param(0, (n,), False), param(1, (n,), True))
