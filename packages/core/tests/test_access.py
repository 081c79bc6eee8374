"""Accesses of kernels built by hand."""

from __future__ import annotations

from handmade import at, kernel, load, matmul, op

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.access import access, accesses
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.schedule import Schedule


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
