"""AMX tile registers: which value lies in which, and the text of the instructions on them.

No compiler allocates these registers for inline assembly, so they are numbered here. A sum keeps
its register to the end of its block, a loaded tile up to the last multiplication that reads it, or
to the end of the loops around that one which the load stands outside of.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright_core.errors import LoweringError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.program.cinline import Storages

_OPENS = frozenset({Op.RANGE, Op.IF})
_CLOSES = frozenset({Op.END, Op.ENDIF})
_OF_TILES = frozenset({Op.TILE_LOAD, Op.TILE_STORE, Op.WMMA})
_REGISTERS = 8

# Sixteen rows of 64 bytes in each register; the rest of the 64 bytes is zero.
_CONFIGURE = """\
#define TILES_BEGIN() \\
    static const struct { \\
        unsigned char palette, row, none[14]; \\
        unsigned short row_bytes[16]; \\
        unsigned char rows[16]; \\
    } tiles = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}}; \\
    __asm__ volatile("ldtilecfg %0" : : "m"(tiles))
#define TILES_END() __asm__ volatile("tilerelease")
"""
_ZERO = '#define TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)\n'
_LOAD = """\
#define TILE_LOAD(t, from, row_bytes) \\
    __asm__ volatile("tileloadd (%0,%1), %%tmm" #t : : "r"(from), "r"(row_bytes + 0LL) : "memory")
"""
_STORE = """\
#define TILE_STORE(to, row_bytes, t) \\
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1)" : : "r"(to), "r"(row_bytes + 0LL) : "memory")
"""


class Tiles:
    """The tile registers of one function. `macros`: the definitions its text needs, by name."""

    def __init__(self, uops: Sequence[UOp], storages: Storages, macros: dict[str, str]) -> None:
        self._storages = storages
        self._number: dict[UOp, int] = {}
        self._macros = macros
        self.is_used = any(u.op in _OF_TILES for u in uops)
        if self.is_used:
            macros["begin"] = _CONFIGURE
            self._allocate(uops)

    def covers(self, node: UOp) -> bool:
        """Whether the node is one of those printed here."""
        if not self.is_used:
            return False
        return node.op in _OF_TILES or self._storages.of(node) in self._number

    def text(self, node: UOp, address: str, row_bytes: str) -> list[str]:
        """The line of a node; `address` and `row_bytes` of one that moves memory."""
        if node.op is Op.DEFINE_REG:
            return [self._zero(node)]
        if node.op is Op.TILE_LOAD:
            return [self._load(node, address, row_bytes)]
        if node.op is Op.TILE_STORE:
            return [self._store(node, address, row_bytes)]
        return [self._multiply(node)] if node.op is Op.WMMA else []  # else in place: no text

    def _zero(self, node: UOp) -> str:
        self._macros["zero"] = _ZERO
        return f"TILE_ZERO({self._number[node]});"

    def _load(self, node: UOp, address: str, row_bytes: str) -> str:
        self._macros["load"] = _LOAD
        return f"TILE_LOAD({self._number[node]}, {address}, {row_bytes});"

    def _store(self, node: UOp, address: str, row_bytes: str) -> str:
        self._macros["store"] = _STORE
        return f"TILE_STORE({address}, {row_bytes}, {self._of(node.src[2])});"

    def _multiply(self, node: UOp) -> str:
        core: TensorCore = node.arg
        name = f"TILE_{core.instruction.upper()}"
        self._macros[name] = (
            f'#define {name}(c, a, b) __asm__ volatile("{core.instruction} '
            '%%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)\n'
        )
        a, b, c = (self._of(s) for s in node.src)
        return f"{name}({c}, {a}, {b});"

    def _of(self, node: UOp) -> int:
        return self._number[self._storages.of(node)]

    def _allocate(self, uops: Sequence[UOp]) -> None:
        ends = self._last_uses(uops)
        until = dict.fromkeys(range(_REGISTERS), -1)  # the position up to which each is taken
        for at, node in enumerate(uops):
            if node not in ends:
                continue
            # The one that is free the longest: a load need not wait for a product that just began.
            register = min(until, key=until.__getitem__)
            if until[register] > at:
                fail(
                    LoweringError,
                    f"more than {_REGISTERS} tile registers are needed at once",
                    fix="Use smaller UPCASTs of the tensor core's axes",
                )
            self._number[node] = register
            until[register] = ends[node]

    def _last_uses(self, uops: Sequence[UOp]) -> dict[UOp, int]:
        """Up to which position each tile is needed."""
        closes = _closing_positions(uops)
        sums = {self._storages.of(u.src[2]) for u in uops if u.op is Op.WMMA}
        open_at: list[int] = []  # positions of the loops and branches around
        around: dict[UOp, tuple[int, ...]] = {}
        ends: dict[UOp, int] = {}
        for at, node in enumerate(uops):
            if node.op in _OPENS:
                open_at.append(at)
            elif node.op in _CLOSES:
                open_at.pop()
            elif node in sums:
                around[node] = tuple(open_at)
                ends[node] = closes[open_at[-1]] if open_at else len(uops)
            elif node.op is Op.TILE_LOAD:
                around[node] = tuple(open_at)
                ends[node] = at
            elif node.op is Op.WMMA:
                for s in node.src[:2]:
                    depth = len(around[s])
                    deeper = len(open_at) > depth
                    ends[s] = max(ends[s], closes[open_at[depth]] if deeper else at)
        return ends


def _closing_positions(uops: Sequence[UOp]) -> dict[int, int]:
    """Where each loop and branch ends, by where it opens."""
    found: dict[int, int] = {}
    open_at: list[int] = []
    for at, node in enumerate(uops):
        if node.op in _OPENS:
            open_at.append(at)
        elif node.op in _CLOSES:
            found[open_at.pop()] = at
    return found
