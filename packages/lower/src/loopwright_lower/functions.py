"""The functions a program calls: decomposed templates, at the lane counts in use."""

from __future__ import annotations

from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Function
from loopwright_lower.build import Builder, function_name
from loopwright_lower.decompose.functions import Functions

_by_target: dict[str, Functions] = {}


def functions_of(target: Target) -> Functions:
    """The templates known for a target; they only grow, and depend on nothing but the target."""
    return _by_target.setdefault(target.key, Functions())


def program_functions(builders: list[Builder], known: Functions) -> tuple[Function, ...]:
    """What the builders' CALLs need, callees first, in order of first use."""
    done: dict[tuple[str, int], Function] = {}
    for builder in builders:
        for name, lanes in builder.called:
            _add(name, lanes, known, builder.int_dtype, done)
    return tuple(done.values())


def _add(
    name: str,
    lanes: int,
    known: Functions,
    int_dtype: DType,
    done: dict[tuple[str, int], Function],
) -> None:
    if (name, lanes) in done:
        return
    template = known.templates[name]
    b = Builder(int_dtype)
    env: dict[UOp, UOp] = {p: UOp(Op.PARAM, p.dtype.vec(lanes), (), p.arg) for p in template.params}
    for node in toposort((template.body,)):
        if node.op is Op.CONST:
            env[node] = node
        elif node not in env:
            src = [env[s] for s in node.src]
            env[node] = b.alu(node.op, node.dtype, *src, arg=node.arg)
    result = b.broadcast(env[template.body], lanes)
    b.statement(UOp(Op.RETURN, result.dtype, (result,)))
    for callee, n in b.called:
        _add(callee, n, known, int_dtype, done)
    params = tuple(p.dtype.vec(lanes) for p in template.params)
    done[name, lanes] = Function(function_name(name, lanes), params, b.finish())
