"""Movement ops as index transforms, against NumPy element by element."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from loopwright_core.errors import ShapeError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.affine import affine
from loopwright_core.ir.movement import axis_groups, flatten, source_index, unflatten
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.uop import TRUE, Buffer, UOp, Variable, const, extent_uop
from loopwright_core.kernel.dims import Dim

F = dt.float32


def source(*shape: int | Variable) -> UOp:
    return UOp(Op.BUFFER, F, (), Buffer(0, shape))


def move(op: Op, x: UOp, arg: object) -> UOp:
    src = (x, const(7, F)) if op is Op.PAD else (x,)
    return UOp(op, F, src, arg)


def windows(x: np.ndarray, axis: int, size: int, stride: int, dilation: int) -> np.ndarray:
    n = (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1
    at = np.arange(n)[:, None] * stride + np.arange(size) * dilation
    return np.moveaxis(np.take(x, at, axis=axis), axis + 1, -1)


CASES = {
    "reshape split": (Op.RESHAPE, (12, 5), (3, 4, 5), lambda x: x.reshape(3, 4, 5)),
    "reshape merge": (Op.RESHAPE, (3, 4, 5), (12, 5), lambda x: x.reshape(12, 5)),
    "reshape both": (Op.RESHAPE, (4, 6), (3, 8), lambda x: x.reshape(3, 8)),
    "reshape ones": (Op.RESHAPE, (4, 1, 6), (1, 4, 6, 1), lambda x: x.reshape(1, 4, 6, 1)),
    "reshape scalar": (Op.RESHAPE, (1, 1), (), lambda x: x.reshape(())),
    "permute": (Op.PERMUTE, (2, 3, 4), (2, 0, 1), lambda x: x.transpose(2, 0, 1)),
    "expand": (Op.EXPAND, (3, 1, 2), (3, 5, 2), lambda x: np.broadcast_to(x, (3, 5, 2))),
    "flip": (Op.FLIP, (3, 4), (0, 1), lambda x: x[::-1, ::-1]),
    "shrink": (Op.SHRINK, (7, 9), ((1, 6, 2), (0, 9, 4)), lambda x: x[1:6:2, 0:9:4]),
    "pad": (
        Op.PAD,
        (3, 4),
        ((1, 0), (2, 3)),
        lambda x: np.pad(x, ((1, 0), (2, 3)), constant_values=7),
    ),
    "window": (Op.WINDOW, (9, 2), (0, 3, 2, 2), lambda x: windows(x, 0, 3, 2, 2)),
}


def value(u: UOp, at: dict[UOp, int]) -> int:
    """An index expression at one point."""
    done: dict[UOp, int] = {}
    for n in u.toposort():
        s = [done[x] for x in n.src]
        if n.op in (Op.CONST, Op.DIM):
            done[n] = at[n] if n.op is Op.DIM else int(n.arg)
        else:
            done[n] = {
                Op.ADD: lambda a, b: a + b,
                Op.MUL: lambda a, b: a * b,
                Op.FLOORDIV: lambda a, b: a // b,
                Op.MOD: lambda a, b: a % b,
                Op.CMPLT: lambda a, b: int(a < b),
                Op.AND: lambda a, b: a & b,
            }[n.op](*s)
    return done[u]


@pytest.mark.parametrize("case", CASES)
def test_against_numpy(case: str) -> None:
    """Each element of the result is the source's at the index found, or the fill."""
    op, shape, arg, expected_of = CASES[case]
    x = np.arange(np.prod(shape)).reshape(shape)
    node = move(op, source(*shape), arg)
    expected = expected_of(x)
    assert expected.shape == shape_of(node)
    dims = tuple([Dim(f"d{axis}", n).uop for axis, n in enumerate(expected.shape)])
    found, valid = source_index(node, dims)
    for point in product(*[range(n) for n in expected.shape]):
        at = dict(zip(dims, point, strict=True))
        inside = value(valid, at)
        actual = x[tuple([value(i, at) for i in found])] if inside else 7
        assert expected[point] == actual


@pytest.mark.parametrize("case", [c for c in CASES if c not in ("reshape both", "reshape merge")])
def test_affine(case: str) -> None:
    """All but reshapes that merge source axes stay affine in the dims."""
    op, shape, arg, _ = CASES[case]
    node = move(op, source(*shape), arg)
    dims = tuple([Dim(f"d{axis}", int(n)).uop for axis, n in enumerate(shape_of(node))])  # type: ignore[arg-type]
    found, _ = source_index(node, dims)
    assert all(a.op is Op.DIM for i in found for a, _ in affine(i).terms)


def test_split_then_merge_is_nothing() -> None:
    """Splitting an axis and merging it again gives the index back, without division."""
    x = source(24)
    there = move(Op.RESHAPE, x, (2, 3, 4))
    back = move(Op.RESHAPE, there, (24,))
    i = Dim("i", 24).uop
    middle, _ = source_index(back, (i,))
    found, valid = source_index(there, middle)
    assert found == (i,)
    assert valid is TRUE


def test_pad_needs_no_condition_where_the_index_stays_inside() -> None:
    """The condition is folded where bounds decide it."""
    node = move(Op.PAD, source(8), ((2, 2),))
    i = Dim("i", 8).uop
    inside = UOp(Op.ADD, dt.index, (i, extent_uop(2)))
    found, valid = source_index(node, (inside,))
    assert found == (i,)
    assert valid is TRUE


def test_variable_axes_stay_whole() -> None:
    """Axes of size 1 may come and go around a Variable, which is neither split nor merged."""
    n = Variable("n", 1, 64)
    node = move(Op.RESHAPE, source(n, 4, 6), (1, n, 24))
    i, j = Dim("i", n).uop, Dim("j", 24).uop
    found, _ = source_index(node, (extent_uop(0), i, j))
    assert found[0] is i
    with pytest.raises(ShapeError, match="Variable"):
        source_index(move(Op.RESHAPE, source(n, 4), (4, n)), (j, i))


def test_groups() -> None:
    """Shapes are cut into the smallest runs of equal counts; unequal counts are an error."""
    assert axis_groups((4, 1, 6), (2, 2, 6)) == [((0,), (0, 1)), ((2,), (2,))]
    assert axis_groups((4, 6), (6, 4)) == [((0, 1), (0, 1))]
    assert axis_groups((), (1, 1)) == []
    for left, right in (((4,), (5,)), ((4, 2), (4,)), ((4,), ())):
        with pytest.raises(ShapeError):
            axis_groups(left, right)


def test_flatten_and_back() -> None:
    """A flat offset taken apart again gives the index."""
    dims = (Dim("i", 3).uop, Dim("j", 4).uop, Dim("m", 5).uop)
    assert unflatten(flatten(dims, (3, 4, 5)), (3, 4, 5)) == dims
