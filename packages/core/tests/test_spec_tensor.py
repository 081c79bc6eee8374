"""The verifier of level 1 refuses every planted fault and says which rule broke."""

from __future__ import annotations

import numpy as np
import pytest
from ir_samples import F32, I32, buffer, f, samples, sink, u

from loopwright_core.errors import VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import spec
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp, Variable, const, extent_uop
from loopwright_core.oracle.tensor import run_tensor

A, B = buffer(0, (4, 6)), buffer(1, (4, 6))
ZERO = const(0.0, F32)
N = Variable("n", 1, 9)
SYMBOLIC = buffer(0, (N, 6))
INTS = buffer(0, (4, 6), I32)
PAIR = u(Op.REDUCE, dt.void, A, u(Op.IOTA, I32, arg=((4, 6), 1)), arg=("argmax", (1,)))


def stored(value: UOp, shape: tuple[int, ...] = (4, 6), slot: int = 1) -> UOp:
    """A kernel AST that stores this value into its second buffer."""
    return sink((buffer(slot, shape, value.dtype), value))


FAULTS: list[tuple[str, UOp, str]] = [
    ("no sink", A, "SINK of STOREs"),
    ("sink of a value", u(Op.SINK, dt.void, A), "only STOREs stand"),
    ("empty sink", u(Op.SINK, dt.void), "holds STOREs"),
    ("store with a dtype", u(Op.SINK, dt.void, f(Op.STORE, B, A)), "a STORE has no value"),
    ("a dim", stored(f(Op.ADD, A, u(Op.DIM, F32, arg=None))), "no op of level 1"),
    ("a raw op", stored(f(Op.FMA, A, A, A)), "no op of level 1"),
    ("a concat", stored(u(Op.CONCAT, F32, A, A, arg=0), (8, 6)), "one STORE for each part"),
    ("vectors", stored(const(0.0, F32.vec(4))), "no vectors"),
    ("one source", stored(f(Op.ADD, A)), "has 1 sources, ADD takes 2"),
    ("two dtypes", stored(f(Op.ADD, A, const(1, I32))), "have dtypes"),
    ("result dtype", stored(u(Op.ADD, I32, A, A)), "makes int32 of float32"),
    ("comparison dtype", stored(f(Op.CMPLT, A, A)), "a comparison is bool"),
    ("where condition", stored(f(Op.WHERE, A, A, A)), "condition of WHERE is bool"),
    ("float and", stored(f(Op.AND, A, A)), "AND takes integers and bool"),
    ("integer sqrt", sink((buffer(1, (4, 6), I32), u(Op.SQRT, I32, INTS))), "takes floats"),
    ("bitcast width", stored(u(Op.BITCAST, dt.int64, A)), "keeps the width"),
    ("int constant of float", stored(f(Op.ADD, A, UOp(Op.CONST, F32, (), 1))), "holds a float"),
    ("int out of range", stored(UOp(Op.CONST, dt.int8, (), 200)), "outside the range of int8"),
    ("void arithmetic", stored(f(Op.ADD, PAIR, A)), "read it by ITEM"),
    ("shapes", stored(f(Op.ADD, A, f(Op.PERMUTE, A, arg=(1, 0)))), "sources have shapes"),
    ("reshape", stored(f(Op.RESHAPE, A, arg=(5, 5)), (5, 5)), "different element counts"),
    ("permutation", stored(f(Op.PERMUTE, A, arg=(0, 0))), "no permutation of 2 axes"),
    ("expand", stored(f(Op.EXPAND, A, arg=(8, 6)), (8, 6)), "only axes of size 1"),
    ("expand rank", stored(f(Op.EXPAND, A, arg=(1, 4, 6)), (1, 4, 6)), "different ranks"),
    ("flip axis", stored(f(Op.FLIP, A, arg=(2,))), "no axes of rank 2"),
    ("flip order", stored(f(Op.FLIP, A, arg=(1, 0))), "not sorted and unique"),
    ("negative pad", stored(f(Op.PAD, A, ZERO, arg=((-1, 1), (0, 0)))), "pads are 0 or more"),
    ("pad fill", stored(f(Op.PAD, A, A, arg=((0, 0), (0, 0)))), "fill is a CONST"),
    ("pad rank", stored(f(Op.PAD, A, ZERO, arg=((0, 0),)), (4,)), "do not fit rank"),
    (
        "shrink range",
        stored(f(Op.SHRINK, A, arg=((0, 5, 1), (0, 6, 1))), (5, 6)),
        "leaves the axis",
    ),
    ("shrink step", stored(f(Op.SHRINK, A, arg=((0, 4, 0), (0, 6, 1)))), "is not 1 or more"),
    (
        "shrink symbol",
        stored(f(Op.SHRINK, SYMBOLIC, arg=((0, 1, 1), (0, 6, 1))), (1, 6)),
        "not cut",
    ),
    ("window axis", stored(f(Op.WINDOW, A, arg=(2, 3, 1, 1))), "axis 2 is none of rank 2"),
    ("window size", stored(f(Op.WINDOW, A, arg=(1, 9, 1, 1))), "does not fit 6"),
    ("iota axis", stored(u(Op.IOTA, F32, arg=((4, 6), 2))), "axis 2 is none of"),
    ("gather indices", stored(f(Op.GATHER, A, B, arg=0)), "indices are integers"),
    ("move dtype", stored(u(Op.PERMUTE, I32, A, arg=(1, 0)), (6, 4)), "calls it int32"),
    ("combine", stored(f(Op.REDUCE, A, arg=("sum", (1,))), (4,)), "no combine 'sum'"),
    (
        "combine values",
        stored(f(Op.REDUCE, A, A, arg=("add", (1,))), (4,)),
        "takes 1 values, not 2",
    ),
    ("reduce axes", stored(f(Op.REDUCE, A, arg=("add", (1, 0))), ()), "not sorted and unique"),
    ("reduce axis", stored(f(Op.REDUCE, A, arg=("add", (2,))), (4, 6)), "no axes of rank 2"),
    ("reduce dtype", stored(u(Op.REDUCE, I32, A, arg=("add", (1,))), (4,)), "makes int32 of"),
    ("xor of floats", stored(f(Op.REDUCE, A, arg=("xor", (1,))), (4,)), "xor takes integers"),
    (
        "argmax of two floats",
        stored(u(Op.ITEM, F32, u(Op.REDUCE, dt.void, A, A, arg=("argmax", (1,))), arg=1), (4,)),
        "position is an integer",
    ),
    ("item of one value", stored(f(Op.ITEM, A, arg=0)), "ITEM reads a REDUCE or SCAN"),
    ("item number", stored(u(Op.ITEM, I32, PAIR, arg=2), (4,)), "no value 2 among 2"),
    ("item dtype", stored(u(Op.ITEM, F32, PAIR, arg=1), (4,)), "another dtype"),
    ("scan flags", stored(f(Op.SCAN, A, arg=("add", 1, 0, False))), "are bools"),
    ("scan axis", stored(f(Op.SCAN, A, arg=("add", 2, False, False))), "axis 2 is none of"),
    ("store shape", stored(A, (6, 4)), r"stores shape \(4, 6\) into \(6, 4\)"),
    ("store dtype", sink((buffer(1, (4, 6), I32), A)), "stores float32 into int32"),
    ("store into a sum", sink((f(Op.ADD, A, A), A)), "no view of a BUFFER"),
    (
        "store into a pad",
        sink((f(Op.PAD, B, ZERO, arg=((0, 0), (0, 0))), A)),
        "no view of a BUFFER",
    ),
    ("slot order", sink((A, B)), "slot 1 is the number 0"),
    ("slot gap", stored(A, slot=2), "slot 2 is the number 1"),
    (
        "two buffers in a slot",
        sink((buffer(0, (2, 12)), f(Op.RESHAPE, A, arg=(2, 12)))),
        "two different",
    ),
    (
        "negative extent",
        sink((UOp(Op.BUFFER, F32, (), Buffer(0, (-4,))), ZERO)),
        "extent is 0 or more",
    ),
    ("index buffer", sink((buffer(0, (4,), dt.index), extent_uop(3))), "scalar array dtype"),
    ("float index", stored(f(Op.GATHER, A, u(Op.CAST, dt.index, B), arg=0)), "index is an integer"),
]


