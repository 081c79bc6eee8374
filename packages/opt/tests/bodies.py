"""Level-2 kernels for tests of the optimizer, built by hand: this package has no indexing."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Buffer, Extent, UOp, const
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import initial_schedule
from loopwright_core.plugin.target import Target

F = dt.float32

CPU = Target(
    "cpu",
    "test",
    frozenset({F}),
    frozenset({F}),
    frozenset(),
    vector_bytes=(16, 32, 64),
    threads=4,
    caches=(32 << 10, 1 << 20, 0),
)
GPU = replace(
    CPU,
    name="gpu",
    vector_bytes=(16,),
    threads=1,
    has_local=True,
    has_shared=True,
    shared_bytes=48 << 10,
    max_threads=1024,
    local_max=(1024, 1024, 64),
    global_max=(2**31 - 1, 65535, 65535),
    subgroup=32,
)


def forbid_graph_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on to the end of the test, whoever asks a node for its sources fails it."""

    def refuse(node: UOp) -> NoReturn:
        raise AssertionError("an expression graph was walked")

    monkeypatch.setattr(UOp, "src", property(refuse))


def at(slot: int, shape: tuple[Extent, ...], *index: UOp, valid: UOp = TRUE) -> UOp:
    return place(slot, shape, F, *index, valid=valid)


def place(
    slot: int, shape: tuple[Extent, ...], dtype: DType, *index: UOp, valid: UOp = TRUE
) -> UOp:
    buffer = UOp(Op.BUFFER, dtype, (), Buffer(slot, shape))
    return UOp(Op.INDEX, dtype, (buffer, *index, valid), shape)


def load(index: UOp) -> UOp:
    return UOp(Op.LOAD, index.dtype, (index, const(0, index.dtype)))


def op(which: Op, *src: UOp) -> UOp:
    return UOp(which, src[0].dtype, src)


def reduce(combine: str, value: UOp, *dims: UOp) -> UOp:
    return UOp(Op.REDUCE, value.dtype, (value, *dims), (combine,))


def kernel(
    dims: tuple[Dim, ...], *stores: tuple[UOp, UOp], shared: tuple[tuple[UOp, ...], ...] = ()
) -> Kernel:
    body = UOp(Op.SINK, dt.void, tuple([UOp(Op.STORE, dt.void, s) for s in stores]))
    return Kernel("kernel", body, dims, initial_schedule(dims), shared)


def exponential(n: int) -> Kernel:
    d = Dim("i", n)
    return kernel((d,), (at(1, (n,), d.uop), op(Op.EXP, load(at(0, (n,), d.uop)))))


def matmul(m: int = 1024, n: int = 1024, p: int = 1024) -> Kernel:
    dims = Dim("i", m), Dim("j", n), Dim("k", p, True)
    i, j, k = [d.uop for d in dims]
    body = op(Op.MUL, load(at(0, (m, p), i, k)), load(at(1, (p, n), k, j)))
    return kernel(dims, (at(2, (m, n), i, j), reduce("add", body, k)))


def softmax(m: int = 64, n: int = 100) -> Kernel:
    dims = Dim("i", m), Dim("j", n), Dim("j.0", n, True), Dim("j.1", n, True)
    i, j, j0, j1 = [d.uop for d in dims]
    x, x0, x1 = [load(at(0, (m, n), i, u)) for u in (j, j0, j1)]
    top = reduce("max", x0, j0)
    e, e1 = [op(Op.EXP, op(Op.SUB, u, top)) for u in (x, x1)]
    total = reduce("add", e1, j1)
    return kernel(dims, (at(1, (m, n), i, j), op(Op.DIV, e, total)), shared=((e1, e),))


def add(n: int = 1 << 20) -> Kernel:
    dims = (Dim("i", n),)
    (i,) = [d.uop for d in dims]
    value = op(Op.ADD, load(at(0, (n,), i)), load(at(1, (n,), i)))
    return kernel(dims, (at(2, (n,), i), value))


def running_sum(m: int = 16, n: int = 64) -> Kernel:
    dims = Dim("i", m), Dim("j", n)
    i, j = [d.uop for d in dims]
    value = UOp(Op.SCAN, F, (load(at(0, (m, n), i, j)), j), ("add", False, False))
    return kernel(dims, (at(1, (m, n), i, j), value))


