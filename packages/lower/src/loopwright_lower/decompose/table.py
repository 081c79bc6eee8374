"""What a decomposition rule is, and the emitter that applies the first one that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loopwright_core.errors import DTypeError, LoweringError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.fired import count_fired
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.target import Target
from loopwright_lower.decompose.functions import Functions, can_call

# Ops whose level-2 meaning hardware does not have: gone after decomposing unless the target lists
# them. All other elementwise ops mean at level 3 what they mean at level 2 on arithmetic dtypes.
TOTAL_OPS = frozenset(
    {Op.FLOORDIV, Op.MOD, Op.SHL, Op.SHR, Op.MAX, Op.MIN}
    | {Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TANH, Op.POW}
)


@dataclass(frozen=True, slots=True)
class Rule:
    """`make` replaces a node of one of `ops` for which `when` holds; `name` states the fact.

    The node's sources are primitive already; what `make` returns is primitive too.
    """

    name: str
    ops: tuple[Op, ...]
    when: Callable[[Emit, UOp], bool]
    make: Callable[[Emit, UOp], UOp]


Table = dict[Op, tuple[Rule, ...]]


def by_op(rules: Iterable[Rule]) -> Table:
    """The rules that may apply to each op, in their order."""
    table: dict[Op, list[Rule]] = {}
    for rule in rules:
        for op in rule.ops:
            table.setdefault(op, []).append(rule)
    return {op: tuple(found) for op, found in table.items()}


class Emit:
    """Builds level-3 elementwise nodes for one target; a rule asks it for ops it does not expand.

    fired: names of the rules that applied, for tests and traces.
    """

    __slots__ = ("_checked", "_table", "fired", "functions", "has_fma", "target")

    def __init__(
        self,
        target: Target,
        table: Table,
        fired: set[str] | None = None,
        functions: Functions | None = None,
    ) -> None:
        self.target = target
        self.functions = functions
        self.has_fma = target.has_fma
        self.fired = fired
        self._table = table
        self._checked: set[DType] = set()

    def is_soft(self, dtype: DType) -> bool:
        """A float that the target stores but does not compute with."""
        return dtype.kind == "float" and dtype.scalar not in self.target.arith

    def has(self, dtype: DType) -> bool:
        """Whether the target computes with this dtype."""
        return dtype in self.target.arith

    def casts_directly(self, dtype: DType) -> bool:
        """Whether CAST between float32 and this storage dtype is an op of the target."""
        return f"cast-{dtype.name}" in self.target.features

    def op(self, op: Op, dtype: DType, *src: UOp) -> UOp:
        """A level-2 elementwise op over primitive sources, in primitive ops."""
        return self.lower(UOp(op, dtype, src))

    def lower(self, node: UOp) -> UOp:
        """This level-2 elementwise node over primitive sources, in primitive ops."""
        self.check(node.dtype)
        for s in node.src:
            self.check(s.dtype)
        for rule in self._table.get(node.op, ()):
            if rule.when(self, node):
                if rule.make is not keep:
                    count_fired(rule.name)
                if self.fired is not None:
                    self.fired.add(rule.name)
                if self.functions is not None and can_call(node):
                    return self.functions.call(self, rule, node)
                return rule.make(self, node)
        if node.op in TOTAL_OPS and node.op not in self.target.ops:
            fail(
                LoweringError,
                f"{node.op.name} of {node.dtype.name} has no decomposition",
                where=f"target {self.target.name}",
                fix="cast the operands to a dtype that has this operation",
            )
        return node

    def fma(self, a: UOp, b: UOp, c: UOp) -> UOp:
        """a*b + c; one rounding where the target has it, else two."""
        if self.has_fma:
            return UOp(Op.FMA, a.dtype, (a, b, c))
        return UOp(Op.ADD, a.dtype, (UOp(Op.MUL, a.dtype, (a, b)), c))

    def check(self, dtype: DType) -> None:
        """Raises DTypeError for a dtype that the target neither computes with nor stores."""
        if dtype in self._checked:
            return
        target = self.target
        if dtype.kind == "float" and dtype not in target.arith and dtype not in target.storage:
            fail(
                DTypeError,
                f"{dtype.name} does not exist on this device",
                where=f"target {target.name}",
                fix=f"cast to {dt.float32.name} first",
            )
        self._checked.add(dtype)


def is_kept(e: Emit, node: UOp) -> bool:
    """The target has the op itself, for a dtype it computes with."""
    return node.op in e.target.ops and not (node.dtype.is_bool or e.is_soft(node.dtype))


def keep(e: Emit, node: UOp) -> UOp:
    """The node as it is."""
    return node


def is_int(e: Emit, node: UOp) -> bool:
    return node.dtype.kind in ("int", "uint")


def is_float(e: Emit, node: UOp) -> bool:
    """A float that the target computes with."""
    return node.dtype.kind == "float" and node.dtype in e.target.arith


def is_bool_src(e: Emit, node: UOp) -> bool:
    return node.src[0].dtype.kind == "bool"
