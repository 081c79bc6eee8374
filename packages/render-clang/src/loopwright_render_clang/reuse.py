"""Freed blocks of memory, kept for the next allocation of their size.

Memory that is new costs a page fault every few kilobytes, often more than the kernel that fills it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict, deque

import numpy as np

# Smaller blocks are reused by the C library already.
SMALLEST = 128 << 10
# At most this much is kept, and an eighth of the machine's memory.
MOST = 1 << 30


class Block:
    """Bytes of the heap: a NumPy array and where it begins, asked for once."""

    __slots__ = ("address", "array", "n_bytes")

    def __init__(self, n_bytes: int) -> None:
        self.array = np.empty(n_bytes, np.uint8)
        self.address: int = self.array.__array_interface__["data"][0]
        self.n_bytes = n_bytes


class Blocks:
    """Blocks that nobody uses, at most `most` bytes; the longest unused go first.

    `give` is called by finalizers, which may run at any point of any thread, also within `take`:
    it takes no lock and only adds to an inbox, which `take` empties.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._inbox: deque[Block] = deque()
        self._kept: OrderedDict[int, Block] = OrderedDict()  # by address
        self._by_size: dict[int, list[int]] = {}
        self._bytes = 0

    def take(self, n_bytes: int) -> Block:
        """A block of so many bytes. Raises MemoryError."""
        with self._lock:
            self._sort()
            addresses = self._by_size.get(n_bytes)
            if addresses:
                return self._remove(addresses[-1])
        try:
            return Block(n_bytes)
        except MemoryError:
            self.clear()
            return Block(n_bytes)

    def give(self, block: Block) -> None:
        """Take back a block that nobody uses any more."""
        if block.n_bytes <= self._most:
            self._inbox.append(block)
            if len(self._inbox) > 64 and self._lock.acquire(blocking=False):
                try:  # nobody allocates: what is too much goes now
                    self._sort()
                finally:
                    self._lock.release()

    def clear(self) -> None:
        """Let every block go."""
        with self._lock:
            self._inbox.clear()
            self._kept.clear()
            self._by_size.clear()
            self._bytes = 0

    @property
    def n_bytes(self) -> int:
        """How much is kept."""
        with self._lock:
            self._sort()
            return self._bytes

    def _sort(self) -> None:
        while self._inbox:
            block = self._inbox.popleft()
            self._kept[block.address] = block
            self._by_size.setdefault(block.n_bytes, []).append(block.address)
            self._bytes += block.n_bytes
        while self._bytes > self._most:
            self._remove(next(iter(self._kept)))

    def _remove(self, address: int) -> Block:
        block = self._kept.pop(address)
        same = self._by_size[block.n_bytes]
        same.remove(address)
        if not same:
            del self._by_size[block.n_bytes]
        self._bytes -= block.n_bytes
        return block


def rounded(n_bytes: int) -> int:
    """The size of the block for so many bytes: sizes an eighth apart share theirs."""
    step = max(4096, 1 << max(0, n_bytes.bit_length() - 4))
    return -(-n_bytes // step) * step


def _most() -> int:
    try:
        return min(MOST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 8)
    except (ValueError, OSError, AttributeError):
        return MOST // 4


blocks = Blocks(_most())


def _renew() -> None:
    """A forked child has one thread: whoever held the lock in the parent is not there."""
    global blocks
    blocks = Blocks(_most())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
