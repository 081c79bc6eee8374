"""A captured computation: kernels over one table of arrays, complete without having run.

The table holds, in this order, the inputs, the outputs, the constants (arrays the function closed
over) and the temporaries. Each row is one block of memory; kernels name rows. Temporaries that are
not alive together share a row, so a row of theirs is bytes without a dtype. `Captured` holds text,
not binaries: a compiler runs only when `Built.binary` or `Built.loaded` of a kernel is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from loopwright import graph, tracing
from loopwright.evaluate import Plan, build_all, make_plan
from loopwright.extents import actual, most
from loopwright.fuse import FusedKernel
from loopwright.handwritten import HandWritten
from loopwright.memory import empty_buffer, has_storage
from loopwright.own import OwnLaunch
from loopwright_core.built import Built
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import Extent, UOp, Variable, toposort
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.loader import registry

RowKind = Literal["input", "output", "constant", "temporary"]


@dataclass(frozen=True, slots=True)
class Row:
    """One block of memory: an array in row-major order, or the bytes of temporaries in turn.

    `parts`: dtype and shape of each such temporary.
    """

    kind: RowKind
    dtype: DType
    shape: tuple[Extent, ...]
    parts: tuple[tuple[DType, tuple[Extent, ...]], ...] = ()

    @property
    def n_bytes(self) -> int:
        """Its size; with Variables in the shape the largest it can be."""
        return _n_bytes(self.dtype, self.shape)

    def n_bytes_of(self, values: Mapping[Variable, int]) -> int:
        """Its size in a call with those values."""
        parts = self.parts or ((self.dtype, self.shape),)
        return max([_n_bytes(dtype, actual(shape, values)) for dtype, shape in parts])


@dataclass(frozen=True, slots=True)
class CapturedKernel:
    """One launch: `rows` by slot of the kernel, `variables` in the order of its program."""

    built: Built | HandWritten
    rows: tuple[int, ...]
    variables: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One result: the elements of a row, in row-major order, under a shape of its own.

    `row` may be an output's, an input's (the function returned its argument), a constant's, or
    None for an array without elements. Two results that are one value have the same row.
    """

    dtype: DType
    shape: tuple[Extent, ...]
    row: int | None


