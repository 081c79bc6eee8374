"""A schedule in plain sentences: one for each thing that was decided."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from loopwright_core.ir.uop import Extent
from loopwright_core.kernel.copies import Copy, copies
from loopwright_core.kernel.describe import axis_size
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.phases import Phases, phases, split_axes
from loopwright_core.kernel.schedule import Schedule, TensorUse
from loopwright_core.kernel.statements import Statement, statements_of
from loopwright_core.kernel.tails import tail_of

Sentences = tuple[str, ...]

_OF_WORKGROUP = (AxisKind.LOCAL, AxisKind.GROUP)


def explain(kernel: Kernel) -> Sentences:
    """What the schedule makes of the kernel's dims, statements, copies and launches."""
    schedule, statements = kernel.schedule, statements_of(kernel)
    told: list[str] = []
    for dim in kernel.dims:
        axes = schedule.of_dim(dim.name)
        told += _dim(dim, axes, _role(dim.name, statements), schedule.tail(dim.name))
    made = phases(kernel)
    if len(made.kernels) == 1:
        return (*told, *_run(kernel))
    told += _split(kernel, made, statements)
    for which, launch in zip(("First", "Second"), made.kernels, strict=True):
        told += [f"{which} launch. {text}" for text in _run(launch)]
    return tuple(told)


def _run(kernel: Kernel) -> list[str]:
    """One launch: axes, nests, registers, copies, threads."""
    schedule, statements = kernel.schedule, statements_of(kernel)
    told = _axes(schedule.axes, kernel.dims)
    taken = [s.consumers[0] for s in statements if s.is_sunk]
    told += [_path(s) for s in statements if s not in taken]
    told += [text for s in statements if (text := _waiting(s))]
    told += [text for s in statements if (text := _leaf(s, schedule))]
    told += map(_copy, copies(kernel, statements))
    told += _hints(schedule)
    return told + _launch(schedule, statements)


def _split(kernel: Kernel, made: Phases, statements: Sequence[Statement]) -> list[str]:
    """Reduces in parts, which a second launch joins."""
    cut = {a.dim: a for a in split_axes(kernel)}
    told = []
    for s in statements:
        axes = [cut[d] for d in s.bound if d in cut] if s.kind == "reduce" else []
        if axes:
            parts = " x ".join(map(axis_size, axes))
            told.append(f"{_capital(s.label)} is taken in {parts} parts, joined in their order.")
    size = sum(prod(map(_extent, b.arg.shape)) * b.dtype.itemsize for b in made.scratch)
    return [*told, f"The parts wait in {human_bytes(size)} of scratch for a second launch."]


def explain_schedule(schedule: Schedule) -> Sentences:
    """What can be said of a schedule without its kernel: its cuts, kinds, order and hints."""
    told: list[str] = []
    for name in dict.fromkeys(a.dim for a in schedule.axes):
        axes = schedule.of_dim(name)
        told.append(f"{name} is {_cut(axes)}.")
    told += _axes(schedule.axes, ())
    loops = [a.name for a in schedule.axes if not a.kind.is_expanded]
    if len(loops) > 1:
        told.append(f"From outside in, the nest is {', '.join(loops)}.")
    for stage in schedule.stages:
        what = "is kept" if stage.mode == "keep" else "is held in a local copy"
        where = f"inside {stage.at}" if stage.at else "outside every loop"
        told.append(f"{stage.access} {what} {where}.")
    return (*told, *_hints(schedule))


# Dims


def _dim(dim: Dim, axes: Sequence[Axis], role: str, policy: str) -> list[str]:
    """How a dim is cut, and what becomes of its ragged end."""
    if dim.is_symbolic:
        size = f"between {getattr(dim.size, 'lo', 0)} and {dim.max_size} steps, known at launch"
    else:
        size = many(dim.max_size, "step")
    told = [f"{dim.name}, {role}, has {size}; it is {_cut(axes)}."]
    n, whole = dim.max_size, prod(a.size for a in axes if isinstance(a.size, int))
    tail = tail_of(dim, axes, policy)
    if dim.is_symbolic or tail == "exact":
        return told
    short = f"{whole} steps in whole blocks are more than {n}"
    if any(a.kind in (AxisKind.GLOBAL, *_OF_WORKGROUP) for a in axes):
        told.append(f"{short}: what lies beyond the end of {dim.name} is left out by a condition.")
    elif policy == "pad":
        told.append(f"{short}: all of them run, and what lies beyond the end counts for nothing.")
    elif tail == "guard":
        told.append(f"{short}: each position of {dim.name} asks whether it exists.")
    else:
        block = prod(
            a.size for a in axes if isinstance(a.size, int) and a.kind.is_expanded
        )  # fmt: skip
        rest = n % block
        last = "last step gets a body" if rest == 1 else f"last {rest} steps get a body"
        behind = f", and the {last} apart" if rest else ""
        told.append(f"{short}: the loops over {dim.name} end early{behind}.")
    return told


