"""Launch sizes: every axis gets its values, whatever the limits of the hardware."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.oracle.alu import compute
from loopwright_lower.indices import int_dtype_for
from loopwright_lower.launch import Launch, factor, launch

CUDA = (2**31 - 1, 65535, 65535)
SMALL = (65535, 65535, 65535)


def made(*sizes: int, limits: tuple[int, ...] | None = SMALL) -> Launch:
    names = tuple(f"a{n}/1" for n in range(len(sizes)))
    return launch("gidx", names, sizes, limits)


def values(found: Launch, which: int) -> np.ndarray:
    """One position's value for every id of the launch, the fastest hardware id last."""
    grids = np.meshgrid(*[np.arange(n) for n in found.sizes[::-1]], indexing="ij")[::-1]
    done: dict[UOp, object] = {}
    for node in toposort((found.ids[which].value,)):
        if node.op is Op.SPECIAL:
            done[node] = grids[int(node.arg[0][4:])]
        elif node.op is Op.CONST:
            done[node] = np.int64(node.arg)
        else:
            f = compute(node.op, node.dtype, tuple(s.dtype for s in node.src), node.arg)
            done[node] = f(*[done[s] for s in node.src])
    return np.broadcast_to(np.asarray(done[found.ids[which].value]), found.sizes[::-1]).reshape(-1)


@pytest.mark.parametrize(
    ("sizes", "limits", "launched"),
    [
        ((5, 7), SMALL, (7, 5)),
        ((), SMALL, (1,)),
        ((2, 3, 4, 5), SMALL, (5, 4, 6)),
        ((102400,), CUDA, (102400,)),
        ((102400,), SMALL, (51200, 2)),
        ((65536, 2), SMALL, (2, 32768, 2)),
        ((65536, 2), CUDA, (131072,)),
        ((2, 65536), SMALL, (32768, 2, 2)),
        ((65537,), SMALL, (32769, 2)),
        ((131101,), SMALL, (43701, 3)),
        ((9, 9), (4, 4, 10), (3, 3, 9)),
        ((13,), (2, 4, 2), (2, 4, 2)),
    ],
)
def test_sizes(sizes: tuple[int, ...], limits: tuple[int, ...], launched: tuple[int, ...]) -> None:
    """Neighbours are merged where that suffices; else a size is split by its smallest divisor,
    and one without divisors rounded up."""
    assert made(*sizes, limits=limits).sizes == launched


@pytest.mark.parametrize(
    ("sizes", "limits"),
    [
        ((5, 7), SMALL),
        ((2, 3, 4, 5), SMALL),
        ((3, 5, 2, 2, 7), (8, 16, 64)),
        ((65536, 2), SMALL),
        ((65537,), SMALL),
        ((101, 3), (16, 8, 8)),
        ((13,), (2, 4, 2)),
    ],
)
def test_every_coordinate_once(sizes: tuple[int, ...], limits: tuple[int, ...]) -> None:
    """The ids give each coordinate once; what rounding up adds lies beyond the first axis."""
    found = made(*sizes, limits=limits)
    assert all(n <= limit for n, limit in zip(found.sizes, limits))
    each = [values(found, n) for n in range(len(sizes))]
    for value, axis in zip(each, found.ids):
        assert value.max() == axis.bound - 1
    inside = np.logical_and.reduce([v < n for v, n in zip(each, sizes)])
    flat = np.zeros(inside.sum(), np.int64)
    for v, n in zip(each, sizes):
        flat = flat * n + v[inside]
    np.testing.assert_array_equal(np.sort(flat), np.arange(np.prod(sizes)))
    # The innermost axis varies fastest.
    assert each[-1][1] == 1 and all(v[1] == 0 for v in each[:-1])


def test_symbolic_axis_has_its_own_dimension() -> None:
    """A size known at launch is neither merged nor split; numbers on either side are."""
    n = Variable("n", 1, 1000)
    found = launch("gidx", ("a/1", "b/1", "c/1", "d/1"), (4, n, 3, 2), SMALL)
    assert found.sizes == (6, n, 4)
    assert found.ids[1].bound is n and found.ids[1].value.arg == ("gidx1", n)


def test_axes_are_permuted_around_a_symbolic_one() -> None:
    """A symbolic axis goes to any dimension that holds it, what is beside it to the others."""
    n = Variable("n", 1, 100_000)
    rows = launch("gidx", ("n/1", "c/1"), (n, 64), CUDA)
    assert rows.sizes == (n, 64)
    assert [axis.value.arg for axis in rows.ids] == [("gidx0", n), ("gidx1", 64)]
    middle = launch("gidx", ("n/1", "c/1"), (n, 9000), (100, 100_000, 100))
    assert middle.sizes == (100, n, 90)
    each = launch("gidx", ("a/1", "n/1", "c/1"), (300, n, 30), (100, 100_000, 100))
    assert each.sizes == (100, n, 90) and [axis.bound for axis in each.ids] == [300, n, 30]
    two = (Variable("a", 1, 70), Variable("b", 1, 900))
    last = launch("gidx", ("a/1", "b/1", "c/1"), (*two, 9), (900, 10, 80))
    assert last.sizes == (two[1], 9, two[0])


def test_ids_beyond_int32() -> None:
    """Numbers that merged ids are recovered from may exceed what any array's offsets do."""
    assert made(2**17, 2**17, 2**17, limits=None).largest == 2**17
    one = made(2**20, 2**20, limits=(2**20, 2**10, 2**10))
    assert one.sizes == (2**20, 2**10, 2**10) and one.largest == 2**20
    whole = launch("gidx", ("a/1", "b/1"), (2**17 + 1, 2**17 - 1), (2**13, 2**12, 2**10))
    assert whole.largest >= (2**17 + 1) * (2**17 - 1)
    assert int_dtype_for([], {}, whole.largest) is dt.int64
    assert int_dtype_for([], {}, one.largest) is dt.int32


def test_too_large() -> None:
    """Only a product beyond all maxima is refused, by axis and limit."""
    assert factor(7, (2, 2, 2)) == (2, 2, 2)
    with pytest.raises(LoweringError, match=r"axis a0/1 of size 9.*2 x 2 x 2"):
        made(9, limits=(2, 2, 2))
    with pytest.raises(LoweringError, match=r"axis i/1 may take 70000 values.*65535"):
        launch("gidx", ("i/1",), (Variable("n", 1, 70000),), SMALL)