@dataclass(frozen=True, slots=True)
class Captured:
    """Kernels in the order they run, over one table of arrays.

    `n_inputs`, `n_outputs`, `n_constants`: the table's parts, in this order; temporaries follow.
    `constants`: the BUFFER of each constant row, which keeps its memory
    (`loopwright.memory.storage`). `in_place`: (output row, input row) pairs that may be one block
    of memory, the inputs being donated. `input_paths`, `output_paths`: where each is in the
    function's arguments and results, like `params['w'][0]` and `out[1]`.
    """

    name: str
    device: str
    kernels: tuple[CapturedKernel, ...]
    table: tuple[Row, ...]
    n_inputs: int
    n_outputs: int
    n_constants: int
    constants: tuple[UOp, ...]
    outputs: tuple[Output, ...]
    variables: tuple[Variable, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()
    input_paths: tuple[str, ...] = ()
    output_paths: tuple[str, ...] = ()

    @property
    def first_output(self) -> int:
        """The row of the first output."""
        return self.n_inputs

    @property
    def first_constant(self) -> int:
        """The row of the first constant."""
        return self.n_inputs + self.n_outputs

    @property
    def first_temporary(self) -> int:
        """The row of the first temporary."""
        return self.n_inputs + self.n_outputs + self.n_constants


@dataclass(frozen=True, slots=True)
class _Steps:
    """What a capture runs, in order. `launches`: generated kernels and hand-written ones.

    `buffers`: of each launch, by slot. `bases`: for each value the BUFFER that has its elements;
    None: it has none. `results`: the BUFFERs that launches write and that are values.
    """

    launches: tuple[Built | HandWritten, ...]
    buffers: tuple[tuple[UOp, ...], ...]
    bases: tuple[UOp | None, ...]
    results: tuple[UOp, ...]


def capture(
    values: Sequence[UOp],
    inputs: Sequence[UOp],
    device: str,
    options: Options,
    name: str,
    kernel_name: str | None = None,
    donated: Sequence[int] = (),
    calls: Sequence[OwnLaunch] = (),
) -> Captured:
    """The computation of nodes from BUFFERs that stand for the inputs; nothing runs or compiles.

    `kernel_name`: what kernels are called that have no name of their own. `donated`: inputs whose
    memory outputs may take. `calls`: of hand-written kernels, in the order in which they were made.
    """
    steps = _steps(values, inputs, device, options, kernel_name, calls)
    constants = _constants(steps, inputs)
    table, rows = _lay_out(steps, inputs, constants)
    variables = tuple(dict.fromkeys(v for b in steps.launches for v in b.program.variables))
    outputs = [
        Output(node.dtype, shape_of(node), None if base is None else rows[base])
        for node, base in zip(values, steps.bases, strict=True)
    ]
    kernels = [
        CapturedKernel(
            built,
            tuple([rows[buffer] for buffer in buffers]),
            tuple([variables.index(v) for v in built.program.variables]),
        )
        for built, buffers in zip(steps.launches, steps.buffers, strict=True)
    ]
    return Captured(
        name,
        device,
        tuple(kernels),
        tuple(table),
        len(inputs),
        len(steps.results),
        len(constants),
        constants,
        tuple(outputs),
        variables,
        _in_place(kernels, table, donated),
    )


def _steps(
    values: Sequence[UOp],
    inputs: Sequence[UOp],
    device: str,
    options: Options,
    kernel_name: str | None,
    calls: Sequence[OwnLaunch],
) -> _Steps:
    """The generated kernels, cut by the hand-written ones: those write memory, and read it."""
    known = frozenset([*inputs, *(node for call in calls for node in call.results)])
    for node in toposort([*values, *(node for call in calls for node in call.inputs)]):
        if node.op is Op.BUFFER and node not in known:
            tracing.refuse_foreign(node)
    kernels: list[FusedKernel] = []
    names: list[str | None] = []
    order: list[tuple[HandWritten, tuple[UOp, ...]] | None] = []  # None: the next generated kernel

    def generate(wanted: Sequence[UOp]) -> list[UOp | None]:
        plan, bases = _plan(wanted, device)
        kernels.extend(plan.kernels)
        names.extend(plan.names)
        order.extend([None] * len(plan.kernels))
        return bases

    for call in _needed(calls, values):
        bases = generate(call.inputs)
        given = [
            base if base is not None else empty_buffer(node.dtype, graph.shape(node), device)
            for node, base in zip(call.inputs, bases, strict=True)
        ]
        order.append((call.written, (*given, *call.results)))
    bases = generate(values)
    plan = Plan(tuple(kernels), tuple(names), ())
    if kernel_name is not None:
        plan = Plan(plan.kernels, _names(plan, kernel_name), ())
    built = build_all(plan, registry().device(device), options) if kernels else []
    generated = iter([(b, kernel.buffers) for b, kernel in zip(built, kernels, strict=True)])
    launches = [next(generated) if step is None else step for step in order]
    written = {b for _, buffers in launches for b in buffers if not has_storage(b)}
    results = dict.fromkeys(b for b in bases if b is not None and b in written - {*inputs})
    return _Steps(
        tuple([launch for launch, _ in launches]),
        tuple([buffers for _, buffers in launches]),
        tuple(bases),
        tuple(results),
    )


def _needed(calls: Sequence[OwnLaunch], values: Sequence[UOp]) -> list[OwnLaunch]:
    """The calls whose results the values are computed from, or other such calls take."""
    found: list[OwnLaunch] = []
    leaves = {node for node in toposort(values) if node.op is Op.BUFFER}
    for call in reversed(calls):
        if not leaves.isdisjoint(call.results):
            found.append(call)
            leaves.update(node for node in toposort(call.inputs) if node.op is Op.BUFFER)
    return found[::-1]


def _plan(values: Sequence[UOp], device: str) -> tuple[Plan, list[UOp | None]]:
    """The kernels, and for each value the BUFFER that has its elements; None: it has none."""
    bases: list[UOp | None] = []
    computed: dict[UOp, int] = {}
    for node in values:
        base = node
        while base.op is Op.RESHAPE:
            base = base.src[0]
        if 0 in shape_of(node):
            bases.append(None)
        elif base.op is Op.BUFFER:
            bases.append(base)
        else:
            computed.setdefault(node, len(computed))
            bases.append(node)
    plan = make_plan(tuple(computed), device)
    places = {node: plan.results[i] for node, i in computed.items()}
    return plan, [base if base is None else places.get(base, base) for base in bases]


def _names(plan: Plan, name: str) -> tuple[str | None, ...]:
    """The name for each kernel without one; further kernels get `_1`, `_2`, ..."""
    known: dict[UOp, str] = {}
    found = []
    for kernel, given in zip(plan.kernels, plan.names, strict=True):
        if given is None:
            given = known.setdefault(kernel.ast, f"{name}_{len(known)}" if known else name)
        found.append(given)
    return tuple(found)


def _constants(steps: _Steps, inputs: Sequence[UOp]) -> tuple[UOp, ...]:
    """The BUFFERs with memory of their own that kernels read or that are results as they are."""
    given = frozenset(inputs)
    touched = [b for buffers in steps.buffers for b in buffers]
    touched += [b for b in steps.bases if b is not None]
    return tuple(dict.fromkeys(b for b in touched if b not in given and has_storage(b)))


def _lay_out(
    steps: _Steps, inputs: Sequence[UOp], constants: Sequence[UOp]
) -> tuple[list[Row], dict[UOp, int]]:
    """The table, and the row of every BUFFER."""
    table: list[Row] = []
    rows: dict[UOp, int] = {}

    def add(kind: RowKind, buffers: Iterable[UOp]) -> None:
        for buffer in buffers:
            rows[buffer] = len(table)
            table.append(Row(kind, buffer.dtype, buffer.arg.shape))

    add("input", inputs)
    add("output", steps.results)
    add("constant", constants)
    first = len(table)
    sizes, places = share_memory(
        [
            [(b, _n_bytes(b.dtype, b.arg.shape)) for b in buffers if b not in rows]
            for buffers in steps.buffers
        ]
    )
    for block, size in enumerate(sizes):
        parts = [(b.dtype, b.arg.shape) for b, place in places.items() if place == block]
        table.append(Row("temporary", dt.uint8, (size,), tuple(parts)))
    rows |= {buffer: first + place for buffer, place in places.items()}
    return table, rows


def share_memory(
    uses: Sequence[Sequence[tuple[UOp, int]]],
) -> tuple[list[int], dict[UOp, int]]:
    """Blocks for temporaries, as few as can be: (size of each block, block of each temporary).

    `uses`: what each step touches, as (temporary, its bytes). Two of one step never share.
    """
    last = {buffer: step for step, used in enumerate(uses) for buffer, _ in used}
    sizes: list[int] = []
    free: list[int] = []
    places: dict[UOp, int] = {}
    for step, used in enumerate(uses):
        for buffer, n_bytes in used:
            if buffer in places:
                continue
            if free:  # the smallest that is large enough, else the largest, which grows
                fitting = [b for b in free if sizes[b] >= n_bytes]
                block = (
                    min(fitting, key=sizes.__getitem__)
                    if fitting
                    else max(free, key=sizes.__getitem__)
                )
                free.remove(block)
                sizes[block] = max(sizes[block], n_bytes)
            else:
                block = len(sizes)
                sizes.append(n_bytes)
            places[buffer] = block
        free += [places[b] for b in dict.fromkeys(b for b, _ in used) if last[b] == step]
    return sizes, places


def _in_place(
    kernels: Sequence[CapturedKernel], table: Sequence[Row], donated: Sequence[int]
) -> tuple[tuple[int, int], ...]:
    """(output, donated input) pairs of equal size: nothing reads the input once the output is
    written, nor in the kernel that first writes it, whose arguments may not overlap."""
    first_use: dict[int, int] = {}
    last_use: dict[int, int] = {}
    for step, kernel in enumerate(kernels):
        for row in kernel.rows:
            first_use.setdefault(row, step)
            last_use[row] = step
    free = list(donated)
    pairs = []
    for row, what in enumerate(table):
        if what.kind != "output":
            continue
        for given in free:
            is_dynamic = any(isinstance(n, Variable) for n in (*table[given].shape, *what.shape))
            if is_dynamic and table[given].shape != what.shape:
                continue
            if table[given].n_bytes == what.n_bytes and last_use.get(given, -1) < first_use[row]:
                pairs.append((row, given))
                free.remove(given)
                break
    return tuple(pairs)


def _n_bytes(dtype: DType, shape: Sequence[Extent]) -> int:
    return dtype.itemsize * math.prod(most(shape))
