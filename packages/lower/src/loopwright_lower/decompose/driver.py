"""Rewrites the elementwise ops of a kernel body to those that a target has."""

from __future__ import annotations

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import ELEMENTWISE, Op
from loopwright_core.ir.uop import UOp, rebuild
from loopwright_core.plugin.target import Target
from loopwright_lower.decompose.cast import cast_rules
from loopwright_lower.decompose.exponential import exponential_rules
from loopwright_lower.decompose.functions import Functions
from loopwright_lower.decompose.hyperbolic import hyperbolic_rules
from loopwright_lower.decompose.integer import integer_rules
from loopwright_lower.decompose.logarithm import logarithm_rules
from loopwright_lower.decompose.minmax import minmax_rules
from loopwright_lower.decompose.power import power_rules
from loopwright_lower.decompose.remainder import remainder_rules
from loopwright_lower.decompose.small_float import small_float_rules
from loopwright_lower.decompose.table import Emit, Rule, Table, by_op
from loopwright_lower.decompose.trigonometric import trigonometric_rules

# Storage floats come before the casts: theirs are the special ones.
decompose_rules: tuple[Rule, ...] = (
    *cast_rules[:1],
    *small_float_rules,
    *cast_rules[1:],
    *integer_rules,
    *minmax_rules,
    *remainder_rules,
    *exponential_rules,
    *logarithm_rules,
    *trigonometric_rules,
    *hyperbolic_rules,
    *power_rules,
)
_TABLE: Table = by_op(decompose_rules)


def decompose(
    roots: tuple[UOp, ...],
    target: Target,
    fired: set[str] | None = None,
    functions: Functions | None = None,
) -> tuple[UOp, ...]:
    """The roots with every elementwise op expressed in what `target` has.

    Index arithmetic stays; ops that are not elementwise are rebuilt over new sources, leaves of
    any kind stay. `fired` collects the names of the rules that applied. With `functions`, long
    expansions become CALLs of functions collected there.

    Raises: DTypeError for a dtype the device lacks, LoweringError for an op without a rule.
    """
    e = Emit(target, _TABLE, fired, functions)

    def change(node: UOp, src: tuple[UOp, ...]) -> UOp | None:
        if node.op is Op.BUFFER:
            e.check(node.dtype)
        if node.op not in ELEMENTWISE or _is_index_arithmetic(node):
            return None
        return e.lower(node.replace(src))

    return tuple(rebuild(roots, change))


def _is_index_arithmetic(node: UOp) -> bool:
    """An op over index values alone; a CAST to or from them is a conversion like others."""
    if node.op is Op.CAST:
        return False
    return any(s.dtype is dt.index for s in node.src)
