"""Loading and launching kernels in this process: one call into C with the GIL released."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright_core.errors import ArgumentError, DeviceError, fail
from loopwright_core.program.clayout import param_bytes, scratch_bytes
from loopwright_core.program.program import Program
from loopwright_render_clang import launcher, reuse
from loopwright_render_clang.compile import entry_names
from loopwright_render_clang.shared_object import open_library

ALIGNMENT = 64
_NO_VARIABLES = (ctypes.c_longlong * 1)()


class Memory:
    """Bytes a kernel can read and write: an address that lives as long as its owner."""

    __slots__ = ("address", "n_bytes", "owner")

    def __init__(self, address: int, n_bytes: int, owner: Any) -> None:
        self.address, self.n_bytes, self.owner = address, n_bytes, owner

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """`numpy.asarray(memory)` is its bytes, shared."""
        return {
            "shape": (self.n_bytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }


class Reused(Memory):
    """Memory whose block is used again when the last holder is gone, views included: a NumPy view
    holds the object it was made from."""

    __slots__ = ()

    def __del__(self) -> None:
        try:
            reuse.blocks.give(self.owner)
        except Exception:  # at exit, what this calls may be gone already
            return


def aligned(n: int) -> int:
    """The next multiple of what memory is aligned to."""
    return -(-n // ALIGNMENT) * ALIGNMENT


def allocate(n_bytes: int) -> Memory:
    """Uninitialised memory, 64-byte aligned, of at least one byte."""
    if n_bytes < 0:
        fail(ArgumentError, f"{n_bytes} bytes cannot be allocated")
    kind = Memory if n_bytes < reuse.SMALLEST else Reused
    try:
        if kind is Memory:
            owner = reuse.Block(n_bytes + ALIGNMENT)
        else:
            owner = reuse.blocks.take(reuse.rounded(n_bytes + ALIGNMENT))
    except MemoryError:
        fail(DeviceError, f"no memory for {n_bytes} bytes", fix="use smaller arrays")
    return kind(aligned(owner.address), n_bytes, owner)


def from_host(array: np.ndarray[Any, Any]) -> Memory:
    """The memory of a C-contiguous array itself."""
    if not array.flags.c_contiguous:
        fail(ArgumentError, "the array is not C-contiguous", fix="use numpy.ascontiguousarray")
    return Memory(array.__array_interface__["data"][0], array.nbytes, array)


def to_host(memory: Memory, out: np.ndarray[Any, Any]) -> None:
    """Copy into a C-contiguous array, as many bytes as it has."""
    if not out.flags.c_contiguous:
        fail(ArgumentError, "the array is not C-contiguous", fix="use numpy.ascontiguousarray")
    if out.nbytes > memory.n_bytes:
        fail(ArgumentError, f"{out.nbytes} bytes are wanted, the memory has {memory.n_bytes}")
    if out.nbytes:
        ctypes.memmove(out.__array_interface__["data"][0], memory.address, out.nbytes)


class Scratch(threading.local):
    """Scratch memory, kept for the next launch from the same thread."""

    memory: Memory | None = None

    def get(self, n_bytes: int) -> Memory:
        """At least that many bytes, to be held while they are used: a signal's handler may launch
        something else in between."""
        if self.memory is None or self.memory.n_bytes < n_bytes:
            self.memory = None  # the old bytes go before the new ones come
            self.memory = allocate(n_bytes)
        return self.memory


scratch = Scratch()


class Loaded:
    """A kernel in this process. Keeps the library open for good: unloading gains nothing.

    `entries`: per phase a function, its address and how many threads it runs in. `total`: bytes of
    scratch memory, of which each thread has `stride` and `shared` are the places of arrays.
    """

    __slots__ = (
        "_needs_pool",
        "entries",
        "n_buffers",
        "n_variables",
        "shared",
        "stride",
        "total",
    )

    def __init__(self, binary: bytes, program: Program) -> None:
        library = open_library(binary)
        self.entries: list[tuple[Any, Any, int]] = []
        for name, phase in zip(entry_names(program), program.phases, strict=True):
            function = library[name]
            function.restype = None
            pointer = ctypes.cast(function, ctypes.c_void_p)
            self.entries.append((function, pointer, phase.threads))
        self._needs_pool = any(phase.threads > 1 for phase in program.phases)
        self.n_buffers, self.n_variables = len(program.params), len(program.variables)
        self.stride = scratch_bytes(program)
        total = self.stride * max((p.threads for p in program.phases), default=1)
        # Where each array that the phases share lies, behind what is each thread's own.
        self.shared: list[int] = []
        for p in program.scratch:
            self.shared.append(total)
            total += aligned(param_bytes(p))
        self.total = total

    def bind(self, buffers: Sequence[Any], variables: Sequence[int] = ()) -> Bound:
        """The launch over these buffers and variables, ready to be repeated."""
        if len(buffers) != self.n_buffers or len(variables) != self.n_variables:
            fail(
                ArgumentError,
                f"a kernel of {self.n_buffers} buffers and {self.n_variables} variables was "
                f"launched with {len(buffers)} and {len(variables)}",
            )
        return Bound(self, buffers, variables)


class Bound:
    """One launch with its arguments: calling it runs the kernel. Keeps the buffers alive."""

    __slots__ = ("_addresses", "_buffers", "_loaded", "_pointers", "_run", "_variables")

    def __init__(self, loaded: Loaded, buffers: Sequence[Any], variables: Sequence[int]) -> None:
        self._loaded = loaded
        self._buffers = tuple(buffers)
        self._addresses = [b.address for b in buffers]
        self._pointers = (ctypes.c_void_p * max(len(buffers), 1))(*self._addresses)
        self._variables = (
            (ctypes.c_longlong * len(variables))(*variables) if variables else _NO_VARIABLES
        )
        self._run: Any = launcher.library().loopwright_pool_run if loaded._needs_pool else None

    def __call__(self) -> None:
        loaded, pointers, variables = self._loaded, self._pointers, self._variables
        own = scratch.get(loaded.total) if loaded.total else None
        address = ctypes.c_void_p(None if own is None else own.address)
        if loaded.shared and own is not None:  # another place for each launching thread
            shared = [own.address + offset for offset in loaded.shared]
            both = self._addresses + shared
            pointers = (ctypes.c_void_p * len(both))(*both)
        for function, pointer, threads in loaded.entries:
            if threads == 1:
                function(pointers, variables, 0, address)
            else:
                stride = ctypes.c_longlong(loaded.stride)
                self._run(pointer, pointers, variables, threads, address, stride)
