"""Kernel to Program: decompose, plan, nest, emit."""

from __future__ import annotations

from dataclasses import replace

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.copies import conversions
from loopwright_core.kernel.dims import AxisKind
from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel, buffer_name
from loopwright_core.kernel.nest import build_nest
from loopwright_core.kernel.phases import phases
from loopwright_core.kernel.statements import Analysis, Statement, make_statements, mark_staged
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Param, Phase, Program
from loopwright_lower.accumulate import Accumulators
from loopwright_lower.barriers import drop_needless
from loopwright_lower.blocks import block_sums
from loopwright_lower.build import Builder
from loopwright_lower.decompose import decompose
from loopwright_lower.dims import dim_states
from loopwright_lower.emit import Emitter, check_threads, thread_count
from loopwright_lower.functions import functions_of, program_functions
from loopwright_lower.grid import PARALLEL, Grid, masked_dims
from loopwright_lower.group import check_groups
from loopwright_lower.indices import Indices, int_dtype_for
from loopwright_lower.memory import Memory
from loopwright_lower.stage import Stages, check_dims
from loopwright_lower.tensor import bind_products, place_results
from loopwright_lower.values import Values
from loopwright_lower.wide import Wide, as_copies


def lower(kernel: Kernel, target: Target) -> Program:
    """The program of a scheduled kernel. Raises LoweringError naming what cannot be lowered."""
    check_dims(kernel.dims)
    kernel = with_grid(kernel, target)
    _check_kinds(kernel, target)
    launches = phases(kernel)
    builders: list[Builder] = []
    made: list[Phase] = []
    for part in launches.kernels:
        first_id = builders[-1].n_ids if builders else 0
        phase, builder = _phase(part, target, first_id)
        made.append(phase)
        builders.append(builder)
    return Program(
        kernel.name,
        tuple(made),
        _params(kernel, kernel.buffers),
        _variables(kernel),
        estimate(kernel),
        program_functions(builders, functions_of(target)),
        _params(kernel, launches.scratch),
    )


def _phase(kernel: Kernel, target: Target, first_id: int) -> tuple[Phase, Builder]:
    """One launch."""
    schedule, wide = as_copies(kernel.schedule, target)
    kernel = kernel.with_schedule(schedule)
    n_shared = [len(group) for group in kernel.shared]
    flat = tuple(v for group in kernel.shared for v in group)
    use = kernel.schedule.tensor_core
    converted = [
        conversions(kernel, s.access) if s.dtype is not None else () for s in schedule.stages
    ]
    casts = tuple(v for group in converted for v in group)
    roots = (kernel.body, *flat, *casts)
    if use is not None:
        roots = bind_products(roots, kernel.schedule, Analysis(roots, kernel.dims))
    roots = decompose(roots, target, functions=functions_of(target))
    sink, flat = roots[0], roots[1:]
    shared = []
    for n in n_shared:
        shared.append(flat[:n])
        flat = flat[n:]
    facts = Analysis(roots, kernel.dims)
    kernel = kernel.with_schedule(block_sums(kernel.schedule, facts.nodes))
    statements = make_statements(sink, kernel.schedule, facts)
    mark_staged(statements, kernel)
    # A conversion that became a part of its reader is done there, from a copy as elements lie.
    held = {_load_of(v): v for v in flat if any(v in s.order for s in statements)}
    grid = Grid(statements, kernel.schedule, target) if target.has_local else None
    masked = masked_dims(kernel.dims, kernel.schedule, grid)
    dims = dim_states(kernel.dims, kernel.schedule, _reversed_dims(facts.nodes), masked)
    if use is not None and grid is not None and grid.core_lane is not None:
        place_results(use, dims, grid.core_lane)
        grid.core_parts = {d: part for d in (use.m, use.n) if (part := dims[d].part) is not None}
    builder = Builder(int_dtype_for(facts.nodes, dims, grid.largest if grid else 1), first_id)
    indices = Indices(builder, dims, facts.free)
    values = Values(builder, indices, Memory(builder, indices, dims), dims, facts)
    if wide:
        values.runs = Wide(values, wide, target)
    stages = Stages(values, grid)
    emitter = Emitter(kernel, Accumulators(values, target), stages, grid)
    check_groups(statements)
    _plan_stages(kernel, stages, statements, tuple(shared), held, facts)
    tree = build_nest(emitter.prepare(statements))
    threads = thread_count(kernel)
    check_threads(tree, threads)
    emitter.tree(tree, 0)
    builder.fence_streamed_stores()
    phase = Phase(kernel.name, builder.finish(), threads)
    if grid is not None:
        phase = _launched(kernel, phase, grid, builder)
    return phase, builder


