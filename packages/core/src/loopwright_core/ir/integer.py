"""Index arithmetic: constructors that simplify, and passes over whole expressions.

Every function takes UOps of dtype index (or another integer dtype) or ints and returns the
canonical UOp: sums as `ir/affine.py` orders them, quotients by the rules of `ir/divmod.py`,
conditions by `ir/condition.py`. Division rounds down; x // 0 and x % 0 are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from loopwright_core.errors import DTypeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.affine import (
    LINEAR,
    Affine,
    affine,
    from_affine,
    is_linear,
    linear,
    number,
    order_key,
    plus,
    product,
    scale,
    total,
)
from loopwright_core.ir.bounds import bounds, width
from loopwright_core.ir.condition import (
    and_,
    compare,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    not_,
    or_,
    parts_of,
)
from loopwright_core.ir.divmod import (
    floordiv_const,
    mod_const,
    recombine,
    symbolic_div,
)
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.given import Given, affine_range, fits, given_bounds
from loopwright_core.ir.level3 import to_int
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import FALSE, TRUE, UOp, const, toposort

__all__ = [
    "Affine",
    "Given",
    "add",
    "affine",
    "affine_range",
    "and_",
    "bounds",
    "eq",
    "floordiv",
    "from_affine",
    "ge",
    "given_bounds",
    "gt",
    "le",
    "lt",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "ne",
    "neg",
    "not_",
    "or_",
    "order_key",
    "prove",
    "simplify",
    "sub",
    "substitute",
    "substitute_all",
    "to_int",
    "total_of",
    "where",
    "width",
]

Int = UOp | int


def _dtype(*values: Int) -> DType:
    """The one integer dtype of the operands; plain ints take the other's, or index."""
    found: DType | None = None
    for v in values:
        if isinstance(v, UOp):
            if found is not None and v.dtype is not found:
                fail(DTypeError, f"index arithmetic on {found} and {v.dtype}", fix="Cast one")
            found = v.dtype
    return found or dt.index


def _form(v: Int) -> Affine:
    return affine(v) if isinstance(v, UOp) else Affine((), int(v))


def _node(a: Affine, dtype: DType) -> UOp:
    """The canonical node, x%m + m*(x//m) joined again."""
    if len(a.terms) > 1:
        a = recombine(a, dtype)
    return from_affine(a, dtype)


def add(a: Int, b: Int) -> UOp:
    """a + b."""
    return _node(plus(_form(a), _form(b)), _dtype(a, b))


def sub(a: Int, b: Int) -> UOp:
    """a - b."""
    return _node(plus(_form(a), _form(b), -1), _dtype(a, b))


def neg(a: Int) -> UOp:
    """-a."""
    return from_affine(scale(_form(a), -1), _dtype(a))


def mul(a: Int, b: Int) -> UOp:
    """a * b; products of sums are multiplied out."""
    dtype = _dtype(a, b)
    x, y = _form(a), _form(b)
    form = product(x, y, dtype)
    if form is None:
        sides = sorted((from_affine(x, dtype), from_affine(y, dtype)), key=order_key)
        return UOp(Op.MUL, dtype, (sides[0], sides[1]))
    return _node(form, dtype)


def total_of(values: Iterable[Int]) -> UOp:
    """The sum of many values in one step; 0 where there are none."""
    values = list(values)
    return _node(total([(_form(v), 1) for v in values]), _dtype(*values))


def _given(given: Iterable[UOp] | Given) -> Given | None:
    if isinstance(given, Given):
        return given
    conditions = tuple(given)
    return Given(conditions) if conditions else None


