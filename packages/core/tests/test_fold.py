"""Facts about value-preserving algebra: every row fires, and no value ever changes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

import numpy as np
import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import ARRAY_DTYPES, DType
from loopwright_core.ir.fired import fired_rules
from loopwright_core.ir.fold import evaluate, fold, fold_rules, holds
from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.pattern import Pat, Rule
from loopwright_core.ir.rewrite import Stats
from loopwright_core.ir.uop import FALSE, TRUE, UOp, const
from loopwright_core.oracle.alu import apply, constant, expression

FLOAT_SHIFTS = (Op.SHL, Op.SHR, Op.AND, Op.OR, Op.XOR)
FLOAT_ONLY = (Op.DIV, Op.SQRT, Op.TRUNC, Op.RINT)


def leaf(name: str, dtype: DType) -> UOp:
    """A value the rules know nothing about."""
    return UOp(Op.SPECIAL, dtype, (), (name, 1))


def extremes(dtype: DType) -> np.ndarray:
    """The values of a dtype at which laws break."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        lo, hi = int(dtype.min), int(dtype.max)
        values = [lo, lo + 1, hi, hi - 1, 0, 1, 2, 3, 7, hi // 2]
        values += [-1, -2, -7] if lo else []
        return np.array(values, dtype=dtype.numpy)
    tiny = {8: 2.0**-9, 16: 2.0**-24}.get(dtype.bits, 1e-45)
    values = [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 3.0, 448.0, -448.0, tiny, -tiny, 0.1, 1e30, 65504.0]
    special = [math.inf, -math.inf, math.nan]
    with np.errstate(all="ignore"):
        return np.array(values + special).astype(np.float32).astype(dtype.numpy)


def constants(dtype: DType) -> list[bool | int | float]:
    """Constants to put into a pattern's places."""
    if dtype.is_bool:
        return [False, True]
    if dtype.is_int:
        signed = [-1, -3] if dtype.is_signed else []
        return [0, 1, 2, int(dtype.min), int(dtype.max), 5, *signed]
    return [0.0, -0.0, 1.0, 2.0, -0.25, 3.0, math.nan, float(dtype.max), 2.0**-10]


def allowed(op: Op, dtype: DType) -> bool:
    """Whether docs/ir.md gives the op a meaning on sources of that dtype."""
    if op in FLOAT_ONLY:
        return dtype.is_float
    if op in FLOAT_SHIFTS:
        return not dtype.is_float and (op in (Op.AND, Op.OR, Op.XOR) or not dtype.is_bool)
    if op in (Op.SUB, Op.NEG, Op.FLOORDIV, Op.MOD):
        return not dtype.is_bool
    return True


def instances(p: Pat, dtype: DType, names: dict[str, UOp], draw: random.Random) -> Iterator[UOp]:
    """Nodes of a dtype that a pattern may match, with leaves for its variables."""
    if p.name in names:
        if names[p.name].dtype is dtype:
            yield names[p.name]
        return
    if p.dtype is not None and not p.dtype(dtype):
        return
    if p.ops is None:
        made = leaf(p.name or f"any{draw.random()}", dtype)
        names[made.arg[0]] = made
        yield made
        return
    op = draw.choice(p.ops)
    if op is Op.CONST:
        found = [p.value] if p.value is not None else constants(dtype)
        node = const(draw.choice(found), dtype)
        if p.where is None or p.where(node):
            if p.name:
                names[p.name] = node
            yield node
        return
    src = p.src
    if src is None:
        n = {Op.NEG: 1, Op.SQRT: 1, Op.TRUNC: 1, Op.RINT: 1, Op.CAST: 1, Op.WHERE: 3}.get(op, 2)
        kind = draw.choice(["const", "first"])
        src = tuple([Pat(Op.CONST) if kind == "const" or i == 0 else Pat() for i in range(n)])
    inner = draw.choice(ARRAY_DTYPES) if op in COMPARE or op is Op.CAST else dtype
    if (op in COMPARE and not dtype.is_bool) or not allowed(op, inner):
        return
    parts: list[UOp] = []
    for i, s in enumerate(src):
        wanted = dt.bool_ if op is Op.WHERE and i == 0 else inner
        node = next(instances(s, wanted, names, draw), None)
        if node is None:
            return
        parts.append(node)
    made = UOp(op, dtype, tuple(parts))
    if p.name:
        names[p.name] = made
    yield made


def same(left: np.ndarray, right: np.ndarray, dtype: DType, zeros_equal: bool) -> bool:
    """Equal bit for bit, but that all NaNs are one (and for max and min both zeros)."""
    if not dtype.is_float:
        return bool((left == right).all())
    x, y = np.asarray(left).astype(np.float64), np.asarray(right).astype(np.float64)
    equal = (x == y) & (zeros_equal | (np.signbit(x) == np.signbit(y)))
    return bool((equal | (np.isnan(x) & np.isnan(y))).all())


def check(before: UOp, after: UOp, zeros_equal: bool = False) -> None:
    """Both expressions give the same value on all combinations of extremes."""
    assert before.dtype is after.dtype
    leaves = [u for u in before.toposort() if u.op is Op.SPECIAL]
    grids = np.meshgrid(*[np.arange(len(extremes(u.dtype))) for u in leaves], indexing="ij")
    values = [extremes(u.dtype)[g.ravel()] for u, g in zip(leaves, grids)]
    with np.errstate(all="ignore"):
        old, new = expression((before, after), leaves)(values)
    old, new = np.broadcast_arrays(old, new)
    assert same(old, new, before.dtype, zeros_equal), (before, after)


@pytest.mark.parametrize("rule", list(fold_rules), ids=lambda r: r.name)
def test_law_holds_on_extremes(rule: Rule) -> None:
    """The rule fires on what its pattern describes, and no value changes in any dtype."""
    draw = random.Random(rule.name)
    dtypes: set[DType] = set()
    tried = 0
    zeros_equal = rule.name == "constant_right" or "max" in rule.name or "min" in rule.name
    tries = [d for d in ARRAY_DTYPES for _ in range(600 if d.is_bool else 60)]
    for dtype in tries:
        node = next(instances(rule.pattern, dtype, {}, draw), None)
        if node is None:
            continue
        tried += 1
        made = rule.apply(node)
        if made is not None:
            dtypes.add(dtype)
            check(node, made, zeros_equal)
    assert dtypes, f"{rule.name} never fired in {tried} tries"


@pytest.mark.parametrize("inner", ARRAY_DTYPES, ids=str)
def test_double_casts_on_extremes(inner: DType) -> None:
    """Whatever double casts become, from and to every dtype, gives the same values."""
    n_joined = 0
    for source, outer in itertools.product(ARRAY_DTYPES, ARRAY_DTYPES):
        x = leaf("x", source)
        node = UOp(Op.CAST, outer, (UOp(Op.CAST, inner, (x,)),))
        made = fold(node)
        check(node, made)
        n_joined += made.op is not Op.CAST or made.src[0] is x
    assert n_joined > 0


def test_holds_is_exactly_what_casts_keep() -> None:
    """`holds(outer, inner)` says True only where a cast there and back keeps every value."""
    for inner, outer in itertools.product(ARRAY_DTYPES, ARRAY_DTYPES):
        if holds(outer, inner):
            x = leaf("x", inner)
            there = UOp(Op.CAST, outer, (x,))
            check(x, UOp(Op.CAST, inner, (there,)))
    assert holds(dt.float32, dt.int16) and not holds(dt.float32, dt.int32)
    assert not holds(dt.float16, dt.bfloat16) and holds(dt.float64, dt.uint32)


X = leaf("x", dt.float32)


@pytest.mark.parametrize(
    "node",
    [
        UOp(Op.MUL, dt.float32, (X, const(0.0, dt.float32))),  # inf * 0 is NaN
        UOp(Op.SUB, dt.float32, (X, X)),  # inf - inf is NaN
        UOp(Op.ADD, dt.float32, (X, const(0.0, dt.float32))),  # -0.0 + 0.0 is 0.0
        UOp(Op.SUB, dt.float32, (X, const(-0.0, dt.float32))),
        UOp(Op.CMPEQ, dt.bool_, (X, X)),  # False for NaN
        UOp(Op.DIV, dt.float32, (X, X)),
        UOp(Op.DIV, dt.float32, (X, const(3.0, dt.float32))),  # 1/3 is not exact
        UOp(Op.SUB, dt.float32, (const(0.0, dt.float32), X)),  # 0 - 0 is 0.0, -(0) is -0.0
        UOp(Op.EXP, dt.float32, (const(1.0, dt.float32),)),  # the device's own last bit
        UOp(
            Op.ADD,
            dt.float32,
            (UOp(Op.ADD, dt.float32, (X, const(1.0, dt.float32))), const(2.0, dt.float32)),
        ),
    ],
    ids=lambda n: n.op.name,
)
def test_what_would_change_a_float_stays(node: UOp) -> None:
    """Laws of the reals that floats do not obey are not applied."""
    assert fold(node) is node


INT8 = [
    (Op.FLOORDIV, -128, -1, -128),
    (Op.FLOORDIV, 7, 0, 0),
    (Op.MOD, 7, 0, 0),
    (Op.MOD, -7, 3, 2),
    (Op.FLOORDIV, -7, 2, -4),
    (Op.ADD, 127, 1, -128),
    (Op.MUL, 64, 2, -128),
    (Op.SHL, 1, 8, 0),
    (Op.SHL, 1, -1, 0),
    (Op.SHR, -5, 9, -1),
    (Op.SHR, 5, 8, 0),
    (Op.SUB, -128, 1, 127),
]


@pytest.mark.parametrize(("op", "a", "b", "expected"), INT8)
def test_integer_constants_at_the_edges(op: Op, a: int, b: int, expected: int) -> None:
    """Folded integer constants wrap, and divide and shift as docs/ir.md says."""
    assert evaluate(op, dt.int8, const(a, dt.int8), const(b, dt.int8)).arg == expected


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (math.inf, dt.float32, dt.int32, 2**31 - 1),
        (-math.inf, dt.float32, dt.uint8, 0),
        (math.nan, dt.float64, dt.int16, 0),
        (300.0, dt.float32, dt.uint8, 255),
        (-1, dt.int32, dt.uint16, 65535),
        (0.1, dt.float32, dt.bool_, True),
        (1e30, dt.float64, dt.float16, math.inf),
    ],
)
def test_constant_casts(value: float, source: DType, target: DType, expected: float) -> None:
    """Folded casts saturate from floats and wrap from integers."""
    assert fold(UOp(Op.CAST, target, (const(value, source),))) is const(expected, target)


