"""What is legal in a kernel's dims and schedule: mixed radix, kinds that fit, names that exist."""

from __future__ import annotations

from typing import NoReturn

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.spec_common import is_extent
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import split_axes
from loopwright_core.kernel.tails import POLICIES

_REDUCE_ONLY = frozenset({AxisKind.REDUCE, AxisKind.GROUP, AxisKind.UNROLL})


def check_dims(kernel: Kernel) -> None:
    """Names are unique, sizes are extents."""
    seen: set[str] = set()
    for d in kernel.dims:
        if d.name in seen:
            _refuse(kernel, f"two dims are called {d.name}")
        seen.add(d.name)
        if not is_extent(d.size):
            _refuse(kernel, f"dim {d.name} has size {d.size}")


def check_schedule(kernel: Kernel) -> None:
    """Every dim is cut by the mixed-radix rule into axes of kinds it may have."""
    dims = {d.name: d for d in kernel.dims}
    schedule = kernel.schedule
    names: set[str] = set()
    expanded = ""
    for axis in schedule.axes:
        if axis.dim not in dims:
            _refuse(kernel, f"axis {axis.name} is of no dim of the kernel")
        if axis.name in names:
            _refuse(kernel, f"axis {axis.name} stands twice")
        names.add(axis.name)
        _check_kind(kernel, axis, dims[axis.dim])
        if axis.kind.is_expanded:
            expanded = axis.name
        elif expanded:
            _refuse(kernel, f"axis {axis.name} stands behind {expanded}, which is expanded")
    for d in kernel.dims:
        _check_radix(kernel, d, schedule.of_dim(d.name))
    _check_core(kernel)
    split = split_axes(kernel)
    for axis in split:
        if axis is not schedule.of_dim(axis.dim)[0] or isinstance(axis.size, Variable):
            _refuse(kernel, f"axis {axis.name} splits a reduce and is not its dim's outermost")
    for name, policy in schedule.tails:
        if name not in dims or policy not in POLICIES:
            _refuse(kernel, f"the tail of {name} is said to be {policy}")
    n_threads = sum(a.kind is AxisKind.THREAD for a in schedule.axes)
    if n_threads > 1:
        _refuse(kernel, f"{n_threads} axes are threads: one may be")
    for stage in schedule.stages:
        if stage.at and stage.at not in names:
            _refuse(kernel, f"stage {stage.access} is at {stage.at}, which is no axis")


def _check_kind(kernel: Kernel, axis: Axis, dim: Dim) -> None:
    kind = axis.kind
    if dim.is_reduce and kind is AxisKind.LOCAL:
        _refuse(kernel, f"axis {axis.name} of a reduce dim is {kind.name}")
    if not dim.is_reduce and kind in _REDUCE_ONLY:
        _refuse(kernel, f"axis {axis.name} of an output dim is {kind.name}")


def _check_radix(kernel: Kernel, dim: Dim, outermost_first: tuple[Axis, ...]) -> None:
    """Innermost stride 1, each next stride the product of the sizes inside it, all covered."""
    axes = outermost_first[::-1]
    if not axes:
        _refuse(kernel, f"dim {dim.name} has no axis")
    threaded = len(axes) == 2 and axes[1].kind is AxisKind.THREAD
    if isinstance(dim.size, Variable) and not (threaded and not axes[0].kind.is_expanded):
        one = len(axes) == 1 and axes[0].size == dim.size and axes[0].stride == 1
        if not one:
            _refuse(kernel, f"dim {dim.name} of a Variable has other axes than itself")
        if axes[0].kind.is_expanded:
            _refuse(kernel, f"axis {axes[0].name} of a Variable is expanded")
        return
    stride = 1
    for axis in axes:
        if type(axis.size) is not int or axis.size < 0:
            _refuse(kernel, f"axis {axis.name} has size {axis.size}")
        if axis.stride != stride:
            _refuse(kernel, f"axis {axis.name} should have stride {stride}: the radix is broken")
        stride *= axis.size
    if stride < dim.max_size:
        _refuse(kernel, f"the axes of {dim.name} cover {stride} of {dim.max_size}")


def _check_core(kernel: Kernel) -> None:
    """TENSOR axes are the innermost of the dims a tensor core is bound to, of its tile's size."""
    use = kernel.schedule.tensor_core
    found = {a.dim: a for a in kernel.schedule.axes if a.kind is AxisKind.TENSOR}
    if use is None:
        for axis in found.values():
            _refuse(kernel, f"axis {axis.name} is TENSOR, but no tensor core is bound")
        return
    m, n, k = use.core.dims
    reduces = [name for name in found if kernel.dim(name).is_reduce]
    if set(found) != {use.m, use.n, *reduces} or not reduces or use.m == use.n:
        names = ", ".join(found)
        _refuse(kernel, f"{use.core.name} is bound to {use.m}, {use.n} and reduces, not to {names}")
    for size, name in ((m, use.m), (n, use.n), *((k, name) for name in reduces)):
        if found[name].stride != 1 or found[name].size != size:
            _refuse(kernel, f"{use.core.name} takes {size} of {name}, not axis {found[name].name}")


def _refuse(kernel: Kernel, rule: str) -> NoReturn:
    fail(VerifyError, rule, where=f"kernel {kernel.name}")