def _cut(axes: Sequence[Axis]) -> str:
    """`cut into 8 blocks of 66 (i/66), each into 11 of 6 (i/6), ...`"""
    real = [a for a in axes if a.size != 1] or axes[-1:]
    if len(real) == 1:
        return f"one piece ({real[0].name})"
    words = [f"cut into {axis_size(real[0])} blocks of {real[0].stride} ({real[0].name})"]
    for axis in real[1:]:
        of = f"of {axis.stride}" if axis.stride > 1 else "single steps"
        words.append(f"each into {axis_size(axis)} {of} ({axis.name})")
    return ", ".join(words)


def _role(dim: str, statements: Sequence[Statement]) -> str:
    for s in statements:
        if dim in s.bound:
            return f"which the {s.verb} walks"
    return "an output dim"


# Axes


def _axes(axes: Sequence[Axis], dims: Sequence[Dim]) -> list[str]:
    """One sentence an axis; axes of one step say nothing."""
    reduces = {d.name for d in dims if d.is_reduce}
    symbolic = {d.name for d in dims if d.is_symbolic}
    return [_axis(a, a.dim in reduces, a.dim in symbolic) for a in axes if a.size != 1]


def _axis(axis: Axis, of_reduce: bool, is_symbolic: bool) -> str:
    n, dim, name = axis_size(axis), axis.dim, axis.name
    each, apart = axis.stride, many(axis.stride, "step")
    kind = axis.kind
    most = "at most " if is_symbolic and isinstance(axis.size, int) else ""
    if kind is AxisKind.GLOBAL:
        return f"{name}: the grid has {n} workgroups along {dim}, {apart} each."
    if kind is AxisKind.THREAD:
        return f"{name}: {n} worker threads share {dim}, {most}{apart} each."
    if kind is AxisKind.LOCAL:
        return f"{name}: {n} threads of a workgroup lie along {dim}, {apart} apart."
    if kind is AxisKind.GROUP:
        return (
            f"{name}: {n} threads of a workgroup share the reduce over {dim}; their parts meet in "
            "shared memory."
        )
    if kind is AxisKind.TENSOR:
        return f"{name}: a tensor core takes {n} steps of {dim} at once."
    if kind is AxisKind.UNROLL:
        return f"{name}: {n} steps of {dim} are written out one after another."
    if kind is AxisKind.UPCAST and of_reduce:
        return f"{name}: {n} partial results along {dim} are held apart and joined at the end."
    if kind is AxisKind.UPCAST:
        return f"{name}: {n} elements along {dim} are held in registers at once."
    if kind is AxisKind.VECTOR:
        end = ", joined by a horizontal step at the end" if of_reduce else ""
        return f"{name}: {n} lanes of a SIMD value lie along {dim}{end}."
    what = f"{most}{n} steps" if each == 1 else f"{n} blocks of {each} steps"
    return f"{name}: a loop over {what} of {dim}."


# Statements


def _path(s: Statement) -> str:
    loops = [step.axis.name for step in s.path if step.axis.size != 1]
    inside = f"runs inside {', '.join(loops)}" if loops else "needs no loop"
    return f"{_capital(s.label)} {inside}."


def _waiting(s: Statement) -> str:
    """Where a reduce's value is between its loops and its readers; "" in registers."""
    escapes = s.escapes() if s.kind == "reduce" else ()
    axes = [a.name for a in escapes if a.size != 1]
    if not axes:
        return ""
    if s.is_sunk:
        return f"Partial results of {s.label} wait in the output, where the last visit ends them."
    return f"The value of {s.label} waits in a local array over {', '.join(axes)}."


def _leaf(s: Statement, schedule: Schedule) -> str:
    """What a reduce holds in registers; "" where it is one scalar."""
    if s.kind == "store" or s.by_core:
        return ""
    lanes = prod(_sizes(schedule, s.dims, AxisKind.VECTOR))
    free = prod(_sizes(schedule, s.free, AxisKind.UPCAST))
    parts = prod(_sizes(schedule, s.bound, AxisKind.UPCAST))
    if lanes * free * parts == 1:
        return ""
    of = f" of {many(lanes, 'lane')}" if lanes > 1 else ""
    text = f"{_capital(s.label)} is held in {many(free * parts, 'accumulator')}{of}"
    if free > 1 and parts > 1:
        text += f": {many(free, 'output')}, {many(parts, 'partial result')} each"
    return text + "."


