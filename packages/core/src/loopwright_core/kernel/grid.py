"""The schedule a kernel starts from on a target with workgroups: outputs over the grid."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.statements import Statement, statements_of
from loopwright_core.plugin.target import Target

_serial_dims: WeakKeyDictionary[UOp, frozenset[str]] = WeakKeyDictionary()


def with_grid(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with its outputs' axes GLOBAL, if the target has workgroups and nothing was
    scheduled yet.

    An axis stays a loop where a value that does not depend on it would be reduced once for each
    of its steps, where a scan runs along it, and where the place of a store is computed.
    """
    schedule = kernel.schedule
    if not target.has_local or schedule.opts:
        return kernel
    if any(a.kind is not AxisKind.LOOP and a.kind is not AxisKind.REDUCE for a in schedule.axes):
        return kernel
    serial = _serial_dims.get(kernel.body)
    if serial is None:
        serial = _serial_dims[kernel.body] = _serial(statements_of(kernel))
    axes, rest = [], []
    for a in schedule.axes:
        if a.kind is AxisKind.LOOP and a.dim not in serial:
            axes.append(Axis(a.dim, a.stride, a.size, AxisKind.GLOBAL))
        else:
            rest.append(a)
    return kernel.with_schedule(schedule.with_axes((*axes, *rest)))


def _serial(statements: list[Statement]) -> frozenset[str]:
    """Output dims that stay loops."""
    found: set[str] = set()
    needs: dict[Statement, set[Statement]] = {}
    for s in statements:  # each after what it reads
        below = set(s.reads).union(*[needs[r] for r in s.reads])
        needs[s] = below
        if s.kind == "scan":
            found |= set(s.bound)
        for other in below:
            found |= set(s.dims) - set(other.free) - set(other.bound)
        if s.kind == "store":
            places = s.node.src[0].src[1:-1]
            if any(n.op is Op.LOAD for p in places for n in p.toposort()):
                found |= set(s.free)
    return frozenset(found)
