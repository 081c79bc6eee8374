"""Rules of walking several pages of a long axis at once."""

from __future__ import annotations

from math import prod

from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.access import Access
from loopwright_core.kernel.dims import Axis
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_opt.axes import is_outermost, refuse
from loopwright_opt.facts import facts_of

_PAGE_BYTES = 4096
_PAGES = (2, 4)


def few_pages(kernel: Kernel, opt: Opt, axis: Axis, amount: int) -> None:
    """Processors follow a few streams at once."""
    if amount not in _PAGES:
        refuse(kernel, opt, "2 or 4 pages are walked at once", axis.name)


def walks_an_array(kernel: Kernel, opt: Opt, axis: Axis) -> list[Access]:
    """Pages are of arrays that the axis walks element by element; those arrays."""
    found = [a for a in facts_of(kernel).accesses.values() if a.stride(axis.dim) == 1]
    if not found:
        refuse(kernel, opt, f"no array lies along {axis.dim} with stride 1", axis.name)
    return found


def array_is_large(
    kernel: Kernel, opt: Opt, axis: Axis, walked: list[Access], target: Target
) -> None:
    """What fits L2 is not streamed from memory."""
    if not any(_bytes(a) > target.caches[1] for a in walked):
        refuse(kernel, opt, "every array along the axis fits the L2 cache", axis.name)


def pages_divide(
    kernel: Kernel, opt: Opt, axis: Axis, size: int, amount: int, walked: list[Access]
) -> int:
    """How many steps a page is: whole groups of them, equal runs of the whole axis, or (the
    outermost axis of a dim alone) pages whose last group is ragged."""
    itemsize = max(a.dtype.itemsize for a in walked)
    page = max(1, _PAGE_BYTES // itemsize // axis.stride)
    ragged = is_outermost(kernel.schedule, axis) and axis.stride * size != kernel.dim(axis.dim).size
    if not ragged and size % (page * amount) == 0:
        return page
    if not ragged and size % amount == 0 and size != amount:
        return size // amount
    if not is_outermost(kernel.schedule, axis) or size <= amount:
        reason = f"an axis of {size} steps is not {amount} equal runs"
        refuse(kernel, opt, reason, axis.name)
    return min(page, -(-size // amount))


def _bytes(access: Access) -> int:
    sizes = [n.hi if isinstance(n, Variable) else n for n in access.shape]
    return prod(sizes) * access.dtype.itemsize
