"""Locks that a forked child finds free: whoever held one in the parent is not there."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def new_lock() -> threading.Lock:
    """A lock for what stays whole if its holder vanishes: values that are set in one step."""
    lock = threading.Lock()
    _locks.add(lock)
    return lock


def new_rlock() -> Any:
    """The same, which its holder may take again."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
