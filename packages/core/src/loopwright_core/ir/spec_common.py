"""What the specs of all levels share: how a fault is told, and the types of elementwise ops."""

from __future__ import annotations

from typing import NoReturn

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.combine import COMBINES
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import BINARY, COMPARE, CONVERT, UNARY, Op
from loopwright_core.ir.uop import Buffer, Extent, UOp, Variable

FLOAT_ONLY = frozenset(
    {Op.DIV, Op.SQRT, Op.TRUNC, Op.RINT, Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.POW, Op.FMA}
)
INT_ONLY = frozenset({Op.SHL, Op.SHR, Op.CDIV, Op.CMOD, Op.CSHL, Op.CSHR})
INT_OR_BOOL = frozenset({Op.AND, Op.OR, Op.XOR})
BOOL_TOO = frozenset({Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.AND, Op.OR, Op.XOR})
# Index arithmetic of levels 1 and 2.
INDEX_OPS = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.NEG, Op.FLOORDIV, Op.MOD, Op.MAX, Op.MIN, Op.WHERE, Op.CAST}
)
_RAW_ARITY = {Op.CDIV: 2, Op.CMOD: 2, Op.CSHL: 2, Op.CSHR: 2, Op.FTOI: 1, Op.FMA: 3}
ARITY: dict[Op, int] = {
    **dict.fromkeys(UNARY | CONVERT, 1),
    **dict.fromkeys(BINARY, 2),
    Op.WHERE: 3,
    **_RAW_ARITY,
}


def refuse(node: UOp, rule: str, where: str = "") -> NoReturn:
    """Raise VerifyError: this node breaks this rule."""
    fail(VerifyError, f"{node!r}: {rule}", where=where)


def need(holds: bool, node: UOp, rule: str) -> None:
    """Refuse the node unless the rule holds."""
    if not holds:
        refuse(node, rule)


def need_arity(node: UOp, n: int) -> None:
    """Refuse a node without exactly n sources."""
    if len(node.src) != n:
        refuse(node, f"has {len(node.src)} sources, {node.op.name} takes {n}")


def check_sink(sink: UOp, what: str, where: str = "") -> None:
    """Levels 1 and 2: a SINK of one STORE at least, and of nothing else."""
    if sink.op is not Op.SINK:
        refuse(sink, f"{what} is a SINK of STOREs", where)
    need(sink.dtype is dt.void and bool(sink.src), sink, "a SINK is void and holds STOREs")
    for store in sink.src:
        need(store.op is Op.STORE, store, "only STOREs stand in a SINK")


def check_sources(node: UOp, level: int) -> None:
    """Levels 1 and 2: no vectors; statements are no values, and tuples are read by ITEM."""
    need(node.dtype.lanes == 1, node, f"there are no vectors at level {level}")
    for s in node.src:
        if s.op in (Op.STORE, Op.SINK):
            refuse(node, f"uses a {s.op.name} as a value")
        if s.dtype is dt.void and node.op is not Op.ITEM:
            refuse(node, "uses a tuple: read it by ITEM")


def check_const(node: UOp) -> None:
    """A CONST holds a value of its dtype."""
    need_arity(node, 0)
    dtype, value = node.dtype, node.arg
    need(dtype.lanes == 1, node, "a constant is a scalar")
    if dtype.is_float:
        need(type(value) is float, node, f"a {dtype} constant holds a float")
    elif dtype.is_bool:
        need(type(value) is bool, node, "a bool constant holds a bool")
    elif dtype.is_int:
        need(type(value) is int, node, f"a {dtype} constant holds an int")
        need(int(dtype.min) <= value <= int(dtype.max), node, f"is outside the range of {dtype}")
    else:
        refuse(node, "there is no constant of dtype void")


def check_elementwise(node: UOp) -> None:
    """Number of sources, dtypes and lanes of an elementwise op, raw ones included."""
    op, dtype, src = node.op, node.dtype, node.src
    need_arity(node, ARITY[op])
    if dtype is dt.void or any(s.dtype is dt.void for s in src):
        refuse(node, "computes on void: read a tuple by ITEM")
    lanes = dtype.lanes
    if any(s.dtype.lanes != lanes for s in src):
        refuse(node, f"lane counts {[s.dtype.lanes for s in src]} and {lanes} are not equal")
    if op is Op.CAST:
        return
    if op is Op.BITCAST:
        need(dtype.bits == src[0].dtype.bits, node, "BITCAST keeps the width")
        fine = not (dtype.is_bool or src[0].dtype.is_bool)
        need(fine, node, "BITCAST neither makes nor takes bool")
        return
    if op is Op.FTOI:
        need(src[0].dtype.is_float and dtype.is_int, node, "FTOI takes a float to an integer")
        return
    operands = src
    if op is Op.WHERE:
        need(src[0].dtype.is_bool, node, "the condition of WHERE is bool")
        operands = src[1:]
    operand = operands[0].dtype
    if any(s.dtype is not operand for s in operands):
        refuse(node, f"sources have dtypes {[s.dtype for s in operands]}, not one")
    if op in COMPARE:
        need(dtype.is_bool, node, "a comparison is bool")
        return
    need(dtype is operand, node, f"makes {dtype} of {operand}")
    _check_kind(node)


