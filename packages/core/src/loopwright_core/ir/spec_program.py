"""What is legal at level 3: order, scopes, types and lanes of a program's flat lists."""

from __future__ import annotations

import re
from collections.abc import Callable

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import ELEMENTWISE, RAW, Op
from loopwright_core.ir.spec_access import Access, Plain, accesses, is_outside, is_proved
from loopwright_core.ir.spec_common import (
    check_const,
    check_elementwise,
    is_array_dtype,
    need,
    need_arity,
    refuse,
    volume,
)
from loopwright_core.ir.spec_core import TILES, check_tile, check_wmma, is_held
from loopwright_core.ir.spec_grid import check_barrier, check_grid, check_id
from loopwright_core.ir.spec_registers import check_registers
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import (
    Function,
    Local,
    Loop,
    Param,
    Phase,
    Program,
    Register,
)

LEAVES = frozenset({Op.CONST, Op.VAR, Op.BUFFER, Op.SPECIAL, Op.PARAM})
# Ops without a value, which may stand more than once.
STATEMENTS = frozenset({Op.STORE, Op.TILE_STORE, Op.PREFETCH, Op.BARRIER, Op.FENCE})
# Total ops that a program holds only for targets that list them.
LISTED = RAW | {Op.FLOORDIV, Op.MOD, Op.SHL, Op.SHR, Op.MAX, Op.MIN} | {Op.EXP, Op.LOG, Op.POW}
LISTED |= {Op.SIN, Op.COS, Op.TANH, Op.WMMA, Op.SHUFFLE, *TILES}
_THROUGH_INDEX = frozenset({Op.LOAD, Op.STORE, Op.PREFETCH, *TILES})
_CLOSES = {Op.END: Op.RANGE, Op.ENDIF: Op.IF}
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def verify_program(program: Program, target: Target | None = None) -> None:
    """Every phase is a legal list, and one that `target` (if given) can run.

    Accesses that certainly leave their array are refused; `unproved_accesses` counts those that
    interval analysis cannot decide. Raises VerifyError naming the node and the rule it breaks.
    """
    if not _NAME.match(program.name):
        _refuse(program, f"{program.name!r} is no C identifier")
    if not program.phases:
        _refuse(program, "has no phase")
    for position, p in enumerate(program.arrays):
        if p.slot != position:
            _refuse(program, f"parameter {p.name} has slot {p.slot}, not {position}")
        if not is_array_dtype(p.dtype):
            _refuse(program, f"parameter {p.name} is {p.dtype}")
    if any(not p.is_output or not all(type(n) is int for n in p.shape) for p in program.scratch):
        _refuse(program, "has scratch that is only read, or of no size")
    names = [p.name for p in program.arrays] + [v.name for v in program.variables]
    if len(set(names)) != len(names):
        _refuse(program, "two parameters have one name")
    _check_functions(program, target)
    ids: dict[tuple[Op, int], UOp] = {}
    plain = Plain()
    for phase in program.phases:
        _Checker(program, phase, target, ids).run()
        check_registers(phase)
        check_grid(phase, target)
        for access in accesses(phase, program.arrays):
            if is_outside(access, plain):
                refuse(
                    access.statement,
                    f"certainly leaves {access.name}, which has {access.size_text} elements",
                    phase.name,
                )


def _check_functions(program: Program, target: Target | None) -> None:
    """Each is a straight list of values that ends in RETURN and calls only what stands before."""
    known: dict[str, Function] = {}
    for function in program.functions:
        if not _NAME.match(function.name) or function.name in known:
            _refuse(program, f"function {function.name!r} has no name of its own")
        checker = _Checker(program, Phase(function.name, function.uops), target, {})
        checker.functions, checker.arguments = dict(known), function.params
        for node in function.uops[:-1]:
            fine = node.op in ELEMENTWISE or node.op in RAW or node.op in _IN_FUNCTIONS
            need(fine, node, f"{node.op.name} stands in a function")
        is_last = bool(function.uops) and function.uops[-1].op is Op.RETURN
        if not is_last:
            _refuse(program, f"function {function.name} does not end in RETURN")
        checker.run()
        known[function.name] = function


