"""Runs of neighbouring dims that every access walks as one, and accesses over the merged dims."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from loopwright_core.ir import dtype as dt
from loopwright_core.ir import integer
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, Variable, toposort

Run = tuple[UOp, ...]


def bound_dims(node: UOp) -> Run:
    """The DIMs a level-2 REDUCE binds."""
    return tuple([s for s in node.src if s.op is Op.DIM])


def merge_runs(nodes: list[UOp], same: dict[UOp, UOp]) -> dict[UOp, Run]:
    """The run of each dim, itself alone at least.

    Two neighbours merge where one reduce binds both or none, every INDEX holds either both, the
    first walking as many elements a step as the second in all, or neither, and nothing else looks
    at them.
    """
    owner: dict[UOp, Run] = {}
    dims: dict[UOp, None] = {}
    links = _Links(same)
    for node in nodes:
        if node.op is Op.DIM:
            if node not in same:
                dims[node] = None
        elif node.op is Op.REDUCE:
            bound = tuple([same.get(d, d) for d in bound_dims(node)])
            for d in bound:
                if owner.setdefault(d, bound) != bound:
                    links.fixed.add(d)
        elif node.op is Op.INDEX:
            links.see(node)
        elif node.dtype is not dt.index:
            links.fix([s for s in node.src if s.dtype is dt.index])
    runs: dict[UOp, Run] = {dim: (dim,) for dim in dims}
    led: set[UOp] = set()
    for dim in dims:
        follower = links.follower(dim)
        if follower is None or follower in led or owner.get(dim) != owner.get(follower):
            continue
        led.add(follower)
        merged = runs[dim] + runs[follower]
        for part in merged:
            runs[part] = merged
    return runs


class _Links:
    """What may follow and lead each dim in all accesses seen so far."""

    def __init__(self, same: dict[UOp, UOp]) -> None:
        self.same = same
        self.fixed: set[UOp] = set()
        self._after: dict[UOp, tuple[UOp, ...]] = {}
        self._before: dict[UOp, tuple[UOp, ...]] = {}

    def fix(self, exprs: Iterable[UOp]) -> None:
        """No dim that these index expressions hold merges."""
        for n in toposort(tuple(exprs), _is_arithmetic):
            if n.op is Op.DIM:
                self.fixed.add(self.same.get(n, n))

    def see(self, index: UOp) -> None:
        """Take in one access."""
        after: dict[UOp, list[UOp]] = {}
        before: dict[UOp, list[UOp]] = {}
        lines = [self._line(e) for e in index.src[1:-1]]
        for p, line in enumerate(lines):
            behind = self._whole(index, p + 1)
            for d, k in line.items():
                if d in after:
                    self.fixed.add(d)  # in two indices at once
                followers = [f for f, one in line.items() if f is not d and k == f.arg.size * one]
                if k == 1 and behind is not None:
                    followers.append(behind)
                after[d] = followers
                before.setdefault(d, [])
                for f in followers:
                    before.setdefault(f, []).append(d)
        for found, now in ((self._after, after), (self._before, before)):
            for d, others in now.items():
                found[d] = tuple([o for o in found.get(d, others) if o in others])

    def _line(self, e: UOp) -> dict[UOp, int]:
        """The coefficients of the dims in an index; what is not affine in it is fixed."""
        if e.op is Op.DIM:
            return {self.same.get(e, e): 1}
        line: dict[UOp, int] = {}
        for atom, k in integer.affine(e).terms if e.op is not Op.CONST else ():
            if atom.op is Op.DIM:
                d = self.same.get(atom, atom)
                if d in line:
                    self.fixed.add(d)
                line[d] = k
            else:
                self.fix((atom,))
        return line

    def _whole(self, index: UOp, p: int) -> UOp | None:
        """The dim that is all of an access' index number p and walks its whole extent."""
        if p >= len(index.arg):
            return None
        e = index.src[1 + p]
        if e.op is not Op.DIM or index.arg[p] != e.arg.size:
            return None
        return self.same.get(e, e)

    def follower(self, dim: UOp) -> UOp | None:
        """The dim that may be merged behind this one."""
        if dim in self.fixed or isinstance(dim.arg.size, Variable):
            return None
        for found in self._after.get(dim, ()):
            is_free = found is not dim and found not in self.fixed
            if is_free and dim in self._before[found] and not isinstance(found.arg.size, Variable):
                return found
        return None


def _is_arithmetic(node: UOp) -> bool:
    """Whether to look below: not where a value becomes an index, it has accesses of its own."""
    return node.op is not Op.CAST or node.src[0].dtype.kind == "bool"


def merged_index(
    node: UOp, done: dict[UOp, UOp], same: dict[UOp, UOp], runs: dict[UOp, Run]
) -> UOp:
    """INDEX over merged dims; `done`: what has become of the nodes below.

    INDEX(.., i + c, j, ..) --> INDEX(.., m + c * size(j), ..) over the product's view, and
    INDEX(.., i * size(j) + j, ..) --> INDEX(.., m, ..).
    """
    olds = node.src[1:-1]
    at: list[UOp] = []
    view: list[int | Variable] = []
    p = 0
    while p < len(olds):
        old, n = olds[p], node.arg[p]
        terms = ((old, 1),) if old.op is Op.DIM else integer.affine(old).terms
        own = {same.get(a, a): runs.get(same.get(a, a), ()) for a, _ in terms if a.op is Op.DIM}
        if all(len(run) < 2 for run in own.values()):
            at.append(done[old])
            view.append(n)
            p += 1
            continue
        over: Run = ()  # the dims that go on in the indices behind
        made = integer.add(0, 0)
        for atom, k in terms:
            d = same.get(atom, atom)
            run = own.get(d, ())
            rest = run[run.index(d) + 1 :] if d in run else ()
            if rest and rest[0] in own:
                continue  # a part of what its follower has become
            over = over or rest
            kept = 0 if rest else k
            made = integer.add(made, integer.mul(integer.substitute(atom, done), kept))
        inner = prod(d.arg.size for d in over)
        made = integer.mul(integer.add(made, integer.affine(old).const), inner)
        if over:
            made = integer.add(made, done[over[0]])
        at.append(made)
        view.append(n * inner)
        p += 1 + len(over)
    return UOp(Op.INDEX, node.dtype, (done[node.src[0]], *at, done[node.src[-1]]), tuple(view))
