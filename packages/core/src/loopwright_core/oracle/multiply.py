"""What a tensor core computes, and tiles on their way between memory and registers.

Products are exact. They are added to C one after another, k ascending, each sum rounded to the
core's dtype_out (integers wrap); devices may add in another order. Inputs of a core that keeps
fewer bits of the mantissa are rounded to nearest first, ties away from zero.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.oracle.access import Env, Places, Step
from loopwright_core.oracle.memory import Array
from loopwright_core.plugin.tensor_core import TensorCore


def multiply(core: TensorCore, a: Array, b: Array, c: Array) -> Array:
    """A x B + C; operands are (..., threads, elements), and so is the result."""
    x, y, total = (_matrix(core, n, held) for n, held in enumerate((a, b, c)))
    kind = core.dtype_out.numpy
    wide = np.int64 if core.dtype_out.is_int else np.float64
    x, y = (_rounded(m, core.mantissa).astype(wide) for m in (x, y))
    for k in range(core.dims[2]):
        total = (total.astype(wide) + x[..., :, k, None] * y[..., None, k, :]).astype(kind)
    rows, columns = _places(core, 2)
    return total[..., rows, columns]


def _matrix(core: TensorCore, operand: int, held: Array) -> Array:
    """The matrix whose elements the threads hold."""
    shape = core.operands[operand]
    made = np.empty((*held.shape[:-2], shape.rows, shape.columns), held.dtype)
    rows, columns = _places(core, operand)
    made[..., rows, columns] = held
    return made


@cache
def _places(core: TensorCore, operand: int) -> tuple[Array, Array]:
    """Row and column of every thread's every element."""
    shape = core.operands[operand]
    every = range(core.elements[operand])
    at = np.array([[shape.at(lane, r) for r in every] for lane in range(core.threads)])
    return at[..., 0], at[..., 1]


def _rounded(matrix: Array, mantissa: int) -> Array:
    """float32 with so many bits of mantissa (0: all), to nearest, ties away from zero."""
    if not mantissa:
        return matrix
    lost = 23 - mantissa
    bits = matrix.astype(np.float32).view(np.uint32)
    nearest = (bits + np.uint32(1 << (lost - 1))) >> np.uint32(lost) << np.uint32(lost)
    finite = np.isfinite(matrix)
    return np.where(finite, nearest, bits).astype(np.uint32).view(np.float32)


def multiply_step(places: Places, node: UOp, where: str) -> Step:
    """A WMMA of a core whose one thread holds whole tiles."""
    core = node.arg
    if core.threads != 1:
        fail(VerifyError, f"{where}: {core.threads} threads multiply together, on a grid")
    sources = [places.place(s, where) for s in node.src]
    target = places.declare(node)

    def run(env: Env) -> None:
        env[target] = multiply(core, *[env[s][..., None, :] for s in sources])[..., 0, :]

    return run


def multiply_together(
    places: Places, node: UOp, where: str, count: Callable[[], int], group: int
) -> Step:
    """A WMMA of threads in a row, of which all or none are there. `count`: threads that run;
    `group`: threads of a workgroup."""
    core = node.arg
    if group % core.threads:
        fail(VerifyError, f"{where}: {core.threads} threads multiply together, a group has {group}")
    sources = [places.place(s, where) for s in node.src]
    lanes = [s.dtype.lanes for s in node.src]
    target = places.declare(node)

    def run(env: Env) -> None:
        n = count()
        if env[0] is not None:
            there = env[0].reshape(-1, core.threads)
            apart = there.any(axis=1) & ~there.all(axis=1)
            if apart.any():
                first = int(np.flatnonzero(apart)[0]) * core.threads
                fail(
                    VerifyError,
                    f"{where}: some of threads {first} to {first + core.threads - 1} are not "
                    "there, and all of them multiply together",
                )
        held = [
            np.broadcast_to(env[s], (n, width)).reshape(-1, core.threads, width)
            for s, width in zip(sources, lanes, strict=True)
        ]
        env[target] = multiply(core, *held).reshape(n, lanes[2])

    return run


def tile_step(places: Places, node: UOp, where: str) -> Step:
    """A TILE_LOAD or TILE_STORE: rows of memory, so many elements apart."""
    index = node.src[0]
    cells = places.cells(index.src[0], where)
    offset, stride = places.place(index.src[1], where), places.place(node.src[1], where)
    rows, columns = np.indices(node.arg, np.int64).reshape(2, -1)

    def reached(env: Env) -> Any:
        return np.int64(env[offset]) + rows * np.int64(env[stride]) + columns

    if node.op is Op.TILE_STORE:
        value = places.place(node.src[2], where)

        def store(env: Env) -> None:
            cells.write(where, reached(env), env[value], env[0])

        return store
    target = places.declare(node)

    def load(env: Env) -> None:
        env[target] = cells.read(where, reached(env), env[0])

    return load
