"""Functions of neural networks: activations, normalisation, convolution, pooling."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from loopwright import graph
from loopwright.api.arguments import flag, integer, number
from loopwright.api.axes import many_axes, one_axis
from loopwright.api.dtypes import operand
from loopwright.api.elementwise import add, maximum
from loopwright.api.exponential import sigmoid_node
from loopwright.api.linalg import sum_of_products
from loopwright.api.manipulation import per_axis, windows
from loopwright.api.special import one_plus_erf_node
from loopwright.api.statistical import keep, variance
from loopwright.array import Array
from loopwright.extents import number as count
from loopwright.promotion import (
    accumulator,
    as_dtype,
    check,
    common,
    float_dtype,
    joint_device,
)
from loopwright_core.errors import ArgumentError, DTypeError, ShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const


def relu(x: Any, /) -> Array:
    """max(x, 0); NaN stays NaN."""
    return maximum(x, 0)


def silu(x: Any, /) -> Array:
    """x * sigmoid(x)."""
    x, node, dtype = _wide("silu", x)
    value = graph.alu(Op.MUL, node, sigmoid_node(node))
    return Array(graph.cast(value, dtype), x.device)


def gelu(x: Any, /, approximate: str = "none") -> Array:
    """x * P(normal variable < x); approximate="tanh" for the form with tanh."""
    x, node, dtype = _wide("gelu", x)
    # -inf times a share of 0 would be NaN; the share is 0 long before -1e4
    bounded = graph.alu(Op.MAX, node, const(-1e4, node.dtype))
    approximate = approximate if isinstance(approximate, str) else repr(approximate)
    if approximate == "none":
        scaled = graph.alu(Op.MUL, node, graph.constant(math.sqrt(0.5), node.dtype))
        half = graph.alu(Op.MUL, const(0.5, node.dtype), bounded)
        value = graph.alu(Op.MUL, half, one_plus_erf_node(scaled))
    elif approximate == "tanh":
        value = _gelu_of_tanh(bounded)
    else:
        fail(ArgumentError, f"approximate={approximate!r}", where="gelu", fix="'none' or 'tanh'")
    return Array(graph.cast(value, dtype), x.device)


def _gelu_of_tanh(x: UOp) -> UOp:
    """x/2 * (1 + tanh u) is x / (1 + e**(-2u)), which cancels nowhere; u = c * (x + 0.044715 x**3)
    with c = sqrt(2/pi)."""
    slope = -2 * math.sqrt(2 / math.pi)
    square = graph.alu(Op.MUL, graph.constant(0.044715 * slope, x.dtype), graph.alu(Op.MUL, x, x))
    factor = graph.alu(Op.ADD, graph.constant(slope, x.dtype), square)
    e = graph.alu(Op.EXP, graph.alu(Op.MUL, x, factor))
    return graph.alu(Op.DIV, x, graph.alu(Op.ADD, const(1, x.dtype), e))


def _wide(name: str, x: Any) -> tuple[Array, UOp, DType]:
    """The operand, its values in the accumulator, the result's dtype."""
    x = operand(name, x)
    dtype = float_dtype(x.dtype)
    return x, graph.cast(graph.cast(x._uop, dtype), accumulator(dtype)), dtype


def _exponentials(node: UOp, axes: tuple[int, ...]) -> tuple[UOp, UOp, UOp]:
    """(x - max, e**(x - max), its sum with the axes kept)."""
    sizes = graph.shape(node)
    peak = keep(graph.reduce("max", axes, node), sizes, axes, True)
    apart = graph.alu(Op.SUB, node, graph.expand(peak, sizes))
    e = graph.alu(Op.EXP, apart)
    return apart, e, keep(graph.reduce("add", axes, e), sizes, axes, True)


def softmax(x: Any, /, axis: Any = -1) -> Array:
    """e**x over its sum along an axis."""
    x, node, dtype = _wide("softmax", x)
    if 0 in x.shape:
        return Array(graph.empty(x.shape, dtype), x.device)
    _, e, summed = _exponentials(node, many_axes(axis, x.ndim, "softmax"))
    value = graph.alu(Op.DIV, e, graph.expand(summed, x.shape))
    return Array(graph.cast(value, dtype), x.device)


