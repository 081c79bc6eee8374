"""The random words of lw.random in NumPy and in Python's own integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright.api.threefry import DRAW

Host = np.ndarray[Any, Any]


def block(key: Any, low: Any, high: Any) -> tuple[Host, Host]:
    """Threefry-2x32 in NumPy, written with key words of 32 bits as Python integers."""
    k0, k1 = (int(k) for k in key)
    schedule = [k0, k1, k0 ^ k1 ^ 0x1BD11BDA]
    x, y = np.asarray(low, np.uint64), np.asarray(high, np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    x, y = (x + np.uint64(k0)) & mask, (y + np.uint64(k1)) & mask
    for four in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[four % 2]:
            x = (x + y) & mask
            y = (((y << np.uint64(turn)) | (y >> np.uint64(32 - turn))) & mask) ^ x
        x = (x + np.uint64(schedule[(four + 1) % 3])) & mask
        y = (y + np.uint64(schedule[(four + 2) % 3] + four + 1)) & mask
    return x, y


def host_words(key: Any, index: Any, use: int = DRAW) -> tuple[Host, Host]:
    """The block of each place."""
    at = np.asarray(index, np.uint64)
    return block(key, at & np.uint64(0xFFFFFFFF), (at >> np.uint64(32)) | np.uint64(use << 28))


def host_wide(key: Any, index: Any, use: int = DRAW) -> Host:
    low, high = host_words(key, index, use)
    return low | (high << np.uint64(32))


def host_below(n: int, words: Host, more: Host) -> list[int]:
    """The integers of random fractions in Python's own integers."""
    if n & (n - 1) == 0 or n <= 2**32:
        return [int(w) * n >> 64 for w in words]
    return [((int(w) << 64 | int(m)) * n) >> 128 for w, m in zip(words, more)]
