"""Facts about the node type: identity, keys, walks, memory."""

from __future__ import annotations

import gc
import math
import pickle
import subprocess
import sys
import threading

import pytest

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import uop as uop_module
from loopwright_core.ir.affine import order_key
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, const, extent_uop, rebuild, substitute, toposort


def leaf(name: str) -> UOp:
    return UOp(Op.SPECIAL, dt.float32, (), (name, 1))


def add(a: UOp, b: UOp) -> UOp:
    return UOp(Op.ADD, a.dtype, (a, b))


X, Y = leaf("x"), leaf("y")


def test_equal_means_identical() -> None:
    """The same op, dtype, sources and arg is the same node."""
    assert add(X, Y) is add(X, Y)
    assert add(X, Y) is not add(Y, X)
    assert add(X, Y).replace((Y, X)) is add(Y, X)


def test_constants_of_equal_value_but_other_kind_differ() -> None:
    """1, 1.0 and True, 0.0 and -0.0 are different constants; NaN is one."""
    one = [UOp(Op.CONST, dt.float32, (), v) for v in (1, 1.0, True)]
    assert len(set(one)) == 3
    assert const(0.0, dt.float32) is not const(-0.0, dt.float32)
    assert const(math.nan, dt.float32) is const(math.nan, dt.float32)
    assert const(1, dt.float32).arg == 1.0 and type(const(1, dt.float32).arg) is float
    assert const(2, dt.bool_).arg is True
    assert const(3, dt.int32.vec(4)).op is Op.BROADCAST


def test_nodes_die_with_their_last_user() -> None:
    """Hash-consing holds no node alive."""
    node = UOp(Op.NEG, dt.float32, (leaf("only here"),))
    gc.collect()
    n = len(uop_module._nodes)
    del node
    gc.collect()
    assert len(uop_module._nodes) == n - 2


def test_toposort_order() -> None:
    """Sources come first, each node once, and a gate stops the descent."""
    u = add(add(X, Y), X)
    assert toposort((u,)) == [X, Y, add(X, Y), u]
    assert u.toposort(lambda n: n is u) == [add(X, Y), X, u]


def test_rebuild_and_substitute() -> None:
    """rebuild maps each node over new sources; substitute exchanges nodes."""
    u = add(add(X, Y), X)
    assert substitute((u,), {X: Y}) == (add(add(Y, Y), Y),)
    swapped = next(rebuild((u,), lambda n, s: n.replace(s[::-1]) if s else None))
    assert swapped is add(X, add(Y, X))


def test_extents() -> None:
    """An int is a constant of dtype index, a Variable a VAR."""
    assert extent_uop(3) is const(3, dt.index)
    assert extent_uop(Variable("n", 1, 8)).op is Op.VAR


def test_no_pickle() -> None:
    """A node refuses to be pickled and says what to do."""
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(X)


def test_long_chain() -> None:
    """A chain of 100,000 nodes is built, walked, rebuilt and freed without recursion."""
    u = X
    for i in range(100_000):
        u = add(u, Y if i % 2 else X)
    assert len(u.toposort()) == 100_002
    (v,) = substitute((u,), {X: Y})
    assert len(v.toposort()) == 100_001
    del u, v


def test_doubling_sixty_times() -> None:
    """x = x + x sixty times has 61 nodes and costs nothing."""
    u = X
    for _ in range(60):
        u = add(u, u)
    assert len(u.toposort()) == 61


KEYS = """
from loopwright_core.ir import integer as ix
from loopwright_core.ir.show import formula
from loopwright_core.kernel.dims import Dim
a, b, c = (Dim(n, 9).uop for n in "abc")
q = ix.floordiv(ix.add(a, b), 4)
r = ix.mod(ix.add(ix.mul(c, 5), b), 7)
print(formula(ix.add(ix.add(r, q), ix.mul(ix.maximum(a, c), ix.minimum(b, c)))))
print(formula(ix.and_(ix.lt(r, 5), ix.lt(q, 2), ix.lt(a, 4))))
"""


def test_order_does_not_depend_on_the_hash_seed() -> None:
    """Canonical order is the same text in processes with other hash seeds."""
    texts = {
        subprocess.run(
            [sys.executable, "-c", KEYS],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(texts) == 1 and "//" in texts.pop()
    assert order_key(X) != order_key(Y)


def test_threads_that_build_the_same_nodes_get_the_same_nodes() -> None:
    """Equal means identical also where several threads make, and drop, a node at once."""
    n_nodes, n_threads = 1000, 4
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(5):
            made: list[list[UOp]] = [[] for _ in range(n_threads)]
            barrier = threading.Barrier(n_threads)

            def work(
                mine: list[UOp], turn: int = turn, barrier: threading.Barrier = barrier
            ) -> None:
                barrier.wait()
                for i in range(n_nodes):
                    mine.append(add(const(i % 100, dt.int64), const(turn * n_nodes + i, dt.int64)))

            threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            for same in zip(*made, strict=True):
                assert len(set(same)) == 1
    finally:
        sys.setswitchinterval(interval)
