"""After indexing: reduces share dims, neighbouring dims merge, dims get their final names."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.fold import fold_rules
from loopwright_core.ir.ops import Op
from loopwright_core.ir.rewrite import rewrite_all
from loopwright_core.ir.uop import UOp, Variable, toposort
from loopwright_core.kernel.dims import Dim
from loopwright_core.kernel.naming import output_names, reduce_names
from loopwright_lower.evaluate import Evaluator
from loopwright_lower.instances import shared_values
from loopwright_lower.runs import Run, bound_dims, merge_runs, merged_index

_ARITHMETIC: dict[Op, Callable[..., UOp]] = {
    Op.ADD: integer.add,
    Op.SUB: integer.sub,
    Op.MUL: integer.mul,
    Op.FLOORDIV: integer.floordiv,
    Op.MOD: integer.mod,
    Op.MAX: integer.maximum,
    Op.MIN: integer.minimum,
    Op.WHERE: integer.where,
    Op.CMPLT: integer.lt,
    Op.CMPEQ: integer.eq,
    Op.CMPNE: integer.ne,
    Op.AND: integer.and_,
    Op.OR: integer.or_,
}


class Finished(NamedTuple):
    body: UOp
    dims: tuple[Dim, ...]
    shared: tuple[tuple[UOp, ...], ...]


def finish(body: UOp, outputs: Run, evaluator: Evaluator) -> Finished:
    """The kernel's body over its final dims: output dims in the given order, then the reduces'."""
    shared = shared_values(evaluator)
    roots = (body, *(u for group in shared for u in group))
    folded = dict(zip(roots, rewrite_all(roots, fold_rules), strict=True))
    body = folded[body]
    shared = [[folded[u] for u in group] for group in shared]
    roots = tuple(folded.values())
    nodes = toposort((body,))
    in_body = set(nodes)
    same, order = share_reduces(nodes)
    runs = merge_runs(nodes, same)
    outputs = tuple([o for o in outputs if o in in_body])
    names = name_runs(nodes, outputs, order, same, runs)
    final = {dim: new for run, new in names.items() for dim in run}
    for dim, kept in same.items():
        final[dim] = final[kept]
    if any(dim is not new for dim, new in final.items()):
        done = _rebuild(toposort(roots), final, same, runs)
        body = done[body]
        shared = [[done[u] for u in group] for group in shared]
        in_body = set(toposort((body,)))
    found = tuple([tuple(dict.fromkeys(u for u in group if u in in_body)) for group in shared])
    dims = tuple([new.arg for new in names.values()])
    return Finished(body, dims, tuple([group for group in found if len(group) > 1]))


def share_reduces(nodes: list[UOp]) -> tuple[dict[UOp, UOp], Run]:
    """(which DIM stands for which, the reduce dims that are left in nest order).

    Reduces of one level, with equal extents and free dims, use the same dims. The level is how
    many reduces and scans lie below in series: of two on one level neither depends on the other,
    so that joining all of a level cannot close a circle.
    """
    bit: dict[UOp, int] = {}
    free: dict[UOp, int] = {}
    level: dict[UOp, int] = {}
    reduces: list[tuple[UOp, Run]] = []
    for node in nodes:
        mask = depth = 0
        for s in node.src:
            mask |= free[s]
            if level[s] > depth:
                depth = level[s]
        if node.op is Op.DIM:
            bit[node] = mask = 1 << len(bit)
        elif node.op is Op.REDUCE:
            dims = bound_dims(node)
            for d in dims:
                mask &= ~bit[d]
            depth += 1
            reduces.append((node, dims))
        elif node.op is Op.SCAN:
            depth += 1
        free[node], level[node] = mask, depth
    same: dict[UOp, UOp] = {}
    moved = 0
    classes: dict[tuple[object, ...], Run] = {}
    for node, dims in reversed(reduces):  # consumers first: their own dims are settled
        mask = free[node]
        if mask & moved:
            for dim, kept in same.items():
                if mask & bit[dim]:
                    mask = mask & ~bit[dim] | bit[kept]
        key = (level[node], tuple([d.arg.size for d in dims]), mask)
        kept_dims = classes.setdefault(key, dims)
        if kept_dims is not dims:
            for dim, kept in zip(dims, kept_dims, strict=True):
                if dim is not kept and dim not in same:
                    same[dim] = kept
                    moved |= bit[dim]
    return same, _nest_order(reduces, same, bit, free)


def _nest_order(
    reduces: list[tuple[UOp, Run]], same: dict[UOp, UOp], bit: dict[UOp, int], free: dict[UOp, int]
) -> Run:
    """Reduce dims by first use, but those of an enclosing reduce before those inside it."""
    inside: dict[UOp, int] = {}
    own: dict[UOp, Run] = {}
    for node, dims in reduces:
        for d in dims:
            kept = same.get(d, d)
            inside[kept] = inside.get(kept, 0) | free[node]
            own.setdefault(kept, tuple([same.get(e, e) for e in dims]))
    found: dict[UOp, None] = {}
    for first in own:
        stack = [first]
        while stack:
            dim = stack[-1]
            if dim in found:
                stack.pop()
                continue
            outer = [
                same.get(d, d)
                for d, b in bit.items()
                if d.arg.is_reduce and inside[dim] & b and same.get(d, d) not in found
            ]
            if outer:
                stack.extend(reversed(outer))
                continue
            found.update(dict.fromkeys(own[dim]))
    return tuple(found)


def name_runs(
    nodes: list[UOp], outputs: Run, order: Run, same: dict[UOp, UOp], runs: dict[UOp, Run]
) -> dict[Run, UOp]:
    """The final DIM of every run: output dims, then reduce dims, both in nest order."""
    names: dict[Run, UOp] = {}
    fresh = output_names()
    for dim in outputs:
        run = runs[dim]
        if run not in names:
            names[run] = Dim(next(fresh), _size(run)).uop
    reduces = dict.fromkeys([runs[d] for d in order])
    twins = _twins(nodes, same, runs) if reduces else {}
    fresh, turn = reduce_names(), dict.fromkeys(names, 0)
    for run in reduces:
        twin = twins.get(run)
        if twin in turn:
            name = f"{names[twin].arg.name}.{turn[twin]}"
            turn[twin] += 1
        else:
            name = next(fresh)
        names[run] = Dim(name, _size(run), is_reduce=True).uop
    return names


def _size(run: Run) -> int | Variable:
    size: int | Variable = run[0].arg.size
    return size if len(run) == 1 else prod(d.arg.size for d in run)


def _twins(nodes: list[UOp], same: dict[UOp, UOp], runs: dict[UOp, Run]) -> dict[Run, Run]:
    """The output run that walks the same data as a reduce run, where there is one.

    Two accesses of one buffer show it: their indices differ only where one has bare reduce dims
    and the other bare output dims.
    """
    accesses: dict[tuple[UOp, object], dict[Run, None]] = {}
    for node in nodes:
        if node.op is Op.INDEX:
            at = tuple([same.get(s, s) for s in node.src[1:-1]])
            accesses.setdefault((node.src[0], node.arg), {})[at] = None
    twins: dict[Run, Run] = {}
    for tuples in accesses.values():
        outer = [t for t in tuples if any(_is_output(u) for u in t)]
        for t in tuples:
            if not any(u.op is Op.DIM and u.arg.is_reduce for u in t):
                continue
            for other in outer:
                pairs = [(a, b) for a, b in zip(t, other, strict=True) if a is not b]
                if pairs and all(
                    a.op is Op.DIM
                    and a.arg.is_reduce
                    and _is_output(b)
                    and a.arg.size == b.arg.size
                    for a, b in pairs
                ):
                    for a, b in pairs:
                        if _size(runs[a]) == _size(runs[b]):
                            twins.setdefault(runs[a], runs[b])
    return twins


def _is_output(u: UOp) -> bool:
    return u.op is Op.DIM and not u.arg.is_reduce


def _rebuild(
    nodes: list[UOp], final: dict[UOp, UOp], same: dict[UOp, UOp], runs: dict[UOp, Run]
) -> dict[UOp, UOp]:
    """Every node over the final dims; index arithmetic again in canonical order."""
    done = dict(final)  # merging asks for a run's dims in any order
    for node in nodes:
        if node.op is Op.DIM:
            done.setdefault(node, node)
            continue
        src = tuple([done[s] for s in node.src])
        if src == node.src:
            done[node] = node
        elif node.op is Op.INDEX:
            done[node] = merged_index(node, done, same, runs)
        elif node.op is Op.REDUCE:
            done[node] = node.replace(tuple(dict.fromkeys(src)))
        elif node.dtype is dt.index or (node.dtype.is_bool and node.src[0].dtype is dt.index):
            done[node] = _ARITHMETIC[node.op](*src) if node.op in _ARITHMETIC else node.replace(src)
        else:
            done[node] = node.replace(src)
    return done
