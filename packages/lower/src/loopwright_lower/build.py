"""The program under construction: open scopes, and where each value is emitted.

A value goes to the shallowest open scope in which its sources exist; that one rule is common
subexpression elimination, loop-invariant code motion and broadcasting at once.
"""

from __future__ import annotations

from loopwright_core.errors import LoweringError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, const
from loopwright_core.program.program import Local, Loop, Register

# Never listed: they exist everywhere.
LEAVES = frozenset({Op.CONST, Op.VAR, Op.BUFFER, Op.SPECIAL, Op.PARAM})
# What makes a loop worth keeping.
STATEMENTS = frozenset({Op.STORE, Op.TILE_STORE, Op.ASSIGN, Op.PREFETCH, Op.FENCE, Op.BARRIER})
_STRUCTURE = frozenset({Op.RANGE, Op.END, Op.IF, Op.ENDIF, Op.RETURN, *STATEMENTS})


def function_name(name: str, lanes: int) -> str:
    """`exp_f32` of scalars, `exp_f32x8` of eight lanes."""
    return name if lanes == 1 else f"{name}x{lanes}"


class Scope:
    """A loop body or a guarded block (or the whole function) that is being filled."""

    __slots__ = ("assigned", "items", "opener", "owned", "stored")

    def __init__(self, opener: UOp | None) -> None:
        self.opener = opener  # RANGE or IF; None for the function
        self.items: list[UOp] = [] if opener is None else [opener]
        self.owned: list[UOp] = []
        self.assigned: dict[UOp, tuple[UOp, int]] = {}  # registers set inside: state before
        self.stored: dict[UOp, None] = {}  # local arrays written inside


