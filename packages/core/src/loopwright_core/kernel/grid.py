"""The schedule a kernel starts from on a target with workgroups: outputs over the grid."""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.ir.ops import Op
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.statements import Analysis, Statement, make_statements
from loopwright_core.plugin.target import Target


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
    facts = Analysis((kernel.body,), kernel.dims)
    serial = _serial(make_statements(kernel.body, schedule, facts))
    spread = [a for a in schedule.axes if a.kind is AxisKind.LOOP and a.dim not in serial]
    axes = [*(replace(a, kind=AxisKind.GLOBAL) for a in spread)]
    axes += [a for a in schedule.axes if a not in spread]
    return kernel.with_schedule(schedule.with_axes(tuple(axes)))


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
