"""What a kernel costs by counting: floating point operations and compulsory bytes."""

from __future__ import annotations

from math import prod
from weakref import WeakKeyDictionary

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.integer import affine_range
from loopwright_core.ir.ops import COMPARE, CONVERT, ELEMENTWISE, Op
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.kernel.access import Access, accesses
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import phases
from loopwright_core.program.program import Estimate

# Moves and choices, not arithmetic.
_FREE = CONVERT | COMPARE | {Op.WHERE, Op.AND, Op.OR, Op.XOR}


def estimate(kernel: Kernel) -> Estimate:
    """Arithmetic and memory traffic of one launch; Variables count at their largest.

    Flops: every arithmetic op, transcendental ones too, is one per evaluation; a value is
    evaluated once for each point of the dims it depends on; a reduce adds one combine a step (of
    several values: its merge's ops). Casts, comparisons, selections and index arithmetic are free.
    Bytes: each element that the kernel touches, once, however often it is read. Parts of a split
    reduce are written, read and joined on top.
    """
    found = _estimates.get(kernel.body)
    if found is None:
        found = _estimates[kernel.body] = Estimate(_flops(kernel.body), _bytes(accesses(kernel)))
    scratch = phases(kernel).scratch
    if not scratch:
        return found
    parts = sum(_size(b) for b in scratch)
    moved = 2 * sum(_size(b) * b.dtype.itemsize for b in scratch)
    return Estimate(found.flops + parts, found.bytes + moved)


_estimates: WeakKeyDictionary[UOp, Estimate] = WeakKeyDictionary()
_merge_costs: dict[tuple[str, tuple[DType, ...]], int] = {}


def _flops(body: UOp) -> int:
    sizes: list[int] = []
    bit: dict[UOp, int] = {}
    free: dict[UOp, int] = {}
    points: dict[int, int] = {0: 1}

    def count(mask: int) -> int:
        found = points.get(mask)
        if found is None:
            found = prod(n for b, n in enumerate(sizes) if mask >> b & 1)
            points[mask] = found
        return found

    total = 0
    for node in body.toposort():
        mask = 0
        for s in node.src:
            mask |= free[s]
        op = node.op
        if op is Op.DIM:
            bit[node] = mask = 1 << len(sizes)
            sizes.append(node.arg.max_size)
        elif op is Op.REDUCE or op is Op.SCAN:
            total += count(mask) * merge_cost(node)
            if op is Op.REDUCE:
                for s in node.src:
                    if s.op is Op.DIM:
                        mask &= ~bit[s]
        elif op in ELEMENTWISE and op not in _FREE and node.dtype is not dt.index:
            total += count(mask)
        free[node] = mask
    return total


def merge_cost(node: UOp) -> int:
    """Arithmetic ops of one combining step of a REDUCE or SCAN, at least one."""
    combine = COMBINES[node.arg[0]]
    if combine.n_values == 1:
        return 1
    dtypes = tuple([s.dtype for s in node.src[: combine.n_values]])
    found = _merge_costs.get((combine.name, dtypes))
    if found is None:
        values = combine.identity(dtypes)
        merged = toposort(combine.merge(values, values))
        found = max(1, sum(1 for u in merged if u.op in ELEMENTWISE and u.op not in _FREE))
        _merge_costs[combine.name, dtypes] = found
    return found


def _bytes(found: tuple[Access, ...]) -> int:
    """Per buffer the smaller of: the box around all its accesses, their elements added up."""
    by_view: dict[UOp, list[Access]] = {}
    for a in found:
        by_view.setdefault(a.buffer, []).append(a)
    total = 0
    for buffer, group in by_view.items():
        touched = min(_size(buffer), sum(_elements(a) for a in group))
        if len({a.shape for a in group}) == 1:
            touched = min(touched, _box(group))
        total += touched * buffer.dtype.itemsize
    return total


def _size(buffer: UOp) -> int:
    return prod(n.hi if isinstance(n, Variable) else n for n in buffer.arg.shape)


def _elements(a: Access) -> int:
    """How many elements one access reaches at most, counted per view dimension."""
    count = 1
    for form, n in zip(a.form, a.shape, strict=True):
        reach = 1
        for atom, _ in form.terms:
            reach *= atom.arg.max_size if atom.op is Op.DIM else _extent(n)
        count *= min(reach, _extent(n))
    return count


def _box(group: list[Access]) -> int:
    """Elements of the smallest box of the view that holds every access."""
    count = 1
    for axis, n in enumerate(group[0].shape):
        ranges = [affine_range(a.form[axis]) for a in group]
        lo = max(0, min(r[0] for r in ranges))
        hi = min(_extent(n) - 1, max(r[1] for r in ranges))
        count *= max(0, hi - lo + 1)
    return count


def _extent(n: int | Variable) -> int:
    return n.hi if isinstance(n, Variable) else n
