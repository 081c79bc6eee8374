"""Memory the interpreter reads and writes: checked arrays by slot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Extent, UOp, Variable

Array = np.ndarray[Any, Any]


def size_of(extent: Extent, variables: Mapping[str, int]) -> int:
    """The extent's value at this launch."""
    if not isinstance(extent, Variable):
        return int(extent)
    value = variables.get(extent.name)
    if value is None:
        fail(VerifyError, f"variable {extent.name} has no value", fix="pass it in `variables`")
    if not extent.lo <= value <= extent.hi:
        bounds = f"{extent.lo}..{extent.hi}"
        fail(VerifyError, f"variable {extent.name} is {value}, outside {bounds}")
    return value


def shape_at(shape: tuple[Extent, ...], variables: Mapping[str, int]) -> tuple[int, ...]:
    """A shape's value at this launch."""
    return tuple([size_of(n, variables) for n in shape])


def flat(node: UOp, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Array:
    """The 1-D array behind a BUFFER node, sharing memory with what the caller gave."""
    slot = node.arg.slot
    found = buffers.get(slot)
    if found is None:
        fail(VerifyError, f"buffer {slot} was not given", fix="pass one array per slot")
    if found.dtype != node.dtype.numpy:
        fail(VerifyError, f"buffer {slot} is {found.dtype}, the program says {node.dtype}")
    n = int(np.prod(shape_at(node.arg.shape, variables), dtype=np.int64))
    if found.size != n:
        fail(VerifyError, f"buffer {slot} has {found.size} elements, the program says {n}")
    if not found.flags.c_contiguous:
        fail(VerifyError, f"buffer {slot} is not contiguous", fix="np.ascontiguousarray")
    return found.reshape(-1)


def last_uses(order: Sequence[UOp], keep: Iterable[UOp]) -> dict[UOp, list[UOp]]:
    """For each node of a walk, the values that nothing behind it needs; `keep` are needed to
    the end. An INDEX is no value of its own: who uses it uses its sources.
    """
    last: dict[UOp, UOp] = {}
    for node in order:
        if node.op is Op.INDEX:
            continue
        for s in node.src:
            for used in s.src if s.op is Op.INDEX else (s,):
                last[used] = node
    for node in keep:
        last.pop(node, None)
    done: dict[UOp, list[UOp]] = {}
    for used, user in last.items():
        done.setdefault(user, []).append(used)
    return done


class Cells:
    """One array of a level-3 program, with every access checked.

    `written` marks the initialised elements of a local array (None: all are). `owner` is, for
    buffers that several threads write, 1 + the thread that wrote each element (0: none yet).
    `unread` marks what was written to an output and not read since: nothing may write it again,
    but a store to a computed place.
    """

    __slots__ = ("data", "is_writable", "name", "owner", "size", "unread", "written")

    def __init__(self, name: str, data: Array, is_writable: bool, is_local: bool = False) -> None:
        self.name, self.data, self.is_writable = name, data, is_writable
        self.size = int(data.size)
        self.written: Array | None = np.zeros(self.size, np.bool_) if is_local else None
        self.owner: Array | None = None
        is_output = is_writable and not is_local
        self.unread: Array | None = np.zeros(self.size, np.bool_) if is_output else None

    def settle(self) -> None:
        """Between phases nothing is left to remember of who touched what."""
        self.owner = None

    def forget(self) -> None:
        """A local array as it is where it is declared: uninitialised."""
        if self.written is not None:
            self.written[:] = False

    def check(self, where: str, offsets: Any) -> None:
        """Raises VerifyError where an offset lies outside the array."""
        if ((offsets < 0) | (offsets >= self.size)).any():
            reached = np.atleast_1d(offsets).tolist()
            fail(
                VerifyError,
                f"{where} reaches offset {reached} of {self.name}, which has {self.size} elements",
            )

    def read(self, where: str, offsets: Any, thread: int) -> Any:
        """The elements at one offset or an array of them."""
        self.check(where, offsets)
        if self.written is not None and not np.all(self.written[offsets]):
            fail(VerifyError, f"{where} reads {self.name} at {offsets} before anything wrote it")
        if self.owner is not None:
            writer = self.owner[offsets]
            if np.any((writer != 0) & (writer != thread + 1)):
                fail(
                    VerifyError,
                    f"{where}: thread {thread} reads {self.name} at {offsets}, "
                    "which another thread writes in the same phase",
                )
        if self.unread is not None:
            self.unread[offsets] = False
        return self.data[offsets]

    def replace(self, where: str, offsets: Any, once: bool) -> None:
        """Raises VerifyError where a write (`once`: not to a computed place) loses another."""
        if not self.is_writable:
            fail(VerifyError, f"{where} writes {self.name}, a parameter that is only read")
        if self.unread is None:
            return
        if once and np.any(self.unread[offsets]):
            fail(
                VerifyError,
                f"{where} writes {self.name} at {offsets}, which holds a result nobody read",
            )
        self.unread[offsets] = True

    def write(self, where: str, offsets: Any, value: Any, thread: int, once: bool = True) -> None:
        """Set the elements at one offset or an array of them."""
        self.check(where, offsets)
        self.replace(where, offsets, once)
        if self.written is not None:
            self.written[offsets] = True
        if self.owner is not None:
            writer = self.owner[offsets]
            if np.any((writer != 0) & (writer != thread + 1)):
                fail(
                    VerifyError,
                    f"{where}: thread {thread} writes {self.name} at {offsets}, "
                    "which another thread writes too",
                )
            self.owner[offsets] = thread + 1
        self.data[offsets] = value