_IN_FUNCTIONS = frozenset({Op.CALL, Op.BROADCAST, Op.VECTORIZE, Op.LANE})


def unproved_accesses(program: Program) -> int:
    """How many loads and stores interval analysis cannot prove to stay inside their array."""
    return len(unproved(program))


def unproved(program: Program) -> list[Access]:
    """The accesses that `unproved_accesses` counts."""
    found = [a for phase in program.phases for a in accesses(phase, program.arrays)]
    plain = Plain()
    return [a for a in found if not is_proved(a, plain)]


def _refuse(program: Program, rule: str) -> None:
    fail(VerifyError, rule, where=f"program {program.name}")


class _Checker:
    """One walk over a phase: what is defined, in which block, and each node's own rules."""

    def __init__(
        self,
        program: Program,
        phase: Phase,
        target: Target | None,
        ids: dict[tuple[Op, int], UOp],
    ) -> None:
        self.program, self.phase, self.target, self.ids = program, phase, target, ids
        self.params: dict[int, Param] = {p.slot: p for p in program.arrays}
        self.blocks: list[tuple[UOp | None, list[UOp]]] = [(None, [])]
        self.visible: set[UOp] = set()
        self.ever: set[UOp] = set()
        self.leaves: set[UOp] = set()
        self.functions = {f.name: f for f in program.functions}
        self.arguments: tuple[DType, ...] = ()

    def run(self) -> None:
        for node in self.phase.uops:
            if node.op in LEAVES:
                refuse(node, "a leaf is not listed", self.phase.name)
            if node in self.ever and node.op not in STATEMENTS:
                refuse(node, "stands twice", self.phase.name)
            for position, s in enumerate(node.src):
                self.source(node, position, s)
            self.check(node)
            self.structure(node)
        opener = self.blocks[-1][0]
        if opener is not None:
            refuse(opener, "is never closed", self.phase.name)

    def source(self, node: UOp, position: int, s: UOp) -> None:
        """A source is a leaf, or stands before in a block that is still open."""
        if s.op is Op.INDEX:
            fine = node.op in _THROUGH_INDEX and position == 0
            need(fine, node, "uses an INDEX as a value")
        elif base_of(s).op in (Op.BUFFER, Op.DEFINE_LOCAL):
            fine = node.op in (Op.INDEX, Op.AFTER) and position == 0
            need(fine, node, "uses memory as a value")
        if s.op in LEAVES:
            if s not in self.leaves:
                self.leaf(s)
                self.leaves.add(s)
            return
        if s not in self.ever:
            refuse(node, f"uses {s!r}, which does not stand before it", self.phase.name)
        if s.op in STATEMENTS or s.op in _CLOSES or s.op is Op.IF:
            after = node.op is Op.AFTER and position > 0
            fine = after or (node.op is Op.ENDIF and s.op is Op.IF)
            need(fine, node, f"uses {s.op.name} as a value")
            return
        if s in self.visible or node.op in _CLOSES or (node.op is Op.AFTER and position > 0):
            return
        # The register or array itself is what such a node names, not the place of the ASSIGN.
        named = node.op in (Op.AFTER, Op.ASSIGN, Op.INDEX) and position == 0
        if not (named and base_of(s) in self.visible):
            refuse(node, f"uses {s!r} outside the block that computes it", self.phase.name)

    def leaf(self, node: UOp) -> None:
        need(node.dtype is not dt.index, node, "there is no dtype index in a program")
        need_arity(node, 0)
        if node.op is Op.CONST:
            check_const(node)
        elif node.op is Op.PARAM:
            inside = type(node.arg) is int and 0 <= node.arg < len(self.arguments)
            need(inside, node, "is no argument of a function")
            need(self.arguments[node.arg] is node.dtype, node, "has its argument's dtype")
        elif node.op is Op.VAR:
            need(node.dtype in _SIZES, node, "a variable is int32 or int64")
            need(node.arg in self.program.variables, node, "is no variable of the program")
        elif node.op is Op.BUFFER:
            param = self.params.get(node.arg.slot)
            if param is None:
                refuse(node, f"slot {node.arg.slot} is no parameter", self.phase.name)
            need(node.dtype is param.dtype, node, f"parameter {param.name} is {param.dtype}")
            same = volume(node.arg.shape) == volume(param.shape)
            need(same, node, f"parameter {param.name} has shape {param.shape}")
        else:
            self.special(node)

    def special(self, node: UOp) -> None:
        fine = isinstance(node.arg, tuple) and len(node.arg) == 2
        need(fine, node, "arg is (name, size)")
        need(node.dtype in _SIZES, node, "an id is int32 or int64")
        if node.arg[0] == "thread":
            threads = self.phase.threads
            need(threads > 1, node, "the phase has one thread")
            need(node.arg[1] == threads, node, f"the phase has {threads} threads")
        else:
            need(self.phase.global_size is not None, node, "the phase has no grid")
            check_id(self.phase, node)

    def structure(self, node: UOp) -> None:
        """Open and close blocks; a node is visible to the end of its block."""
        if node.op in _CLOSES:
            opener, inside = self.blocks.pop() if len(self.blocks) > 1 else (None, [])
            if opener is None or node.src[0] is not opener:
                refuse(node, "closes what was not opened last", self.phase.name)
            self.visible.difference_update(inside)
        elif node.op in (Op.RANGE, Op.IF):
            self.blocks.append((node, []))
        self.ever.add(node)
        self.visible.add(node)
        self.blocks[-1][1].append(node)

    def check(self, node: UOp) -> None:
        op = node.op
        if self.target is not None and not self.target.computes_in_vectors:
            self.wide(node)
        need(node.dtype is not dt.index, node, "there is no dtype index in a program")
        if op in ELEMENTWISE or op in RAW:
            check_elementwise(node)
            if op is Op.CAST:
                narrows = node.src[0].dtype.is_float and not node.dtype.is_float
                need(not narrows, node, "CAST takes no float to an integer or bool: FTOI does")
            self.allowed(node)
            return
        if op is Op.CALL:
            called = self.functions.get(node.arg)
            if called is None:
                refuse(node, f"calls {node.arg!r}, which stands nowhere before", self.phase.name)
            need(called.params == tuple(s.dtype for s in node.src), node, "other arguments")
            need(called.dtype is node.dtype, node, f"{node.arg} returns {called.dtype}")
            return
        rule = _RULES.get(op)
        if rule is None:
            around = [opener for opener, _ in self.blocks if opener is not None]
            if op is Op.WMMA:
                self.listed(node)
                check_wmma(node, self.phase, self.target, around)
                return
            if op in (Op.SHUFFLE, Op.BARRIER):
                fine = self.phase.local_size is not None
                need(fine, node, f"{op.name} stands only in a phase with workgroups")
                if op is Op.BARRIER:
                    check_barrier(node, around)
                return
            refuse(node, f"{op.name} is no op of level 3", self.phase.name)
        rule(node)
        self.listed(node)
        if op in (Op.STORE, Op.TILE_STORE):
            self.stored(node)
        elif op is Op.DEFINE_LOCAL and node.arg.shared:
            fine = self.phase.local_size is not None and self.blocks[-1][0] is None
            need(fine, node, "shared memory is declared at the start of a phase with workgroups")
        key = node.arg.id if isinstance(node.arg, Loop | Local | Register) else None
        if key is not None and op in (Op.RANGE, Op.DEFINE_LOCAL, Op.DEFINE_REG):
            first = self.ids.setdefault((op, key), node)
            need(first is node, node, f"another {op.name} of the program has id {key}")

    def wide(self, node: UOp) -> None:
        """Vectors for memory alone are loaded, taken apart, put together and stored; what a
        thread holds for a tensor core is also kept in registers."""
        target = self.target
        assert target is not None
        for d in (node.dtype, *[s.dtype for s in node.src]):
            if d.lanes > 1:
                held = node.op in _HOLDS and is_held(d, target)
                fine = node.op in _MOVES or held
                need(fine, node, f"{target.name} does not compute in vectors")
                fits = d.lanes * d.itemsize <= max(target.vector_bytes, default=0)
                need(fits, node, f"{target.name} has no vector of {d.lanes} x {d.scalar}")

    def allowed(self, node: UOp) -> None:
        """The target lists the op and computes in its dtypes."""
        target = self.target
        if target is None:
            return
        self.listed(node)
        if node.op is Op.FMA:
            need(target.has_fma, node, f"{target.name} has no fused multiply-add")
        moves = node.op in (Op.CAST, Op.BITCAST, Op.WHERE)
        for d in (node.dtype.scalar, *[s.dtype.scalar for s in node.src]):
            fine = d.is_bool or d in target.arith or (moves and d in target.storage)
            need(fine, node, f"{target.name} does not compute in {d}")

    def listed(self, node: UOp) -> None:
        """The target lists an op that not every target has."""
        if self.target is not None and node.op in LISTED:
            fine = node.op in self.target.ops
            need(fine, node, f"{self.target.name} does not list {node.op.name}")

    def stored(self, node: UOp) -> None:
        storage = base_of(node.src[0].src[0])
        if storage.op is Op.BUFFER:
            param = self.params[storage.arg.slot]
            need(param.is_output, node, f"stores into {param.name}, which is only read")


