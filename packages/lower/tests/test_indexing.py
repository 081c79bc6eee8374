"""Indexing: level 1 to level 2, checked by the interpreters of both levels."""

from __future__ import annotations

import asts
import numpy as np
import pytest
from asts import F, buffer, const, op, pad, reduce, reshape, shrink, sink, window
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import shape_of
from loopwright_core.ir.spec_kernel import verify_kernel
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.kernel.access import accesses
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.oracle.kernel import run_kernel
from loopwright_core.oracle.tensor import run_tensor
from loopwright_lower.indexing import index


def data_for(ast: UOp, variables: dict[str, int], seed: int = 0) -> dict[int, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for node in toposort((ast,)):
        if node.op is Op.BUFFER:
            shape = [variables[n.name] if isinstance(n, Variable) else n for n in node.arg.shape]
            values = rng.integers(-8, 9, shape)
            found[node.arg.slot] = values.astype(node.dtype.numpy)
    return found


def same(ast: UOp, **variables: int) -> Kernel:
    """Both levels give equal memory, bit for bit or within float rounding of a sum."""
    kernel = index(ast)
    verify_kernel(kernel)
    expected = data_for(ast, variables)
    actual = {slot: array.copy() for slot, array in expected.items()}
    run_tensor(ast, expected, variables)
    run_kernel(kernel, actual, variables)
    for slot, array in expected.items():
        np.testing.assert_allclose(actual[slot], array, rtol=1e-6, atol=1e-6)
    return kernel


def names(kernel: Kernel) -> list[str]:
    return [d.name for d in kernel.dims]


def index_ops(kernel: Kernel) -> set[Op]:
    """The ops of index arithmetic."""
    return {n.op for n in kernel.nodes if n.dtype is dt.index and n.src}


@pytest.mark.parametrize("kind", asts.KINDS)
def test_kinds(kind: str) -> None:
    """Every kind of kernel computes the same at both levels."""
    same(asts.KINDS[kind]())


def test_matmul_names() -> None:
    """A product of matrices has dims i, j and k, in that order."""
    kernel = index(asts.matmul(5, 7, 6))
    assert [(d.name, d.size, d.is_reduce) for d in kernel.dims] == [
        ("i", 5, False),
        ("j", 7, False),
        ("k", 6, True),
    ]
    assert kernel.name == "r_5_7_6"
    assert [a.name for a in kernel.schedule.axes] == ["i/1", "j/1", "k/1"]


def test_softmax_dims() -> None:
    """Each reduce of softmax binds a dim of its own, named after the output dim; exp is shared."""
    kernel = index(asts.softmax())
    assert names(kernel) == ["i", "j", "j.0", "j.1"]
    assert [[u.op for u in group] for group in kernel.shared] == [[Op.EXP, Op.EXP]]


def test_attention_dims() -> None:
    """Serial reduces over one axis and the nested ones below them all have dims of their own."""
    kernel = index(asts.attention())
    assert names(kernel)[:2] == ["i", "j"]
    assert [d.size for d in kernel.dims if d.is_reduce].count(6) == 3
    assert len([d for d in kernel.dims if d.size == 3]) == 3
    assert kernel.shared


def test_conv_is_affine() -> None:
    """A padded convolution has no division: bounds on 2*h + a - 1, and fill 0 in the load."""
    kernel = index(asts.conv(stride=2))
    assert not index_ops(kernel) & {Op.FLOORDIV, Op.MOD}
    assert not any(n.op is Op.WHERE for n in kernel.nodes)
    image = next(a for a in accesses(kernel) if a.name == "A")
    assert len(image.valid) == 3 or len(image.valid) == 4
    assert not image.opaque


def test_independent_reduces_share() -> None:
    """Two sums over equal extents that do not depend on each other use one dim; else not."""
    x, y = buffer(0, 4, 6), buffer(1, 4, 6)
    both = op(Op.ADD, reduce(x, "add", 1), reduce(y, "max", 1))
    assert names(same(sink((buffer(2, 4), both)))) == ["i", "k"]
    serial = reduce(op(Op.SUB, x, asts.keep(x, "max", 1)), "add", 1)
    assert len(same(sink((buffer(1, 4), serial))).dims) == 3


def test_nested_reduces_of_shared_ones_share() -> None:
    """Equal reduces inside reduces that share a dim share theirs too."""
    a, b = buffer(0, 4, 5, 6), buffer(1, 4, 5, 6)
    left = reduce(op(Op.EXP, reduce(a, "add", 2)), "add", 1)
    right = reduce(op(Op.EXP, reduce(b, "add", 2)), "add", 1)
    assert len(same(sink((buffer(2, 4), op(Op.ADD, left, right)))).dims) == 3


def test_elementwise_merges() -> None:
    """Dims that every access walks as one merge; a broadcast row keeps its dim."""
    x, y = buffer(0, 4, 5, 6), buffer(1, 4, 5, 6)
    kernel = same(sink((buffer(2, 4, 5, 6), op(Op.ADD, x, y))))
    assert (kernel.name, names(kernel)) == ("e_120", ["i"])
    row = asts.expand(reshape(buffer(1, 6), 1, 1, 6), 4, 5, 6)
    kernel = same(sink((buffer(2, 4, 5, 6), op(Op.ADD, x, row))))
    assert [d.size for d in kernel.dims] == [20, 6]
    assert [d.size for d in same(sink((buffer(1), reduce(x, "add", 0, 1, 2)))).dims] == [120]


def test_merge_stops_at_other_reduces() -> None:
    """Dims of two nested reduces stay apart, though every access walks them as one."""
    x = buffer(0, 5, 6)
    nested = reduce(reduce(x, "add", 1), "max", 0)
    assert [d.size for d in same(sink((buffer(1), nested))).dims] == [5, 6]


def test_diagonal_is_affine() -> None:
    """A diagonal, cut by pad and reshape, is one affine access with no condition left."""
    rows = reshape(pad(reshape(buffer(0, 4, 4), 16), (0, 4)), 4, 5)
    kernel = same(sink((buffer(1, 4), reshape(shrink(rows, (0, 4, 1), (0, 1, 1)), 4))))
    assert not any(a.opaque or a.valid for a in accesses(kernel))
    assert accesses(kernel)[0].strides == {"i": 5}


def test_pad_fill_and_nesting() -> None:
    """A pad of a load is a load with that fill; a pad of a value selects; pads nest."""
    x = buffer(0, 5)
    kernel = same(sink((buffer(1, 8), pad(x, (1, 2), fill=3))))
    assert [n.src[1].arg for n in kernel.nodes if n.op is Op.LOAD] == [3.0]
    same(sink((buffer(1, 8), pad(op(Op.EXP, x), (1, 2), fill=3))))
    same(sink((buffer(1, 12), pad(pad(x, (1, 2), fill=3), (2, 2), fill=4))))
    same(sink((buffer(1), reduce(pad(x, (1, 2), fill=3), "mul", 0))))
    same(sink((buffer(1, 7), pad(reduce(buffer(0, 5, 4), "max", 1), (1, 1), fill=9))))


def test_pad_that_is_cut_away() -> None:
    """A shrink back inside a pad leaves no condition."""
    x = shrink(pad(buffer(0, 5), (2, 2)), (2, 7, 1))
    kernel = same(sink((buffer(1, 5), x)))
    assert not any(a.valid for a in accesses(kernel))


def test_gather_edges() -> None:
    """Negative indices count from the end once; out of range reads 0, of values too."""
    rows = buffer(1, 9, dtype=dt.int32)
    x = buffer(0, 4, 3)
    for source in (x, op(Op.EXP, x), pad(x, (1, 1), (0, 0), fill=7)):
        n = shape_of(source)[0]
        ast = sink((buffer(2, 9, 3), asts.gather(source, rows, 0)))
        kernel = index(ast)
        data = data_for(ast, {})
        data[1] = np.array([0, n - 1, n, n + 5, -1, -n, -n - 1, 2**31 - 1, -(2**31)], np.int32)
        expected = {s: a.copy() for s, a in data.items()}
        run_tensor(ast, expected)
        run_kernel(kernel, data)
        np.testing.assert_allclose(data[2], expected[2], rtol=1e-6)


def test_gather_along_an_inner_axis_with_many_index_axes() -> None:
    """The index array's axes take the place of the gathered one; an unsigned index never wraps."""
    x = buffer(0, 3, 5, 2)
    at = buffer(1, 2, 4, dtype=dt.uint8)
    same(sink((buffer(2, 3, 2, 4, 2), asts.gather(x, at, 1))))


@pytest.mark.parametrize("dtype", [dt.int8, dt.int32, dt.int64, dt.uint64])
@pytest.mark.parametrize("how", ["minus", "affine", "two", "remainder", "least", "chosen", "iota"])
def test_gather_at_computed_indices(how: str, dtype: DType) -> None:
    """Arithmetic on indices stands alike in the index and in its conditions: both are proved."""
    at, two = buffer(1, 9, dtype=dtype), UOp(Op.CONST, dtype, (), 2)
    row = UOp(Op.IOTA, dtype, (), ((9,), 0))
    value = {
        "minus": op(Op.SUB, at, two),
        "affine": op(Op.SUB, op(Op.MUL, at, two), op(Op.ADD, two, two)),
        "two": op(Op.SUB, op(Op.SUB, at, two), at),
        "remainder": op(Op.MOD, op(Op.SUB, at, two), two),
        "least": op(Op.MIN, op(Op.SUB, at, two), two),
        "chosen": op(
            Op.WHERE,
            op(Op.CMPLT, at, two, dtype=dt.bool_),
            op(Op.SUB, at, two),
            two,
            dtype=dtype,
        ),
        "iota": op(Op.SUB, op(Op.ADD, op(Op.MUL, row, two), at), two),
    }[how]
    same(sink((buffer(2, 9, 3), asts.gather(buffer(0, 5, 3), value, 0))))


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans(exclusive: bool, reverse: bool) -> None:
    """A scan runs along its output dim, in either direction."""
    same(asts.cumsum(exclusive=exclusive, reverse=reverse))


def test_scan_read_elsewhere_is_refused() -> None:
    """A scan that is flipped or reduced has no running element: it must be stored first."""
    running = asts.scan(buffer(0, 3, 8), "add", 1)
    for value, out in (
        (asts.flip(running, 1), buffer(1, 3, 8)),
        (reduce(running, "add", 1), buffer(1, 3)),
    ):
        with pytest.raises(LoweringError, match="scan"):
            index(sink((out, value)))


def test_size_one_axes_have_no_dim() -> None:
    """Axes of extent 1 leave no dim, also as reduce, scan and argmax axes."""
    x = buffer(0, 1, 5, 1)
    assert names(same(sink((buffer(1, 1, 5, 1), op(Op.EXP, x))))) == ["i"]
    assert names(same(sink((buffer(1, 5), reduce(x, "add", 0, 2))))) == ["i"]
    same(sink((buffer(1, 1, 5, 1), asts.scan(x, "add", 0))))
    same(sink((buffer(1, 1, 5, 1), asts.scan(x, "mul", 0, exclusive=True))))
    same(asts.argmax(4, 1))


def test_variable_extent() -> None:
    """A Variable extent becomes a symbolic dim; one kernel serves every value."""
    n = Variable("n", 1, 64)
    for value in (1, 5, 64):
        kernel = same(asts.row_sums(n), n=value)
    assert kernel.name == "r_n_8"


def test_store_views() -> None:
    """Stores through slices, permutes, flips and reshapes write the view's elements."""
    x = buffer(0, 4, 6)
    same(sink((asts.permute(buffer(1, 6, 4), 1, 0), op(Op.EXP, x))))
    same(sink((asts.flip(buffer(1, 4, 6), 0, 1), op(Op.EXP, x))))
    same(sink((shrink(buffer(1, 9, 20), (1, 9, 2), (2, 20, 3)), op(Op.EXP, x))))
    same(sink((reshape(buffer(1, 24), 4, 6), op(Op.EXP, x))))
    turned = index(sink((asts.permute(buffer(1, 6, 4), 1, 0), op(Op.EXP, x))))
    assert accesses(turned)[-1].strides == {"i": 4, "j": 1}


def test_stores_share_dims() -> None:
    """Two outputs of one shape share dims; an operand stored too is one instance."""
    x = buffer(0, 4, 6)
    total = reduce(x, "add", 1)
    ratio = op(Op.DIV, x, asts.expand(reshape(total, 4, 1), 4, 6))
    kernel = same(sink((buffer(1, 4), total), (buffer(2, 4, 6), ratio)))
    assert names(kernel) == ["i", "j", "j.0"]
    columns = reduce(x, "max", 0)
    less = op(Op.SUB, x, asts.expand(reshape(columns, 1, 6), 4, 6))
    kernel = same(sink((buffer(1, 6), columns), (buffer(2, 4, 6), less)))
    assert names(kernel) == ["i", "j", "i.0"]


def test_concat_dims() -> None:
    """Stores into slices share the dims where place and extent are equal."""
    kernel = index(asts.concat())
    assert [(d.name, d.size) for d in kernel.dims] == [("i", 4), ("j", 5), ("m", 3)]


@pytest.mark.parametrize("stride", [1, 2])
def test_padded_windows_seen_as_one_axis_are_in_range(stride: int) -> None:
    """What the masks say of a place's row and column bounds the index of the place as a whole."""
    x = pad(buffer(0, 5, 5), (2, 2), (2, 2), fill=-1)
    x = window(window(x, 0, 5, stride), 1, 5, stride)
    n = shape_of(x)[0]
    same(sink((buffer(1, n, n), reduce(reshape(x, n, n, 25), "max", 2))))


def test_reshapes_leave_no_division() -> None:
    """A reshaped value is stored through a reshaped view; a merged view reads by one index."""
    x = op(Op.EXP, buffer(0, 8, 9))
    kernel = same(sink((buffer(1, 72), reshape(x, 72))))
    assert names(kernel) == ["i"]
    twice = op(Op.ADD, reshape(x, 72), buffer(1, 72))
    kernel = same(sink((buffer(2, 72), twice)))
    assert not index_ops(kernel)
    rows = reduce(reshape(op(Op.EXP, buffer(0, 4, 5, 6)), 20, 6), "add", 1)
    kernel = same(sink((buffer(1, 20), op(Op.EXP, rows))))
    assert not index_ops(kernel)


@pytest.mark.parametrize("kind", asts.KINDS)
def test_verified(kind: str) -> None:
    """What indexing makes passes the verifier of level 2."""
    verify_kernel(index(asts.KINDS[kind]()))


def test_unused_buffers_stay_parameters() -> None:
    """A buffer of which no access is left keeps its slot: it is launched with."""
    x = shrink(pad(buffer(0, 5), (3, 0), fill=2), (0, 3, 1))
    kernel = same(sink((buffer(1, 3), x)))
    assert [u.arg.slot for u in kernel.unused] == [0]
    assert [u.arg.slot for u in kernel.buffers] == [0, 1]


def test_constants_fold() -> None:
    """Algebra that keeps every value is done on the body: a cast of a constant is a constant."""
    two = op(Op.ADD, const(1, dt.int32), const(1, dt.int32))
    value = op(Op.MUL, buffer(0, 4), asts.cast(two, F))
    kernel = same(sink((buffer(1, 4), value)))
    assert not any(n.op in (Op.CAST, Op.ADD) for n in kernel.nodes)


def test_long_chains() -> None:
    """A chain of 20,000 operations is indexed without recursion, each node once."""
    x = buffer(0, 4)
    value = x
    for _ in range(20_000):
        value = op(Op.ADD, value, x)
    assert len(index(sink((buffer(1, 4), value))).nodes) < 20_020


def test_doubling_is_linear() -> None:
    """x = x + x sixty times stays sixty nodes."""
    value = buffer(0, 4)
    for _ in range(60):
        value = op(Op.ADD, value, value)
    assert len(index(sink((buffer(1, 4), value))).nodes) < 80


@st.composite
def views(draw: st.DrawFn) -> UOp:
    """A random chain of movement ops over a small buffer, elementwise ops in between."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    x = buffer(0, *shape)
    for _ in range(draw(st.integers(1, 5))):
        now = [int(n) for n in shape_of(x)]  # type: ignore[arg-type]
        if int(np.prod(now)) > 400:
            break
        kind = draw(
            st.sampled_from(
                ["reshape", "permute", "flip", "shrink", "pad", "window", "op", "expand"]
            )
        )
        axis = draw(st.integers(0, len(now) - 1))
        if kind == "reshape":
            flat = int(np.prod(now))
            split = draw(st.sampled_from([d for d in range(1, flat + 1) if flat % d == 0]))
            x = reshape(x, split, flat // split)
        elif kind == "permute":
            x = asts.permute(x, *draw(st.permutations(range(len(now)))))
        elif kind == "flip":
            x = asts.flip(x, axis)
        elif kind == "shrink":
            spans = []
            for n in now:
                start = draw(st.integers(0, n - 1))
                spans.append((start, draw(st.integers(start + 1, n)), draw(st.integers(1, 3))))
            x = shrink(x, *spans)
        elif kind == "pad":
            widths = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in now]
            x = pad(x, *widths, fill=draw(st.sampled_from([0, 5])))
        elif kind == "window":
            size = draw(st.integers(1, now[axis]))
            x = window(x, axis, size, draw(st.integers(1, 2)))
        elif kind == "expand":
            x = asts.expand(reshape(x, *now, 1), *now, 2)
        else:
            x = op(Op.ADD, x, const(1, F))
    return x


@settings(max_examples=150, deadline=None)
@given(views(), st.booleans())
def test_random_views(x: UOp, total: bool) -> None:
    """Any chain of views reads the same elements at both levels, summed or not."""
    value = reduce(x, "add", 0) if total else x
    same(sink((buffer(1, *shape_of(value)), value)))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_tuple_that_reduces_nothing(which: int) -> None:
    """Over axes of size 1 each item of a reduce of several values is its own value, constants
    too."""
    x = buffer(0, 5, 1)
    parts = (op(Op.MUL, x, x), x, const(0, asts.F))
    moments = UOp(Op.REDUCE, dt.void, parts, ("welford", (1,)))
    same(sink((buffer(1, 5), asts.item(moments, which, asts.F))))
