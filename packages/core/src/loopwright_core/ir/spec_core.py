"""What is legal around tensor cores: the operands of WMMA, tiles in memory, threads together."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_common import need, need_arity
from loopwright_core.ir.uop import UOp, const, toposort
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.program.program import Phase

TILES = frozenset({Op.TILE_LOAD, Op.TILE_STORE})


def check_wmma(node: UOp, phase: Phase, target: Target | None, openers: list[UOp]) -> None:
    """A, B and C are what one thread holds of each; the core's threads are there together."""
    need_arity(node, 3)
    core = node.arg
    need(isinstance(core, TensorCore), node, "arg is a TensorCore")
    for number, s in enumerate(node.src):
        held = core.dtype(number)
        need(s.dtype is held, node, f"operand {number} is {s.dtype}, a thread holds {held}")
    need(node.dtype is core.dtype(2), node, f"the result is {core.dtype(2)}")
    if target is not None:
        need(core in target.tensor_cores, node, f"{target.name} has no {core.name}")
    if core.threads == 1:
        need(phase.global_size is None, node, "one thread multiplies, but the phase has a grid")
        return
    local = phase.local_size
    need(local is not None, node, "WMMA stands only in a phase with workgroups")
    assert local is not None
    fits = local[0] % core.threads == 0
    need(fits, node, f"{core.threads} threads multiply together, lidx0 counts {local[0]}")
    for opener in openers:
        _check_together(node, opener, core.threads)


def _check_together(node: UOp, opener: UOp, threads: int) -> None:
    """No branch or loop around a WMMA asks which of the core's threads it is."""
    for n in toposort(opener.src):
        differs = n.op in (Op.LOAD, Op.DEFINE_REG)
        for s in n.src:
            if s.op is Op.SPECIAL and s.arg[0] == "lidx0":
                whole = n.op is Op.CDIV and n.src[1].op is Op.CONST
                differs |= not (whole and n.src[0] is s and n.src[1].arg % threads == 0)
        need(not differs, node, f"stands in {opener!r}, which some of its threads may leave out")


def is_held(dtype: DType, target: Target) -> bool:
    """Whether one thread holds that much of an operand of one of the target's cores."""
    return any(dtype is core.dtype(n) for core in target.tensor_cores for n in (0, 1, 2))


def check_tile(node: UOp) -> None:
    """A tile is read or written by rows of memory, `src[1]` elements apart."""
    need_arity(node, 2 if node.op is Op.TILE_LOAD else 3)
    index, stride = node.src[:2]
    need(index.op is Op.INDEX and len(index.src) == 2, node, "goes through an INDEX without valid")
    need(index.src[1].dtype.lanes == 1, node, "a tile has one offset")
    need(stride.dtype in (dt.int32, dt.int64), node, f"rows are {stride.dtype} apart")
    shape = node.arg
    fine = isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int for n in shape)
    need(fine and min(shape) > 0, node, "arg is (rows, columns)")
    tile = node.dtype if node.op is Op.TILE_LOAD else node.src[2].dtype
    need(tile.lanes == shape[0] * shape[1], node, f"{tile} is no tile of {shape[0]} x {shape[1]}")
    need(tile.scalar is index.dtype.scalar, node, f"{tile} is not the memory's {index.dtype}")
    need(node.op is Op.TILE_LOAD or node.dtype is dt.void, node, "a TILE_STORE has no value")


def tile_corners(node: UOp) -> list[UOp]:
    """The offsets of a tile's corners: if they lie in an array, so do all its elements."""
    index, stride = node.src[:2]
    rows, columns = node.arg
    dtype = index.src[1].dtype
    found = []
    for row in (0, rows - 1):
        down = UOp(Op.MUL, dtype, (stride, const(row, dtype)))
        for column in (0, columns - 1):
            within = UOp(Op.ADD, dtype, (down, const(column, dtype)))
            found.append(UOp(Op.ADD, dtype, (index.src[1], within)))
    return found
