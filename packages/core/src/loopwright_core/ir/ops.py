"""Every op of the IR, in groups by the levels that use them (docs/ir.md is the manual)."""

from __future__ import annotations

from enum import Enum, auto


class Op(Enum):
    """What a UOp does. `spec.py` says which op is legal at which level."""

    # Leaves
    CONST = auto()  # arg: bool | int | float; shape ()
    VAR = auto()  # arg: Variable; a bounded extent known at launch; dtype index
    BUFFER = auto()  # arg: Buffer(slot, shape)

    # Level 1 only: movement and structure
    RESHAPE = auto()  # arg: new shape
    PERMUTE = auto()  # arg: axes
    EXPAND = auto()  # arg: new shape; size-1 axes repeat
    PAD = auto()  # src: (x, fill CONST); arg: ((before, after), ...)
    SHRINK = auto()  # arg: ((start, stop, step), ...), step >= 1
    FLIP = auto()  # arg: the axes walked backwards
    WINDOW = auto()  # arg: (axis, size, stride, dilation); adds an axis of `size` at the end
    IOTA = auto()  # arg: (shape, axis); the index along that axis
    GATHER = auto()  # src: (x, indices); arg: axis; numpy.take with zeros out of range
    CONCAT = auto()  # src: arrays; arg: axis; always stored, never inside a kernel AST

    # Levels 1 and 2: several elements into one
    REDUCE = auto()  # level 1 arg: (combine, axes); level 2 arg: (combine,), src: values + DIMs
    SCAN = auto()  # level 1 arg: (combine, axis, exclusive, reverse)
    # ... level 2 arg: (combine, exclusive, reverse), src: values + (DIM,)
    ITEM = auto()  # src: (a REDUCE or SCAN of several values,); arg: which
    STORE = auto()  # level 1: (view of BUFFER, value); level 2, 3: (INDEX, value); arg: cache hint
    SINK = auto()  # src: STOREs

    # Elementwise, total functions at levels 1 and 2 (docs/ir.md gives each result at the edges)
    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()  # floats only
    FLOORDIV = auto()  # rounds down; integer x // 0 = 0
    MOD = auto()  # sign of the divisor; integer x % 0 = 0
    MAX = auto()  # NaN wins
    MIN = auto()  # NaN wins
    AND = auto()
    OR = auto()
    XOR = auto()
    SHL = auto()  # by the width or more: 0
    SHR = auto()  # by the width or more: 0, -1 for negatives
    CMPLT = auto()
    CMPEQ = auto()
    CMPNE = auto()
    WHERE = auto()
    NEG = auto()
    SQRT = auto()
    TRUNC = auto()
    RINT = auto()  # to nearest, ties to even
    EXP = auto()
    LOG = auto()
    SIN = auto()
    COS = auto()
    TANH = auto()
    POW = auto()
    CAST = auto()
    BITCAST = auto()

    # Level 2: loops as dimensions
    DIM = auto()  # arg: Dim; dtype index
    INDEX = auto()  # level 2 src: (BUFFER, *one index per view dimension, valid); arg: view shape
    # ... level 3 src: (storage, offset[, valid])
    LOAD = auto()  # src: (INDEX, fill): where valid is false the value is fill

    # Level 3 elementwise: what hardware does, undefined where the comment says so
    CDIV = auto()  # rounds to zero; divisor 0 and INT_MIN / -1 undefined
    CMOD = auto()  # sign of the dividend; as CDIV
    CSHL = auto()  # amount in 0..bits-1
    CSHR = auto()  # amount in 0..bits-1; arithmetic on signed
    FTOI = auto()  # float to int, in range only
    FMA = auto()  # a * b + c, rounded once
    CALL = auto()  # arg: the name of a Function of the program; src: its arguments

    # Level 3: structure
    RANGE = auto()  # src: (extent,); arg: Loop(id, name); the loop variable, 0 .. extent-1
    END = auto()  # src: (RANGE,)
    IF = auto()  # src: (condition,); arg: id
    ENDIF = auto()  # src: (IF,)
    SPECIAL = auto()  # arg: (name, size): an id the launch supplies: "thread", "gidx0", "lidx0"
    DEFINE_LOCAL = auto()  # arg: Local(id, name, size); an array private to the thread / workgroup
    DEFINE_REG = auto()  # arg: Register(id, name); src: (initial value,): a variable
    ASSIGN = auto()  # src: (register, value): the register from here on
    AFTER = auto()  # src: (storage or register, deps...): it, as seen after those
    PARAM = auto()  # leaf inside a Function; arg: which argument
    RETURN = auto()  # src: (value,); the last node of a Function
    BROADCAST = auto()  # src: (scalar,): all lanes
    VECTORIZE = auto()  # src: one scalar per lane
    LANE = auto()  # src: (vector,); arg: which
    PREFETCH = auto()  # src: (INDEX,)
    BARRIER = auto()
    FENCE = auto()  # streaming stores before it are visible after it
    WMMA = auto()  # src: (A, B, C), what this thread holds of each; arg: TensorCore; A x B + C
    TILE_LOAD = auto()  # src: (INDEX, elements from row to row); arg: (rows, columns) in memory
    TILE_STORE = auto()  # src: (INDEX, elements from row to row, tile); arg: as TILE_LOAD
    SHUFFLE = auto()

    # Enum's own hash is a Python call, and every node is looked up by its op.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name


UNARY = frozenset({Op.NEG, Op.SQRT, Op.TRUNC, Op.RINT, Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH})
COMPARE = frozenset({Op.CMPLT, Op.CMPEQ, Op.CMPNE})
BINARY = frozenset(
    {Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.FLOORDIV, Op.MOD, Op.MAX, Op.MIN, Op.AND, Op.OR}
    | {Op.XOR, Op.SHL, Op.SHR, Op.POW}
    | COMPARE
)
CONVERT = frozenset({Op.CAST, Op.BITCAST})
# Elementwise at levels 1 and 2.
ELEMENTWISE = UNARY | BINARY | CONVERT | {Op.WHERE}
# Elementwise at level 3 besides those of ELEMENTWISE that a target lists.
RAW = frozenset({Op.CDIV, Op.CMOD, Op.CSHL, Op.CSHR, Op.FTOI, Op.FMA})
MOVEMENT = frozenset({Op.RESHAPE, Op.PERMUTE, Op.EXPAND, Op.PAD, Op.SHRINK, Op.FLIP, Op.WINDOW})
COMMUTATIVE = frozenset({Op.ADD, Op.MUL, Op.MAX, Op.MIN, Op.AND, Op.OR, Op.XOR, Op.CMPEQ, Op.CMPNE})
