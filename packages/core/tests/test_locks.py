"""Locks and forks."""

from __future__ import annotations

import os
import threading

import pytest

from loopwright_core.locks import new_lock, new_rlock


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_finds_them_free() -> None:
    """Held by another thread of the parent, they are free in a child, not in the parent."""
    locks = [new_lock(), new_rlock()]
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locks[0], locks[1]:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if all(lock.acquire(timeout=5) for lock in locks) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not any(lock.acquire(blocking=False) for lock in locks)
    done.set()
    thread.join()
