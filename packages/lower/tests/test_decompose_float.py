"""Float max, min, floor division, remainder; whole bodies, combines and the rule table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ulp import CPU, HARD, NO_DOUBLE, NO_FMA, check_legal, leaf, run

from loopwright_core.errors import DTypeError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import RAW, Op
from loopwright_core.ir.uop import TRUE, Buffer, UOp, const
from loopwright_core.oracle import alu
from loopwright_core.plugin.target import Target
from loopwright_lower.decompose import decompose, decompose_rules

# Edge values overflow and signal in the narrower dtypes.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def pairs(dtype: DType) -> tuple[Any, Any]:
    """Every pair of special values, random bit patterns, and near multiples."""
    numpy = np.dtype(dtype.numpy)
    info, rng, n = np.finfo(numpy), np.random.default_rng(9), 4000
    v = [0.0, 1, 2, 3, 0.5, 0.1, 7, 100, np.inf, info.max, info.tiny, info.smallest_subnormal]
    v += [1 + info.eps, 1 - info.eps / 2, 2.0**24 + 1, 1e30, 1e-30, info.tiny * 3.5]
    edge = np.array(v, numpy)
    edge = np.concatenate([edge, -edge, np.array([np.nan], numpy)])
    a, b = (g.ravel() for g in np.meshgrid(edge, edge))
    unsigned = dt.unsigned(dtype.bits).numpy
    bits = rng.integers(0, 2**dtype.bits, (2, n), dtype=np.uint64).astype(unsigned).view(numpy)
    y = rng.uniform(-10, 10, n).astype(numpy)
    x = (y * rng.integers(-9, 9, n)).astype(numpy)
    near = rng.uniform(-100, 100, n).astype(numpy)
    return np.concatenate([a, bits[0], x, near]), np.concatenate([b, bits[1], y, y])


def same(a: Any, b: Any) -> bool:
    a, b = a.astype(np.float64), b.astype(np.float64)
    ok = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
    return bool(np.all(ok))


@pytest.mark.parametrize("dtype", [dt.float16, dt.bfloat16, dt.float32, dt.float64], ids=repr)
@pytest.mark.parametrize("op", [Op.MOD, Op.FLOORDIV], ids=repr)
def test_float_division_equals_numpy(op: Op, dtype: DType) -> None:
    """Remainder and floor division are NumPy's bits, for every exponent gap, zero and infinity."""
    a, b = (v.astype(dtype.numpy) for v in pairs(dt.float32 if dtype.bits < 32 else dtype))
    expected = alu.apply(op, dtype, (dtype, dtype), (a, b))
    assert same(expected, run(op, dtype, (a, b), (dtype, dtype)))
    if dtype is dt.float32:
        assert same(expected, run(op, dtype, (a, b), (dtype, dtype), NO_DOUBLE))


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=repr)
def test_float_division_by_a_constant_equals_numpy(dtype: DType) -> None:
    """Powers of two take a short form; every constant divisor gives NumPy's bits."""
    a = pairs(dtype)[0]
    for c in (1.0, 2.0, -1.0, 8.0, 0.5, 3.0, 0.0, float("inf")):
        for op in (Op.MOD, Op.FLOORDIV):
            expected = alu.apply(op, dtype, (dtype, dtype), (a, np.full_like(a, c)))
            assert same(expected, run(op, dtype, (a, const(c, dtype)), (dtype, dtype))), (op, c)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=repr)
def test_nan_wins_max_and_min(dtype: DType) -> None:
    """MAX and MIN are NumPy's on every pair but two zeros, where either may come."""
    a, b = pairs(dtype)
    for op in (Op.MAX, Op.MIN):
        expected = alu.apply(op, dtype, (dtype, dtype), (a, b))
        got = run(op, dtype, (a, b), (dtype, dtype))
        zeros = (a == 0) & (b == 0)
        assert same(np.where(zeros, 0, expected), np.where(zeros, 0, got))


