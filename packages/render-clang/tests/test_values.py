"""Every operation in every dtype, scalar and vector, against the interpreter, by each compiler."""

from __future__ import annotations

import numpy as np
import pytest
from level3 import I32, I64, Builder, check, installed, run_c

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec import verify_program
from loopwright_core.ir.uop import UOp, const
from loopwright_core.program.program import Program

N = 64
COMPILERS = sorted(installed())
ARITH = (dt.bool_, *dt.INTS, dt.float32, dt.float64)
_rng = np.random.default_rng(7)


def edge_values(dtype: DType, n: int = N) -> np.ndarray:
    """Random values with the edges of the dtype among them."""
    if dtype.is_bool:
        return _rng.integers(0, 2, n).astype(np.bool_)
    if dtype.is_float:
        kind = dtype.numpy
        edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45]
        edges += [float(np.finfo(kind).max), float(np.finfo(kind).min), 1e9, -3e9, 0.49999997]
        found = (_rng.standard_normal(n) * 10.0 ** _rng.integers(-6, 7, n)).astype(kind)
        found[: len(edges)] = np.array(edges, kind)[:n]
        return _rng.permutation(found)
    info = np.iinfo(dtype.numpy)
    found = _rng.integers(info.min, info.max, n, dtype.numpy, endpoint=True)
    edges = [info.min, info.max, 0, 1, info.max - 1, info.min + 1]
    found[: len(edges)] = edges
    found[len(edges) : n // 2] = found[len(edges) : n // 2] % 7
    return _rng.permutation(found)


def binary_ops(dtype: DType) -> list[Op]:
    found = [Op.ADD, Op.MUL, Op.CMPEQ, Op.CMPNE, Op.CMPLT]
    if dtype.is_float:
        return [*found, Op.SUB, Op.DIV]
    if dtype.is_bool:
        return [*found, Op.AND, Op.OR, Op.XOR]
    return [*found, Op.SUB, Op.AND, Op.OR, Op.XOR]


def unary_ops(dtype: DType) -> list[Op]:
    if dtype.is_float:
        return [Op.NEG, Op.SQRT, Op.TRUNC, Op.RINT]
    return [] if dtype.is_bool else [Op.NEG]


def every_op(dtype: DType, lanes: int) -> tuple[Program, list[np.ndarray]]:
    """One program: each op of the dtype over N elements, `lanes` at a time."""
    b = Builder(f"ops_{dtype}_{lanes}")
    a = b.buffer("a", dtype, (N,))
    c = b.buffer("b", dtype, (N,))
    d = b.buffer("d", dtype, (N,))
    p = b.buffer("p", dt.bool_, (N,))
    arrays = [edge_values(dtype), edge_values(dtype), edge_values(dtype), edge_values(dt.bool_)]
    outputs: list[tuple[UOp, DType]] = []

    def out(name: str, kind: DType) -> UOp:
        arrays.append(np.zeros(N, kind.numpy))
        buffer = b.buffer(name, kind, (N,), True)
        outputs.append((buffer, kind))
        return buffer

    with b.loop(N // lanes, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32)) if lanes > 1 else i
        x, y, z = b.load(a, at, lanes), b.load(c, at, lanes), b.load(d, at, lanes)
        q = b.load(p, at, lanes)
        for op in binary_ops(dtype):
            value = b.op(op, x, y)
            b.store(out(f"o_{op.name}", value.dtype.scalar), at, value)
            if not dtype.is_bool:
                # the same with a constant, which C may spread by itself
                k = const(3, dtype)
                value = b.op(op, x, b.splat(k, lanes) if lanes > 1 else k)
                b.store(out(f"oc_{op.name}", value.dtype.scalar), at, value)
        for op in unary_ops(dtype):
            b.store(out(f"o_{op.name}", dtype), at, b.op(op, x))
        b.store(out("o_WHERE", dtype), at, b.op(Op.WHERE, q, x, y))
        b.store(out("o_nested", dtype), at, b.op(Op.ADD, b.op(Op.MUL, x, y), b.op(Op.MUL, y, z)))
        less = b.op(Op.CMPLT, x, y)
        both = b.op(Op.AND, less, q)
        b.store(out("o_masks", dt.bool_), at, b.op(Op.OR, both, b.op(Op.CMPEQ, y, z)))
        t = const(True, dt.bool_)
        inverted = b.op(Op.XOR, both, b.splat(t, lanes) if lanes > 1 else t)
        b.store(out("o_chosen", dtype), at, b.op(Op.WHERE, inverted, z, x))
        if dtype.is_float:
            b.store(out("o_FMA", dtype), at, b.op(Op.FMA, x, y, z))
        if dtype.is_int:
            one = const(1, dtype)
            divisor = b.op(Op.OR, y, b.splat(one, lanes) if lanes > 1 else one)
            # -1 as a divisor of the smallest value is undefined
            three = const(3, dtype)
            divisor = b.op(Op.AND, divisor, b.splat(three, lanes) if lanes > 1 else three)
            b.store(out("o_CDIV", dtype), at, b.op(Op.CDIV, x, divisor))
            b.store(out("o_CMOD", dtype), at, b.op(Op.CMOD, x, divisor))
            amount = const(dtype.bits - 1, dtype)
            count = b.op(Op.AND, z, b.splat(amount, lanes) if lanes > 1 else amount)
            b.store(out("o_CSHL", dtype), at, b.op(Op.CSHL, x, count))
            b.store(out("o_CSHR", dtype), at, b.op(Op.CSHR, x, count))
    return b.program(), arrays


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", ARITH, ids=str)
def test_every_op(dtype: DType, compiler: str) -> None:
    """Each op of each dtype gives what the interpreter gives, for scalars and vectors."""
    sizes = (1, 32 // dtype.itemsize) if compiler == "gcc" else (32 // dtype.itemsize,)
    for lanes in sizes:
        program, arrays = every_op(dtype, lanes)
        verify_program(program)
        check(program, arrays, compiler=installed()[compiler])


def test_small_and_wide_vectors() -> None:
    """Vectors below and above the machine's width compute the same."""
    for dtype, lanes in ((dt.float32, 2), (dt.float64, 16), (dt.int8, 4), (dt.int64, 8)):
        program, arrays = every_op(dtype, lanes)
        check(program, arrays)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_larger_and_smaller(dtype: DType, compiler: str) -> None:
    """Choices by a comparison of the very values chosen from, which processors have as one
    instruction, keep their NaN and the sign of their zero, whichever way round they are written."""
    edges = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45], dtype.numpy)
    pairs = np.repeat(edges, len(edges)), np.tile(edges, len(edges))
    b = Builder("extremes")
    x, y = [b.buffer(name, dtype, (N,)) for name in "xy"]
    outs = [b.buffer(f"out{n}", dtype, (N,), True) for n in range(4)]
    lanes = 32 // dtype.itemsize
    with b.loop(N // lanes, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32))
        u, v = b.load(x, at, lanes), b.load(y, at, lanes)
        less, more = b.op(Op.CMPLT, u, v), b.op(Op.CMPLT, v, u)
        for out, choice in zip(
            outs, ((less, u, v), (less, v, u), (more, u, v), (more, v, u)), strict=True
        ):
            b.store(out, at, b.op(Op.WHERE, *choice))
    arrays = [*pairs, *[np.zeros(N, dtype.numpy) for _ in outs]]
    check(b.program(), arrays, compiler=installed()[compiler])
    expected = np.where(pairs[0] < pairs[1], *pairs)
    found = run_c(b.program(), arrays, (), installed()[compiler])[0]
    assert found.tobytes() == expected.tobytes()


def casts(lanes: int) -> tuple[Program, list[np.ndarray]]:
    """Every cast and bitcast that a CPU lists, and float to int in range."""
    b = Builder(f"casts_{lanes}")
    arrays: list[np.ndarray] = []
    sources = []
    for dtype in ARITH:
        sources.append(b.buffer(f"a_{dtype}", dtype, (N,)))
        arrays.append(edge_values(dtype))
    small = b.buffer("small", dt.float32, (N,))
    arrays.append(np.linspace(0, 100, N).astype(np.float32))
    with b.loop(N // lanes, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32)) if lanes > 1 else i
        for source in sources:
            x = b.load(source, at, lanes)
            for dtype in ARITH:
                if dtype is source.dtype or (source.dtype.is_float and not dtype.is_float):
                    continue
                ops = [Op.CAST]
                if dtype.bits == source.dtype.bits and not dtype.is_bool:
                    ops.append(Op.BITCAST)
                for op in ops:
                    out = b.buffer(f"{op.name}_{source.dtype}_{dtype}", dtype, (N,), True)
                    arrays.append(np.zeros(N, dtype.numpy))
                    b.store(out, at, b.op(op, x, dtype=dtype.vec(lanes)))
            if source.dtype.is_float:
                bits = dt.unsigned(source.dtype.bits)
                out = b.buffer(f"bits_{source.dtype}", bits, (N,), True)
                arrays.append(np.zeros(N, bits.numpy))
                b.store(out, at, b.op(Op.BITCAST, x, dtype=bits.vec(lanes)))
        s = b.load(small, at, lanes)
        for dtype in dt.INTS:
            out = b.buffer(f"ftoi_{dtype}", dtype, (N,), True)
            arrays.append(np.zeros(N, dtype.numpy))
            b.store(out, at, b.op(Op.FTOI, s, dtype=dtype.vec(lanes)))
    return b.program(), arrays


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_casts(lanes: int, compiler: str) -> None:
    """Each cast between arithmetic dtypes gives what the interpreter gives."""
    program, arrays = casts(lanes)
    check(program, arrays, compiler=installed()[compiler])


def test_storage_dtypes_are_bits() -> None:
    """float16, bfloat16 and float8 are moved and reinterpreted, not computed."""
    b = Builder()
    arrays = []
    for dtype in (dt.float16, dt.bfloat16, dt.float8_e4m3fn, dt.float8_e5m2):
        bits = dt.unsigned(dtype.bits)
        x = b.buffer(f"x_{dtype}", dtype, (16,))
        y = b.buffer(f"y_{dtype}", dtype, (16,), True)
        z = b.buffer(f"z_{dtype}", bits, (17,), True)
        arrays += [
            np.arange(16, dtype=bits.numpy).view(dtype.numpy),
            np.zeros(16, dtype.numpy),
            np.zeros(17, bits.numpy),
        ]
        v = b.load(x, 0, 16)
        low = b.op(Op.BITCAST, v, dtype=bits.vec(16))
        b.store(z, 0, low)
        keep = b.op(Op.CMPLT, low, b.splat(const(8, bits), 16))
        b.store(y, 0, b.op(Op.WHERE, keep, v, b.splat(const(1.5, dtype), 16)))
        b.store(z, 16, b.op(Op.BITCAST, const(-2.0, dtype), dtype=bits))
    check(b.program(), arrays)


def test_scalar_choice_of_loads() -> None:
    """A condition for all lanes chooses between values of loads that are written in place."""
    b = Builder()
    n, lanes = 16, 8
    x, y = b.buffer("x", dt.int16, (n,)), b.buffer("y", dt.int16, (n,), True)
    with b.loop(n // lanes, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32))
        is_first = b.splat(b.op(Op.CMPLT, i, const(1, I32)), lanes)
        negative = b.op(Op.XOR, b.load(x, at, lanes), b.splat(const(-1, dt.int16), lanes))
        b.store(y, at, b.op(Op.WHERE, is_first, negative, b.splat(const(1, dt.int16), lanes)))
    check(b.program(), [edge_values(dt.int16, n), np.zeros(n, np.int16)])


def test_masks_of_mixed_widths() -> None:
    """A mask made at one width selects, combines and is stored at every other."""
    b = Builder()
    n, lanes = 32, 8
    kinds = (dt.int8, dt.uint16, dt.float32, dt.float64)
    inputs = [b.buffer(f"a_{k}", k, (n,)) for k in kinds]
    flags = b.buffer("flags", dt.bool_, (n,))
    arrays = [edge_values(k, n) for k in kinds] + [edge_values(dt.bool_, n)]
    with b.loop(n // lanes, "i") as i:
        at = b.op(Op.MUL, i, const(lanes, I32))
        values = [b.load(x, at, lanes) for x in inputs]
        zero = [b.splat(const(0, k), lanes) for k in kinds]
        masks = [b.op(Op.CMPLT, zero[j], v) for j, v in enumerate(values)]
        masks.append(b.load(flags, at, lanes))
        for j, m in enumerate(masks):
            for v, k in zip(values, kinds, strict=True):
                out = b.buffer(f"w{j}_{k}", k, (n,), True)
                arrays.append(np.zeros(n, k.numpy))
                b.store(out, at, b.op(Op.WHERE, m, v, b.splat(const(1, k), lanes)))
            for other in masks:
                for op in (Op.AND, Op.OR, Op.XOR, Op.CMPEQ, Op.CMPLT):
                    out = b.buffer(f"m{len(arrays)}", dt.bool_, (n,), True)
                    arrays.append(np.zeros(n, np.bool_))
                    b.store(out, at, b.op(op, m, other))
        out = b.buffer("chosen", dt.bool_, (n,), True)
        arrays.append(np.zeros(n, np.bool_))
        b.store(out, at, b.op(Op.WHERE, masks[0], masks[3], masks[4]))
        for k in (dt.int8, dt.uint64, dt.float32):
            out = b.buffer(f"cast_{k}", k, (n,), True)
            arrays.append(np.zeros(n, k.numpy))
            b.store(out, at, b.op(Op.CAST, masks[3], dtype=k.vec(lanes)))
    check(b.program(), arrays)


def test_mask_register_and_lanes() -> None:
    """A register of truth values accumulates, and its lanes come out as bools."""
    b = Builder()
    x = b.buffer("x", dt.float64, (32,))
    out = b.buffer("out", dt.bool_, (5,), True)
    none = b.splat(const(False, dt.bool_), 4)
    reg = b.reg(none, "seen")
    with b.loop(8, "i") as i:
        v = b.load(x, b.op(Op.MUL, i, const(4, I32)), 4)
        old = b.after(reg, i)
        b.assign(old, b.op(Op.OR, old, b.op(Op.CMPLT, v, b.splat(const(-1.0, dt.float64), 4))))
    end = b.uops[-1]
    seen = b.after(reg, end)
    lanes = [b.add(Op.LANE, dt.bool_, seen, arg=k) for k in range(4)]
    for k in range(4):
        b.store(out, k, lanes[k])
    b.store(out, 4, b.op(Op.AND, lanes[0], b.op(Op.OR, lanes[1], lanes[2])))
    data = np.zeros(32)
    data[[4 + 1, 12 + 3]] = -2.0
    check(b.program(), [data, np.zeros(5, np.bool_)])


def test_conditions_of_one_bit_on_vectors() -> None:
    """A spread condition chooses between whole vectors and converts to any mask."""
    b = Builder()
    n = b.variable("n", 0, 10)
    x = b.buffer("x", dt.float32, (8,))
    y = b.buffer("y", dt.float32, (8,), True)
    z = b.buffer("z", dt.float64, (8,), True)
    flags = b.buffer("flags", dt.bool_, (8,), True)
    v = b.load(x, 0, 8)
    c = b.splat(b.op(Op.CMPLT, n, const(5, I32)), 8)
    b.store(y, 0, b.op(Op.WHERE, c, v, b.splat(const(0.0, dt.float32), 8)))
    both = b.op(Op.AND, c, b.op(Op.CMPLT, b.splat(const(0.0, dt.float32), 8), v))
    b.store(flags, 0, b.op(Op.OR, both, b.splat(const(False, dt.bool_), 8)))
    b.store(z, 0, b.op(Op.CAST, both, dtype=dt.float64.vec(8)))
    arrays = [edge_values(dt.float32, 8), *[np.zeros(8, k) for k in ("f4", "f8", "?")]]
    program = b.program()
    for value in (4, 5):
        check(program, arrays, [value])


def test_int64_loops_and_variables() -> None:
    """64-bit loop variables, offsets and variables are computed in 64 bits."""
    b = Builder()
    n = b.variable("n", 1, 1 << 30, I64)
    out = b.buffer("out", dt.int64, (4,), True)
    with b.loop(const(4, I64), "i", I64) as i:
        square = b.op(Op.MUL, n, n)
        b.store(out, i, b.op(Op.ADD, b.op(Op.MUL, square, const(3, I64)), i))
    check(b.program(), [np.zeros(4, np.int64)], [1 << 29])
