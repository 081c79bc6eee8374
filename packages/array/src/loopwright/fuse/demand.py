"""At which indices a kernel needs each value, and how often it would compute it there."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Generic, TypeVar

from loopwright_core.ir import dtype as dt
from loopwright_core.ir.movement import Index, source_index
from loopwright_core.ir.ops import MOVEMENT, Op
from loopwright_core.ir.shape import Shape, shape_of
from loopwright_core.ir.uop import Extent, UOp, Variable, extent_uop
from loopwright_core.kernel.dims import Dim

ZERO = extent_uop(0)
Owner = TypeVar("Owner")


def elements(shape: Shape) -> int:
    """How many elements a shape has, at most."""
    return math.prod([n.hi if isinstance(n, Variable) else n for n in shape])


class Nest:
    """Loops around a value, outermost first; `products[p]` is how often loop p - 1's body runs."""

    __slots__ = ("dims", "places", "products")

    def __init__(self, dims: tuple[UOp, ...]) -> None:
        self.dims = dims
        self.places = {dim: p for p, dim in enumerate(dims)}
        self.products = [1]
        for dim in dims:
            self.products.append(self.products[-1] * dim.arg.max_size)


class Demand(Generic[Owner]):
    """One index tuple at which `owner` needs a value; computed `evaluations` times.

    A value is computed in the outermost loop where its index is known: loops inside that do not
    change the index cost nothing, loops outside repeat the work.
    """

    __slots__ = ("depth", "evaluations", "index", "nest", "owner")

    def __init__(self, owner: Owner, index: Index, nest: Nest, depth: int) -> None:
        self.owner, self.index, self.nest, self.depth = owner, index, nest, depth
        self.evaluations = nest.products[depth]

    @property
    def is_in_reduce(self) -> bool:
        """Whether the value is computed anew at each step of a reduce."""
        return any(dim.arg.is_reduce for dim in self.nest.dims[: self.depth])


class Walker(Generic[Owner]):
    """From the demand on a node to the demands on its sources, with the dims of one kernel."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._known: dict[Index, Demand[Owner]] = {}
        self._roots: dict[Shape, Demand[Owner]] = {}
        self._bodies: dict[tuple[UOp, Demand[Owner]], Demand[Owner]] = {}
        self._gathered: dict[tuple[UOp, Index], UOp] = {}
        self._dims: dict[UOp, frozenset[UOp]] = {}
        self._n_dims = 0

    def root(self, shape: Shape) -> Demand[Owner]:
        """Every element of a stored value: one output dim an axis. Equal shapes share dims."""
        found = self._roots.get(shape)
        if found is None:
            index = tuple([ZERO if n == 1 else self._dim(n, False) for n in shape])
            nest = Nest(tuple([i for i in index if i is not ZERO]))
            found = self._roots[shape] = self._demand(index, nest)
        return found

    def is_root(self, demand: Demand[Owner], shape: Shape) -> bool:
        """Whether this is every element of a stored value of that shape, each once."""
        return self._roots.get(shape) is demand

    def sources(self, node: UOp, demand: Demand[Owner]) -> list[tuple[UOp, Demand[Owner]]]:
        """Where the node's sources are needed if it is needed there."""
        op = node.op
        if op in MOVEMENT:
            index, _ = source_index(node, demand.index)
            return [(node.src[0], self._demand(index, demand.nest))]
        if op is Op.REDUCE:
            body = self.body(node, demand)
            return [(s, body) if shape_of(s) else (s, self._scalar(demand)) for s in node.src]
        if op is Op.GATHER:
            return self._gather(node, demand)
        if not demand.index:
            return [(s, demand) for s in node.src]
        return [(s, demand if shape_of(s) else self._scalar(demand)) for s in node.src]

    def body(self, node: UOp, demand: Demand[Owner]) -> Demand[Owner]:
        """Where a REDUCE needs its values: its own dims inside the loops that fix its index."""
        key = (node, demand)
        found = self._bodies.get(key)
        if found is None:
            outer, axes = iter(demand.index), node.arg[1]
            own: list[UOp] = []
            index: list[UOp] = []
            for axis, n in enumerate(_values_shape(node)):
                if axis not in axes:
                    index.append(next(outer))
                elif n == 1:
                    index.append(ZERO)
                else:
                    own.append(self._dim(n, True))
                    index.append(own[-1])
            nest = Nest((*demand.nest.dims[: demand.depth], *own))
            found = self._bodies[key] = self._demand(tuple(index), nest)
        return found

    def _gather(self, node: UOp, demand: Demand[Owner]) -> list[tuple[UOp, Demand[Owner]]]:
        values, indices = node.src
        axis, rank = node.arg, len(shape_of(indices))
        middle = demand.index[axis : axis + rank]
        at = self._demand(middle, demand.nest)
        key = (node, middle)
        element = self._gathered.get(key)
        if element is None:  # an index known at run time: a variable that changes with `middle`
            extent = elements((shape_of(values)[axis],))
            name = f"gathered{len(self._gathered)}"
            element = UOp(Op.VAR, dt.index, (), Variable(name, 0, max(extent - 1, 0)))
            self._gathered[key] = element
            self._dims[element] = self._dims_of(middle)
        index = (*demand.index[:axis], element, *demand.index[axis + rank :])
        return [(values, self._demand(index, demand.nest)), (indices, at)]

    def _scalar(self, demand: Demand[Owner]) -> Demand[Owner]:
        return self._demand((), demand.nest)

    def _demand(self, index: Index, nest: Nest) -> Demand[Owner]:
        found = self._known.get(index)
        if found is None:
            depth = max([nest.places[d] + 1 for d in self._dims_of(index)], default=0)
            found = self._known[index] = Demand(self.owner, index, nest, depth)
        return found

    def _dim(self, size: Extent, is_reduce: bool) -> UOp:
        self._n_dims += 1
        return Dim(f"d{self._n_dims}", size, is_reduce).uop

    def _dims_of(self, index: Iterable[UOp]) -> frozenset[UOp]:
        """The dims that an index changes with."""
        result: set[UOp] = set()
        for part in index:
            if part.op is Op.DIM:
                result.add(part)
            elif part.op is not Op.CONST:
                found = self._dims.get(part)
                if found is None:
                    found = self._dims[part] = self._leaves(part)
                result |= found
        return frozenset(result)

    def _leaves(self, part: UOp) -> frozenset[UOp]:
        result: set[UOp] = set()
        for leaf in part.toposort():
            if leaf.op is Op.DIM:
                result.add(leaf)
            elif leaf.op is Op.VAR and leaf in self._dims:
                result |= self._dims[leaf]
        return frozenset(result)


def _values_shape(node: UOp) -> Shape:
    for s in node.src:
        if shape_of(s):
            return shape_of(s)
    return shape_of(node.src[0])
