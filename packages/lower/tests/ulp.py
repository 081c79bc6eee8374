"""Runs decomposed ops on NumPy arrays and measures how far a result is from a reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import ELEMENTWISE, RAW, Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.oracle import alu
from loopwright_core.plugin.target import Target
from loopwright_lower.decompose import decompose
from loopwright_lower.decompose.table import TOTAL_OPS

HARD = frozenset({dt.bool_, *dt.INTS, dt.float32, dt.float64})
CPU = Target("test", "", arith=HARD, storage=frozenset(dt.ARRAY_DTYPES), ops=RAW)
NO_FMA = Target("test-no-fma", "", HARD, frozenset(dt.ARRAY_DTYPES), RAW - {Op.FMA}, has_fma=False)
NO_DOUBLE = Target(
    "test-no-double",
    "",
    HARD - {dt.float64},
    frozenset(dt.ARRAY_DTYPES) - {dt.float64},
    RAW,
)
SOFT = frozenset(dt.FLOATS) - {dt.float32, dt.float64}


def leaf(k: int, dtype: DType) -> UOp:
    """A placeholder of that dtype."""
    return UOp(Op.DEFINE_REG, dtype, (), k)


def check_legal(roots: Sequence[UOp], target: Target) -> None:
    """Every node is an op that level 3 has on this target."""
    for node in toposort(roots):
        if node.op not in ELEMENTWISE and node.op not in RAW:
            continue
        assert node.op not in TOTAL_OPS or node.op in target.ops, node
        where = f"{node} over {[s.dtype for s in node.src]}"
        if node.op is Op.FMA:
            assert target.has_fma, where
        soft = [d for d in (node.dtype, *(s.dtype for s in node.src)) if d in SOFT]
        if soft:
            assert node.op in (Op.BITCAST, Op.WHERE), where
        if target is NO_DOUBLE:
            assert node.dtype is not dt.float64, where
        if node.op is Op.CAST:
            assert not (node.src[0].dtype.is_float and not node.dtype.is_float), where
        elif node.op not in (Op.BITCAST, Op.WHERE, Op.FTOI):
            assert len({s.dtype for s in node.src}) == 1, where
        if node.op is Op.BITCAST:
            assert node.dtype.bits == node.src[0].dtype.bits, where


def run(
    op: Op,
    dtype: DType,
    arrays: Sequence[Any],
    src_dtypes: Sequence[DType],
    target: Target = CPU,
    checked: bool = True,
) -> Any:
    """The op decomposed for `target` and evaluated; raw ops outside their domain are errors.

    A source given as a UOp stands for itself (a constant).
    """
    leaves, values, src = [], [], []
    for k, (array, d) in enumerate(zip(arrays, src_dtypes, strict=True)):
        if isinstance(array, UOp):
            src.append(array)
            continue
        node = leaf(k, d)
        leaves.append(node)
        values.append(np.asarray(array, d.numpy))
        src.append(node)
    (root,) = decompose((UOp(op, dtype, tuple(src)),), target)
    check_legal((root,), target)
    with np.errstate(all="ignore"):
        if not checked:
            return alu.expression((root,), leaves)(values)[0]
        env: dict[UOp, Any] = dict(zip(leaves, values, strict=True))
        for node in toposort((root,)):
            if node in env:
                continue
            if node.op is Op.CONST:
                env[node] = alu.constant(node)
                continue
            got = [env[s] for s in node.src]
            dtypes = tuple(s.dtype for s in node.src)
            if node.op in RAW and node.op is not Op.FMA:
                first = node.src[0].dtype if node.op is not Op.FTOI else node.dtype
                problem = alu.undefined(node.op, first, got)
                assert problem is None, f"{op} of {dtype}: {node} {problem}"
            env[node] = alu.compute(node.op, node.dtype, dtypes, node.arg)(*got)
    return env[root]


def distance(got: Any, exact: Any, dtype: DType) -> Any:
    """|got - exact| in units of the last place of `exact` in `dtype`; 0 where both are NaN.

    `exact` is wider than `dtype`. Beyond the largest finite number the next power of two stands
    for infinity, so that an overflow a rounding early or late counts as small.
    """
    info = np.finfo(dtype.numpy)
    wide = np.longdouble
    exact = np.asarray(exact, wide)
    with np.errstate(all="ignore"):
        limit = wide(2) ** (info.maxexp)
        got = np.where(np.isinf(got), np.copysign(limit, got.astype(wide)), got.astype(wide))
        exact = np.where(np.abs(exact) > limit, np.copysign(limit, exact), exact)
        exponent = np.frexp(np.abs(exact))[1] - 1
        exponent = np.clip(exponent, info.minexp, info.maxexp - 1)
        ulp = np.ldexp(wide(1), exponent - info.nmant)
        off = np.abs(got - exact) / ulp
        same_nan = np.isnan(got) & np.isnan(exact)
        off = np.where(same_nan, 0, off)
    return np.where(np.isnan(off), np.inf, off)


def float32_sweep(step: int = 9973) -> Any:
    """Every `step`-th float32 bit pattern, and the edges."""
    bits = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    edge = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 3.4028235e38]
    edge += [1.1754942e-38, 1.17549435e-38, 0.5, 2.0, np.pi, np.pi / 2, 1e5, 131072.0, 1e30]
    edge += [88.72283, 88.722839, -87.33655, -103.97208, -103.97209, -104.0, 0.99999994, 1.0000001]
    return np.concatenate([bits.view(np.float32), np.array(edge, np.float32)])


def extremes(dtype: DType) -> Any:
    """Values around every edge of an integer dtype, and a few random ones."""
    low, high = int(dtype.min), int(dtype.max)
    around = {0, 1, 2, 3, 5, 7, 8, 10, 16, 31, 32, 33, 63, 64, 100, -1, -2, -3, -7, -8, -10, -100}
    around |= {low, low + 1, low + 2, high, high - 1, high // 2, high // 2 + 1, low // 2}
    rng = np.random.default_rng(7)
    values = [v for v in sorted(around) if low <= v <= high]
    values += [int(v) for v in rng.integers(low, high, 12, dtype=np.dtype(dtype.numpy))]
    return np.array(values, dtype.numpy)
