"""Level-3 accesses lane by lane: is every offset inside its array, by interval analysis?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loopwright_core.ir.affine import affine
from loopwright_core.ir.bounds import bounds
from loopwright_core.ir.given import Given, affine_range, given_bounds
from loopwright_core.ir.integer import lt, prove
from loopwright_core.ir.ops import ELEMENTWISE, RAW, Op
from loopwright_core.ir.spec_core import TILES, tile_corners
from loopwright_core.ir.uop import TRUE, Extent, UOp, Variable, const, toposort
from loopwright_core.program.program import Param, Phase


@dataclass(frozen=True, slots=True)
class Access:
    """One lane of a LOAD or STORE, or one corner of a tile.

    It touches `offset` where all of `conditions` hold.

    `loops` are the RANGEs around it. `shape` is the array's.
    """

    statement: UOp
    name: str
    shape: tuple[Extent, ...]
    offset: UOp
    conditions: tuple[UOp, ...]
    loops: tuple[UOp, ...]

    @property
    def size(self) -> UOp:
        """The array's element count in the offset's dtype."""
        dtype = self.offset.dtype
        constant, symbols = 1, []
        for n in self.shape:
            if isinstance(n, Variable):
                symbols.append(UOp(Op.VAR, dtype, (), n))
            else:
                constant *= n
        size = const(constant, dtype)
        for symbol in symbols:
            size = UOp(Op.MUL, dtype, (symbol, size))
        return size

    @property
    def size_text(self) -> str:
        return "*".join(n.name if isinstance(n, Variable) else str(n) for n in self.shape) or "1"


def accesses(phase: Phase, params: Iterable[Param]) -> Iterator[Access]:
    """Every lane of every LOAD and STORE that may be on, in order."""
    arrays = {p.slot: p for p in params}
    loops: list[UOp] = []
    branches: list[UOp] = []
    split = Lanes()
    for node in phase.uops:
        if node.op is Op.RANGE:
            loops.append(node)
        elif node.op is Op.END:
            loops.pop()
        elif node.op is Op.IF:
            branches.append(node.src[0])
        elif node.op is Op.ENDIF:
            branches.pop()
        elif node.op in (Op.LOAD, Op.STORE) or node.op in TILES:
            index = node.src[0]
            storage = index.src[0]
            while storage.op is Op.AFTER:
                storage = storage.src[0]
            if storage.op is Op.BUFFER:
                name, shape = arrays[storage.arg.slot].name, arrays[storage.arg.slot].shape
            else:
                name, shape = storage.arg.name, (storage.arg.size,)
            if node.op in TILES:
                places = [(offset, TRUE) for offset in tile_corners(node)]
            else:
                lanes = (node if node.op is Op.LOAD else node.src[1]).dtype.lanes
                places = split.places(index, lanes)
            for offset, valid in places:
                if bounds(valid)[1] == 0:
                    continue
                conditions = (*branches, *(() if valid is TRUE else (valid,)))
                yield Access(node, name, shape, offset, conditions, tuple(loops))


class Plain:
    """Integer expressions in the words that interval analysis knows, equal to what they were."""

    def __init__(self) -> None:
        self._memo: dict[UOp, UOp] = {}

    def __call__(self, node: UOp) -> UOp:
        memo = self._memo

        def inside(n: UOp) -> bool:
            known = n.op in ELEMENTWISE or n.op in RAW or n.op is Op.RANGE
            return known and n.dtype.lanes == 1 and n not in memo

        for n in toposort((node,), inside):
            if n not in memo:
                memo[n] = _plain(n, tuple([memo[s] for s in n.src])) if inside(n) else n
        return memo[node]


def _plain(old: UOp, src: tuple[UOp, ...]) -> UOp:
    """where(a < b, a, b) is a minimum, where(a < b, b, a) a maximum; C's quotient of numbers
    that are not negative is the floor.
    """
    if old.op is Op.WHERE and old.dtype.is_int and src[0].op is Op.CMPLT:
        if src[0].src == src[1:]:
            return UOp(Op.MIN, old.dtype, src[1:])
        if src[0].src == (src[2], src[1]):
            return UOp(Op.MAX, old.dtype, src[1:])
    elif old.op in (Op.CDIV, Op.CMOD) and bounds(src[0])[0] >= 0 and bounds(src[1])[0] > 0:
        return UOp(Op.FLOORDIV if old.op is Op.CDIV else Op.MOD, old.dtype, src)
    return old.replace(src)


class Lanes:
    """The scalar expression of each lane of a vector value."""

    def __init__(self) -> None:
        self._memo: dict[tuple[UOp, int], UOp] = {}

    def places(self, index: UOp, lanes: int) -> list[tuple[UOp, UOp]]:
        """(offset, valid) of the lanes; of the first and last where all lie in a plain run."""
        offset, valid = index.src[1], index.src[2] if len(index.src) > 2 else TRUE
        is_run = offset.dtype.lanes == 1
        which = range(lanes)
        if is_run and valid.dtype.lanes == 1 and lanes > 1:
            which = range(0, lanes, lanes - 1)
        found = []
        for k in which:
            at = self.lane(offset, k)
            if is_run and k:
                at = UOp(Op.ADD, at.dtype, (at, const(k, at.dtype)))
            found.append((at, self.lane(valid, k)))
        return found

    def lane(self, node: UOp, k: int) -> UOp:
        """Lane k of a value as a scalar; what cannot be split is read by LANE."""
        if node.dtype.lanes == 1:
            return node
        memo = self._memo

        def splits(n: UOp) -> bool:
            elementwise = n.op in ELEMENTWISE or n.op in RAW
            return n.dtype.lanes > 1 and elementwise and (n, k) not in memo

        for n in toposort((node,), splits):
            if n.dtype.lanes == 1 or (n, k) in memo:
                continue
            if n.op is Op.BROADCAST:
                made = n.src[0]
            elif n.op is Op.VECTORIZE:
                made = n.src[k]
            elif n.op in ELEMENTWISE or n.op in RAW:
                src = [s if s.dtype.lanes == 1 else memo[s, k] for s in n.src]
                made = UOp(n.op, n.dtype.scalar, tuple(src), n.arg)
            else:
                made = UOp(Op.LANE, n.dtype.scalar, (n,), k)
            memo[n, k] = made
        return memo[node, k]


def is_proved(access: Access, plain: Plain) -> bool:
    """Whether 0 <= offset < size certainly holds where the access happens."""
    low, high = _reach(access, plain)
    if low > high:
        return True  # the conditions contradict each other: it never happens
    if low < 0:
        return False
    size = access.size
    if size.op is Op.CONST:
        return bool(high < size.arg)
    given = Given([plain(c) for c in access.conditions])
    return prove(lt(plain(access.offset), size), given)


def is_outside(access: Access, plain: Plain) -> bool:
    """Whether the offset is certainly outside, in loops that certainly run."""
    if any(bounds(r.src[0])[0] < 1 for r in access.loops):
        return False
    low, high = _reach(access, plain)
    if low > high:
        return False
    largest = 1
    for n in access.shape:
        largest *= n.hi if isinstance(n, Variable) else n
    return high < 0 or low >= largest


def _reach(access: Access, plain: Plain) -> tuple[int, int]:
    """The interval of the offset under the access's conditions."""
    offset = plain(access.offset)
    given = Given([plain(c) for c in access.conditions])
    low, high = given_bounds(offset, given)
    # Sums and products wrap to the exact result wherever that fits, whatever happens on the way.
    exact_low, exact_high = affine_range(affine(offset), given)
    if int(offset.dtype.min) <= exact_low and exact_high <= int(offset.dtype.max):
        return max(low, exact_low), min(high, exact_high)
    return low, high
