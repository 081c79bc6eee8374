"""Kernels of every structure over odd extents whose results on small whole numbers are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import asts
import numpy as np
from asts import buffer, keep, op, reduce, scan, shrink, sink

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.kernel.kernel import Kernel


def softmax_like(axis: int = 1) -> UOp:
    """e - sum(e) with e = (x - max(x))**2 along rows: the three loops of softmax."""
    x = buffer(0, 7, 19)
    centred = op(Op.SUB, x, keep(x, "max", axis))
    e = op(Op.MUL, centred, centred)
    return sink((buffer(1, 7, 19), op(Op.SUB, e, keep(e, "add", axis))))


def minus_column_sum() -> UOp:
    """Rows in the outer loop, sums over rows: the reduce has a nest of its own."""
    x = buffer(0, 9, 21)
    return sink((buffer(1, 9, 21), op(Op.SUB, x, keep(x, "add", 0))))


def reduce_of_reduce() -> UOp:
    inner = reduce(buffer(0, 5, 17, 9), "max", 2)
    return sink((buffer(1, 5), reduce(op(Op.MUL, inner, inner), "add", 1)))


def squared_row_sums() -> UOp:
    """-s * s of row sums s, and the sum of all of them."""
    total = reduce(buffer(0, 9, 21), "add", 1)
    square = op(Op.NEG, op(Op.MUL, total, total))
    return sink((buffer(1, 9), square), (buffer(2), reduce(square, "add", 0)))


def two_outputs() -> UOp:
    """Row sums, and the rows times their largest."""
    x = buffer(0, 9, 21)
    rows = (buffer(1, 9), reduce(x, "add", 1))
    return sink(rows, (buffer(2, 9, 21), op(Op.MUL, x, keep(x, "max", 1))))


def repeated_row_scan() -> UOp:
    """A scan that its reader has an outer loop more than."""
    rows = asts.expand(asts.reshape(buffer(0, 17), 1, 17), 6, 17)
    return sink((buffer(2, 6, 17), op(Op.MUL, scan(rows, "add", 1), buffer(1, 6, 17))))


def transpose() -> UOp:
    """One that adds, so that both orders are read."""
    left = asts.permute(buffer(0, 13, 19), 1, 0)
    return sink((buffer(2, 19, 13), op(Op.ADD, left, buffer(1, 19, 13))))


def elementwise() -> UOp:
    """Broadcast both ways: no dims merge."""
    rows = asts.expand(asts.reshape(buffer(1, 11), 11, 1), 11, 23)
    columns = asts.expand(asts.reshape(buffer(2, 23), 1, 23), 11, 23)
    value = op(Op.SUB, op(Op.MUL, buffer(0, 11, 23), rows), columns)
    return sink((buffer(3, 11, 23), value))


def small_integers() -> UOp:
    """A product of int8 summed in int32: lanes of two widths."""
    a = asts.cast(buffer(0, 9, 13, dtype=dt.int8), dt.int32)
    b = asts.cast(buffer(1, 13, 18, dtype=dt.int8), dt.int32)
    return sink((buffer(2, 9, 18, dtype=dt.int32), asts.product(a, b)))


def masks() -> UOp:
    """Comparisons, kept and counted, over float64."""
    x = buffer(0, 7, 19, dtype=dt.float64)
    largest = keep(x, "max", 1)
    is_below = op(Op.CMPLT, x, largest, dtype=dt.bool_)
    some = reduce(is_below, "or", 1)
    return sink((buffer(1, 7, 19, dtype=dt.bool_), is_below), (buffer(2, 7, dtype=dt.bool_), some))


def whole_lines() -> UOp:
    """An output of whole vectors, which may be stored around the cache."""
    return sink((buffer(2, 7, 64), op(Op.ADD, buffer(0, 7, 64), buffer(1, 7, 64))))


def concat() -> UOp:
    out = buffer(1, 5, 16)
    return sink(
        (shrink(out, (0, 5, 1), (0, 7, 1)), buffer(0, 5, 7)),
        (shrink(out, (0, 5, 1), (7, 16, 1)), buffer(2, 5, 9)),
    )


KERNELS: dict[str, Callable[[], UOp]] = {
    "matmul": lambda: asts.matmul(11, 19, 13),
    "softmax-like": softmax_like,
    "softmax of columns": lambda: softmax_like(0),
    "convolution": lambda: asts.conv(3, 7, 9, 2, 3, 2),
    "stencil": lambda: asts.conv(1, 9, 11, 1),
    "column sums": minus_column_sum,
    "argmax": lambda: asts.argmax(5, 23),
    "cumulative sum": lambda: sink((buffer(1, 13, 11), scan(buffer(0, 13, 11), "add", 0))),
    "reverse row scan": lambda: asts.cumsum(5, 13, exclusive=True, reverse=True),
    "repeated row scan": repeated_row_scan,
    "gather": lambda: asts.take(7, 11, 9),
    "reduce of reduce": reduce_of_reduce,
    "long sums": lambda: sink((buffer(1, 2), reduce(buffer(0, 2, 1050), "add", 1))),
    "two outputs": two_outputs,
    "squared row sums": squared_row_sums,
    "transpose": transpose,
    "elementwise": elementwise,
    "small integers": small_integers,
    "masks": masks,
    "whole lines": whole_lines,
    "concat": concat,
}

GUARD_BYTES = 64
_GUARD = 0xA5


class GuardedMemory:
    """One array per buffer, aligned to 64 bytes, with bytes on both sides that nobody may write.

    It is filled with whole numbers: those of its slot in `ranges`, else from -9 to 9. With
    `is_real`, floats are normally distributed instead. `blocks`: each slot with all its bytes and
    where among them the array begins.
    """

    def __init__(
        self,
        kernel: Kernel,
        seed: int,
        ranges: Mapping[int, tuple[int, int]] = {},
        variables: Mapping[str, int] = {},
        is_real: bool = False,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.arrays: dict[int, np.ndarray] = {}
        self.blocks: list[tuple[int, np.ndarray, int]] = []
        for b in kernel.buffers:
            shape = [variables[n.name] if isinstance(n, Variable) else n for n in b.arg.shape]
            low, high = ranges.get(b.arg.slot, (-9, 9))
            drawn = rng.integers(low, high + 1, shape)
            if is_real and b.dtype.is_float:
                drawn = rng.standard_normal(shape)
            values = np.asarray(drawn).astype(b.dtype.numpy)
            raw = np.full(values.nbytes + 3 * GUARD_BYTES + 64, _GUARD, np.uint8)
            start = GUARD_BYTES + (-(raw.ctypes.data + GUARD_BYTES)) % 64
            place = raw[start : start + values.nbytes].view(b.dtype.numpy).reshape(shape)
            place[...] = values
            self.arrays[b.arg.slot] = place
            self.blocks.append((b.arg.slot, raw, start))

    def broken_guards(self) -> list[int]:
        """The slots of buffers beside which something was written."""
        found = []
        for slot, raw, start in self.blocks:
            end = start + self.arrays[slot].nbytes
            if (raw[:start] != _GUARD).any() or (raw[end:] != _GUARD).any():
                found.append(slot)
        return found