@pytest.mark.parametrize("name", sorted(COMBINES))
@pytest.mark.parametrize("target", [CPU, NO_FMA], ids=lambda t: t.name)
def test_every_combine_decomposes(name: str, target: Target) -> None:
    """A combine's merge over placeholders becomes primitive and keeps its value."""
    combine = COMBINES[name]
    first = dt.int32 if name in ("and", "or", "xor") else dt.float32
    dtypes = (first, dt.int32 if name.startswith("arg") else dt.float32, dt.float32)
    dtypes = dtypes[: combine.n_values]
    left = tuple(leaf(k, d) for k, d in enumerate(dtypes))
    right = tuple(leaf(k + 9, d) for k, d in enumerate(dtypes))
    merged = combine.merge(left, right)
    found = decompose(merged, target)
    check_legal(found, target)
    values = [np.array([3, 0, 2], d.numpy) for d in dtypes]
    others = [np.array([1, 5, 2], d.numpy) for d in dtypes]
    with np.errstate(all="ignore"):
        expected = alu.expression(merged, (*left, *right))((*values, *others))
        got = alu.expression(found, (*left, *right))((*values, *others))
    for a, b in zip(expected, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_long_chains_decompose_without_recursion() -> None:
    """A chain of 20,000 operations is no deeper for Python than one."""
    x = leaf(0, dt.int32)
    for k in range(20000):
        x = UOp(Op.MAX, dt.int32, (x, const(k, dt.int32)))
    (found,) = decompose((x,), CPU)
    assert Op.WHERE is found.op


def test_missing_dtype_is_refused() -> None:
    """A float the device neither computes with nor stores is a DTypeError that names it."""
    node = UOp(Op.ADD, dt.float64, (leaf(0, dt.float64), leaf(1, dt.float64)))
    with pytest.raises(DTypeError, match="float64 does not exist on this device"):
        decompose((node,), NO_DOUBLE)


def test_missing_dtype_under_comparisons_and_copies() -> None:
    """So it is where the result is bool, and where values are only moved."""
    buffer = UOp(Op.BUFFER, dt.float64, (), Buffer(0, (4,)))
    moved = UOp(Op.INDEX, dt.float64, (buffer, const(0, dt.index), TRUE), (4,))
    less = UOp(Op.CMPLT, dt.bool_, (leaf(0, dt.float64), leaf(1, dt.float64)))
    for root in (less, moved):
        with pytest.raises(DTypeError, match="float64 does not exist on this device"):
            decompose((root,), NO_DOUBLE)


def test_target_with_functions_and_casts_of_its_own() -> None:
    """Listed functions stay, and a `cast-float16` feature makes the conversion one CAST."""
    own = Target(
        "own",
        "",
        HARD,
        frozenset(dt.ARRAY_DTYPES),
        RAW | {Op.EXP, Op.MAX, Op.FLOORDIV},
        features=frozenset({"cast-float16"}),
    )
    x, h = leaf(0, dt.float32), leaf(1, dt.float16)
    for op, src in ((Op.EXP, (x,)), (Op.MAX, (x, x)), (Op.FLOORDIV, (x, x))):
        node = UOp(op, dt.float32, src)
        assert (node,) == decompose((node,), own)
    expected = UOp(
        Op.CAST, dt.float16, (UOp(Op.EXP, dt.float32, (UOp(Op.CAST, dt.float32, (h,)),)),)
    )
    assert (expected,) == decompose((UOp(Op.EXP, dt.float16, (h,)),), own)


def sample_nodes() -> list[UOp]:
    """Nodes that between them need every rule."""
    nodes: list[UOp] = []
    for d in (dt.bool_, dt.int32, dt.uint8, dt.float16, dt.float32):
        a, b = leaf(0, d), leaf(1, d)
        if d.is_bool:
            ops = [Op.ADD, Op.MUL, Op.CMPEQ]
        elif d.is_int:
            ops = [Op.FLOORDIV, Op.MOD, Op.SHL, Op.SHR, Op.POW, Op.MAX]
            nodes += [UOp(op, d, (a, const(3, d))) for op in ops]
        else:
            ops = [Op.FLOORDIV, Op.MOD, Op.POW, Op.MAX, Op.ADD, Op.CMPLT]
            nodes += [UOp(op, d, (a,)) for op in (Op.EXP, Op.LOG, Op.SIN, Op.TANH, Op.NEG)]
            nodes += [UOp(Op.POW, d, (a, const(n, d))) for n in (2, 3)]
        nodes += [UOp(op, dt.bool_ if op in (Op.CMPEQ, Op.CMPLT) else d, (a, b)) for op in ops]
        for to in (dt.bool_, dt.int32, dt.float16, dt.float32):
            nodes.append(UOp(Op.CAST, to, (a,)))
    nodes.append(UOp(Op.BITCAST, dt.uint16, (leaf(0, dt.float16),)))
    nodes.append(UOp(Op.BITCAST, dt.uint8, (leaf(0, dt.bool_),)))
    return nodes


def test_every_rule_fires() -> None:
    """No row of the rule table is dead."""
    own = Target("own", "", HARD, HARD, RAW | {Op.EXP, Op.MAX, Op.FLOORDIV})
    fired: set[str] = set()
    for target in (CPU, NO_DOUBLE, own):
        for node in sample_nodes():
            if target is own and any(s.dtype is dt.float16 for s in (node, *node.src)):
                continue
            decompose((node,), target, fired)
    assert {r.name for r in decompose_rules} == fired
