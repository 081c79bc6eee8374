"""Programs with one barrier, mask, bound or index term taken out: what checks must report.

What a fault changes is decided by two more programs. The probe is the whole program with one more
access, far outside its buffer, that happens exactly where the part that was taken out says
something: if it stays silent, that part said nothing at these sizes. The poisoned program, for the
mask of a load, has NaN (an unlikely number) wherever the fault makes the load read what it did not:
if it gives the same results, nobody uses that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.spec_program import LEAVES, STATEMENTS
from loopwright_core.ir.uop import TRUE, Buffer, UOp, const, toposort
from loopwright_core.program.program import Phase, Program

_OUTSIDE = -(1 << 20)
_CHAIN = frozenset({Op.ADD, Op.BROADCAST})
_COMPUTED = frozenset({Op.LOAD, Op.DEFINE_REG, Op.ASSIGN, Op.CALL})


@dataclass(frozen=True)
class Fault:
    """`probe` is None where what was taken out matters wherever it runs."""

    kind: str
    victim: UOp
    program: Program
    probe: Program | None
    poisoned: Program | None


def faults(program: Program) -> Iterator[Fault]:
    """Every barrier, branch, mask, part of a mask, choice between bounds and index term of a
    program, each taken out alone."""
    for number, phase in enumerate(program.phases):
        for kind, victim, edit, condition in _phase_faults(phase):
            edits = [edit, None, None]
            if condition is not None:
                edits[1] = Edit(before={victim: _probe(program, condition)})
                if kind == "mask" and victim.op is Op.LOAD:
                    edits[2] = Edit({victim: _poisoned(victim, condition)})
            try:
                broken, probe, poisoned = [
                    None if e is None else _with(program, number, edited(phase.uops, e))
                    for e in edits
                ]
            except _StandsTwice:
                continue
            assert broken is not None
            yield Fault(kind, victim, broken, probe, poisoned)


def _with(program: Program, number: int, uops: tuple[UOp, ...]) -> Program:
    phases = list(program.phases)
    phases[number] = replace(phases[number], uops=uops)
    return replace(program, phases=tuple(phases))


@dataclass(frozen=True)
class Edit:
    """What becomes of a list: nodes changed, put before others, taken out."""

    changed: Mapping[UOp, UOp] = field(default_factory=dict)
    before: Mapping[UOp, UOp] = field(default_factory=dict)
    gone: frozenset[UOp] = frozenset()


_Found = tuple[str, UOp, Edit, UOp | None]


def _phase_faults(phase: Phase) -> Iterator[_Found]:
    """(kind, the node, what changes, the condition under which that matters)."""
    uops = phase.uops
    for node in uops:
        if node.op is Op.BARRIER:
            yield "barrier", node, Edit(gone=frozenset({node})), None
        elif node.op is Op.IF:
            closes = [n for n in uops if n.op is Op.ENDIF and n.src[0] is node]
            yield "guard", node, Edit(gone=frozenset({node, *closes})), _not(node.src[0])
        elif node.op is Op.WHERE and not any(
            n.op in _COMPUTED for n in toposort((node.src[0],), _no_register)
        ):
            yield from _choices(node)
        elif node.op in (Op.LOAD, Op.STORE) and node.src[0].op is Op.INDEX:
            yield from _masks(node)
            yield from _terms(node)


def _no_register(node: UOp) -> bool:
    return node.op not in _COMPUTED


def _choices(node: UOp) -> Iterator[_Found]:
    """A select by position: a masked value, or the smaller of two bounds."""
    condition, yes, no = node.src
    differs = _compare(Op.CMPNE, yes, no) if node.dtype.is_int else None
    for kept, other in ((yes, _not(condition)), (no, condition)):
        if kept is no and not node.dtype.is_int:
            return  # a mask that lets nothing through
        kind = "bound" if node.dtype.is_int else "select"
        matters = other if differs is None else _and(other, differs)
        yield kind, node, Edit({node: kept}), matters


def _masks(node: UOp) -> Iterator[_Found]:
    """The mask of an access, whole and each of its conjuncts."""
    index = node.src[0]
    if len(index.src) < 3:
        return
    valid = index.src[2]
    yield "mask", node, _access(node, index.src[1], None), _not(valid)
    parts = _leaves(valid, Op.AND)
    for n in range(len(parts) * (len(parts) > 1)):
        rest = parts[0 if n else 1]
        for other in parts[0 if n else 1 :]:
            if other is not parts[n] and other is not rest:
                rest = _and(rest, other)
        missing = _and(rest, _not(parts[n]))
        yield "mask", node, _access(node, index.src[1], rest), missing


def _terms(node: UOp) -> Iterator[_Found]:
    """The offset of an access without one of its terms."""
    index = node.src[0]
    valid = index.src[2] if len(index.src) > 2 else None
    offset = index.src[1]
    for shorter, term in _shorter(offset):
        nonzero = _compare(Op.CMPNE, term, _same(0, term.dtype))
        if valid is not None:
            nonzero = _and(valid, nonzero)
        yield "term", node, _access(node, shorter, valid), nonzero


def _shorter(offset: UOp) -> Iterator[tuple[UOp, UOp]]:
    """(the sum without a term, the term): first the terms that were added last."""
    if offset.op is Op.CONST:
        if offset.arg:
            yield const(0, offset.dtype), offset
        return
    sums = [n for n in toposort((offset,), lambda n: n.op in _CHAIN) if n.op is Op.ADD]
    if not sums:
        yield _same(0, offset.dtype), offset
    for n in reversed(sums):
        for kept, term in (n.src, n.src[::-1]):
            if term.op is Op.ADD:
                continue
            done: dict[UOp, UOp] = {n: kept}
            for m in toposort((offset,), lambda m: m.op in _CHAIN):
                if m not in done:
                    done[m] = m.replace(tuple([done[s] for s in m.src])) if m.op in _CHAIN else m
            yield done[offset], term


def _access(node: UOp, offset: UOp, valid: UOp | None) -> Edit:
    """Another INDEX behind one access."""
    index = node.src[0]
    src = (index.src[0], offset) if valid is None else (index.src[0], offset, valid)
    made = UOp(Op.INDEX, index.dtype, src)
    rest = node.src[1:] if valid is not None or node.op is Op.STORE else ()
    return Edit({node: node.replace((made, *rest))})


# Conditions


def _leaves(node: UOp, op: Op) -> list[UOp]:
    found: list[UOp] = []
    stack = [node]
    while stack:
        n = stack.pop()
        if n.op is op:
            stack += n.src[::-1]
        else:
            found.append(n)
    return found


def _poisoned(load: UOp, condition: UOp) -> UOp:
    """The loaded value, but something else where the condition holds."""
    scalar, lanes = load.dtype.scalar, load.dtype.lanes
    other = float("nan") if scalar.is_float else 1 if scalar.is_bool else 0x55
    src = (_spread(condition, lanes), _same(other, load.dtype), load)
    return UOp(Op.WHERE, load.dtype, src)


def _same(value: float, dtype: DType) -> UOp:
    made = const(value, dtype.scalar)
    return made if dtype.lanes == 1 else UOp(Op.BROADCAST, dtype, (made,))


def _spread(node: UOp, lanes: int) -> UOp:
    if node.dtype.lanes == lanes:
        return node
    return UOp(Op.BROADCAST, node.dtype.vec(lanes), (node,))


def _and(a: UOp, b: UOp) -> UOp:
    lanes = max(a.dtype.lanes, b.dtype.lanes)
    src = (_spread(a, lanes), _spread(b, lanes))
    return UOp(Op.AND, src[0].dtype, src)


def _not(a: UOp) -> UOp:
    return UOp(Op.XOR, a.dtype, (a, _spread(TRUE, a.dtype.lanes)))


def _compare(op: Op, a: UOp, b: UOp) -> UOp:
    dtype = dt.bool_ if a.dtype.lanes == 1 else dt.bool_.vec(a.dtype.lanes)
    return UOp(op, dtype, (a, b))


def _probe(program: Program, condition: UOp) -> UOp:
    """A load far outside, where the condition holds."""
    param = program.params[0]
    lanes = condition.dtype.lanes
    buffer = UOp(Op.BUFFER, param.dtype, (), Buffer(param.slot, param.shape))
    where = UOp(Op.INDEX, param.dtype, (buffer, const(_OUTSIDE, dt.int32), condition))
    dtype = param.dtype if lanes == 1 else param.dtype.vec(lanes)
    return UOp(Op.LOAD, dtype, (where, _same(0, dtype)))


# Lists


def edited(uops: tuple[UOp, ...], edit: Edit) -> tuple[UOp, ...]:
    """The list after an edit; whatever a new node needs stands before it."""
    changed, gone = edit.changed, edit.gone
    new: dict[UOp, UOp] = {}
    out: list[UOp] = []
    ever: set[UOp] = set()
    blocks: list[set[UOp]] = [set()]

    def put(root: UOp) -> None:
        """Emit a node behind those of its sources that are not there yet."""

        def is_missing(n: UOp) -> bool:
            return n is root or (n.op not in LEAVES and n not in ever)

        for n in toposort((root,), is_missing):
            if not is_missing(n) or n.op in LEAVES:
                continue
            if n.op not in STATEMENTS:
                if any(n in b for b in blocks):
                    continue
                if n in ever:
                    raise _StandsTwice
            ever.add(n)
            blocks[-1].add(n)
            out.append(n)

    for node in uops:
        if node in gone:
            continue
        if node.op in (Op.END, Op.ENDIF):
            blocks.pop()
        if node in edit.before:
            put(edit.before[node])
        made = changed.get(node, node)
        src = tuple([new.get(s, s) for s in made.src if s not in gone])
        made = made if src == made.src else made.replace(src)
        if made.op is Op.AFTER and len(src) == 1:
            made = src[0]
        else:
            put(made)
        new[node] = made
        if node.op in (Op.RANGE, Op.IF):
            blocks.append(set())
    return tuple(out)


class _StandsTwice(Exception):
    """A changed node is one that stands in another block already: no list can hold both."""