def floordiv(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a // b, rounded down; x // 0 = 0."""
    dtype = _dtype(a, b)
    x, y = _form(a), _form(b)
    if not y.terms:
        if y.const < 0 and fits(scale(x, -1), dtype):
            x, y = scale(x, -1), scale(y, -1)  # x // -m = -x // m
        if y.const > 0:
            return _node(floordiv_const(x, y.const, dtype, given), dtype)
        if y.const == 0:
            return number(0, dtype)
    else:
        parts = _by_symbol(x, y, dtype, given)
        if parts is not None:
            return _node(parts[0], dtype)
    return _bounded(Op.FLOORDIV, dtype, from_affine(x, dtype), from_affine(y, dtype))


def mod(a: Int, b: Int, given: Given | None = None) -> UOp:
    """a % b with the sign of b; x % 0 = 0."""
    dtype = _dtype(a, b)
    x, y = _form(a), _form(b)
    if not y.terms:
        if y.const > 0:
            return _node(mod_const(x, y.const, dtype, given), dtype)
        if y.const == 0:
            return number(0, dtype)
        if fits(scale(x, -1), dtype):  # x % -m = -(-x % m)
            return _node(scale(mod_const(scale(x, -1), -y.const, dtype, given), -1), dtype)
    else:
        parts = _by_symbol(x, y, dtype, given)
        if parts is not None:
            return _node(parts[1], dtype)
    return _bounded(Op.MOD, dtype, from_affine(x, dtype), from_affine(y, dtype))


def _by_symbol(
    x: Affine, y: Affine, dtype: DType, given: Given | None
) -> tuple[Affine, Affine] | None:
    """(x // y, x % y) for a divisor that is no constant, where both are affine."""
    if y.const or len(y.terms) != 1 or y.terms[0][1] < 1 or not (fits(x, dtype) and fits(y, dtype)):
        return None
    return symbolic_div(x, y.terms[0][0], y.terms[0][1], dtype, given)


def _bounded(op: Op, dtype: DType, *src: UOp) -> UOp:
    """The node, or the one value it can take."""
    node = UOp(op, dtype, src)
    lo, hi = bounds(node)
    return number(lo, dtype) if lo == hi else node


def minimum(a: Int, b: Int, given: Given | None = None) -> UOp:
    """min(a, b)."""
    return _extreme(Op.MIN, a, b, given)


def maximum(a: Int, b: Int, given: Given | None = None) -> UOp:
    """max(a, b)."""
    return _extreme(Op.MAX, a, b, given)


def _extreme(op: Op, a: Int, b: Int, given: Given | None) -> UOp:
    dtype = _dtype(a, b)
    x, y = _form(a), _form(b)
    sign = 1 if op is Op.MIN else -1
    if fits(x, dtype) and fits(y, dtype):
        lo, hi = affine_range(scale(plus(x, y, -1), sign), given)
        if hi <= 0 or lo >= 0:
            return from_affine(x if hi <= 0 else y, dtype)
    u, v = from_affine(x, dtype), from_affine(y, dtype)
    if u.op is Op.CONST:
        u, v = v, u
    if v.op is Op.CONST and u.op is op and u.src[1].op is Op.CONST:
        pick = min if op is Op.MIN else max  # min(min(x, c), d) = min(x, min(c, d))
        return UOp(op, dtype, (u.src[0], number(pick(u.src[1].arg, v.arg), dtype)))
    if u.op is op and v in u.src:  # min(min(x, y), y) = min(x, y)
        return u
    if v.op is op and u in v.src:
        return v
    if v.op is not Op.CONST and order_key(v) < order_key(u):
        u, v = v, u
    return UOp(op, dtype, (u, v))


def where(c: UOp, a: Int, b: Int) -> UOp:
    """a where c holds, else b."""
    dtype = _dtype(a, b)
    x = a if isinstance(a, UOp) else const(a, dtype)
    y = b if isinstance(b, UOp) else const(b, dtype)
    if c is TRUE or c is FALSE:
        return x if c is TRUE else y
    if x is y:
        return x
    if dtype is dt.bool_:
        if x is TRUE or x is FALSE:
            return or_(c, y) if x is TRUE else and_(not_(c), y)
        if y is TRUE or y is FALSE:
            return or_(not_(c), x) if y is TRUE else and_(c, x)
    return UOp(Op.WHERE, dtype, (c, x, y))


_BINARY = {Op.FLOORDIV: floordiv, Op.MOD: mod, Op.MIN: minimum, Op.MAX: maximum}
_COMPARE = frozenset({Op.CMPLT, Op.CMPEQ, Op.CMPNE})


def _is_index(u: UOp, any_int: bool) -> bool:
    """Whether the passes rebuild this node by the constructors above."""
    dtype, op = u.dtype, u.op
    if dtype.lanes != 1:
        return False
    if dtype.is_bool:
        if op is Op.AND or op is Op.OR:
            return True
        if op is Op.WHERE:
            return True
        if op not in _COMPARE:
            return False
        dtype = u.src[0].dtype
        return dtype.is_bool or dtype is dt.index or (any_int and dtype.is_int)
    if dtype is not dt.index and not (any_int and dtype.is_int):
        return False
    return op in _BINARY or op is Op.WHERE or op in LINEAR or (op is Op.CAST and dtype is dt.index)


def _absorbs(parent: UOp, child: UOp) -> bool:
    """Whether the parent takes the child's own operands, so that the child is not built."""
    if parent.op is Op.AND or parent.op is Op.OR:
        return child.op is parent.op
    return is_linear(parent) and is_linear(child)


def _again(u: UOp, done: dict[UOp, UOp], given: Given | None) -> UOp:
    """One index node over new operands, by the constructor of its op."""
    op = u.op
    if is_linear(u):
        leaves, constant = linear(u)
        form = total(
            [*[(affine(done[x]), k) for x, k in leaves.items()], (Affine((), constant), 1)]
        )
        if given is not None and form.terms and fits(form, u.dtype):
            lo, hi = affine_range(form, given)
            if lo == hi:
                return number(lo, u.dtype)
        return _node(form, u.dtype)
    if op is Op.AND or op is Op.OR:
        join = and_ if op is Op.AND else or_
        return join(*[done[c] for c in parts_of(u, op)])
    src = [done[s] for s in u.src]
    if op is Op.MUL:
        return mul(src[0], src[1])
    if op is Op.WHERE:
        return where(src[0], src[1], src[2])
    if op is Op.CAST:
        if src[0].op is Op.CONST and not src[0].dtype.is_float:
            return number(int(src[0].arg), u.dtype)
        return src[0] if src[0].dtype is u.dtype else u.replace((src[0],))
    if op in _COMPARE:
        return compare(op, src[0], src[1], given)
    return _BINARY[op](src[0], src[1], given)


def _walk(
    roots: tuple[UOp, ...], mapping: Mapping[UOp, UOp], given: Given | None, everywhere: bool
) -> tuple[UOp, ...]:
    """The roots rebuilt bottom-up; `everywhere` also below nodes that are no index arithmetic."""
    any_int = not everywhere

    def inside(node: UOp) -> bool:
        return node not in mapping and (everywhere or _is_index(node, any_int))

    order = toposort(roots, inside)
    used: set[UOp] = set(roots)
    for node in order:
        if inside(node):
            if _is_index(node, any_int):
                used.update([s for s in node.src if not _absorbs(node, s)])
            else:
                used.update(node.src)
    done: dict[UOp, UOp] = {}
    known = given.known if given is not None else frozenset()
    for node in order:
        if node not in used and node not in mapping:
            continue
        found = mapping.get(node)
        if found is not None:
            done[node] = found
        elif not inside(node):
            done[node] = TRUE if node in known else node
        elif _is_index(node, any_int):
            new = _again(node, done, given)
            done[node] = TRUE if new in known else new
        else:
            done[node] = node.replace(tuple([done[s] for s in node.src]))
    return tuple([done[r] for r in roots])


def simplify(u: UOp, given: Iterable[UOp] | Given = ()) -> UOp:
    """`u` in canonical form, equal to it wherever the given conditions hold.

    Loads and everything below them stay as they are.
    """
    return _walk((u,), {}, _given(given), False)[0]


def substitute(u: UOp, mapping: Mapping[UOp, UOp]) -> UOp:
    """`u` with nodes exchanged and the index arithmetic above them simplified again.

    What a replacement contains is not walked. Loads, stores and values are rebuilt around it.
    """
    return _walk((u,), mapping, None, True)[0]


def substitute_all(roots: Iterable[UOp], mapping: Mapping[UOp, UOp]) -> tuple[UOp, ...]:
    """`substitute` of several roots in one walk."""
    return _walk(tuple(roots), mapping, None, True)


def prove(c: UOp, given: Iterable[UOp] | Given = ()) -> bool:
    """Whether the condition certainly holds where the given conditions do."""
    return simplify(c, given) is TRUE
