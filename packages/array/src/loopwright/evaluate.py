"""From lazy arrays to memory: fuse, build, run the kernels in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from loopwright import named, tracing
from loopwright.callers import users_line
from loopwright.fuse import FusedKernel
from loopwright.fuse.templates import fuse_once
from loopwright.memory import (
    Storage,
    attach,
    buffer_node,
    empty_buffer,
    has_storage,
    storage,
    view_as,
)
from loopwright.options import current, note_kernel
from loopwright_core import notes, pipeline
from loopwright_core.built import Built
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    LoopwrightError,
    PluginError,
    fail,
)
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.options import Options
from loopwright_core.locks import new_lock
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry

if TYPE_CHECKING:
    from loopwright.array import Array


@dataclass(frozen=True, slots=True)
class Plan:
    """The kernels of one evaluation and, for each value asked for, the BUFFER it will be in.

    `names`: per kernel the name the user gave it, else None.
    """

    kernels: tuple[FusedKernel, ...]
    names: tuple[str | None, ...]
    results: tuple[UOp, ...]


def evaluate(*arrays: Array) -> None:
    """Compute several arrays together, sharing work; each then holds its values.

    While a function is traced by `lw.jit` it leaves them lazy. Raises DeviceError, CompileError.
    """
    compute(arrays, leave_traced=True)


def compute(arrays: Sequence[Array], leave_traced: bool = False) -> None:
    """`evaluate`; what depends on a trace is refused unless it is to be left as it is."""
    from loopwright.array import Array

    by_device: dict[str, list[Array]] = {}
    for array in arrays:
        if not isinstance(array, Array):
            fail(
                ArgumentTypeError,
                f"evaluate takes Loopwright arrays, not {type(array).__name__}",
                fix="make one with lw.asarray",
            )
        if array._uop.op is not Op.BUFFER:
            by_device.setdefault(array._device, []).append(array)
    if leave_traced and tracing.is_tracing():
        return
    for device, group in by_device.items():
        for array, buffer in zip(
            group, evaluate_uops([a._uop for a in group], device), strict=True
        ):
            array._uop = buffer


def evaluate_uops(uops: Sequence[UOp], device: str) -> list[UOp]:
    """A BUFFER with the values of each node, in the order given."""
    try:
        plan = make_plan(uops, device)
        run_plan(plan, device)
    except LoopwrightError as error:
        line = users_line()
        if line and line not in str(error) and not getattr(error, "__notes__", None):
            error.add_note(f"evaluated at {line}")
        raise
    return list(plan.results)


def make_plan(uops: Sequence[UOp], device: str) -> Plan:
    """Cut the graph below the nodes into kernels. Values that are in memory need none."""
    results: dict[UOp, UOp] = {}
    stores: list[UOp] = []
    for node in uops:
        if node in results:
            continue
        ready = _in_memory(node, device)
        if ready is None:
            ready = buffer_node(node.dtype, shape_of(node))
            stores.append(UOp(Op.STORE, dt.void, (ready, node)))
        results[node] = ready
    kernels: list[FusedKernel] = []
    given: list[str | None] = []
    names = named.Names()
    for stage in named.stages(stores) if stores else []:
        target = registry().device(device)
        if stage.mark is None and not notes.is_heard():
            part = fuse_once(stage.stores, target, partial(fused, device=target))
        else:  # which kernels bear the name, and why they are so, shows in the graph itself
            part = fused(stage.stores, target)
        kernels += named.scheduled(stage, part)
        given += names.of(stage, part)
    return Plan(tuple(kernels), tuple(given), tuple([results[node] for node in uops]))


def fused(stores: Sequence[UOp], device: Device) -> list[FusedKernel]:
    """The kernel ASTs of STOREs, by whichever plugin answers first."""
    found = registry().hook.loopwright_fuse(outputs=stores, target=device.target)
    if found is None:
        fail(
            PluginError,
            "no plugin can cut this expression into kernels",
            fix="let the plugin `array` load: see LOOPWRIGHT_PLUGINS and `loopwright plugins`",
        )
    return list(found)


def run_plan(plan: Plan, device_name: str) -> None:
    """Launch the kernels in order; memory in between is freed after its last use."""
    if not plan.kernels:
        return
    tracing.refuse_absent(b for kernel in plan.kernels for b in kernel.buffers)
    device, options = registry().device(device_name), current()
    built = build_all(plan, device, options)
    last_use = {b: i for i, kernel in enumerate(plan.kernels) for b in kernel.buffers}
    kept = set(plan.results)
    temporary: dict[UOp, Storage] = {}
    spare: dict[int, list[Any]] = {}  # what temporaries gave up, by size, for the next ones
    for i, (kernel, ready) in enumerate(zip(plan.kernels, built, strict=True)):
        for buffer in kernel.buffers:
            if not has_storage(buffer):
                made = Storage(buffer.dtype, buffer.arg.shape, device_name)
                attach(buffer, made)
                if buffer not in kept:
                    temporary[buffer] = made
                    if spare.get(made.n_bytes):
                        made.give(spare[made.n_bytes].pop())
        ready.launch([storage(buffer).on(device) for buffer in kernel.buffers])
        for buffer in kernel.buffers:
            if last_use[buffer] == i and buffer in temporary:
                done = temporary.pop(buffer)
                spare.setdefault(done.n_bytes, []).append(done.take())
    device.synchronize()


_build_lock = new_lock()


def build_all(plan: Plan, device: Device, options: Options) -> list[Built]:
    """Every kernel as text. Given opts by kernel name need names that tell kernels apart."""
    check_opts(plan, options)
    with _build_lock:
        if options.opts_by_kernel:
            return build_distinct(plan, device, options)
        pairs = zip(plan.kernels, plan.names, strict=True)
        return [build_one(kernel, device, options, name) for kernel, name in pairs]


def build_one(kernel: FusedKernel, device: Device, options: Options, name: str | None) -> Built:
    """The kernel as text, by the schedule that the user gave it where there is one."""
    with named.telling_schedule(kernel):
        return pipeline.build(kernel.ast, device, options_of(kernel, options), name)


def build_distinct(plan: Plan, device: Device, options: Options) -> list[Built]:
    """Every kernel under a name of its own: a further kernel of one name gets `_1`, `_2`, ..."""
    check_opts(plan, options)
    built: list[Built] = []
    for kernel, wanted, name in distinct_names(plan, lambda a: _usual_name(a, device, options)):
        note_kernel(name)
        built.append(build_one(kernel, device, options, wanted))
    return built


def options_of(kernel: FusedKernel, options: Options) -> Options:
    """The options with the schedule that the user gave this kernel, where there is one."""
    if kernel.opts is None:
        return options
    return replace(options, opts=kernel.opts, opts_by_kernel=())


def distinct_names(
    plan: Plan, usual: Callable[[UOp], str]
) -> list[tuple[FusedKernel, str | None, str]]:
    """Each kernel, the name to build it under (None: its usual one), and the name it gets.

    `usual`: the name a kernel AST gets from its sizes.
    """
    found: list[tuple[FusedKernel, str | None, str]] = []
    owners: dict[str, tuple[UOp, object]] = {}
    for kernel, given in zip(plan.kernels, plan.names, strict=True):
        base = given or usual(kernel.ast)
        name, n = base, 0
        own = kernel.ast, kernel.opts
        while owners.setdefault(name, own) != own:
            n += 1
            name = f"{base}_{n}"
        # the same build as without names wherever the name is the one it would get anyway
        found.append((kernel, given if name == base else name, name))
    return found


def _usual_name(ast: UOp, device: Device, options: Options) -> str:
    """The name a kernel gets from its sizes."""
    if options.opts_by_kernel:  # building it under that name could apply another kernel's opts
        return pipeline.index(ast).name
    return pipeline.build(ast, device, options).kernel.name


def check_opts(plan: Plan, options: Options) -> None:
    """`opts` as a plain list is for one kernel: with several it is unclear which is meant."""
    n = len({kernel.ast for kernel in plan.kernels if kernel.opts is None})
    if options.opts is not None and n > 1:
        fail(
            ArgumentError,
            f"opts is a list for one kernel, and this expression is {n} different kernels",
            fix="give a dict from kernel name to list; lw.kernels(...) shows the names",
        )


def _in_memory(node: UOp, device: str) -> UOp | None:
    """The BUFFER that holds a node's values already, or needs no kernel to hold them."""
    if 0 in shape_of(node):
        return empty_buffer(node.dtype, shape_of(node), device)  # type: ignore[arg-type]
    base = node
    while base.op is Op.RESHAPE:
        base = base.src[0]
    if base.op is not Op.BUFFER or not has_storage(base):
        return None
    return base if base is node else view_as(base, shape_of(node))  # type: ignore[arg-type]
