"""What GPU targets have in common: scalar arithmetic, vectors for memory alone."""

from __future__ import annotations

from loopwright_core.ir.ops import Op

# Level-3 elementwise ops that C-like GPU languages write as operators or exact built-ins.
OPS = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.AND, Op.OR, Op.XOR, Op.CMPLT, Op.CMPEQ, Op.CMPNE}
    | {Op.WHERE, Op.NEG, Op.SQRT, Op.TRUNC, Op.RINT, Op.CAST, Op.BITCAST}
    | {Op.CDIV, Op.CMOD, Op.CSHL, Op.CSHR, Op.FTOI, Op.FMA}
)
