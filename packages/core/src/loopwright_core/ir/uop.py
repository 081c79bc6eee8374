"""The one node type of the IR: immutable and hash-consed, so equal means identical."""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from loopwright_core.errors import DynamicShapeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.locks import new_rlock


@dataclass(frozen=True, slots=True)
class Variable:
    """An extent known at launch, between `lo` and `hi` (both included).

    It equals only itself. Order against ints is decided by the bounds; where they do not decide,
    and in arithmetic, DynamicShapeError is raised.
    """

    name: str
    lo: int
    hi: int

    def __str__(self) -> str:
        return self.name

    def _refuse(self, other: object = None) -> NoReturn:
        fail(
            DynamicShapeError,
            f"this needs the value of {self.name}, a dynamic extent from {self.lo} to {self.hi}, "
            "which is known only when the function runs",
            fix="keep that axis as it is here, or leave it out of dynamic=",
        )

    if not TYPE_CHECKING:  # a mistake wherever types are known

        def __lt__(self, other: int) -> bool:
            if isinstance(other, int) and not self.lo < other <= self.hi:
                return self.hi < other
            self._refuse()

        def __le__(self, other: int) -> bool:
            return self < other + 1

        def __gt__(self, other: int) -> bool:
            return not self <= other

        def __ge__(self, other: int) -> bool:
            return not self < other

        def __add__(self, other: Any) -> Any:
            return self._refuse()

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __add__
        __mod__ = __rmod__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __add__
        __divmod__ = __rdivmod__ = __add__
        __neg__ = __index__ = __int__ = __float__ = _refuse


Extent: TypeAlias = int | Variable


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of one dtype, contiguous in row-major order of `shape`.

    In a user's graph `slot` is unique in the process; in a kernel AST slots are 0, 1, 2, ...
    by first use: loads in evaluation order, a store's target after its value.
    """

    slot: int
    shape: tuple[Extent, ...]


class UOp:
    """`UOp(op, dtype, src, arg)`. Building an existing node returns that very node."""

    __slots__ = (
        "__weakref__",
        "_affine",
        "_bounds",
        "_order",
        "_shape",
        "arg",
        "dtype",
        "op",
        "src",
    )

    op: Op
    dtype: DType
    src: tuple[UOp, ...]
    arg: Any
    _shape: Any
    _affine: Any  # memo of ir/affine.py
    _order: Any  # memo of ir/affine.py
    _bounds: Any  # memo of ir/bounds.py

    def __new__(cls, op: Op, dtype: DType, src: tuple[UOp, ...] = (), arg: Any = None) -> UOp:
        key = (op, dtype, src, arg if type(arg) in _PLAIN else _key(arg))
        ref = _nodes.get(key)
        if ref is not None:
            found = ref()
            if found is not None:
                return found
        node = object.__new__(cls)
        node.op, node.dtype, node.src, node.arg, node._shape = op, dtype, src, arg, None
        node._affine = node._order = node._bounds = None
        made = _Ref(node, _forget)
        made.key = key
        other = _nodes.setdefault(key, made)  # atomic: another thread may be making the same node
        return node if other is made else _kept(node, made)

    def replace(self, src: tuple[UOp, ...]) -> UOp:
        """This node over other sources."""
        return self if src == self.src else UOp(self.op, self.dtype, src, self.arg)

    def toposort(self, gate: Callable[[UOp], bool] | None = None) -> list[UOp]:
        """Every node below and this one, sources first, each once; `gate` False stops descent."""
        return toposort((self,), gate)

    def __repr__(self) -> str:
        arg = "" if self.arg is None else f", {self.arg}"
        return f"<{self.op.name} {self.dtype}{arg} of {len(self.src)}>"

    def __reduce__(self) -> Any:
        raise TypeError("a UOp is not pickled: send the kernel's text form or rebuild it")


_PLAIN = frozenset({int, str, type(None)})


class _Ref(weakref.ref[UOp]):
    __slots__ = ("key",)
    key: Any


_nodes: dict[Any, _Ref] = {}
# Guards every change of an entry whose node has died. Re-entered where collection runs inside it.
_lock = new_rlock()


def _kept(node: UOp, made: _Ref) -> UOp:
    """The node that stays under `made`'s key: another thread's, or this one if that has died."""
    with _lock:
        other = _nodes.get(made.key)
        found = other() if other is not None else None
        if found is not None:
            return found
        _nodes[made.key] = made
        return node


def _forget(ref: Any) -> None:
    key = ref.key
    with _lock:
        if _nodes.get(key) is ref:
            del _nodes[key]


def _key(arg: Any) -> Any:
    """Tells 1 from 1.0 and True, and -0.0 from 0.0; all NaNs of one payload are one."""
    if type(arg) is float:
        return ("f", struct.pack("<d", arg))
    if type(arg) is bool:
        return ("b", arg)
    return arg


def toposort(roots: Iterable[UOp], gate: Callable[[UOp], bool] | None = None) -> list[UOp]:
    """Every node reachable from `roots`, sources first, in a fixed order, each once."""
    seen: set[UOp] = set()
    order: list[UOp] = []
    for root in roots:
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
                continue
            if node in seen:
                continue
            seen.add(node)
            stack.append((node, True))
            if gate is None or gate(node):
                for s in reversed(node.src):
                    if s not in seen:
                        stack.append((s, False))
    return order


def const(value: bool | int | float, dtype: DType) -> UOp:
    """A constant of that dtype; a vector dtype gives the broadcast of it."""
    scalar = dtype.scalar
    if scalar.is_float:
        value = float(value)
    elif scalar.is_bool:
        value = bool(value)
    else:
        value = int(value)
    node = UOp(Op.CONST, scalar, (), value)
    return node if dtype.lanes == 1 else UOp(Op.BROADCAST, dtype, (node,))


def extent_uop(extent: Extent) -> UOp:
    """An int or a Variable as an index value."""
    if isinstance(extent, Variable):
        return UOp(Op.VAR, dt.index, (), extent)
    return UOp(Op.CONST, dt.index, (), int(extent))


TRUE = UOp(Op.CONST, dt.bool_, (), True)
FALSE = UOp(Op.CONST, dt.bool_, (), False)


def rebuild(
    roots: Iterable[UOp], change: Callable[[UOp, tuple[UOp, ...]], UOp | None]
) -> Iterator[UOp]:
    """Each root after one bottom-up walk: `change(old, new sources)`, None keeps the node."""
    roots = tuple(roots)
    done: dict[UOp, UOp] = {}
    for node in toposort(roots):
        src = tuple([done[s] for s in node.src])
        new = change(node, src)
        done[node] = node.replace(src) if new is None else new
    return (done[r] for r in roots)


def substitute(roots: Iterable[UOp], mapping: dict[UOp, UOp]) -> tuple[UOp, ...]:
    """The roots with nodes exchanged; what a replacement contains is not walked again."""
    return tuple(rebuild(roots, lambda node, src: mapping.get(node)))
