"""Where arrays live: BUFFER nodes of the user's graph and the memory behind each."""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from loopwright.tracing import add_donated, forget_donated, refuse_absent, refuse_donated
from loopwright_core.errors import DTypeError, LoopwrightError, fail
from loopwright_core.ir.dtype import DType, from_numpy
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, Extent, UOp, toposort
from loopwright_core.locks import new_lock
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry

HostArray: TypeAlias = np.ndarray[Any, Any]


_locks_are_made = new_lock()


class Storage:
    """The memory of one buffer: the user's array, memory of a device, or none yet.

    `host` is kept in C order. Device memory is made when a kernel first needs it, so that what is
    written to a shared NumPy array before then is seen.
    """

    __slots__ = ("_donated_to", "_memory", "_own_lock", "device", "dtype", "host", "shape")

    def __init__(
        self, dtype: DType, shape: tuple[int, ...], device: str, host: HostArray | None = None
    ) -> None:
        self.dtype, self.shape, self.device, self.host = dtype, shape, device, host
        self._memory: Any = None
        self._donated_to = ""
        self._own_lock: threading.Lock | None = None

    @property
    def _lock(self) -> threading.Lock:
        """Made when it is first taken: most small arrays of a program never need it."""
        lock = self._own_lock
        if lock is None:
            with _locks_are_made:
                lock = self._own_lock = self._own_lock or new_lock()
        return lock

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def settle(self) -> None:
        """Make sure that the memory holds the values: there is nothing to wait for here."""

    def on(self, device: Device) -> Any:
        """The device memory, copied or allocated by the first call."""
        memory = self._memory
        if memory is not None:
            return memory
        with self._lock:
            self._refuse_donated()
            if self._memory is None:
                if self.host is not None:
                    self._memory = device.from_host(self.host)
                else:
                    self._memory = device.allocate(self.n_bytes)
            return self._memory

    def numpy(self) -> HostArray:
        """The elements; without a copy where the memory is the host's."""
        if self.host is not None:
            return self.host
        with self._lock:
            self._refuse_donated()
            memory = self._memory
        if hasattr(type(memory), "__array_interface__"):  # the host's own memory: its bytes, shared
            return np.ndarray(self.shape, self.dtype.numpy, np.asarray(memory))
        out = np.empty(self.shape, self.dtype.numpy)
        if memory is not None:
            registry().device(self.device).to_host(memory, out)
        return out

    def give(self, memory: Any) -> None:
        """Use this device memory, which nobody else uses any more."""
        with self._lock:
            self._memory = memory

    def take(self) -> Any:
        """The device memory, which this buffer gives up: nobody reads it any more."""
        with self._lock:
            memory, self._memory = self._memory, None
            return memory

    def move(self, name: str) -> Storage:
        """The same memory for the function of that name alone: who holds this storage, and not its
        memory yet, is refused from now on. A shared NumPy array stays here too."""
        moved = Storage(self.dtype, self.shape, self.device, self.host)
        with self._lock:
            self._refuse_donated()
            moved._memory, self._memory = self._memory, None
            if self.host is None:
                self._donated_to = name
        return moved

    def share(self, other: Storage) -> None:
        """Let another storage have the same memory."""
        with self._lock:
            self._refuse_donated()
            other._memory = self._memory

    def _refuse_donated(self) -> None:
        if self._donated_to:
            refuse_donated(self._donated_to)


_slots = itertools.count()
_storages: dict[int, Storage] = {}
_nodes: dict[int, weakref.KeyedRef[int, UOp]] = {}


def _drop(
    node: weakref.KeyedRef[int, UOp],
    storages: dict[int, Storage] = _storages,
    nodes: dict[int, weakref.KeyedRef[int, UOp]] = _nodes,
) -> None:
    """Forget the memory of a node that is gone. The tables are arguments: when the interpreter
    ends, names of a module may be gone first."""
    storages.pop(node.key, None)
    nodes.pop(node.key, None)


def buffer_node(dtype: DType, shape: Sequence[Extent]) -> UOp:
    """A BUFFER of its own, with no memory behind it yet."""
    return UOp(Op.BUFFER, dtype, (), Buffer(next(_slots), tuple(shape)))


def attach(node: UOp, memory: Storage) -> UOp:
    """Put memory behind a BUFFER, for as long as the node lives."""
    slot = node.arg.slot
    _storages[slot] = memory
    _nodes[slot] = weakref.KeyedRef(node, _drop, slot)
    return node


def new_buffer(array: HostArray, device: str, copy: bool = False) -> UOp:
    """A BUFFER over a NumPy array, sharing its memory unless `copy` or its layout forbid it."""
    dtype = from_numpy(array.dtype)
    if dtype is None:
        fail(DTypeError, f"no dtype of loopwright is NumPy's {array.dtype}")
    host = np.array(array, order="C", copy=True) if copy else np.ascontiguousarray(array)
    host = host.reshape(array.shape)  # ascontiguousarray makes 0-d arrays 1-d
    node = buffer_node(dtype, array.shape)
    return attach(node, Storage(dtype, tuple(array.shape), device, host))


def empty_buffer(dtype: DType, shape: Sequence[int], device: str) -> UOp:
    """A BUFFER with uninitialised memory, allocated when it is first used."""
    node = buffer_node(dtype, shape)
    return attach(node, Storage(dtype, tuple(shape), device))


def storage(node: UOp) -> Storage:
    """The memory behind a BUFFER. Raises LoopwrightError where it has none."""
    found = _storages.get(node.arg.slot)
    if found is None:
        refuse_absent((node,))
        fail(LoopwrightError, f"the buffer {node!r} has no memory", fix="evaluate it first")
    return found


def known_storage(node: UOp) -> Storage | None:
    """The memory behind a BUFFER, if it has any."""
    return _storages.get(node.arg.slot)


def has_storage(node: UOp) -> bool:
    """Whether memory is behind a BUFFER."""
    return node.arg.slot in _storages


def is_known(node: UOp) -> bool:
    """Whether all that a value is computed from is in memory, as it is not in a traced function."""
    return all(has_storage(leaf) for leaf in toposort([node]) if leaf.op is Op.BUFFER)


def donate(node: UOp, name: str) -> Storage:
    """Take the memory from behind a BUFFER, for the function of that name. Of several threads one
    gets it, the others raise ArgumentError; what they do with it already holds it."""
    storage(node).settle()
    add_donated(node, name)
    found = _storages.pop(node.arg.slot, None)
    if found is None:  # another thread's call was there first
        refuse_donated(name)
    return found.move(name)


def give_back(node: UOp, memory: Storage) -> None:
    """Put memory that was donated behind its BUFFER again: the function did not run."""
    _storages[node.arg.slot] = memory
    forget_donated(node)


def view_as(node: UOp, shape: Sequence[int]) -> UOp:
    """A BUFFER of another shape over the same memory, element for element."""
    other = storage(node)
    other.settle()
    view = Storage(other.dtype, tuple(shape), other.device)
    view.host = None if other.host is None else other.host.reshape(tuple(shape))
    other.share(view)
    return attach(buffer_node(node.dtype, shape), view)


def to_numpy(node: UOp) -> HostArray:
    """The elements of a BUFFER as a NumPy array, without a copy on CPU devices."""
    return storage(node).numpy()
