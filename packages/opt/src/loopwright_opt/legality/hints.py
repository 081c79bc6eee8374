"""Rules of prefetches and of stores around the cache."""

from __future__ import annotations

from math import prod

from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.access import Access
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.schedule import Opt, Schedule
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import refuse
from loopwright_opt.facts import facts_of


def next_place_is_affine(kernel: Kernel, opt: Opt, access: Access) -> None:
    """Where an access goes some steps later follows from the dims alone."""
    if access.opaque or not access.is_plain:
        refuse(kernel, opt, f"where {access.name} goes next is not affine")


def prefetched_once(kernel: Kernel, opt: Opt) -> None:
    """An access is touched so many steps ahead, not at several distances."""
    if any(name == opt.axis for name, _ in kernel.schedule.prefetch):
        refuse(kernel, opt, f"{opt.axis} is prefetched already")


def prefetch_is_ahead(kernel: Kernel, opt: Opt) -> int:
    """The number of steps: what is touched now is needed later."""
    steps = 1 if opt.amount is None else opt.amount
    if steps < 1:
        refuse(kernel, opt, "a prefetch runs one step ahead at least")
    return steps


def is_stored(kernel: Kernel, opt: Opt) -> list[Access]:
    """The stores to a buffer, one at least."""
    found = [a for a in facts_of(kernel).accesses.values() if a.is_store and _buffer(a) == opt.axis]
    if not found:
        refuse(kernel, opt, f"{opt.axis} is not stored to")
    return found


def has_nt_stores(kernel: Kernel, opt: Opt, target: Target) -> None:
    """Processors alone have stores that leave the caches out."""
    if target.has_local:
        refuse(kernel, opt, "stores around the cache are for CPU targets")


def is_not_read(kernel: Kernel, opt: Opt, store: Access) -> None:
    """What is read again here would have been found in the cache."""
    if store.buffer in facts_of(kernel).loaded:
        refuse(kernel, opt, f"{opt.axis} is read in this kernel")


def nt_stored_once(kernel: Kernel, opt: Opt) -> None:
    """Said once, it holds for all stores to the buffer."""
    if opt.axis in kernel.schedule.nt_stores:
        refuse(kernel, opt, f"{opt.axis} is stored around the cache already")


def exceeds_cache(kernel: Kernel, opt: Opt, store: Access, target: Target) -> None:
    """An output that fits L2 is better left there."""
    sizes = [n.hi if isinstance(n, Variable) else n for n in store.shape]
    if prod(sizes) * store.dtype.itemsize <= target.caches[1]:
        refuse(kernel, opt, f"{opt.axis} fits the L2 cache, where its reader would find it")


def lines_are_whole(
    kernel: Kernel, opt: Opt, schedule: Schedule, name: str, target: Target
) -> None:
    """Every store writes whole aligned vectors: a VECTOR axis of unit stride that divides all."""
    for access in facts_of(kernel).accesses.values():
        if not access.is_store or _buffer(access) != name:
            continue
        lanes = [
            a.size
            for a in schedule.axes
            if a.kind is AxisKind.VECTOR and access.stride(a.dim) * a.stride == 1
        ]
        steps = [s for d, s in access.strides.items() if s != 1]
        widest = max(target.vector_bytes, default=0)
        if (
            len(lanes) != 1
            or not isinstance(lanes[0], int)
            or lanes[0] * access.dtype.itemsize != widest
            or any(s % lanes[0] for s in steps)
            or any(kernel.dim(d).max_size % lanes[0] for d, s in access.strides.items() if s == 1)
            or access.valid
            or any(f.const for f in access.form)
        ):
            refuse(kernel, opt, f"the stores to {name} are not whole aligned vectors")


def _buffer(access: Access) -> str:
    return buffer_name(access.buffer.arg.slot)