def log_softmax(x: Any, /, axis: Any = -1) -> Array:
    """The logarithm of softmax, without its loss of small values."""
    x, node, dtype = _wide("log_softmax", x)
    if 0 in x.shape:
        return Array(graph.empty(x.shape, dtype), x.device)
    apart, _, summed = _exponentials(node, many_axes(axis, x.ndim, "log_softmax"))
    value = graph.alu(Op.SUB, apart, graph.expand(graph.alu(Op.LOG, summed), x.shape))
    return Array(graph.cast(value, dtype), x.device)


def logsumexp(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """log(sum(e**x)) over axes, without overflow; of nothing -inf."""
    x, node, dtype = _wide("logsumexp", x)
    axes = many_axes(axis, x.ndim, "logsumexp")
    peak = graph.reduce("max", axes, node)
    low, high = [const(v, node.dtype) for v in (-math.inf, math.inf)]
    is_plain = graph.alu(Op.AND, graph.alu(Op.CMPLT, low, peak), graph.alu(Op.CMPLT, peak, high))
    base = graph.where(is_plain, peak, const(0, node.dtype))  # inf - inf would be NaN
    kept = graph.expand(keep(base, x.shape, axes, True), x.shape)
    summed = graph.reduce("add", axes, graph.alu(Op.EXP, graph.alu(Op.SUB, node, kept)))
    value = graph.cast(graph.alu(Op.ADD, base, graph.alu(Op.LOG, summed)), dtype)
    return Array(keep(value, x.shape, axes, keepdims), x.device)


def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, axis: Any = -1, eps: float = 1e-5
) -> Array:
    """(x - mean) / sqrt(variance + eps) over axes, times weight, plus bias of those axes' shape."""
    x, node, dtype = _wide("layer_norm", x)
    axes = tuple(sorted(many_axes(axis, x.ndim, "layer_norm")))
    n = math.prod([x.shape[a] for a in axes])
    apart, spread = variance(x, axes, node, count(n, node.dtype))
    epsilon = graph.constant(number(eps, "eps", "layer_norm"), node.dtype)
    scale = graph.alu(Op.SQRT, graph.alu(Op.ADD, spread, epsilon))
    scale = graph.expand(keep(scale, x.shape, axes, True), x.shape)
    value = graph.alu(Op.DIV, apart, scale)
    inner = tuple([x.shape[a] for a in axes])
    lifted = tuple([m if a in axes else 1 for a, m in enumerate(x.shape)])
    for name, part, op in (("weight", weight, Op.MUL), ("bias", bias, Op.ADD)):
        if part is None:
            continue
        given = operand("layer_norm", part)
        if given.shape != inner:
            fail(
                ShapeError,
                f"layer_norm: {name} has shape {given.shape}, the axes {axes} have {inner}",
                fix="give it that shape",
            )
        joint_device("layer_norm", (x, given))
        wide = graph.expand(graph.reshape(graph.cast(given._uop, node.dtype), lifted), x.shape)
        value = graph.alu(op, value, wide)
    return Array(graph.cast(value, dtype), x.device)


def one_hot(indices: Any, n: int, *, axis: int = -1, dtype: Any = dt.float32) -> Array:
    """1 where a new axis of size n equals the index, 0 elsewhere; indices outside give zeros."""
    x = operand("one_hot", indices)
    if not x.dtype.is_int:
        fail(DTypeError, f"one_hot takes integers, not {x.dtype}", fix="convert with lw.astype")
    place = one_axis(axis, x.ndim + 1, "one_hot")
    n = integer(n, "n", "one_hot")
    if n < 0:
        fail(ShapeError, f"n={n} is negative", where="one_hot")
    sizes = (*x.shape[:place], n, *x.shape[place:])
    lifted = graph.reshape(x._uop, (*x.shape[:place], 1, *x.shape[place:]))
    at = graph.cast(graph.expand(lifted, sizes), dt.int64)
    same = graph.alu(Op.CMPEQ, at, graph.iota(sizes, place))
    return Array(graph.cast(same, as_dtype(dtype, "one_hot")), x.device)


