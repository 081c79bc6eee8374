"""How far a kernel's results on real values may lie from exact arithmetic, whatever the order.

Every node has a value, computed in float64, and a bound on the distance of what any schedule may
compute from it. A sum of n terms is off by at most n * eps * sum|terms| and its terms' own bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import asts
import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import ELEMENTWISE, MOVEMENT, Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.oracle.alu import apply
from loopwright_core.oracle.tensor import eval_tensor

Array = np.ndarray[Any, Any]
_INFINITE = float("inf")
# Roundings of one elementwise op that is not rounded correctly, in units of eps.
_ULPS = 8
_FUNCTIONS = {Op.EXP: np.exp, Op.LOG: np.log, Op.SQRT: np.sqrt, Op.TANH: np.tanh}
_EPS = {dt.float16: 2.0**-10, dt.bfloat16: 2.0**-7, dt.float32: 2.0**-23, dt.float64: 2.0**-52}

# Results near zero are multiples of these, where that is not far below all other rounding.
_LEAST = {dt.float16: 2.0**-24}


def bounds(
    sink: UOp, buffers: Mapping[int, Array], variables: Mapping[str, int]
) -> list[tuple[UOp, Array, Array]]:
    """(view, values, bounds) of each STORE; a bound is infinite where anything may come out."""
    machine = _Bounds(buffers, variables)
    with np.errstate(all="ignore"):
        for node in toposort([store.src[1] for store in sink.src]):
            machine.found[node] = machine.of(node)
    return [(store.src[0], *machine.found[store.src[1]]) for store in sink.src]


def check_within(found: Array, value: Array, bound: Array) -> None:
    """Every element lies within its bound. Raises AssertionError naming the worst one."""
    known = np.isfinite(bound) & np.ones(found.shape, np.bool_)
    apart = np.abs(_wide(found) - _wide(np.broadcast_to(value, found.shape)))
    over = np.where(known & ~(apart <= bound), apart, 0)
    if np.any(over):
        at = np.unravel_index(int(np.argmax(over)), found.shape)
        wanted, allowed = (
            np.broadcast_to(value, found.shape)[at],
            np.broadcast_to(bound, found.shape),
        )
        raise AssertionError(f"{at}: {found[at]} is not {wanted} within {allowed[at]}")


def _eps(dtype: DType) -> float:
    return _EPS.get(dtype, 0.0)


class _Bounds:
    """Values are float64 for floats, and of their own dtype for the rest."""

    def __init__(self, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> None:
        self.buffers, self.variables = buffers, variables
        self.found: dict[UOp, Any] = {}

    def of(self, node: UOp) -> Any:
        op = node.op
        if op in (Op.CONST, Op.VAR, Op.BUFFER, Op.IOTA):
            value = eval_tensor(node, self.buffers, self.variables)
            if node.dtype.is_float:
                value = value.astype(np.float64)
            return value, np.zeros(value.shape)
        if op is Op.ITEM:
            return self.found[node.src[0]][node.arg]
        sources = [self.found[s] for s in node.src]
        if op in MOVEMENT or op is Op.GATHER:
            return self._moved(node, sources)
        if op is Op.REDUCE or op is Op.SCAN:
            return self._combined(node, sources)
        assert op in ELEMENTWISE, op
        return self._elementwise(node, sources)

    def _run(self, op: Op, arg: Any, *arrays: Array) -> Array:
        """One node of level 1 on arrays."""
        arrays = tuple([np.ascontiguousarray(a) for a in arrays])
        leaves = [
            asts.buffer(n, *a.shape, dtype=dt.from_numpy(a.dtype)) for n, a in enumerate(arrays)
        ]
        return eval_tensor(UOp(op, leaves[0].dtype, tuple(leaves), arg), dict(enumerate(arrays)))

    def _fixed(self, shape: Any) -> Any:
        """A shape with numbers for variables, in whatever tuples it stands."""
        if isinstance(shape, tuple):
            return tuple([self._fixed(n) for n in shape])
        return self.variables[shape.name] if isinstance(shape, Variable) else shape

    def _moved(self, node: UOp, sources: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        (value, error), *rest = sources
        arg = self._fixed(node.arg)
        if node.op is Op.PAD:
            rim = np.ones(value.shape, np.bool_)
            rim = np.pad(rim, arg)
            filled = np.full(rim.shape, rest[0][0], value.dtype)
            filled[rim] = value.ravel()
            return filled, np.pad(error, arg)
        if node.op is Op.GATHER:
            indices, unsure = rest[0]
            moved = self._run(node.op, arg, error, indices)
            if np.any(unsure):
                moved = np.full(moved.shape, _INFINITE)
            return self._run(node.op, arg, value, indices), moved
        return self._run(node.op, arg, value), self._run(node.op, arg, error)

    # Elementwise

    def _elementwise(self, node: UOp, sources: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        op, dtype = node.op, node.dtype
        values, errors = [v for v, _ in sources], [e for _, e in sources]
        kind = node.src[0].dtype
        if op is Op.WHERE:
            (sure, unsure), (a, ea), (b, eb) = sources
            value = np.where(sure, a, b)
            other = np.where(unsure > 0, np.abs(_wide(a) - _wide(b)) + ea + eb, 0)
            return value, np.where(sure, ea, eb) + other
        if op is Op.CAST:
            return self._cast(dtype, kind, values[0], errors[0])
        if not kind.is_float:
            dtypes = [s.dtype for s in node.src]
            unsure = sum(errors, np.zeros(()))
            exact = apply(op, dtype, dtypes, values, node.arg)
            return exact, np.where(np.broadcast_to(unsure, exact.shape) > 0, _INFINITE, 0)
        a, ea = sources[0]
        if op in _FUNCTIONS:
            f = _FUNCTIONS[op]
            low = np.maximum(a - ea, 0) if op in (Op.SQRT, Op.LOG) else a - ea
            value = f(a)
            error = np.maximum(np.abs(f(a + ea) - value), np.abs(f(low) - value))
            return value, self._rounded(dtype, value, error, _ULPS)
        if op is Op.NEG:
            return -a, ea
        (b, eb) = sources[1]
        if op in (Op.CMPLT, Op.CMPEQ, Op.CMPNE):
            near = (np.abs(a - b) <= ea + eb) & (ea + eb > 0)
            value = apply(op, dtype, (dt.float64, dt.float64), (a, b))
            return value, np.where(near | np.isnan(ea + eb), 1.0, 0.0)
        if op in (Op.MAX, Op.MIN):
            value = np.maximum(a, b) if op is Op.MAX else np.minimum(a, b)
            return value, np.maximum(ea, eb)
        if op is Op.ADD or op is Op.SUB:
            return self._with(dtype, a + b if op is Op.ADD else a - b, ea + eb)
        if op is Op.MUL:
            return self._with(dtype, a * b, np.abs(a) * eb + np.abs(b) * ea + ea * eb)
        assert op is Op.DIV, op
        value, left = a / b, np.abs(b) - eb
        error = np.where(left > 0, (ea + np.abs(value) * eb) / left, _INFINITE)
        return self._with(dtype, value, error)

    def _with(self, dtype: DType, value: Array, error: Array) -> tuple[Array, Array]:
        return value, self._rounded(dtype, value, error, 1)

    def _rounded(self, dtype: DType, value: Array, error: Array, ulps: int) -> Array:
        return error + ulps * (_eps(dtype) * (np.abs(value) + error) + _LEAST.get(dtype, 0.0))

    def _cast(self, to: DType, kind: DType, value: Array, error: Array) -> tuple[Array, Array]:
        if to.is_float:
            wide = value.astype(np.float64)
            return self._with(to, wide, error * np.ones(wide.shape))
        made = apply(Op.CAST, to, (dt.float64 if kind.is_float else kind,), (value,))
        return made, np.where(error > 0, _INFINITE, 0) * np.ones(made.shape)

    # Reduces and scans

    def _combined(self, node: UOp, sources: list[tuple[Array, Array]]) -> Any:
        combine = node.arg[0]
        shape = self._fixed(shape_of(node.src[0]))
        spread = [(np.broadcast_to(v, shape), np.broadcast_to(e, shape)) for v, e in sources]
        if combine == "welford":
            return self._moments(node, spread)
        if combine in ("argmax", "argmin"):
            return self._extreme(node, spread)
        value, error = spread[0]
        kind = node.src[0].dtype
        made = self._run(node.op, node.arg, value)
        if not kind.is_float:
            off = self._run(node.op, _as(node.arg, "add"), error)
            return made, np.where(off > 0, _INFINITE, 0)
        if combine == "add":
            off, size = [self._run(node.op, node.arg, x) for x in (error, np.abs(value) + error)]
            axes = node.arg[1] if node.op is Op.REDUCE else (node.arg[1],)
            n = float(np.prod([shape[a] for a in axes]))
            return made, off + n * _eps(kind) * size
        assert combine in ("max", "min"), combine
        off = self._run(node.op, _as(node.arg, "max"), error)
        return made, np.maximum(off, 0)

    def _extreme(self, node: UOp, spread: list[tuple[Array, Array]]) -> Any:
        """(value, index): which is the largest is open where others are as near as their bounds."""
        (value, error), (where, _) = spread
        axes = node.arg[1]
        arrays = [np.ascontiguousarray(x) for x in (value, where)]
        leaves = [
            asts.buffer(n, *a.shape, dtype=dt.from_numpy(a.dtype)) for n, a in _numbered(arrays)
        ]
        pair = UOp(Op.REDUCE, dt.void, tuple(leaves), node.arg)
        held = dict(enumerate(arrays))
        best, at = [eval_tensor(asts.item(pair, n, leaves[n].dtype), held) for n in range(2)]
        off = np.maximum(error.max(axis=axes), 0)
        wide = np.expand_dims(best, axes)
        near = np.abs(_wide(value) - _wide(wide)) <= error + np.expand_dims(off, axes)
        unsure = (near.sum(axis=axes) > 1) & (off > 0)
        return [(best, off), (at, np.where(unsure, _INFINITE, 0))]

    def _moments(self, node: UOp, spread: list[tuple[Array, Array]]) -> Any:
        """(count, mean, squares) of plain values: the bound of summing in any tree, with room for
        the four roundings of each merge."""
        axes = node.arg[1]
        value, error = spread[1]
        n = float(np.prod([value.shape[a] for a in axes]))
        mean = value.mean(axis=axes)
        apart = value - np.expand_dims(mean, axes)
        eps = 4 * n * _eps(node.src[1].dtype)
        size = (np.abs(value) + error).max(axis=axes)
        off = error.max(axis=axes) + eps * size
        squares = (apart**2).sum(axis=axes)
        wrong = n * (2 * np.abs(apart).max(axis=axes) * off + off**2) + eps * n * size**2
        zero = np.zeros(mean.shape)
        return [(zero + n, zero), (mean, off), (squares, wrong)]


def _as(arg: tuple[Any, ...], combine: str) -> tuple[Any, ...]:
    return (combine, *arg[1:])


def _numbered(arrays: list[Array]) -> list[tuple[int, Array]]:
    return list(enumerate(arrays))


def _wide(x: Array) -> Array:
    return x.astype(np.float64)
