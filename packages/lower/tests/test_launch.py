"""Launch sizes: every axis gets its values, whatever the limits of the hardware."""

from __future__ import annotations

import numpy as np
import pytest

from loopwright_core.errors import LoweringError
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.oracle.alu import compute
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


def test_too_large() -> None:
    """Only a product beyond all maxima is refused, by axis and limit."""
    assert factor(7, (2, 2, 2)) == (2, 2, 2)
    with pytest.raises(LoweringError, match=r"axis a0/1 of size 9.*2 x 2 x 2"):
        made(9, limits=(2, 2, 2))
    with pytest.raises(LoweringError, match=r"axis i/1 may take 70000 values.*65535"):
        launch("gidx", ("i/1",), (Variable("n", 1, 70000),), SMALL)