def _pairs(padding: Any, n: int, where: str) -> list[tuple[int, int]]:
    """A number, one per axis, or a (before, after) per axis."""
    fix = f"give {n} numbers or pairs, or one number"
    values = padding if isinstance(padding, (tuple, list)) else (padding,) * n
    if len(values) != n:
        fail(ArgumentError, f"padding={padding}", where=where, fix=fix)
    out = []
    for value in values:
        ends = value if isinstance(value, (tuple, list)) else (value, value)
        if len(ends) != 2:
            fail(ArgumentError, f"padding={padding}", where=where, fix=fix)
        out.append((integer(ends[0], "padding", where), integer(ends[1], "padding", where)))
    if any(lo < 0 or hi < 0 for lo, hi in out):
        fail(
            ArgumentError,
            f"padding={padding} is negative",
            where=where,
            fix="slice the array instead",
        )
    return out


# NCHW and NHWC stand for their kind with any number of spatial axes.
_LAYOUTS = {"NCW": 3, "NWC": 3, "NCHW": 0, "NHWC": 0, "NCDHW": 5, "NDHWC": 5}


def _channels_first(name: str, x: Array, layout: str) -> UOp:
    """The array as (N, C, spatial...)."""
    if x.ndim not in (3, 4, 5):
        fail(
            ShapeError,
            f"{name} takes a batch, channels and 1 to 3 spatial axes, got shape {x.shape}",
            fix="lw.expand_dims adds a batch axis",
        )
    n_axes = _LAYOUTS.get(layout, -1) if isinstance(layout, str) else -1
    if n_axes not in (0, x.ndim):
        what = f"layout={layout!r} for {x.ndim} axes"
        fail(ArgumentError, what, where=name, fix="use 'NCHW' or 'NHWC'")
    if layout.startswith("NC"):
        return x._uop
    return graph.permute(x._uop, (0, x.ndim - 1, *range(1, x.ndim - 1)))


