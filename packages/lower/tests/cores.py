"""Products bound to a tensor core by hand, and a check of them against the level-2 oracle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from asts import buffer, cast, expand, op, permute, reduce, reshape
from schedules import TARGET, fill

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_kernel, verify_program
from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.dims import Axis, AxisKind
from loopwright_core.kernel.grid import with_grid
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule, Stage, TensorUse
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.program import run_program
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.program.program import Program
from loopwright_core.targets.amx import AMX_BF16, AMX_INT8
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_lower.indexing import index
from loopwright_lower.lowering import lower

AMX = replace(
    TARGET,
    name="amx",
    ops=TARGET.ops | {Op.WMMA, Op.TILE_LOAD, Op.TILE_STORE},
    tensor_cores=(*AMX_BF16, *AMX_INT8),
)
TARGETS = (cuda("sm_75"), cuda("sm_80"), cuda("sm_89"), metal(), AMX)
Cut = tuple[str, int, AxisKind]


def sink(*stores: tuple[UOp, UOp]) -> UOp:
    return UOp(Op.SINK, dt.void, tuple([UOp(Op.STORE, dt.void, s) for s in stores]))


def dot(a: UOp, b: UOp, m: int, n: int, k: int, out: DType) -> UOp:
    """a @ b of an m x k and a k x n array, summed in `out`."""
    x = expand(reshape(a, m, 1, k), m, n, k)
    y = expand(reshape(permute(b, 1, 0), 1, n, k), m, n, k)
    x, y = (v if v.dtype is out else cast(v, out) for v in (x, y))
    return reduce(op(Op.MUL, x, y), "add", 2)


def matmul(m: int, n: int, k: int, core: TensorCore) -> UOp:
    """C = A @ B in the dtypes of a core."""
    a, b = core.dtype_in
    made = dot(buffer(0, m, k, dtype=a), buffer(1, k, n, dtype=b), m, n, k, core.dtype_out)
    return sink((buffer(2, m, n, dtype=core.dtype_out), made))


def bound(
    kernel: Kernel,
    core: TensorCore,
    m: str = "i",
    n: str = "j",
    ks: tuple[str, ...] = ("k",),
    multiplies: bool = True,
) -> Kernel:
    """The kernel with TENSOR axes for a core."""
    rows, columns, depth = core.dims
    schedule = replace(kernel.schedule, tensor_core=TensorUse(core, m, n, multiplies))
    for dim, size in ((m, rows), (n, columns), *((k, depth) for k in ks)):
        schedule = _cut(schedule, (f"{dim}/1", size, AxisKind.TENSOR))
    return kernel.with_schedule(schedule)


def _cut(schedule: Schedule, cut: Cut) -> Schedule:
    name, amount, kind = cut
    axis = next(a for a in schedule.axes if a.name == name)
    size = int(axis.size)  # type: ignore[arg-type]
    outer = replace(axis, stride=axis.stride * amount, size=-(-size // amount))
    inner = Axis(axis.dim, axis.stride, amount, kind)
    at = schedule.axes.index(axis)
    return schedule.with_axes((*schedule.axes[:at], outer, inner, *schedule.axes[at + 1 :]))


def agree(
    ast: UOp,
    target: Target,
    core: TensorCore,
    *cuts: Cut,
    stages: Iterable[Stage] = (),
    m: str = "i",
    n: str = "j",
    ks: tuple[str, ...] = ("k",),
    multiplies: bool = True,
) -> Program:
    """Bind, lower, verify, and compare with the level-2 oracle, bit for bit."""
    kernel = index(ast)
    expected, actual = fill(kernel, {}), fill(kernel, {})
    run_kernel(kernel, expected, {})
    kernel = bound(with_grid(kernel, target), core, m, n, ks, multiplies)
    schedule = kernel.schedule
    for cut in cuts:
        schedule = _cut(schedule, cut)
    kernel = kernel.with_schedule(replace(schedule, stages=tuple(stages)))
    verify_kernel(kernel)
    program = lower(kernel, target)
    verify_program(program, target)
    run_program(program, actual, {})
    for slot, values in expected.items():
        np.testing.assert_array_equal(values, actual[slot])
    return program