def _check_kind(node: UOp) -> None:
    op, dtype = node.op, node.dtype
    if op in FLOAT_ONLY:
        need(dtype.is_float, node, f"{op.name} takes floats")
    elif op in INT_ONLY:
        need(dtype.is_int, node, f"{op.name} takes integers")
    elif op in INT_OR_BOOL:
        need(dtype.is_int or dtype.is_bool, node, f"{op.name} takes integers and bool")
    elif dtype.is_bool and op is not Op.WHERE:
        need(op in BOOL_TOO, node, f"{op.name} has no meaning in bool")


def check_index_arithmetic(node: UOp) -> None:
    """Only the ops of index arithmetic make values of dtype index."""
    if node.dtype is dt.index and node.op not in INDEX_OPS:
        refuse(node, f"{node.op.name} is no index arithmetic")
    if node.op is Op.CAST and node.dtype is dt.index:
        need(node.src[0].dtype.is_int or node.src[0].dtype.is_bool, node, "an index is an integer")


def check_combine(node: UOp, name: object, values: tuple[UOp, ...]) -> None:
    """The combine exists and takes these values; one value gives its dtype, several give void."""
    row = COMBINES.get(name) if isinstance(name, str) else None
    if row is None:
        refuse(node, f"there is no combine {name!r}")
    if len(values) != row.n_values:
        refuse(node, f"{row.name} takes {row.n_values} values, not {len(values)}")
    dtypes = [v.dtype for v in values]
    if any(d is dt.void or d is dt.index for d in dtypes):
        refuse(node, f"combines values of dtypes {dtypes}")
    if row.n_values == 1:
        need(node.dtype is dtypes[0], node, f"makes {node.dtype} of {dtypes[0]}")
    else:
        need(node.dtype is dt.void, node, "several values make a tuple, dtype void")
    if row.name in ("and", "or", "xor"):
        need(not dtypes[0].is_float, node, f"{row.name} takes integers and bool")
    elif row.name in ("argmax", "argmin"):
        need(dtypes[1].is_int, node, "the position is an integer")
    elif row.name in ("welford", "logsumexp"):
        same = dtypes[0].is_float and len(set(dtypes)) == 1
        need(same, node, f"{row.name} takes floats of one dtype")


def combined_values(node: UOp) -> tuple[UOp, ...]:
    """The values of a REDUCE or SCAN, without the DIMs of level 2."""
    row = COMBINES.get(node.arg[0]) if isinstance(node.arg, tuple) and node.arg else None
    return node.src if row is None else node.src[: row.n_values]


def check_item(node: UOp) -> None:
    """ITEM reads one value of a tuple."""
    need_arity(node, 1)
    whole = node.src[0]
    is_tuple = whole.op in (Op.REDUCE, Op.SCAN) and whole.dtype is dt.void
    need(is_tuple, node, "ITEM reads a REDUCE or SCAN of several values")
    values = combined_values(whole)
    inside = type(node.arg) is int and 0 <= node.arg < len(values)
    need(inside, node, f"has no value {node.arg} among {len(values)}")
    need(node.dtype is values[node.arg].dtype, node, f"value {node.arg} has another dtype")


def check_buffer(node: UOp) -> None:
    """A BUFFER is an array of an array dtype with a legal shape."""
    need_arity(node, 0)
    need(isinstance(node.arg, Buffer), node, "a BUFFER holds a Buffer")
    need(is_array_dtype(node.dtype), node, "an array has a scalar array dtype")
    need(type(node.arg.slot) is int and node.arg.slot >= 0, node, "a slot is a number from 0")
    need(all(is_extent(n) for n in node.arg.shape), node, "an extent is 0 or more, or a Variable")


def check_var(node: UOp) -> None:
    """A VAR names a bounded extent."""
    need_arity(node, 0)
    need(isinstance(node.arg, Variable), node, "a VAR holds a Variable")
    need(0 <= node.arg.lo <= node.arg.hi, node, "a Variable's bounds are 0 <= lo <= hi")


def is_array_dtype(dtype: DType) -> bool:
    """A scalar that memory may hold."""
    return dtype.lanes == 1 and dtype is not dt.index and dtype is not dt.void


def is_extent(n: object) -> bool:
    """An int from 0 or a Variable."""
    return isinstance(n, Variable) or (type(n) is int and n >= 0)


def volume(shape: tuple[Extent, ...]) -> tuple[int, tuple[str, ...]]:
    """The element count of a shape, comparable: (product of the ints, names of the Variables)."""
    product, names = 1, []
    for n in shape:
        if isinstance(n, Variable):
            names.append(n.name)
        else:
            product *= n
    return (product, tuple(sorted(names))) if product else (0, ())