def reverse_scan(n: int = 64) -> Kernel:
    """Sums of exp(a) - max(exp(a)) from the end: one instance of exp(a) runs backwards."""
    dims = Dim("i", n), Dim("k", n, True)
    i, k = [d.uop for d in dims]
    left, right = op(Op.EXP, load(at(0, (n,), i))), op(Op.EXP, load(at(0, (n,), k)))
    value = op(Op.SUB, left, reduce("max", right, k))
    total = UOp(Op.SCAN, F, (value, i), ("add", False, True))
    return kernel(dims, (at(1, (n,), i), total), shared=((right, left),))


def repeated_running_sum(m: int = 4, n: int = 16, p: int = 64) -> Kernel:
    """A running sum that its reader repeats along i."""
    dims = Dim("i", m), Dim("j", n), Dim("k", p)
    i, j, k = [d.uop for d in dims]
    value = UOp(Op.SCAN, F, (load(at(0, (n, p), j, k)), k), ("add", False, False))
    return kernel(dims, (at(2, (m, n, p), i, j, k), op(Op.MUL, value, load(at(1, (m,), i)))))


def twice_read(m: int = 8, n: int = 64) -> Kernel:
    """x[i, 0] - sum(x[i, 0] * y[j]): one access of two statements."""
    dims = Dim("i", m), Dim("j.0", n, True)
    i, j = [d.uop for d in dims]
    x = load(at(0, (m, n), i, const(0, dt.index)))
    total = reduce("add", op(Op.MUL, x, load(at(1, (n,), j))), j)
    return kernel(dims, (at(2, (m,), i), op(Op.SUB, x, total)))


def added_transpose(n: int = 64) -> Kernel:
    """exp(a) + exp(a).T: one statement holds both instances."""
    dims = Dim("i", n), Dim("j", n)
    i, j = [d.uop for d in dims]
    left, right = op(Op.EXP, load(at(0, (n, n), i, j))), op(Op.EXP, load(at(0, (n, n), j, i)))
    return kernel(dims, (at(1, (n, n), i, j), op(Op.ADD, left, right)), shared=((left, right),))


def transposed_twice(n: int = 64) -> Kernel:
    """exp(a) * b and exp(a).T + b, two stores in the same loops."""
    dims = Dim("i", n), Dim("j", n)
    i, j = [d.uop for d in dims]
    left, right = [op(Op.EXP, load(at(0, (n, n), *at_))) for at_ in ((i, j), (j, i))]
    other = load(at(1, (n, n), i, j))
    first = at(2, (n, n), i, j), op(Op.MUL, left, other)
    second = at(3, (n, n), i, j), op(Op.ADD, right, other)
    return kernel(dims, first, second, shared=((left, right),))


def shares(m: int = 16, n: int = 64) -> Kernel:
    """Row sums of exp(a), times the sum of all."""
    dims = Dim("i", m), Dim("k", n, True), Dim("k2", m, True), Dim("l2", n, True)
    i, k, k2, l2 = [d.uop for d in dims]
    row, whole = [op(Op.EXP, load(at(0, (m, n), *at_))) for at_ in ((i, k), (k2, l2))]
    value = op(Op.MUL, reduce("add", row, k), reduce("add", whole, k2, l2))
    return kernel(dims, (at(1, (m,), i), value), shared=((row, whole),))


def exponents_of_sums(m: int = 16, n: int = 64) -> Kernel:
    """exp(sums of rows) times the sum of them all: each instance has a reduce of its own."""
    dims = Dim("i", m), Dim("i.0", m, True), Dim("k", n, True), Dim("k2", n, True)
    i, i0, k, k2 = [d.uop for d in dims]
    left, right = [
        op(Op.EXP, reduce("add", load(at(0, (m, n), *at_)), at_[1])) for at_ in ((i, k), (i0, k2))
    ]
    value = op(Op.MUL, left, reduce("add", right, i0))
    return kernel(dims, (at(1, (m,), i), value), shared=((left, right),))


def rows_and_all(m: int = 16, n: int = 64) -> Kernel:
    """A vector of m, and a matrix of m and n: two stores on one grid."""
    dims = Dim("i", m), Dim("j", n)
    i, j = [d.uop for d in dims]
    row, whole = load(at(0, (m,), i)), load(at(1, (m, n), i, j))
    first = at(2, (m,), i), op(Op.NEG, row)
    return kernel(dims, first, (at(3, (m, n), i, j), op(Op.NEG, whole)))


def kept_reduce(m: int = 16, n: int = 64) -> Kernel:
    """x - sum(x) along rows, the sum met twice."""
    dims = Dim("i", m), Dim("j", n), Dim("j.0", n, True)
    i, j, j0 = [d.uop for d in dims]
    total = reduce("add", load(at(0, (m, n), i, j0)), j0)
    value = op(Op.SUB, load(at(0, (m, n), i, j)), total)
    return kernel(dims, (at(1, (m, n), i, j), value), shared=((total, total),))