class Builder:
    """Collects one phase's list. `int_dtype` is what loop variables and offsets are; loops,
    arrays and registers are numbered from `first_id`, so that no two of a program are one."""

    def __init__(self, int_dtype: DType, first_id: int = 0) -> None:
        self.int_dtype = int_dtype
        self.scopes: list[Scope] = [Scope(None)]
        self.depth_of: dict[UOp, int] = {}
        self.registers: dict[UOp, tuple[UOp, int]] = {}  # register -> (its value now, depth)
        self.tokens: dict[UOp, UOp] = {}  # local array -> what it was last written by
        self.n_ids = first_id
        self._stores: set[UOp] = set()
        self.has_streamed = False
        self.called: dict[tuple[str, int], None] = {}  # functions in use: name, lanes

    # Values

    def place(self, node: UOp) -> UOp:
        """Emit a value unless it stands in an open scope already."""
        if node in self.depth_of or node.op in LEAVES:
            return node
        depth_of = self.depth_of
        depth = 0
        for s in node.src:
            d = depth_of.get(s)
            if d is None:
                if s.op not in LEAVES:
                    raise LoweringError(f"{s} is used where it is not defined: a bug, report it")
            elif d > depth:
                depth = d
        scope = self.scopes[depth]
        scope.items.append(node)
        scope.owned.append(node)
        depth_of[node] = depth
        return node

    def alu(self, op: Op, dtype: DType, *src: UOp, arg: object = None) -> UOp:
        """Emit an elementwise op; scalars are broadcast where another source is a vector."""
        lanes = max([s.dtype.lanes for s in src])
        if lanes > 1:
            src = tuple([self.broadcast(s, lanes) for s in src])
            dtype = dtype.vec(lanes)
        if op is Op.CALL:
            self.called[str(arg), lanes] = None
            arg = function_name(str(arg), lanes)
        return self.place(UOp(op, dtype, src, arg))

    def broadcast(self, value: UOp, lanes: int) -> UOp:
        """The value in every lane; a vector stays as it is."""
        if value.dtype.lanes == lanes:
            return value
        return self.place(UOp(Op.BROADCAST, value.dtype.vec(lanes), (value,)))

    def new_id(self) -> int:
        self.n_ids += 1
        return self.n_ids - 1

    # Scopes

    @property
    def depth(self) -> int:
        return len(self.scopes) - 1

    @property
    def opener(self) -> UOp | None:
        """What opened the innermost scope."""
        return self.scopes[-1].opener

    def guard_opener(self) -> UOp | None:
        """The innermost open IF: loads must not move out of it."""
        for scope in reversed(self.scopes):
            if scope.opener is not None and scope.opener.op is Op.IF:
                return scope.opener
        return None

    def open_loop(self, extent: UOp, name: str) -> UOp:
        """Open a loop; returns its variable."""
        arg = Loop(self.new_id(), name)
        loop = UOp(Op.RANGE, self.int_dtype, (extent,), arg)
        self._open(loop)
        return loop

    def open_if(self, condition: UOp) -> UOp:
        """Open a guarded block."""
        node = UOp(Op.IF, dt.void, (condition,), self.new_id())
        self._open(node)
        return node

    def _open(self, opener: UOp) -> None:
        self.scopes.append(Scope(opener))
        self.depth_of[opener] = self.depth
        self.scopes[-1].owned.append(opener)

    def close(self) -> None:
        """Close the innermost scope: what it defined is gone, what it set is seen after it."""
        scope = self.scopes.pop()
        assert scope.opener is not None
        for node in scope.owned:
            del self.depth_of[node]
        parent = self.scopes[-1]
        if not any(n.op in STATEMENTS for n in scope.items):
            for register, before in scope.assigned.items():
                self.registers[register] = before
            return  # nothing happens in it: the loop is not emitted
        is_loop = scope.opener.op is Op.RANGE
        end = UOp(Op.END if is_loop else Op.ENDIF, dt.void, (scope.opener,))
        parent.items += scope.items
        parent.items.append(end)
        parent.owned.append(end)
        self.depth_of[end] = self.depth
        for register, before in scope.assigned.items():
            if register in self.depth_of:
                after = UOp(Op.AFTER, register.dtype, (register, end))
                self._touch(register, before)
                self.registers[register] = (self.place(after), self.depth)
            else:
                self.registers.pop(register, None)
        for local in scope.stored:
            self.tokens[local] = end
            parent.stored[local] = None

    def finish(self) -> tuple[UOp, ...]:
        """The list of the whole phase."""
        if len(self.scopes) != 1:
            raise LoweringError("a loop was left open while lowering: this is a bug, report it")
        items = self.scopes[0].items
        needed: set[UOp] = set()
        kept: list[UOp] = []
        for node in reversed(items):
            if node in needed or node.op in _STRUCTURE:
                kept.append(node)
                needed.update(node.src)
        return tuple(reversed(kept))

    # Statements

    def statement(self, node: UOp) -> UOp:
        """Emit something that happens here and now."""
        scope = self.scopes[-1]
        scope.items.append(node)
        if node not in self.depth_of:
            self.depth_of[node] = self.depth
            scope.owned.append(node)
        return node

    def register(self, name: str, initial: UOp) -> UOp:
        """A new variable in the current scope."""
        node = UOp(Op.DEFINE_REG, initial.dtype, (initial,), Register(self.new_id(), name))
        self.statement(node)
        self.registers[node] = (node, self.depth)
        return node

    def read(self, register: UOp) -> UOp:
        """The register's value here."""
        value, depth = self.registers[register]
        if depth == self.depth:
            return value
        opener = self.opener
        assert opener is not None
        self._touch(register, self.registers[register])
        value = self.place(UOp(Op.AFTER, register.dtype, (register, opener)))
        self.registers[register] = (value, self.depth)
        return value

    def _touch(self, register: UOp, before: tuple[UOp, int]) -> None:
        """Remember what the register was when the current scope opened."""
        if register not in self.scopes[-1].owned:
            self.scopes[-1].assigned.setdefault(register, before)

    def assign(self, register: UOp, value: UOp) -> None:
        """Set the register."""
        target = self.read(register)
        node = self.statement(UOp(Op.ASSIGN, register.dtype, (target, value)))
        self.registers[register] = (node, self.depth)

    def local(self, name: str, dtype: DType, size: int, shared: bool = False) -> UOp:
        """A new array for the whole function; `shared`: one for a workgroup, not for a thread."""
        node = UOp(Op.DEFINE_LOCAL, dtype, (), Local(self.new_id(), name, size, shared))
        scope = self.scopes[0]
        scope.items.insert(0, node)
        scope.owned.append(node)
        self.depth_of[node] = 0
        return node

    def seen(self, storage: UOp) -> UOp:
        """The storage as a load here and now must name it.

        Input buffers never change. Local arrays and outputs that are read back are named as of
        their last write and of the innermost scope (an earlier iteration may have written).
        """
        deps: list[UOp] = []
        token = self.tokens.get(storage)
        if token is not None:
            if token in self.depth_of:
                deps.append(token)
            opener = self.opener
            if opener is not None and (storage.op is Op.BUFFER or token not in self.depth_of):
                deps.append(opener)
        guard = self.guard_opener()
        if guard is not None and guard not in deps:
            deps.append(guard)
        if not deps:
            return storage
        return self.place(UOp(Op.AFTER, storage.dtype, (storage, *deps)))

    def barrier(self) -> None:
        """All threads of the workgroup meet here: what they wrote before is seen behind it."""
        self.statement(UOp(Op.BARRIER, dt.void, (), self.new_id()))

    def fence_streamed_stores(self) -> None:
        """Stores around the cache are seen by others only after a fence."""
        if self.has_streamed:
            self.statement(UOp(Op.FENCE, dt.void))

    def store(self, storage: UOp, offset: UOp, value: UOp, valid: UOp | None, hint: object) -> None:
        """Store here and now."""
        self.has_streamed |= hint == "nt"
        src = (storage, offset) if valid is None else (storage, offset, valid)
        where = self.place(UOp(Op.INDEX, storage.dtype, src))
        node = UOp(Op.STORE, dt.void, (where, value), hint)
        if node in self._stores:
            # The same store once more must be another node, or loads behind it would be taken
            # for those before it.
            where = self.place(UOp(Op.INDEX, storage.dtype, (self.seen(storage), *src[1:])))
            node = UOp(Op.STORE, dt.void, (where, value), hint)
        self._stored(storage, node)

    def store_tile(
        self, storage: UOp, offset: UOp, stride: int, value: UOp, shape: tuple[int, int]
    ) -> None:
        """Store a tensor core's tile, rows `stride` elements apart."""
        where = self.place(UOp(Op.INDEX, storage.dtype, (self.seen(storage), offset)))
        src = (where, const(stride, self.int_dtype), value)
        self._stored(storage, UOp(Op.TILE_STORE, dt.void, src, shape))

    def _stored(self, storage: UOp, node: UOp) -> None:
        self._stores.add(node)
        self.statement(node)
        self.tokens[storage] = node
        self.scopes[-1].stored[storage] = None