_SIZES = (dt.int32, dt.int64)
# What happens to a vector that is for memory alone.
_MOVES = frozenset({Op.LOAD, Op.STORE, Op.LANE, Op.VECTORIZE, Op.BROADCAST})
_HOLDS = frozenset({Op.DEFINE_REG, Op.ASSIGN, Op.AFTER, Op.WMMA})


def base_of(node: UOp) -> UOp:
    """The DEFINE_REG, DEFINE_LOCAL or BUFFER that a chain of AFTER and ASSIGN names."""
    while node.op in (Op.AFTER, Op.ASSIGN):
        node = node.src[0]
    return node


def _range(node: UOp) -> None:
    need_arity(node, 1)
    need(isinstance(node.arg, Loop), node, "arg is a Loop")
    need(node.dtype in _SIZES, node, "a loop variable is int32 or int64")
    need(node.src[0].dtype is node.dtype, node, f"its extent is {node.src[0].dtype}")


def _if(node: UOp) -> None:
    need_arity(node, 1)
    need(node.src[0].dtype is dt.bool_, node, "a condition is one bool")


def _close(node: UOp) -> None:
    need_arity(node, 1)
    opens = _CLOSES[node.op]
    need(node.src[0].op is opens, node, f"closes a {node.src[0].op.name}, not {opens.name}")


