"""Rules of tensor cores: which products they do, and what may be done around them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod

from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import split_axes
from loopwright_core.kernel.product import product_of
from loopwright_core.kernel.schedule import Opt, Schedule, TensorUse
from loopwright_core.kernel.statements import bound_dims
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_opt.axes import refuse
from loopwright_opt.facts import facts_of

MAX_PADDING = 4


def core_comes_first(kernel: Kernel, opt: Opt) -> None:
    """A core takes the innermost part of whole axes."""
    if kernel.schedule.opts:
        refuse(kernel, opt, "TC comes before every other step")


def target_has_cores(kernel: Kernel, opt: Opt, target: Target) -> None:
    """TC is for targets that list tensor cores."""
    if not target.tensor_cores:
        refuse(kernel, opt, f"TC needs tensor cores, and {target.name} has none here")


def threads_stand_side_by_side(kernel: Kernel, opt: Opt, core: TensorCore, target: Target) -> None:
    """A core's threads are neighbours along the launch's first dimension."""
    most = target.local_max[0] if target.local_max else target.max_threads
    if target.has_local and core.threads > most:
        reason = f"{core.name} takes {core.threads} threads side by side, {target.name} has {most}"
        refuse(kernel, opt, reason)


def product_is_there(kernel: Kernel, opt: Opt, n_triples: int) -> None:
    """A sum of products of two factors, each with an output axis of its own."""
    if not n_triples:
        reason = "no reduce adds up products whose factors each move along an output axis alone"
        refuse(kernel, opt, reason)


def triple_is_there(kernel: Kernel, opt: Opt, n_triples: int) -> None:
    """Axis triples are counted from 0, innermost axes first."""
    if opt.amount is None or opt.amount >= n_triples:
        refuse(kernel, opt, f"the kernel has {n_triples} axis triples, counted from 0")


def dtypes_fit(kernel: Kernel, opt: Opt, reduce: UOp, target: Target, fits: bool) -> None:
    """Some core takes both factors as they are, or as they were before they were widened."""
    if not fits:
        value = product_of(reduce)
        assert value is not None
        x, y = (s.src[0].dtype if s.op is Op.CAST else s.dtype for s in value.src)
        reason = f"no tensor core that {target.name} may use multiplies {x} by {y} into"
        refuse(kernel, opt, f"{reason} {reduce.dtype}")


def one_reduce_axis(kernel: Kernel, opt: Opt, reduce: UOp) -> None:
    """At level 0 the reduce has one axis."""
    names = bound_dims(reduce)
    if len(names) > 1:
        refuse(kernel, opt, f"at level 0 there is one reduce axis, not {', '.join(names)}")


def operands_are_loads(
    kernel: Kernel,
    opt: Opt,
    fitting: list[TensorCore],
    factors: Callable[[TensorCore], tuple[UOp, UOp] | None],
) -> list[TensorCore]:
    """At level 0 both operands are loaded, not computed."""
    found = []
    for core in fitting:
        operands = factors(core)
        if operands is not None and all(o.op is Op.LOAD for o in operands):
            found.append(core)
    if not found:
        refuse(kernel, opt, "at level 0 both operands are plain loads")
    return found


def sizes_are_whole(
    kernel: Kernel, opt: Opt, fitting: list[TensorCore], sizes: list[int]
) -> TensorCore:
    """Below level 2 the sizes are multiples of the tile's."""
    for core in fitting:
        if all(n % size == 0 for n, size in zip(sizes, core.dims, strict=True)):
            return core
    tiles = ", ".join("x".join(map(str, c.dims)) for c in fitting)
    has = "x".join(map(str, sizes))
    refuse(kernel, opt, f"{has} is no multiple of {tiles}", fix="Allow level 2")


def padded_work(kernel: Kernel, schedule: Schedule) -> float:
    """How many times the work of its dims a core does by the axes of a schedule."""
    dims = dict.fromkeys(a.dim for a in schedule.axes if a.kind is AxisKind.TENSOR)
    factor = 1.0
    for dim in dims:
        covered = prod([_steps(a) for a in schedule.of_dim(dim)])
        factor *= covered / kernel.dim(dim).max_size
    return factor


def padding_is_small(kernel: Kernel, opt: Opt, factor: float) -> None:
    """Whole tiles are at most four times the work."""
    if factor > MAX_PADDING:
        refuse(kernel, opt, f"padding would make {factor:.1f} times the work, 4 at most may be")


def reduces_are_products(
    kernel: Kernel, opt: Opt, depths: tuple[str, ...], bound: Collection[UOp]
) -> None:
    """Every reduce over the core's K is a product that the core does."""
    for node in kernel.nodes:
        if node.op is Op.REDUCE and node not in bound:
            shared = [d for d in bound_dims(node) if d in depths]
            if shared:
                refuse(kernel, opt, "another reduce over it is none of the core's", shared[0])


def operands_stand_alone(
    kernel: Kernel, opt: Opt, operands: tuple[UOp, UOp], dims: set[str]
) -> None:
    """No operand reads what another reduce or scan gives along the core's axes: a thread has that
    where its results lie, not where its operands do."""
    free = facts_of(kernel).free
    stack, seen = list(operands), set(operands)
    while stack:
        node = stack.pop()
        if node.op in (Op.REDUCE, Op.SCAN):
            along = sorted(free[node] & dims)
            if along:
                what = "scan" if node.op is Op.SCAN else "reduce"
                refuse(kernel, opt, f"an operand reads another {what} along it", along[0])
            continue
        stack += [s for s in node.src if s not in seen]
        seen.update(node.src)


def _steps(axis: Axis) -> int:
    assert isinstance(axis.size, int)  # symbolic axes are never cut
    return axis.size


