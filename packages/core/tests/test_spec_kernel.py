"""The verifier of level 2 refuses every planted fault and says which rule broke."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ir_samples import F32, I32, at, buffer, f, kernel, load, matmul, samples, sink, u

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import spec
from loopwright_core.ir.integer import add, and_, floordiv, ge, lt, mod, mul, sub
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import TRUE, UOp, Variable, const, extent_uop
from loopwright_core.kernel.dims import Axis, AxisKind, Dim
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule, Stage

A, B = buffer(0, (4, 6)), buffer(1, (4, 6))
P, Q = Dim("i", 4).uop, Dim("j", 6).uop
K, L = Dim("k", 6, True).uop, Dim("l", 6, True).uop
HERE = at(B, (4, 6), P, Q)
X = load(A, (4, 6), P, Q)
ZERO = const(0.0, F32)


def body(value: UOp, *more: UOp, to: UOp = HERE) -> Kernel:
    """B[i, j] = value, over i, j and further dims."""
    return kernel(sink((to, value)), P, Q, *more)


def row(x: UOp, dim: UOp = K, combine: str = "add") -> UOp:
    return f(Op.REDUCE, x, dim, arg=(combine,))


def axes(*rows: tuple[str, int, int, AxisKind]) -> Kernel:
    """The plain copy under these axes (dim, stride, size, kind)."""
    return body(X).with_schedule(Schedule(tuple([Axis(*r) for r in rows])))


LOOP, UPCAST, THREAD = AxisKind.LOOP, AxisKind.UPCAST, AxisKind.THREAD
GOOD_I, GOOD_J = ("i", 1, 4, LOOP), ("j", 1, 6, LOOP)
LOADED = u(Op.CAST, dt.index, load(buffer(0, (4, 6), I32), (4, 6), P, Q))
K_INSIDE = row(row(load(A, (4, 6), P, K)))

FAULTS: list[tuple[str, Kernel, str]] = [
    ("no sink", kernel(X, P, Q), "SINK of STOREs"),
    ("sink of a value", kernel(u(Op.SINK, dt.void, X), P, Q), "only STOREs stand"),
    ("movement", body(f(Op.PERMUTE, X, arg=(1, 0))), "PERMUTE is no op of level 2"),
    ("iota", body(u(Op.IOTA, F32, arg=((4,), 0))), "IOTA is no op of level 2"),
    ("range", body(u(Op.RANGE, F32, ZERO)), "RANGE is no op of level 2"),
    ("unknown dim", kernel(sink((HERE, X)), P), "no dim of the kernel"),
    ("dim of another size", kernel(sink((HERE, X)), P, Dim("j", 7).uop), "no dim of the kernel"),
    ("two dims of a name", kernel(sink((HERE, X)), P, Q, Dim("i", 9).uop), "two dims are called i"),
    ("dtype", body(f(Op.ADD, X, const(1, I32))), "have dtypes"),
    ("buffer as value", body(f(Op.ADD, A, X)), "uses a BUFFER"),
    ("index as value", body(f(Op.ADD, at(A, (4, 6), P, Q), X)), "uses an INDEX"),
    ("float of index", body(f(Op.ADD, X, P)), "have dtypes"),
    (
        "index arithmetic",
        body(load(A, (4, 6), u(Op.XOR, dt.index, P, P), Q)),
        "no index arithmetic",
    ),
    ("int index", body(load(A, (4, 6), const(0, I32), Q)), "dtype int32, not index"),
    ("index count", body(load(A, (4, 6), P)), "has 3 sources, INDEX takes 4"),
    ("view shape", body(load(A, (4, 7), P, Q)), "element count"),
    ("valid dtype", body(load(A, (4, 6), P, Q, valid=P)), "valid, is bool"),
    (
        "index dtype",
        body(f(Op.LOAD, u(Op.INDEX, I32, A, P, Q, TRUE, arg=(4, 6)), ZERO)),
        "calls float32 int32",
    ),
    (
        "load dtype",
        body(f(Op.CAST, u(Op.LOAD, I32, at(A, (4, 6), P, Q), const(0, I32)))),
        "loads float32 as",
    ),
    ("fill", body(f(Op.LOAD, at(A, (4, 6), P, Q), X)), "fill is a CONST"),
    ("no fill", body(f(Op.LOAD, at(A, (4, 6), P, Q))), "has 1 sources, LOAD takes 2"),
    ("store dtype", body(u(Op.CAST, I32, X)), "stores int32 into float32"),
    ("out of range", body(load(A, (4, 6), P, add(Q, 1))), r"index 1 is not provably in 0\.\.6-1"),
    ("below range", body(load(A, (4, 6), sub(P, 1), Q)), "index 0 is not provably"),
    (
        "half a condition",
        body(load(A, (4, 6), sub(add(P, Q), 1), Q, valid=lt(add(P, Q), 5))),
        "index 0 is",
    ),
    (
        "loaded index",
        kernel(sink((at(B, (4, 6), P, Q), load(buffer(2, (4, 6)), (4, 6), LOADED, Q))), P, Q),
        "index 0 is not",
    ),
    ("store out of range", body(X, to=at(B, (4, 6), P, add(Q, 1))), "index 1 is not"),
    (
        "escaped reduce dim",
        body(f(Op.ADD, row(load(A, (4, 6), P, K)), load(A, (4, 6), P, K)), K),
        r"\['k'\] are bound by no",
    ),
    ("unbound reduce dim", body(load(A, (4, 6), P, K), K), r"\['k'\] are bound by no"),
    ("reduce over an output", body(row(X, Q)), "no reduce dim"),
    ("reduce over nothing", body(f(Op.REDUCE, X, arg=("add",))), "binds no dim"),
    (
        "dim bound twice",
        body(f(Op.REDUCE, load(A, (4, 6), P, K), K, K, arg=("add",)), K),
        "binds a dim twice",
    ),
    ("reduce in its dims", body(K_INSIDE, K), "shares k with a reduce"),
    (
        "shared with other dims",
        body(
            f(
                Op.ADD,
                row(load(A, (4, 6), P, K)),
                f(Op.REDUCE, load(A, (4, 6), P, K), K, L, arg=("add",)),
            ),
            K,
            L,
        ),
        "shares k with a reduce over",
    ),
    (
        "shared and dependent",
        body(row(f(Op.SUB, load(A, (4, 6), P, K), row(load(A, (4, 6), P, K)))), K),
        "with a reduce that uses it",
    ),
    ("combine", body(row(load(A, (4, 6), P, K), combine="sum"), K), "no combine 'sum'"),
    (
        "tuple as value",
        body(
            f(
                Op.ADD,
                u(
                    Op.REDUCE,
                    dt.void,
                    load(A, (4, 6), P, K),
                    u(Op.CAST, I32, K),
                    K,
                    arg=("argmax",),
                ),
                X,
            ),
            K,
        ),
        "read it by ITEM",
    ),
    (
        "scan over a reduce dim",
        body(f(Op.SCAN, load(A, (4, 6), P, K), K, arg=("add", False, False)), K),
        "no output dim",
    ),
    ("scan flags", body(f(Op.SCAN, X, Q, arg=("add", 0, False))), "are bools"),
    ("lost dim", kernel(sink((at(buffer(1, (4,)), (4,), P), X)), P, Q), r"depends on dims \['j'\]"),
    (
        "load elsewhere",
        body(f(Op.ADD, X, load(B, (4, 6), P, sub(5, Q)))),
        "stores at another index",
    ),
    (
        "stored twice",
        kernel(sink((HERE, X), (HERE, f(Op.NEG, X))), P, Q),
        "where another STORE does",
    ),
    ("slots", body(load(buffer(2, (4, 6)), (4, 6), P, Q)), "0 is missing"),
    ("axis of no dim", axes(GOOD_I, GOOD_J, ("q", 1, 2, LOOP)), "of no dim of the kernel"),
    ("dim without axis", axes(GOOD_I), "dim j has no axis"),
    ("stride", axes(GOOD_I, ("j", 2, 3, LOOP)), "should have stride 1"),
    ("mixed radix", axes(GOOD_I, ("j", 4, 2, LOOP), ("j", 1, 3, LOOP)), "should have stride 3"),
    ("too few", axes(GOOD_I, ("j", 1, 5, LOOP)), "cover 5 of 6"),
    ("axis twice", axes(GOOD_I, GOOD_J, GOOD_J), "stands twice"),
    ("kind of an output", axes(GOOD_I, ("j", 1, 6, AxisKind.REDUCE)), "of an output dim is REDUCE"),
    ("expanded first", axes(("i", 1, 4, UPCAST), GOOD_J), "which is expanded"),
    ("two threads", axes(("i", 1, 4, THREAD), ("j", 1, 6, THREAD)), "2 axes are threads"),
    (
        "stage",
        replace(body(X), schedule=replace(body(X).schedule, stages=(Stage("A", "j/7"),))),
        "no axis",
    ),
]


@pytest.mark.parametrize(("made", "rule"), [c[1:] for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_faults_are_refused(made: Kernel, rule: str) -> None:
    """A planted fault raises VerifyError with its rule."""
    with pytest.raises(VerifyError, match=rule):
        spec.verify_kernel(made)


def test_kinds_of_a_reduce_dim() -> None:
    """A reduce dim has no LOCAL axis; UNROLL fits it, and one outermost LOOP splits it."""
    made = matmul().kernel
    rows = [Axis("i", 1, 5, LOOP), Axis("j", 1, 3, LOOP)]
    bad = made.with_schedule(Schedule((*rows, Axis("k", 1, 4, AxisKind.LOCAL))))
    with pytest.raises(VerifyError, match="of a reduce dim is LOCAL"):
        spec.verify_kernel(bad)
    inner = Axis("k", 2, 2, AxisKind.REDUCE), Axis("k", 1, 2, LOOP)
    with pytest.raises(VerifyError, match="splits a reduce"):
        spec.verify_kernel(made.with_schedule(Schedule((*rows, *inner))))
    split = Axis("k", 2, 2, LOOP), Axis("k", 1, 2, AxisKind.REDUCE)
    spec.verify_kernel(made.with_schedule(Schedule((*rows, *split))))
    spec.verify_kernel(made.with_schedule(Schedule((*rows, Axis("k", 1, 4, AxisKind.UNROLL)))))


def test_legal_kernels_pass() -> None:
    """Samples, splits, ragged tiles, merged views, scatters and symbolic extents are legal."""
    for sample in samples():
        spec.verify_kernel(sample.kernel)
    spec.verify_kernel(axes(GOOD_I, ("j", 4, 2, LOOP), ("j", 1, 4, UPCAST)))
    flat = add(mul(P, 6), Q)
    spec.verify_kernel(body(load(A, (24,), flat)))
    spec.verify_kernel(body(load(A, (8, 3), floordiv(flat, 3), mod(flat, 3))))
    n = Variable("n", 1, 100)
    r = Dim("r", n).uop
    last = sub(sub(extent_uop(n), 1), r)
    made = sink((at(buffer(1, (n,)), (n,), r), load(buffer(0, (n,)), (n,), last)))
    spec.verify_kernel(kernel(made, r))
    ids = u(Op.CAST, dt.index, load(buffer(1, (4,), I32), (4,), P))
    spot = at(buffer(2, (9,)), (9,), ids, valid=and_(ge(ids, 0), lt(ids, 9)))
    spec.verify_kernel(kernel(sink((spot, load(buffer(0, (4,)), (4,), P))), P))


def test_reduces_may_share_dims() -> None:
    """Two independent reduces over one dim are legal: a mean and a mean of squares."""
    x = load(A, (4, 6), P, K)
    value = f(Op.ADD, row(x), row(f(Op.MUL, x, x)))
    spec.verify_kernel(kernel(sink((at(buffer(1, (4,)), (4,), P), value)), P, K))


def test_empty_dims_need_no_proof() -> None:
    """A dim of size 0 runs no access."""
    e = Dim("i", 0).uop
    made = sink((at(buffer(1, (0,)), (0,), e), load(buffer(0, (0,)), (0,), e)))
    spec.verify_kernel(kernel(made, e))