@pytest.mark.parametrize(("node", "rule"), [c[1:] for c in FAULTS], ids=[c[0] for c in FAULTS])
def test_faults_are_refused(node: UOp, rule: str) -> None:
    """A planted fault raises VerifyError with its rule."""
    with pytest.raises(VerifyError, match=rule):
        spec.verify_tensor(node)


def test_legal_trees_pass() -> None:
    """Kernel ASTs, symbolic extents and stores into slices are legal."""
    for sample in samples():
        spec.verify_tensor(sample.tensor)
    n = u(Op.CAST, F32, extent_uop(N))
    mean = f(Op.DIV, f(Op.REDUCE, f(Op.RESHAPE, SYMBOLIC, arg=(6, N)), arg=("add", (1,))), n)
    spec.verify_tensor(sink((buffer(1, (6,)), mean)))
    half = f(Op.SHRINK, B, arg=((0, 4, 2), (0, 6, 1)))
    spec.verify_tensor(sink((half, f(Op.SHRINK, A, arg=((0, 2, 1), (0, 6, 1)))), (half, ZERO)))


def test_long_chains_are_walked_without_recursion() -> None:
    """A chain of 100,000 nodes is verified and run."""
    node, one = A, const(1.0, F32)
    for _ in range(100_000):
        node = f(Op.ADD, node, one)
    spec.verify_tensor(sink((B, node)))
    out = np.zeros((4, 6), np.float32)
    run_tensor(sink((B, node)), {0: out.copy(), 1: out})
    assert (out == 100_000).all()