def weighted_squares(m: int = 8, n: int = 16, p: int = 4) -> Kernel:
    """v * sum over j and k of v * w[k], v = x * x: only the store computes v once."""
    dims = Dim("i", m), Dim("j", n), Dim("j.0", n, True), Dim("k", p, True)
    i, j, j0, k = [d.uop for d in dims]
    x, other = load(at(0, (m, n), i, j)), load(at(0, (m, n), i, j0))
    v, inner = op(Op.MUL, x, x), op(Op.MUL, other, other)
    total = reduce("add", op(Op.MUL, inner, load(at(1, (p,), k))), j0, k)
    return kernel(dims, (at(2, (m, n), i, j), op(Op.MUL, v, total)), shared=((v, inner),))


def row_sums(n: Extent, m: int = 64) -> Kernel:
    dims = Dim("i", n), Dim("k", m, True)
    i, k = [d.uop for d in dims]
    return kernel(dims, (at(1, (n,), i), reduce("add", load(at(0, (n, m), i, k)), k)))


def column_sums(m: int, n: int) -> Kernel:
    dims = Dim("i", n), Dim("k", m, True)
    i, k = [d.uop for d in dims]
    return kernel(dims, (at(1, (n,), i), reduce("add", load(at(0, (m, n), k, i)), k)))


def take(count: int = 32, rows: int = 9, n: int = 16) -> Kernel:
    dims = Dim("i", count), Dim("j", n)
    i, j = [d.uop for d in dims]
    row = UOp(Op.CAST, dt.index, (load(place(0, (count,), dt.int32, i)),))
    return kernel(dims, (at(2, (count, n), i, j), load(at(1, (rows, n), row, j))))


def take_one(rows: int = 9, n: int = 16) -> Kernel:
    """The row whose number lies in memory."""
    (j,) = dims = (Dim("j", n),)
    row = UOp(Op.CAST, dt.index, (load(place(0, (1,), dt.int32, const(0, dt.index))),))
    return kernel(dims, (at(2, (n,), j.uop), load(at(1, (rows, n), row, j.uop))))


def stencil(n: int = 64) -> Kernel:
    """Three neighbours, zero outside."""
    dims = Dim("i", n), Dim("k", 3, True)
    i, k = [d.uop for d in dims]
    where = UOp(Op.ADD, dt.index, (UOp(Op.ADD, dt.index, (i, k)), const(-1, dt.index)))
    above = UOp(Op.CMPLT, dt.bool_, (const(-1, dt.index), where))
    below = UOp(Op.CMPLT, dt.bool_, (where, const(n, dt.index)))
    valid = UOp(Op.AND, dt.bool_, (above, below))
    return kernel(dims, (at(1, (n,), i), reduce("add", load(at(0, (n,), where, valid=valid)), k)))


def convolution(channels: int, inputs: int, n: int) -> Kernel:
    """3 x 3 over an n x n image of `inputs` channels that is padded by one, in channels first."""
    outputs = Dim("i", channels), Dim("j", n), Dim("m", n)
    dims = (*outputs, Dim("k", inputs, True), Dim("l", 3, True), Dim("k2", 3, True))
    i, j, m, k, tap, tap2 = [d.uop for d in dims]
    valid = TRUE
    places = []
    for along, step in ((j, tap), (m, tap2)):
        where = UOp(Op.ADD, dt.index, (UOp(Op.ADD, dt.index, (along, step)), const(-1, dt.index)))
        above = UOp(Op.CMPLT, dt.bool_, (const(-1, dt.index), where))
        below = UOp(Op.CMPLT, dt.bool_, (where, const(n, dt.index)))
        places.append(where)
        for condition in (above, below):
            valid = condition if valid is TRUE else UOp(Op.AND, dt.bool_, (valid, condition))
    image = load(at(0, (inputs, n, n), k, *places, valid=valid))
    weight = load(at(1, (channels, inputs, 3, 3), i, k, tap, tap2))
    value = reduce("add", op(Op.MUL, image, weight), k, tap, tap2)
    return kernel(dims, (at(2, (channels, n, n), i, j, m), value))


def sum_of_sums(m: int = 8, n: int = 8) -> Kernel:
    """A reduce of a reduce that is squared."""
    dims = Dim("k", m, True), Dim("l", n, True)
    k, inner = [d.uop for d in dims]
    row = reduce("add", load(at(0, (m, n), k, inner)), inner)
    return kernel(dims, (at(1, ()), reduce("add", op(Op.MUL, row, row), k)))


