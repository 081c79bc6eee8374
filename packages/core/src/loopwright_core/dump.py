"""Each stage's value as text that people read: what `compile --print-after` prints."""

from __future__ import annotations

from typing import NamedTuple

from loopwright_core.ir.show import formula, show, show_arg, show_list
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import Access, accesses
from loopwright_core.kernel.describe import describe
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.outline import outline
from loopwright_core.program.program import Param, Phase, Program


def dump_ast(ast: UOp) -> str:
    """A kernel AST, after `fuse`: one shaped node a line."""
    return show(ast)


def dump_kernel(kernel: Kernel) -> str:
    """After `index`: the dims, every access with its strides, values for KEEP, the scalar body."""
    dims = [
        f"dim {d.name}: {show_arg(d.size)}{' (reduce)' if d.is_reduce else ''}" for d in kernel.dims
    ]
    rows = [_line(row) for row in access_rows(kernel)]
    values = [f"value v{n}: {formula(group[0])}" for n, group in enumerate(kernel.shared)]
    return "\n".join([*dims, "", *rows, *values, "", show(kernel.body)])


def dump_schedule(kernel: Kernel) -> str:
    """After `schedule`: the steps, the nest, and what they mean."""
    steps = [f"step {opt}" for opt in kernel.schedule.opts] or ["no step"]
    return "\n".join([*steps, "", describe(kernel), outline(kernel), "", *kernel.explain()])


def dump_program(program: Program) -> str:
    """After `lower`: parameters, functions, and each phase as a flat list."""
    lines = [*map(_param, program.params)]
    for function in program.functions:
        takes = ", ".join(map(str, function.params))
        lines += ["", f"function {function.name}({takes}) -> {function.dtype}"]
        lines += [show_list(function.uops)]
    for phase in program.phases:
        lines += ["", f"phase {phase.name} {launch_text(phase)}"]
        lines += [show_list(phase.uops)]
    return "\n".join(lines)


def launch_text(phase: Phase) -> str:
    """`on 2 threads`, `on a grid of 8 x 4 workgroups of 32 x 1 threads`."""
    if phase.global_size is None:
        return f"on {phase.threads} threads" if phase.threads > 1 else "on one thread"
    grid = " x ".join(map(formula, phase.global_size))
    if phase.local_size is None:
        return f"on {grid} items"
    return f"on a grid of {grid} workgroups of {' x '.join(map(str, phase.local_size))} threads"


class AccessRow(NamedTuple):
    """One access in words: `load`, `A[i, k]`, its type, strides by dim, and where it is valid."""

    way: str
    place: str
    dtype: str
    strides: str
    where: str


def access_rows(kernel: Kernel) -> list[AccessRow]:
    """What the kernel reads and writes, in the body's order."""
    return [_row(access) for access in accesses(kernel)]


def _row(access: Access) -> AccessRow:
    places = ", ".join([formula(place) for place in access.node.src[1:-1]])
    strides = [f"{dim} {n:+d}" for dim, n in access.strides.items()]
    strides += [f"{dim} computed" for dim in sorted(access.opaque)]
    return AccessRow(
        "store" if access.is_store else "load",
        f"{access.name}[{places}]",
        str(access.dtype),
        ", ".join(strides) or "none",
        " and ".join(map(formula, access.valid)),
    )


def _line(row: AccessRow) -> str:
    where = f", where {row.where}" if row.where else ""
    return f"{row.way} {row.place}: {row.dtype}, strides {row.strides}{where}"


def _param(param: Param) -> str:
    way = "output" if param.is_output else "input"
    shape = ", ".join(map(show_arg, param.shape))
    return f"param {param.name}: {param.dtype}[{shape}], {way}"
