"""Accesses, estimates and descriptions of kernels built by hand."""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, Buffer, Extent, UOp, Variable, const
from loopwright_core.kernel.access import access, accesses
from loopwright_core.kernel.describe import describe, nest
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule, Stage, initial_schedule

F = dt.float32


def at(slot: int, shape: tuple[Extent, ...], *index: UOp, valid: UOp = TRUE) -> UOp:
    buffer = UOp(Op.BUFFER, F, (), Buffer(slot, shape))
    return UOp(Op.INDEX, F, (buffer, *index, valid), shape)


def load(index: UOp) -> UOp:
    return UOp(Op.LOAD, F, (index, const(0, F)))


def op(which: Op, *src: UOp) -> UOp:
    return UOp(which, F, src)


def kernel(dims: tuple[Dim, ...], *stores: tuple[UOp, UOp]) -> Kernel:
    body = UOp(Op.SINK, dt.void, tuple([UOp(Op.STORE, dt.void, s) for s in stores]))
    return Kernel("name", body, dims, initial_schedule(dims))


def matmul(m: int = 4, n: int = 6, p: int = 8) -> Kernel:
    dims = Dim("i", m), Dim("j", n), Dim("k", p, True)
    i, j, k = [d.uop for d in dims]
    product = op(Op.MUL, load(at(0, (m, p), i, k)), load(at(1, (p, n), k, j)))
    total = UOp(Op.REDUCE, F, (product, k), ("add",))
    return kernel(dims, (at(2, (m, n), i, j), total))


def test_names_and_strides() -> None:
    """Loads come in evaluation order, the store last; strides are those of the flat offset."""
    found = accesses(matmul())
    assert [(a.name, a.strides, a.is_store) for a in found] == [
        ("A", {"i": 8, "k": 1}, False),
        ("B", {"k": 6, "j": 1}, False),
        ("C", {"i": 6, "j": 1}, True),
    ]
    assert all(a.is_plain and not a.opaque and not a.valid for a in found)


def test_further_places_of_one_buffer() -> None:
    """Other index tuples of a buffer are numbered by first use."""
    i = Dim("i", 8)
    one = integer.add(i.uop, 1)
    value = op(Op.ADD, load(at(0, (9,), i.uop)), load(at(0, (9,), one)))
    k = kernel((i,), (at(1, (8,), i.uop), value))
    assert [a.name for a in accesses(k)] == ["A", "A.1", "B"]
    found = access(k, "A.1")
    assert found is not None
    assert (found.form[0].const, found.strides) == (1, {"i": 1})
    assert access(k, "C") is None


def test_shared_by_schedules() -> None:
    """Accesses are derived once per body, whatever the schedule."""
    k = matmul()
    assert accesses(k) is accesses(k.with_schedule(Schedule(())))


def test_opaque_and_valid() -> None:
    """Dims hidden in a remainder or a loaded index are opaque; a condition is cut into parts."""
    i, j = Dim("i", 8), Dim("j", 8)
    row = UOp(Op.CAST, dt.index, (load(at(0, (8,), i.uop)),))
    inside = integer.and_(integer.ge(row, 0), integer.lt(row, 5))
    turned = integer.mod(integer.add(i.uop, j.uop), 4)
    value = load(at(1, (5, 4), row, turned, valid=inside))
    found = access(kernel((i, j), (at(2, (8, 8), i.uop, j.uop), value)), "B")
    assert found is not None
    assert found.opaque == {"i", "j"}
    assert len(found.valid) == 2
    assert not found.is_plain


def test_symbolic_strides_count_at_their_largest() -> None:
    """A stride that holds a Variable is the one at its largest value."""
    n = Variable("n", 1, 64)
    dims = Dim("i", 4), Dim("j", n)
    i, j = [d.uop for d in dims]
    k = kernel(dims, (at(1, (4, n), i, j), load(at(0, (4, n), i, j))))
    assert accesses(k)[0].strides == {"i": 64, "j": 1}
    assert estimate(k).bytes == 2 * 4 * 64 * 4


def test_estimate_of_matmul() -> None:
    """A multiply and an add a step; each buffer once."""
    found = estimate(matmul(4, 6, 8))
    assert found.flops == 2 * 4 * 6 * 8
    assert found.bytes == 4 * (4 * 8 + 8 * 6 + 4 * 6)


def test_estimate_of_nested_work() -> None:
    """What does not depend on a dim is counted once for it; casts and choices are free."""
    dims = Dim("i", 4), Dim("j", 5), Dim("k", 6, True)
    i, j, k = [d.uop for d in dims]
    top = UOp(Op.REDUCE, F, (load(at(0, (4, 6), i, k)), k), ("max",))
    value = op(Op.EXP, op(Op.SUB, load(at(1, (4, 5), i, j)), top))
    found = estimate(kernel(dims, (at(2, (4, 5), i, j), value)))
    assert found.flops == 4 * 6 + 2 * 4 * 5


def test_bytes_of_parts_of_a_buffer() -> None:
    """A slice counts its own elements; a buffer read from shifted places counts its box once."""
    i = Dim("i", 8)
    every_other = load(at(0, (64,), integer.mul(i.uop, 2)))
    assert estimate(kernel((i,), (at(1, (8,), i.uop), every_other))).bytes == 4 * (8 + 8)
    both = op(Op.ADD, load(at(0, (64,), i.uop)), load(at(0, (64,), integer.add(i.uop, 1))))
    assert estimate(kernel((i,), (at(1, (8,), i.uop), both))).bytes == 4 * (9 + 8)


def test_describe() -> None:
    """One line of kinds and sizes in nest order; coloured on request, cut to a width."""
    k = matmul()
    assert describe(k) == "name  L4 L6 R8"
    assert describe(k, colour=True) == "name  \x1b[37mL4\x1b[0m \x1b[37mL6\x1b[0m \x1b[31mR8\x1b[0m"
    assert describe(k, width=10) == "name  L4 …"
    assert len(describe(k, width=10)) <= 10
    quiet = k.with_schedule(replace(k.schedule, no_locals=True))
    assert describe(quiet).endswith("no locals")


def test_nest() -> None:
    """Loops open braces; stages stand at their axis, what is expanded behind the nest."""
    axes = (
        Axis("i", 2, 2, AxisKind.THREAD),
        Axis("j", 1, 6, AxisKind.LOOP),
        Axis("k", 1, 8, AxisKind.REDUCE),
        Axis("i", 1, 2, AxisKind.UPCAST),
    )
    k = matmul().with_schedule(Schedule(axes, (Stage("B", "j/1"), Stage("v0", "", "keep"))))
    assert nest(k) == (
        "nest  [keep v0] thread i/2(2) { loop j(6) [stage B] { reduce k(8) }}  upcast i(2)"
    )