def _check_kinds(kernel: Kernel, target: Target) -> None:
    kinds = _GPU_KINDS if target.has_local else _CPU_KINDS
    for axis in kernel.schedule.axes:
        if axis.kind not in kinds:
            names = ", ".join(k.name for k in AxisKind if k in kinds)
            fail(
                LoweringError,
                f"axis {axis.name} is of kind {axis.kind.name}, which {target.name} does not run",
                where=kernel.name,
                fix=f"Use a schedule of {names} axes",
            )
    shared = [a for a in kernel.schedule.axes if a.kind is AxisKind.GROUP and a.size != 1]
    if shared and not target.has_shared:
        fail(LoweringError, f"axis {shared[0].name} needs shared memory, {target.name} has none")


_ANYWHERE = frozenset(
    {AxisKind.LOOP, AxisKind.REDUCE, AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.VECTOR}
    | {AxisKind.TENSOR}
)
_CPU_KINDS = _ANYWHERE | {AxisKind.THREAD}
_GPU_KINDS = _ANYWHERE | PARALLEL


def _launched(kernel: Kernel, phase: Phase, grid: Grid, builder: Builder) -> Phase:
    """The phase with its launch sizes, and no barrier that orders nothing."""
    local = None if kernel.schedule.no_locals and grid.threads == 1 else grid.local_size
    return replace(
        phase,
        uops=drop_needless(phase.uops),
        global_size=grid.global_size(builder.int_dtype),
        local_size=local,
    )


def _plan_stages(
    kernel: Kernel,
    stages: Stages,
    statements: list[Statement],
    shared: tuple[tuple[UOp, ...], ...],
    held: dict[UOp, UOp],
    facts: Analysis,
) -> None:
    """`held`: of loads whose copies hold converted elements, what they are converted to."""
    names = {a.node: a.name for a in accesses(kernel)} if kernel.schedule.stages else {}
    for stage in kernel.schedule.stages:
        if stage.mode == "keep":
            instances = shared[int(stage.access[1:])]
            stages.plan_keep(stage, instances, statements, kernel.schedule)
            continue
        store = next(
            (s for s in statements if s.is_staged and names[s.node.src[0]] == stage.access), None
        )
        if store is not None:
            number = len(statements) + 1
            statements.append(stages.plan_store(stage, store, number, kernel.schedule))
            continue
        loads = [n for n in facts.nodes if n.op is Op.LOAD and names.get(n.src[0]) == stage.access]
        if not loads:
            fail(LoweringError, f"STAGE {stage.access}: the kernel has no such load")
        for load in loads:
            value = held.get(load, load)
            statements.append(stages.plan_load(stage, load, value, statements, kernel.schedule))


def _load_of(value: UOp) -> UOp:
    """The load that a value converts."""
    return next(n for n in toposort((value,)) if n.op is Op.LOAD)


def _reversed_dims(nodes: list[UOp]) -> frozenset[str]:
    """Dims that reverse scans walk from the end."""
    directions: dict[str, bool] = {}
    for node in nodes:
        if node.op is Op.SCAN:
            (dim,) = (s.arg.name for s in node.src if s.op is Op.DIM)
            if directions.setdefault(dim, node.arg[2]) != node.arg[2]:
                fail(
                    LoweringError,
                    f"scans over dim {dim} run in both directions in one kernel",
                    fix="Evaluate one of them first",
                )
    return frozenset(d for d, is_reversed in directions.items() if is_reversed)


def _params(kernel: Kernel, buffers: tuple[UOp, ...]) -> tuple[Param, ...]:
    """Arrays by slot; what is behind the kernel's own buffers is written too."""
    written = {n.src[0].src[0].arg.slot for n in kernel.body.src}
    own = len(kernel.buffers)
    return tuple(
        Param(
            b.arg.slot,
            buffer_name(b.arg.slot),
            b.dtype,
            b.arg.shape,
            b.arg.slot in written or b.arg.slot >= own,
        )
        for b in buffers
    )


def _variables(kernel: Kernel) -> tuple[Variable, ...]:
    found: dict[str, Variable] = {}
    for node in toposort((kernel.body,)):
        if node.op is Op.VAR:
            found[node.arg.name] = node.arg
    for d in kernel.dims:
        if isinstance(d.size, Variable):
            found[d.size.name] = d.size
    for b in kernel.buffers:
        for n in b.arg.shape:
            if isinstance(n, Variable):
                found[n.name] = n
    return tuple(found[name] for name in sorted(found))