def centred(m: int = 64, n: int = 64) -> Kernel:
    """x - sum of its column."""
    dims = Dim("i", m), Dim("j", n), Dim("i.0", m, True)
    i, j, i0 = [d.uop for d in dims]
    total = reduce("add", load(at(0, (m, n), i0, j)), i0)
    value = op(Op.SUB, load(at(0, (m, n), i, j)), total)
    return kernel(dims, (at(1, (m, n), i, j), value))


def in_place(n: int = 1 << 20) -> Kernel:
    """A = A + A, element by element, seen as a column where it is stored."""
    dims = (Dim("i", n),)
    (i,) = [d.uop for d in dims]
    x = load(at(0, (n,), i))
    column = UOp(Op.INDEX, F, (x.src[0].src[0], i, const(0, dt.index), TRUE), (n, 1))
    return kernel(dims, (column, op(Op.ADD, x, x)))


def chain(n: int = 8) -> Kernel:
    """c + sum_k c * a[k] with c = sum_l x[i, j, l]: the second sum reads the first."""
    dims = Dim("i", n), Dim("j", n), Dim("l", n, True), Dim("k", n, True)
    i, j, inner, k = [d.uop for d in dims]
    c = reduce("add", load(at(0, (n, n, n), i, j, inner)), inner)
    total = reduce("add", op(Op.MUL, c, load(at(1, (n,), k))), k)
    return kernel(dims, (at(2, (n, n), i, j), op(Op.ADD, c, total)))


def outer(n: int = 64, shift: int = 0) -> Kernel:
    """exp(a[i]) * exp(a[j + shift]): one value at two places, each repeated along the other dim."""
    dims = Dim("i", n), Dim("j", n)
    i, j = [d.uop for d in dims]
    there = UOp(Op.ADD, dt.index, (j, const(shift, dt.index))) if shift else j
    left, right = [op(Op.EXP, load(at(0, (n + shift,), u))) for u in (i, there)]
    stored = at(1, (n, n), i, j), op(Op.MUL, left, right)
    return kernel(dims, stored, shared=((left, right),))


def converted(n: int = 64) -> Kernel:
    """Small integers added up as floats, once for each row and column."""
    dims = Dim("i", n), Dim("j", n), Dim("k", n, True)
    i, j, k = [d.uop for d in dims]
    x, y = (
        UOp(Op.CAST, F, (load(place(s, (n, n), dt.int8, *where)),))
        for s, where in enumerate(((i, k), (k, j)))
    )
    return kernel(dims, (at(2, (n, n), i, j), reduce("add", UOp(Op.MUL, F, (x, y)), k)))


def masked(n: int = 64, by_sum: bool = False) -> Kernel:
    """Rows of B, each read where i + j (or i alone) is small."""
    dims = Dim("i", n), Dim("j", n)
    i, j = [d.uop for d in dims]
    asked = UOp(Op.ADD, dt.index, (i, j)) if by_sum else i
    valid = UOp(Op.CMPLT, dt.bool_, (asked, const(9, dt.index)))
    read = at(0, (n, n), i, j, valid=valid) if by_sum else at(0, (n,), j, valid=valid)
    return kernel(dims, (at(1, (n, n), i, j), load(read)))


def symbolic_sum(n: Extent) -> Kernel:
    dims = (Dim("k", n, True),)
    (k,) = [d.uop for d in dims]
    return kernel(dims, (at(1, ()), reduce("add", load(at(0, (n,), k)), k)))


def two_sums(m: int = 64, n: int = 100) -> Kernel:
    """Two sums that have nothing in common."""
    dims = Dim("k", m, True), Dim("l", n, True)
    sums = [reduce("add", load(at(s, (d.max_size,), d.uop)), d.uop) for s, d in enumerate(dims)]
    return kernel(dims, (at(2, ()), sums[0]), (at(3, ()), sums[1]))


def scaled_sums(m: int = 16, n: int = 64) -> Kernel:
    """a * sum(a * b) along rows: a is read within the reduce and after it."""
    dims = Dim("i", m), Dim("k", n, True)
    i, k = [d.uop for d in dims]
    a = load(at(0, (m,), i))
    total = reduce("add", op(Op.MUL, a, load(at(1, (m, n), i, k))), k)
    return kernel(dims, (at(2, (m,), i), op(Op.MUL, a, total)))


def all_to_one(n: int = 8) -> Kernel:
    """Rows of A stored to one row, the last one wins."""
    dims = Dim("i", n), Dim("j", n)
    i, j = [d.uop for d in dims]
    return kernel(dims, (at(1, (n,), j), load(at(0, (n, n), i, j))))
