"""Memory that several threads touch at once: who wrote and who read each element since when."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.oracle.memory import Array, Cells

_SEVERAL = -1


class Watched(Cells):
    """Cells that remember, for each element, 1 + the thread that wrote and that read it (0: none,
    -1: several read it) since the last `settle`; threads are given as an array beside the offsets.
    """

    __slots__ = ("readers", "writers")

    def __init__(self, name: str, data: Array, is_writable: bool, is_local: bool = False) -> None:
        super().__init__(name, data, is_writable, is_local)
        self.settle()

    def settle(self) -> None:
        """What was written is seen by all threads, what was read may be overwritten."""
        self.writers = np.zeros(self.size if self.is_writable else 0, np.int64)
        self.readers = np.zeros(self.size if self.is_writable else 0, np.int64)

    def read(self, where: str, offsets: Any, thread: Any) -> Any:
        """The elements at these offsets, read by these threads."""
        self.check(where, offsets)
        if self.written is not None and not np.all(self.written[offsets]):
            fail(VerifyError, f"{where} reads {self.name} before anything wrote it")
        if self.is_writable:
            writer = self.writers[offsets]
            self._same(where, "reads", "wrote", offsets, thread, writer)
            reader = self.readers[offsets]
            known = np.where((reader == 0) | (reader == thread + 1), thread + 1, _SEVERAL)
            self.readers[offsets] = known
            self.readers[offsets[self.readers[offsets] != known]] = _SEVERAL
        if self.unread is not None:
            self.unread[offsets] = False
        return self.data[offsets]

    def write(self, where: str, offsets: Any, value: Any, thread: Any, once: bool = True) -> None:
        """Set the elements at these offsets, each by its thread."""
        self.check(where, offsets)
        self._same(where, "writes", "wrote", offsets, thread, self.writers[offsets])
        self.replace(where, offsets, once)
        self._same(where, "writes", "read", offsets, thread, self.readers[offsets])
        self.writers[offsets] = thread + 1
        if np.any(self.writers[offsets] != thread + 1):
            fail(VerifyError, f"{where}: two threads write one element of {self.name}")
        if self.written is not None:
            self.written[offsets] = True
        self.data[offsets] = value

    def _same(self, where: str, does: str, did: str, offsets: Any, thread: Any, other: Any) -> None:
        wrong = (other != 0) & (other != thread + 1)
        if np.any(wrong):
            at = int(np.flatnonzero(wrong)[0])
            fail(
                VerifyError,
                f"{where}: thread {thread.ravel()[at]} {does} {self.name} at "
                f"{offsets.ravel()[at]}, which another thread {did} with no barrier between them",
            )


class Private(Cells):
    """One array a thread: thread t of a batch has its own `size` elements."""

    __slots__ = ()

    def __init__(self, name: str, size: int, kind: Any) -> None:
        super().__init__(name, np.empty(0, kind), True, is_local=True)
        self.size = size

    def allot(self, threads: int) -> None:
        """Uninitialised arrays for a batch of threads."""
        self.data = np.empty(threads * self.size, self.data.dtype)
        self.written = np.zeros(threads * self.size, np.bool_)

    def read(self, where: str, offsets: Any, thread: Any) -> Any:
        """The elements at these offsets of these threads' arrays, threads counted in the batch."""
        self.check(where, offsets)
        assert self.written is not None
        places = thread * self.size + offsets
        if not np.all(self.written[places]):
            fail(VerifyError, f"{where} reads {self.name} before anything wrote it")
        return self.data[places]

    def write(self, where: str, offsets: Any, value: Any, thread: Any, once: bool = True) -> None:
        """Set the elements at these offsets of these threads' arrays."""
        self.check(where, offsets)
        assert self.written is not None
        places = thread * self.size + offsets
        self.written[places] = True
        self.data[places] = value