def conv(
    x: Any,
    w: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    layout: str = "NCHW",
) -> Array:
    """Convolution (without flipping the kernel) over 1 to 3 spatial axes.

    Shapes: x (N, C, spatial...), w (C_out, C / groups, kernel...), bias (C_out,). With layout
    "NHWC" x and the result have their channels last; w keeps its order.
    """
    x, w = [operand("conv", v) for v in check("conv", (x, w))]
    dtype, device = common("conv", (x, w)), joint_device("conv", (x, w))
    node = _channels_first("conv", x, layout)
    n_batch, n_in, *spatial = graph.shape(node)
    n = len(spatial)
    if w.ndim != x.ndim:
        fail(ShapeError, f"conv: w has shape {w.shape}, x {x.shape}", fix="give both as many axes")
    n_out, n_group, *kernel = w.shape
    groups = integer(groups, "groups", "conv")
    if groups < 1 or n_in % groups or n_out % groups or n_group * groups != n_in:
        fail(
            ShapeError,
            f"conv: {n_in} channels in {groups} groups with w of shape {w.shape}",
            fix=f"w must be (C_out, {n_in} / groups, ...), C_out a multiple of groups",
        )
    strides, spread = per_axis(stride, n, "stride"), per_axis(dilation, n, "dilation")
    node = graph.pad(node, [(0, 0), (0, 0), *_pairs(padding, n, "conv")], const(0, x.dtype))
    node = windows(node, range(2, n + 2), kernel, strides, spread, "conv")
    out = graph.shape(node)[2 : n + 2]
    lead = (n_batch,) if groups == 1 else (n_batch, groups)
    w_lead = (n_out,) if groups == 1 else (groups, n_out // groups)
    sizes = (n_batch, *w_lead, n_group, *out, *kernel)
    left = graph.reshape(node, (*lead, 1, n_group, *out, *kernel))
    right = graph.reshape(w._uop, (1, *w_lead, n_group, *[1] * n, *kernel))
    first = len(w_lead) + 1
    axes = (first, *range(len(sizes) - n, len(sizes)))
    summed = sum_of_products(graph.expand(left, sizes), graph.expand(right, sizes), axes, dtype)
    result = Array(graph.reshape(summed, (n_batch, n_out, *out)), device)
    if bias is not None:
        b = operand("conv", bias)
        if b.shape != (n_out,):
            fail(ShapeError, f"conv: bias has shape {b.shape}, not ({n_out},)")
        result = add(result, Array(graph.reshape(b._uop, (n_out, *[1] * n)), b.device))
    if layout.startswith("NC"):
        return result
    return Array(graph.permute(result._uop, (0, *range(2, n + 2), 1)), device)


class _Pool(NamedTuple):
    """The windows of a pool, by spatial axis. `over`: how far they reach beyond the padding."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    spread: tuple[int, ...]
    pairs: list[tuple[int, int]]
    over: list[int]

    def reduce(self, name: str, node: UOp, fill: UOp, combine: str) -> UOp:
        """One combined value of each window over (N, C, spatial...)."""
        n = len(self.sizes)
        widths = [(lo, hi + more) for (lo, hi), more in zip(self.pairs, self.over, strict=True)]
        padded = graph.pad(node, [(0, 0), (0, 0), *widths], fill)
        seen = windows(padded, range(2, n + 2), self.sizes, self.strides, self.spread, name)
        return graph.reduce(combine, tuple(range(n + 2, 2 * n + 2)), seen)


def _pool(
    name: str,
    x: Array,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
) -> _Pool:
    """The windows that a pool's arguments mean; in ceil mode some reach beyond the padding."""
    if x.ndim not in (3, 4, 5):
        fail(ShapeError, f"{name} takes (N, C, 1 to 3 spatial axes), got shape {x.shape}")
    n = x.ndim - 2
    sizes = per_axis(kernel, n, "kernel")
    strides = sizes if stride is None else per_axis(stride, n, "stride")
    spread = per_axis(dilation, n, "dilation")
    pairs = _pairs(padding, n, name)
    ceil_mode = flag(ceil_mode, "ceil_mode", name)
    over = []
    for axis in range(n):
        size, (lo, hi) = x.shape[axis + 2], pairs[axis]
        room = size + lo + hi - ((sizes[axis] - 1) * spread[axis] + 1)
        count = room // strides[axis] + 1
        if ceil_mode and room % strides[axis] and count * strides[axis] < size + lo:
            count += 1  # one more window, which starts inside the array or its left padding
        over.append(max((count - 1) * strides[axis] - room, 0))
    return _Pool(sizes, strides, spread, pairs, over)


def max_pool(
    x: Any,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array:
    """The largest element of each window over the spatial axes of (N, C, spatial...)."""
    x = operand("max_pool", x)
    pool = _pool("max_pool", x, kernel, stride, padding, dilation, ceil_mode)
    combine = "or" if x.dtype.is_bool else "max"
    return Array(pool.reduce("max_pool", x._uop, const(x.dtype.min, x.dtype), combine), x.device)


def avg_pool(
    x: Any,
    kernel: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window over the spatial axes of (N, C, spatial...).

    Padding counts as zeros, or not at all without `count_include_pad`; what a last window of
    ceil mode reaches beyond the padding never counts.
    """
    x, wide, dtype = _wide("avg_pool", x)
    pool = _pool("avg_pool", x, kernel, stride, padding, dilation, ceil_mode)
    counts_pad = flag(count_include_pad, "count_include_pad", "avg_pool")
    zero = const(0, wide.dtype)
    summed = pool.reduce("avg_pool", wide, zero, "add")
    result_shape = graph.shape(summed)
    count: UOp = const(1, wide.dtype)
    for axis, kernel_size in enumerate(pool.sizes):
        (lo, hi), more, size = pool.pairs[axis], pool.over[axis], x.shape[axis + 2]
        inside = size + lo + hi if counts_pad else size
        ends = (0, more) if counts_pad else (lo, hi + more)
        if not any(ends):
            own: UOp = const(kernel_size, wide.dtype)
        else:
            ones = graph.pad(graph.full((inside,), const(1, wide.dtype)), [ends], zero)
            taps = graph.window(ones, 0, kernel_size, pool.strides[axis], pool.spread[axis])
            line = graph.reduce("add", (1,), taps)
            lifted = [1] * len(result_shape)
            lifted[axis + 2] = result_shape[axis + 2]
            own = graph.expand(graph.reshape(line, tuple(lifted)), result_shape)
        count = own if count.op is Op.CONST and count.arg == 1 else graph.alu(Op.MUL, count, own)
    return Array(graph.cast(graph.alu(Op.DIV, summed, count), dtype), x.device)
