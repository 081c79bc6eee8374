"""Elementwise ops on NumPy arrays: the table of docs/ir.md, for every dtype."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.oracle.rounding import Fn, cast, fma, is_small, narrow

_ARITHMETIC: dict[Op, Fn] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: operator.neg,
    Op.DIV: operator.truediv,
    Op.FLOORDIV: np.floor_divide,
    Op.MOD: np.remainder,
    Op.MAX: np.maximum,
    Op.MIN: np.minimum,
    Op.SQRT: np.sqrt,
    Op.TRUNC: np.trunc,
    Op.RINT: np.rint,
}
_COMPARE: dict[Op, Fn] = {Op.CMPLT: operator.lt, Op.CMPEQ: operator.eq, Op.CMPNE: operator.ne}
_BITWISE: dict[Op, Fn] = {Op.AND: operator.and_, Op.OR: operator.or_, Op.XOR: operator.xor}
_BOOL: dict[Op, Fn] = {
    Op.ADD: operator.or_,
    Op.MUL: operator.and_,
    Op.MAX: operator.or_,
    Op.MIN: operator.and_,
}
_TRANSCENDENTAL: dict[Op, Fn] = {
    Op.EXP: np.exp,
    Op.LOG: np.log,
    Op.SIN: np.sin,
    Op.COS: np.cos,
    Op.TANH: np.tanh,
    Op.POW: np.power,
}
_FLOAT_ONLY = frozenset({Op.DIV, Op.SQRT, Op.TRUNC, Op.RINT, Op.FMA, *_TRANSCENDENTAL})


def apply(
    op: Op, dtype: DType, src_dtypes: Sequence[DType], arrays: Sequence[Any], arg: Any = None
) -> np.ndarray[Any, Any]:
    """The op's result on arrays (or scalars) of the sources' dtypes, broadcast to one shape.

    Raises VerifyError for an op the dtype does not have.
    """
    with np.errstate(all="ignore"):
        return np.asarray(compute(op, dtype, tuple(src_dtypes), arg)(*arrays))


@cache
def compute(op: Op, dtype: DType, src_dtypes: tuple[DType, ...], arg: Any = None) -> Fn:
    """A function from the sources' values to the result; call it under np.errstate(all="ignore").

    Lanes do not matter: a value is a NumPy scalar or an array of the scalar dtype.
    """
    out, ins = dtype.scalar, [d.scalar for d in src_dtypes]
    if op is Op.CAST:
        return cast(out, ins[0])
    if op is Op.BITCAST:
        return lambda x: x.view(out.numpy)
    if op is Op.WHERE:
        return np.where
    if op in COMPARE:
        return _compare(op, ins[0])
    found: Fn | None
    if out.is_bool:
        found = _BOOL.get(op) or _BITWISE.get(op)
    elif out.is_int:
        found = _integer(op, out, ins[0])
    elif op in _TRANSCENDENTAL:
        return _transcendental(_TRANSCENDENTAL[op], out)
    elif op is Op.FMA:
        return fma(out)
    else:
        found = _ARITHMETIC.get(op)
        if found is not None and is_small(out):
            found = _through_float32(found, out)
    if found is None:
        fail(VerifyError, f"{op.name} has no meaning in dtype {dtype}")
    return found


def _compare(op: Op, dtype: DType) -> Fn:
    relation = _COMPARE[op]
    if is_small(dtype):
        return lambda a, b: relation(a.astype(np.float32), b.astype(np.float32))
    return relation


def _through_float32(f: Fn, dtype: DType) -> Fn:
    """Computed in float32 and rounded once."""
    to = dtype.numpy
    return lambda *xs: f(*[x.astype(np.float32) for x in xs]).astype(to)


def _transcendental(f: Fn, dtype: DType) -> Fn:
    """Computed in a wider float and rounded once (float64: in long double where it is wider)."""
    if dtype is dt.float64:
        return lambda *xs: f(*[x.astype(np.longdouble) for x in xs]).astype(np.float64)
    return lambda *xs: narrow(f(*[x.astype(np.float64) for x in xs]), dtype)


def _integer(op: Op, dtype: DType, src: DType) -> Fn | None:
    if op in _FLOAT_ONLY:
        return None
    if op in _BITWISE:
        return _BITWISE[op]
    if op in (Op.SHL, Op.SHR):
        return _shift(op, dtype)
    if op in (Op.CSHL, Op.CSHR):
        return operator.lshift if op is Op.CSHL else operator.rshift
    if op in (Op.CDIV, Op.CMOD):
        return _c_division(op)
    if op is Op.FTOI:
        return cast(dtype, src)
    return _ARITHMETIC.get(op)


def _shift(op: Op, dtype: DType) -> Fn:
    """Amounts are unsigned counts; the width or more shifts every bit out."""
    bits = dtype.bits
    unsigned = dt.unsigned(bits).numpy
    last = dtype.numpy.type(bits - 1)

    def shift(x: Any, amount: Any) -> Any:
        count = amount.view(unsigned)
        large = count >= bits
        within = np.where(large, last, amount)
        if op is Op.SHR and dtype.is_signed:
            return x >> within
        moved = x << within if op is Op.SHL else x >> within
        return np.where(large, dtype.numpy.type(0), moved)

    return shift


def _c_division(op: Op) -> Fn:
    """Rounds to zero; where the hardware op is undefined, what FLOORDIV and MOD give."""
    if op is Op.CMOD:
        return np.fmod

    def divide(a: Any, b: Any) -> Any:
        down = a // b
        inexact = (a - down * b != 0) & (b != 0)
        return down + ((inexact & ((a < 0) != (b < 0))).astype(down.dtype))

    return divide


def undefined(op: Op, dtype: DType, values: Sequence[Any]) -> str | None:
    """Why a raw level-3 op has no meaning on these values, or None where it has."""
    scalar = dtype.scalar
    if op in (Op.CDIV, Op.CMOD):
        a, b = values
        if np.any(b == 0):
            return "divides by 0"
        if scalar.is_signed and np.any((a == scalar.min) & (b == -1)):
            return "divides the smallest integer by -1"
    elif op in (Op.CSHL, Op.CSHR):
        amount = values[1]
        if np.any((amount < 0) | (amount >= scalar.bits)):
            return f"shifts {scalar} by an amount outside 0..{scalar.bits - 1}"
    elif op is Op.FTOI:
        whole = np.trunc(np.asarray(values[0]).astype(np.float64))
        inside = (whole >= float(int(scalar.min))) & (whole < float(int(scalar.max) + 1))
        if not np.all(inside):
            return f"converts a number outside the range of {scalar}"
    return None


def expression(roots: Sequence[UOp], leaves: Sequence[UOp]) -> Callable[[Sequence[Any]], list[Any]]:
    """Compiles elementwise UOps over `leaves` into a function of the leaves' values."""
    order = toposort(roots)
    place = {node: i for i, node in enumerate(order)}
    steps: list[tuple[int, Fn, list[int]]] = []
    fixed: list[tuple[int, Any]] = []
    known = set(leaves)
    for node in order:
        if node in known:
            continue
        if node.op is Op.CONST:
            fixed.append((place[node], constant(node)))
        else:
            f = compute(node.op, node.dtype, tuple(s.dtype for s in node.src), node.arg)
            steps.append((place[node], f, [place[s] for s in node.src]))
    where = [place.get(leaf) for leaf in leaves]
    out = [place[r] for r in roots]

    def run(values: Sequence[Any]) -> list[Any]:
        env: list[Any] = [None] * len(order)
        for i, value in fixed:
            env[i] = value
        for target, value in zip(where, values, strict=True):
            if target is not None:
                env[target] = value
        for i, f, src in steps:
            env[i] = f(*[env[s] for s in src])
        return [env[i] for i in out]

    return run


def constant(node: UOp) -> Any:
    """The NumPy scalar of a CONST."""
    if node.dtype.is_float:
        with np.errstate(all="ignore"):
            return np.asarray(narrow(np.float64(node.arg), node.dtype))[()]
    return np.array(node.arg).astype(node.dtype.numpy)[()]
