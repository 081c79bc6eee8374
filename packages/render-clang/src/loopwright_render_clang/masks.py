"""How wide the lanes of each vector of truth values are, so that few conversions are needed."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright_core.ir.ops import COMPARE, Op
from loopwright_core.ir.uop import UOp
from loopwright_core.program.cinline import Storages

# Operators on truth values as bit operations; CMPLT and CMPEQ have more to them.
BOOLEAN: dict[Op, Op] = {
    Op.AND: Op.AND,
    Op.MUL: Op.AND,
    Op.CMPLT: Op.AND,
    Op.OR: Op.OR,
    Op.ADD: Op.OR,
    Op.XOR: Op.XOR,
    Op.CMPNE: Op.XOR,
    Op.CMPEQ: Op.XOR,
}


def mask_widths(uops: Sequence[UOp], storages: Storages) -> dict[UOp, int]:
    """Bits per lane of each vector of truth values and each register of them.

    A comparison gives lanes as wide as its operands; what takes any width is absent.
    """
    found: dict[UOp, int] = {}

    def width(node: UOp) -> int:
        return found.get(storages.of(node), 0)

    for node in uops:
        if node.op is Op.ASSIGN:
            register = storages.of(node)
            if register.dtype.is_bool and not found.get(register):
                found[register] = width(node.src[1])
            continue
        if not node.dtype.is_bool or node.dtype.lanes == 1:
            continue
        if node.op is Op.LOAD:
            found[node] = 8
        elif node.op is Op.VECTORIZE:
            found[node] = 32
        elif node.op in COMPARE and not node.src[0].dtype.is_bool:
            found[node] = node.src[0].dtype.bits
        elif node.op in (Op.CAST, Op.BITCAST):
            source = node.src[0]
            found[node] = width(source) if source.dtype.is_bool else source.dtype.bits
        elif node.op is Op.WHERE or node.op in BOOLEAN:
            found[node] = max([width(s) for s in node.src])
    return {node: bits for node, bits in found.items() if bits}
