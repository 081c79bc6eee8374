"""Whether large inputs take time in proportion: each case at n and at 2 n.

    uv run python benchmarks/scale.py [NAME ...]

Chains through every pass that must not recurse, doublings (x = x + x, whose tree no memory holds),
fusion of long and of wide graphs, loops of the interpreter. Times are the process's own, the best
of three. Exit status 1 where twice the input takes more than three times as long.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import loopwright as lw
from loopwright.fuse import fuse
from loopwright.memory import buffer_node
from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer as ix
from loopwright_core.ir.fold import fold
from loopwright_core.ir.ops import Op
from loopwright_core.ir.pattern import Pat, Rule, Rules, var
from loopwright_core.ir.rewrite import rewrite
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import UOp, const, substitute
from loopwright_core.kernel.dims import Dim
from loopwright_core.oracle.tensor import eval_tensor

BOUND = 3.0
A, B = Dim("i", 4).uop, Dim("j", 8).uop
X = UOp(Op.SPECIAL, dt.int32, (), ("x", 1))
_x = var("x")
NEG_NEG = Rules(Rule("neg_neg", Pat(Op.NEG, -_x), lambda x: x))

Run = Callable[[], object]


def node(op: Op, *src: UOp) -> UOp:
    return UOp(op, src[0].dtype, src)


def index_chain(n: int) -> UOp:
    """n additions of a dim and of constants to another dim."""
    u = A
    for k in range(n):
        u = node(Op.ADD, u, B if k % 2 else const(k, dt.index))
    return u


def doubled(u: UOp, n: int) -> UOp:
    for _ in range(n):
        u = node(Op.ADD, u, u)
    return u


def operand() -> Any:
    return lw.asarray(np.ones(100, np.float32), device="cpu")


def lazy_chain(n: int) -> Any:
    y = operand()
    for k in range(n):
        y = (y + 1.0) if k % 2 else (y * 0.5)
    return y


def store(array: Any) -> tuple[UOp, ...]:
    value = array._uop
    return (UOp(Op.STORE, dt.void, (buffer_node(value.dtype, shape_of(value)), value)),)


# Cases: what is timed, made from n.


def building(n: int) -> Run:
    return lambda: lazy_chain(n)


def walking(n: int) -> Run:
    u = index_chain(n)
    return lambda: substitute((u,), {A: B})


def bounds(n: int) -> Run:
    # Bounds and affine forms are remembered by the nodes, so each run has nodes of its own.
    return lambda: (ix.bounds(u := index_chain(n)), ix.affine(u))


def simplifying(n: int) -> Run:
    return lambda: ix.simplify(index_chain(n))


def rewriting(n: int) -> Run:
    u = X
    for k in range(n):
        u = node(Op.NEG, node(Op.NEG, u)) if k % 2 else node(Op.XOR, u, const(k % 97, dt.int32))
    return lambda: rewrite(u, NEG_NEG)


def folding(n: int) -> Run:
    u = X
    for _ in range(n):
        u = node(Op.ADD, u, const(1, dt.int32))
    return lambda: fold(u)


def doubling_rewritten(n: int) -> Run:
    u = doubled(node(Op.NEG, node(Op.NEG, X)), n)
    return lambda: rewrite(u, NEG_NEG)


def doubling_simplified(n: int) -> Run:
    return lambda: ix.simplify(doubled(A, n))


def doubling_fused(n: int) -> Run:
    def run() -> object:
        y = operand()
        for _ in range(n):
            y = y + y
        return fuse(store(y))

    return run


def fusing_a_chain(n: int) -> Run:
    return lambda: fuse(store(lazy_chain(n)))


def fusing_many_inputs(n: int) -> Run:
    inputs = [operand() for _ in range(n)]

    def run() -> object:
        total = inputs[0]
        for x in inputs[1:]:
            total = total + lw.exp(x) * 2.0
        return fuse(store(total))

    return run


def fusing_stencils(n: int) -> Run:
    def run() -> object:
        y = operand()
        for _ in range(n):
            y = lw.concat([y[1:], y[:1]]) + y
        return fuse(store(y))

    return run


def interpreting(n: int) -> Run:
    u = lazy_chain(n)._uop
    inputs = {b.arg.slot: np.ones(100, np.float32) for b in u.toposort() if b.op is Op.BUFFER}
    return lambda: eval_tensor(u, inputs)


class Case(NamedTuple):
    n: int
    make: Callable[[int], Run]


CASES = {
    f.__name__: Case(n, f)
    for n, f in (
        (50_000, building),
        (50_000, walking),
        (50_000, bounds),
        (50_000, simplifying),
        (50_000, rewriting),
        (5_000, folding),
        (60, doubling_rewritten),
        (30, doubling_simplified),
        (60, doubling_fused),
        (10_000, fusing_a_chain),
        (500, fusing_many_inputs),
        (100, fusing_stencils),
        (10_000, interpreting),
    )
}


def milliseconds(run: Run) -> float:
    """The best of three runs, garbage of the one before collected first."""
    best = math.inf
    for _ in range(3):
        gc.collect()
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(CASES)}; all by default")
    is_fine = True
    print(f"{'':20} {'n':>8} {'ms at n':>10} {'ms at 2 n':>10} {'ratio':>6}")
    for name in parser.parse_args().names or CASES:
        n, make = CASES[name]
        single, double = milliseconds(make(n)), milliseconds(make(2 * n))
        ratio = double / single
        is_fine &= ratio <= BOUND
        print(f"{name:20} {n:8,} {single:10.2f} {double:10.2f} {ratio:6.2f}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