def test_negative_zero_and_nan_are_kept() -> None:
    """-0.0 and NaN survive folding."""
    zero = fold(UOp(Op.NEG, dt.float32, (const(0.0, dt.float32),)))
    assert math.copysign(1.0, zero.arg) == -1.0
    inf = const(math.inf, dt.float32)
    assert math.isnan(fold(UOp(Op.SUB, dt.float32, (inf, inf))).arg)
    assert math.isnan(fold(UOp(Op.MAX, dt.float32, (const(math.nan, dt.float32), inf))).arg)


def random_graph(draw: random.Random, dtype: DType, size: int) -> UOp:
    """An elementwise graph of one dtype with constants, comparisons and selects."""
    ops = [Op.ADD, Op.MUL, Op.MAX, Op.MIN]
    ops += [o for o in (Op.SUB, Op.FLOORDIV, Op.MOD) if allowed(o, dtype) and not dtype.is_float]
    ops += [Op.SUB, Op.DIV] if dtype.is_float else [Op.AND, Op.OR, Op.XOR]
    nodes = [leaf("x", dtype), leaf("y", dtype), *[const(c, dtype) for c in constants(dtype)]]
    for _ in range(size):
        a, b, c = (draw.choice(nodes) for _ in range(3))
        if draw.random() < 0.2:
            test = UOp(draw.choice([Op.CMPLT, Op.CMPEQ, Op.CMPNE]), dt.bool_, (a, c))
            if draw.random() < 0.3:
                test = UOp(Op.CMPNE, dt.bool_, (test, TRUE))
            nodes.append(UOp(Op.WHERE, dtype, (test, a, b)))
        else:
            nodes.append(UOp(draw.choice(ops), dtype, (a, b)))
    return nodes[-1]