def _index(node: UOp) -> None:
    need(len(node.src) in (2, 3), node, "sources are storage, offset and perhaps valid")
    storage, offset = base_of(node.src[0]), node.src[1]
    named = storage.op in (Op.BUFFER, Op.DEFINE_LOCAL)
    need(named, node, f"points into a {storage.op.name}, which is no memory")
    need(node.dtype.scalar is storage.dtype.scalar, node, f"calls {storage.dtype} {node.dtype}")
    need(offset.dtype.scalar in _SIZES, node, f"an offset is int32 or int64, not {offset.dtype}")
    if len(node.src) == 3:
        need(node.src[2].dtype.is_bool, node, f"valid is {node.src[2].dtype}, not bool")


def _check_lanes(node: UOp, index: UOp, dtype: DType) -> None:
    need(index.op is Op.INDEX, node, f"goes through a {index.op.name}, not an INDEX")
    element = index.dtype.scalar
    need(dtype.scalar is element, node, f"{dtype} is not the memory's {element}")
    for s in index.src[1:]:
        fits = s.dtype.lanes in (1, dtype.lanes)
        need(fits, node, f"{dtype.lanes} lanes through an INDEX of {s.dtype.lanes}")


def _load(node: UOp) -> None:
    need(len(node.src) in (1, 2), node, "sources are an INDEX and perhaps a fill")
    _check_lanes(node, node.src[0], node.dtype)
    masked = len(node.src[0].src) == 3
    need(masked == (len(node.src) == 2), node, "a fill is present exactly when valid is")
    if masked:
        need(node.src[1].dtype is node.dtype, node, f"the fill is {node.src[1].dtype}")


