"""Memory behind arrays: shared where it can be, freed with the last holder, never written."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import memory
from loopwright_core.errors import LoopwrightError
from loopwright_core.ir import dtype as dt


def test_new_buffer_shares_or_copies() -> None:
    """A C-contiguous array is shared; `copy` and other layouts are copies."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.shares_memory(memory.to_numpy(memory.new_buffer(x, "cpu")), x)
    assert not np.shares_memory(memory.to_numpy(memory.new_buffer(x, "cpu", copy=True)), x)
    turned = memory.to_numpy(memory.new_buffer(x.T, "cpu"))
    np.testing.assert_array_equal(x.T, turned)


def test_every_buffer_is_its_own() -> None:
    """Two buffers over one array are two nodes: slots are unique in the process."""
    x = np.zeros(3, np.int8)
    assert memory.new_buffer(x, "cpu") is not memory.new_buffer(x, "cpu")


def test_zero_dimensions_stay() -> None:
    """A 0-d array stays 0-d."""
    node = memory.new_buffer(np.array(5.0), "cpu")
    assert memory.to_numpy(node).shape == ()
    assert node.arg.shape == ()


def test_memory_dies_with_its_node() -> None:
    """When nothing refers to a BUFFER any more, its storage is forgotten."""
    node = memory.new_buffer(np.zeros(8), "cpu")
    slot = node.arg.slot
    assert memory.has_storage(node) and slot in memory._storages
    del node
    gc.collect()
    assert slot not in memory._storages


def test_buffers_without_memory_say_so() -> None:
    """Asking for the memory of a node that has none is a clear error."""
    with pytest.raises(LoopwrightError, match="no memory"):
        memory.storage(memory.buffer_node(dt.float32, (2,)))


def test_view_as_shares_memory() -> None:
    """A reshaped result is the same memory."""
    x = np.arange(6, dtype=np.int32)
    view = memory.view_as(memory.new_buffer(x, "cpu"), (2, 3))
    assert np.shares_memory(memory.to_numpy(view), x)
    y = lw.asarray(x, device="cpu") + 1
    lw.evaluate(y)
    reshaped = lw.reshape(y, (3, 2))
    assert np.shares_memory(reshaped.numpy(), y.numpy())


@pytest.mark.parametrize("dtype", [d.name for d in dt.ARRAY_DTYPES])
def test_results_come_without_a_copy(dtype: str) -> None:
    """Results of a CPU device are views of its memory, in every dtype, and read-only."""
    x = np.zeros(5, dt.BY_NAME[dtype].numpy)
    y = lw.asarray(x, device="cpu")[::-1]
    first, second = y.numpy(), y.numpy()
    assert first.dtype == x.dtype
    assert np.shares_memory(first, second)
    assert not first.flags.writeable


def test_result_outlives_its_array() -> None:
    """What was handed out stays valid after the array is gone, also while others are made."""
    out = (lw.asarray(np.full(1000, 3.0), device="cpu") * 2).numpy()
    gc.collect()
    others: list[Any] = [
        (lw.asarray(np.full(1000, float(i)), device="cpu") + 1).numpy() for i in range(5)
    ]
    assert len(others) == 5
    np.testing.assert_array_equal(out, np.full(1000, 6.0))


def test_user_memory_is_seen_and_never_written() -> None:
    """A write to a shared array before evaluation is seen; evaluation does not write to it."""
    x = np.zeros(4)
    lazy = lw.asarray(x, device="cpu")
    y = lazy + 1
    x[:] = 5
    lazy[0] = 100.0
    np.testing.assert_array_equal(y.numpy(), np.full(4, 6.0))
    np.testing.assert_array_equal(lazy.numpy(), [100, 5, 5, 5])
    np.testing.assert_array_equal(x, np.full(4, 5.0))


def test_read_only_input() -> None:
    """A read-only array works as an input."""
    x = np.arange(4.0)
    x.flags.writeable = False
    np.testing.assert_array_equal((lw.asarray(x, device="cpu") * 2).numpy(), x * 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_locks_of_memory_are_free_in_a_forked_child() -> None:
    """Whoever held an array's lock, or ran a hand-written kernel, in the parent is not there."""
    x = lw.asarray(np.ones(4, np.float32))
    own: Any = lw.kernel("void f(float *out) { out[0] = 3; }", [], ((1,), lw.float32))
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with memory.storage(x._uop)._lock, memory.storage(own._uop).call._lock:  # type: ignore[attr-defined]
            taken.set()
            done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(60)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        is_right = np.asarray(x + own).tolist() == [4.0] * 4
        os._exit(0 if is_right else 1)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