@pytest.mark.parametrize("dtype", ARRAY_DTYPES, ids=str)
def test_random_graphs_keep_their_values(dtype: DType) -> None:
    """Folding a random graph changes no value on any pair of extremes."""
    draw = random.Random(str(dtype))
    for _ in range(25):
        node = random_graph(draw, dtype, 12)
        check(node, fold(node), zeros_equal=True)


def test_statistics() -> None:
    """Fired rules are counted per call and for the process."""
    stats = Stats()
    before = fired_rules().get("mul_one", 0)
    node = UOp(Op.MUL, dt.int32, (leaf("x", dt.int32), const(1, dt.int32)))
    assert fold(node, stats) is node.src[0]
    assert stats.fired == {"mul_one": 1} and stats.visited >= 2
    assert fired_rules()["mul_one"] == before + 1
    assert "mul_one" in str(stats)


def test_bool_constants() -> None:
    """and, or, not of bool constants fold."""
    p = leaf("p", dt.bool_)
    assert fold(UOp(Op.AND, dt.bool_, (TRUE, p))) is p
    assert fold(UOp(Op.OR, dt.bool_, (TRUE, p))) is TRUE
    assert fold(UOp(Op.AND, dt.bool_, (p, FALSE))) is FALSE
    inverse = UOp(Op.CMPNE, dt.bool_, (p, TRUE))
    assert fold(UOp(Op.CMPNE, dt.bool_, (inverse, TRUE))) is p
    assert fold(UOp(Op.XOR, dt.bool_, (p, TRUE))) is inverse


def test_constant_folding_equals_the_interpreter() -> None:
    """A folded constant is what the interpreter computes, for every op and pair of extremes."""
    for dtype in ARRAY_DTYPES:
        for op in (Op.ADD, Op.MUL, Op.MAX, Op.MIN):
            for a, b in itertools.product(constants(dtype), constants(dtype)):
                made = fold(UOp(op, dtype, (const(a, dtype), const(b, dtype))))
                left, right = constant(const(a, dtype)), constant(const(b, dtype))
                expected = apply(op, dtype, [dtype, dtype], [left, right])
                assert made.op is Op.CONST
                assert same(constant(made), expected, dtype, False)
