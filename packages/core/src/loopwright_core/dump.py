"""Each stage's value as text that people read: what `compile --print-after` prints."""

from __future__ import annotations

from loopwright_core.ir.show import formula, show, show_arg, show_list
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.access import Access, accesses
from loopwright_core.kernel.describe import describe
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.outline import outline
from loopwright_core.program.program import Param, Program


def dump_ast(ast: UOp) -> str:
    """A kernel AST, after `fuse`: one shaped node a line."""
    return show(ast)


def dump_kernel(kernel: Kernel) -> str:
    """After `index`: the dims, every access with its strides, the scalar body."""
    dims = [
        f"dim {d.name}: {show_arg(d.size)}{' (reduce)' if d.is_reduce else ''}" for d in kernel.dims
    ]
    return "\n".join([*dims, "", *map(_access, accesses(kernel)), "", show(kernel.body)])


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
        lines += ["", f"phase {phase.name}{launch_text(program, phase.name)}"]
        lines += [show_list(phase.uops)]
    return "\n".join(lines)


def launch_text(program: Program, phase_name: str) -> str:
    """` on 2 threads`, ` on a grid of 8 x 4 workgroups of 32 threads`, or ""."""
    (phase,) = [p for p in program.phases if p.name == phase_name]
    if phase.global_size is None:
        return f" on {phase.threads} threads" if phase.threads > 1 else ""
    grid = " x ".join(map(formula, phase.global_size))
    if phase.local_size is None:
        return f" on {grid} items"
    return f" on a grid of {grid} workgroups of {' x '.join(map(str, phase.local_size))} threads"


def access_index(access: Access) -> str:
    """`A[i, k]`, its places in the dims."""
    places = ", ".join([formula(place) for place in access.node.src[1:-1]])
    return f"{access.name}[{places}]"


def _access(access: Access) -> str:
    way = "store" if access.is_store else "load "
    strides = ", ".join(f"{dim} {n:+d}" for dim, n in access.strides.items()) or "none"
    text = f"{way} {access_index(access)}  {access.dtype}, strides {strides}"
    if access.opaque:
        text += f", computed from {', '.join(sorted(access.opaque))}"
    if access.valid:
        text += f", where {' and '.join(map(formula, access.valid))}"
    return text


def _param(param: Param) -> str:
    way = "output" if param.is_output else "input"
    shape = ", ".join(map(show_arg, param.shape))
    return f"param {param.name}: {param.dtype}[{shape}], {way}"