def _sizes(schedule: Schedule, dims: Sequence[str], kind: AxisKind) -> list[int]:
    return [
        a.size
        for a in schedule.axes
        if a.kind is kind and a.dim in dims and isinstance(a.size, int)
    ]


# Copies, hints, launch


def _copy(copy: Copy) -> str:
    stage = copy.stage
    shape = " x ".join(map(str, copy.extents)) or "1"
    size = f"{shape} elements, {human_bytes(copy.n_bytes)}"
    where = f"inside {stage.at}" if stage.at else "outside every loop"
    times = f"filled {'once' if copy.n_fills == 1 else many(copy.n_fills, 'time')}{copy.per}"
    if stage.mode == "keep":
        memory = " in shared memory" if copy.is_shared else ""
        return f"{stage.access} is kept{memory} {where} for all its readers ({size}), {times}."
    memory = "shared memory" if copy.is_shared else "a local array"
    if copy.is_store:
        return f"{_capital(where)}, {stage.access} is built in {memory} ({size}), {times}."
    what = f"the window of {stage.access}" if stage.mode == "halo" else f"what {stage.access} reads"
    text = f"{_capital(where)}, {what} is copied to {memory} ({size}), {times}"
    if stage.dtype is not None:
        text += f", converted to {stage.dtype.name}"
    if stage.layout:
        text += f", laid out as {', '.join(stage.layout)}"
    return text + "."


def _hints(schedule: Schedule) -> list[str]:
    told = [f"{a} is touched {many(n, 'step')} ahead." for a, n in schedule.prefetch]
    told += [f"{name} is written around the cache." for name in schedule.nt_stores]
    if schedule.tensor_core is not None:
        told.append(_core(schedule.tensor_core))
    if schedule.no_locals:
        told.append("Locals are off: the runtime chooses the workgroup.")
    return told


def _core(use: TensorUse) -> str:
    core = use.core
    tile = " x ".join(map(str, core.dims))
    who = f"{core.threads} threads together" if core.threads > 1 else "one thread"
    what = "The tensor core" if use.multiplies else "Plain multiplications in the shape of"
    verb = " multiplies" if use.multiplies else ":"
    return (
        f"{what} {core.name}{verb} tiles of {tile}, rows along {use.m}, columns along {use.n}, "
        f"by {who}."
    )


def _launch(schedule: Schedule, statements: Sequence[Statement]) -> list[str]:
    """How many threads and workgroups one launch has; "" for what runs on one thread."""
    threads = [a.size for a in schedule.axes if a.kind is AxisKind.THREAD]
    if any(n != 1 for n in threads):
        return [f"One launch runs on {threads[0]} worker threads."]
    kinds = {a.kind for a in schedule.axes}
    if not kinds & {AxisKind.GLOBAL, *_OF_WORKGROUP}:
        return []
    grid = _widest(statements, (AxisKind.GLOBAL,))
    group = _widest(statements, _OF_WORKGROUP)
    use = schedule.tensor_core
    if use is not None and use.core.threads > 1:
        group.append(str(use.core.threads))
    blocks = " x ".join(grid) or "1"
    if schedule.no_locals:
        return [f"One launch has {blocks} items."]
    total = prod(int(n) for n in group)
    size = " x ".join(group) or "1"
    return [f"One launch has {blocks} workgroups of {size} threads ({many(total, 'thread')} each)."]


def _widest(statements: Sequence[Statement], kinds: Sequence[AxisKind]) -> list[str]:
    """The ids of the largest nest, position by position: ids are bound by their place."""
    found: list[Axis] = []
    for s in statements:
        own = [p.axis for p in s.path if p.axis.kind in kinds and p.axis.size != 1]
        for place, axis in enumerate(own):
            if place == len(found):
                found.append(axis)
            elif _most(axis) > _most(found[place]):
                found[place] = axis
    return [axis_size(a) for a in found]


def _most(axis: Axis) -> int:
    return _extent(axis.size)


def _extent(n: Extent) -> int:
    return n if isinstance(n, int) else n.hi


# Words


def many(n: int, word: str) -> str:
    """
    >>> many(1, "step"), many(3, "step")
    ('1 step', '3 steps')
    """
    return f"{n} {word}" if n == 1 else f"{n} {word}s"


def human_bytes(n: int) -> str:
    """
    >>> human_bytes(512), human_bytes(2048), human_bytes(3 << 20)
    ('512 bytes', '2.0 KiB', '3.0 MiB')
    """
    if n < 1024:
        return many(n, "byte")
    return f"{n / 1024:.1f} KiB" if n < 1 << 20 else f"{n / (1 << 20):.1f} MiB"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