def _store(node: UOp) -> None:
    need_arity(node, 2)
    need(node.dtype is dt.void, node, "a STORE has no value")
    need(node.arg in (None, "nt"), node, f"there is no cache hint {node.arg!r}")
    _check_lanes(node, node.src[0], node.src[1].dtype)


def _local(node: UOp) -> None:
    need_arity(node, 0)
    need(isinstance(node.arg, Local), node, "arg is a Local")
    need(is_array_dtype(node.dtype), node, "an array has a scalar array dtype")
    need(type(node.arg.size) is int and node.arg.size > 0, node, "its size is an int from 1")


def _register(node: UOp) -> None:
    need_arity(node, 1)
    need(isinstance(node.arg, Register), node, "arg is a Register")
    need(node.src[0].dtype is node.dtype, node, f"is set to {node.src[0].dtype} at first")


def _assign(node: UOp) -> None:
    need_arity(node, 2)
    register = base_of(node.src[0])
    need(register.op is Op.DEFINE_REG, node, f"assigns to a {register.op.name}, no register")
    for d in (register.dtype, node.src[1].dtype):
        need(d is node.dtype, node, f"assigns {node.src[1].dtype} to {register.dtype}")


def _after(node: UOp) -> None:
    need(len(node.src) > 1, node, "comes after nothing")
    base = base_of(node.src[0])
    named = base.op in (Op.DEFINE_REG, Op.DEFINE_LOCAL, Op.BUFFER)
    need(named, node, f"is a {base.op.name} later: neither memory nor register")
    need(node.dtype is base.dtype, node, f"calls {base.dtype} {node.dtype}")


def _broadcast(node: UOp) -> None:
    need_arity(node, 1)
    s = node.src[0].dtype
    fine = s.lanes == 1 and node.dtype.lanes > 1 and node.dtype.scalar is s
    need(fine, node, f"makes {node.dtype} of {s}")


def _vectorize(node: UOp) -> None:
    fits = len(node.src) == node.dtype.lanes > 1
    need(fits, node, f"has {len(node.src)} sources for {node.dtype.lanes} lanes")
    for s in node.src:
        need(s.dtype is node.dtype.scalar, node, f"takes {s.dtype} as a lane of {node.dtype}")


def _lane(node: UOp) -> None:
    need_arity(node, 1)
    s = node.src[0].dtype
    need(node.dtype is s.scalar, node, f"takes {node.dtype} out of {s}")
    inside = type(node.arg) is int and 0 <= node.arg < s.lanes
    need(inside, node, f"takes lane {node.arg} of {s.lanes}")


def _prefetch(node: UOp) -> None:
    need_arity(node, 1)
    need(node.src[0].op is Op.INDEX, node, "prefetches through an INDEX")


_RULES: dict[Op, Callable[[UOp], None]] = {
    Op.RETURN: lambda node: need_arity(node, 1),
    Op.RANGE: _range,
    Op.END: _close,
    Op.IF: _if,
    Op.ENDIF: _close,
    Op.INDEX: _index,
    Op.LOAD: _load,
    Op.STORE: _store,
    Op.TILE_LOAD: check_tile,
    Op.TILE_STORE: check_tile,
    Op.DEFINE_LOCAL: _local,
    Op.DEFINE_REG: _register,
    Op.ASSIGN: _assign,
    Op.AFTER: _after,
    Op.BROADCAST: _broadcast,
    Op.VECTORIZE: _vectorize,
    Op.LANE: _lane,
    Op.PREFETCH: _prefetch,
    Op.FENCE: lambda node: need_arity(node, 0),
}