# PADTO


def padding_is_of_a_core(kernel: Kernel, opt: Opt, axis: Axis) -> None:
    """PADTO pads what a tensor core walks; elsewhere the step that cuts says it: `TILE i 8 pad`."""
    if axis.kind is not AxisKind.TENSOR:
        refuse(
            kernel, opt, "PADTO is for TENSOR axes", axis.name, "TC first, or `pad` behind a cut"
        )


def padding_is_real(kernel: Kernel, opt: Opt) -> int:
    """PADTO names the multiple: 2 or more."""
    if opt.amount is None or opt.amount < 2:
        refuse(kernel, opt, "PADTO pads to a multiple of 2 or more")
    return opt.amount


def padding_is_of_whole_blocks(kernel: Kernel, opt: Opt, outer: Axis, wanted: int) -> None:
    """The padded size is a multiple of what lies inside the outermost axis."""
    if wanted % outer.stride:
        reason = f"{wanted} is no multiple of the {outer.stride} inside"
        refuse(kernel, opt, reason, outer.name)


def padding_pads(kernel: Kernel, opt: Opt, outer: Axis, wanted: int) -> None:
    """Something is padded."""
    covered = outer.stride * _steps(outer)
    if wanted <= covered:
        reason = f"its axes cover {covered} already"
        refuse(kernel, opt, reason, outer.name)


# Around a tensor core, after every step


def check_core(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """The rules that any step behind TC may break."""
    use = schedule.tensor_core
    if use is None:
        return
    core_has_no_group(kernel, opt, schedule)
    core_has_no_parts(kernel, opt, schedule)
    core_knows_its_workgroup(kernel, opt, schedule, use)
    values_are_not_kept(kernel, opt, schedule)
    dims = {a.dim for a in schedule.axes if a.kind is AxisKind.TENSOR}
    reduces = [s for s in facts_of(kernel).statements if s.bound & dims]
    core_has_no_lanes(kernel, opt, schedule, frozenset().union(*[s.dims for s in reduces]))
    if use.core.is_tile and use.multiplies:
        sums_stay_in_tiles(kernel, opt, schedule)
        tiles_are_enough(kernel, opt, schedule, use)


def core_has_no_group(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """A core's threads share the reduce already."""
    for axis in schedule.axes:
        if axis.kind is AxisKind.GROUP:
            refuse(kernel, opt, "a reduce is not grouped beside a tensor core", axis.name)


def core_has_no_parts(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """What a core multiplies is one launch: no reduce beside it is joined in a second."""
    for axis in split_axes(kernel, schedule):
        refuse(kernel, opt, "a reduce is not split in parts beside a tensor core", axis.name)


def core_knows_its_workgroup(kernel: Kernel, opt: Opt, schedule: Schedule, use: TensorUse) -> None:
    """A core's threads are neighbours in a workgroup that the schedule chooses."""
    if schedule.no_locals and use.core.threads > 1:
        reason = f"{use.core.name} needs {use.core.threads} neighbouring threads"
        refuse(kernel, opt, f"{reason}, and NOLOCALS leaves the workgroup to the runtime")


def values_are_not_kept(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """Kept values and halo tiles are found by a position, of which a core's threads have many."""
    for stage in schedule.stages:
        if stage.mode != "panel":
            what = "KEEP" if stage.mode == "keep" else "a halo tile"
            refuse(kernel, opt, f"{what} is for kernels without a tensor core", stage.at)
        if any(a.name == stage.at and a.kind is AxisKind.TENSOR for a in schedule.axes):
            refuse(kernel, opt, "a TENSOR axis is no loop to copy in", stage.at)


def core_has_no_lanes(kernel: Kernel, opt: Opt, schedule: Schedule, dims: frozenset[str]) -> None:
    """What a core multiplies has no VECTOR axis: its elements are the core's."""
    for axis in schedule.axes:
        if axis.kind is AxisKind.VECTOR and axis.dim in dims:
            refuse(kernel, opt, "what a tensor core multiplies has no lanes", axis.name)


def sums_stay_in_tiles(kernel: Kernel, opt: Opt, schedule: Schedule) -> None:
    """Sums in tile registers end before another loop over outputs begins."""
    loops = [a for a in schedule.axes if not a.kind.is_expanded and a.kind is not AxisKind.TENSOR]
    deep = {a.dim for a in schedule.axes if a.kind is AxisKind.TENSOR}
    for s in facts_of(kernel).statements:
        own = [a for a in loops if a.dim in s.dims] if s.bound & deep else []
        while own and own[0].dim in s.free:
            own.pop(0)
        for axis in own:
            if axis.dim in s.free:
                reason = "the sums stay in registers, so no loop over outputs is inside the reduce"
                refuse(kernel, opt, reason, axis.name)


def tiles_are_enough(kernel: Kernel, opt: Opt, schedule: Schedule, use: TensorUse) -> None:
    """Sums, the columns' operands and one row's fit the core's tile registers together."""
    copies = [(a.dim, _steps(a)) for a in schedule.axes if a.kind is AxisKind.UPCAST]
    deep = {a.dim for a in schedule.axes if a.kind is AxisKind.TENSOR}
    needed = 0
    for s in facts_of(kernel).statements:
        if s.bound & deep:
            sums = prod([n for dim, n in copies if dim in s.free])
            rows = prod([n for dim, n in copies if dim == use.m])
            needed += sums + (0 if needed else sums // rows + 1)
    if needed > use.core.tiles:
        reason = f"{needed} tiles are needed at once, and {use.core.name} has {use.core.tiles}"
        refuse(kernel, opt, reason)
