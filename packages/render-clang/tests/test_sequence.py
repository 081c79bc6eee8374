"""Sequences: several launches as one call, each over its own arrays of one table."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from test_runtime import counting, fresh, load

from loopwright_core.errors import ArgumentError
from loopwright_core.sequence import Launch, load_sequence
from loopwright_render_clang.device import CpuDevice


def test_launches_run_in_order_over_their_rows() -> None:
    """Each launch takes the rows it names; one of several threads among launches of one."""
    device = CpuDevice()
    one, three = load(counting(2, 5)), load(counting(3, 4))
    launches = [Launch(one, (2,)), Launch(three, (0,)), Launch(one, (2,)), Launch(one, (1,))]
    run = load_sequence(device, launches)
    arrays = [fresh(3, 4), fresh(2, 5), fresh(2, 5)]
    memories = [device.from_host(array) for array in arrays]
    run(memories, ())
    run(memories, ())
    assert arrays[0].tolist() == [[2, 2, 2, 2, 0], [2, 2, 2, 2, 1], [2, 2, 2, 2, 2]]
    assert arrays[1].tolist() == [[2, 2, 2, 2, 2, 0], [2, 2, 2, 2, 2, 1]]
    assert arrays[2].tolist() == [[4, 4, 4, 4, 4, 0], [4, 4, 4, 4, 4, 1]]


def test_nothing_to_launch() -> None:
    """A sequence of no launches does nothing."""
    load_sequence(CpuDevice(), [])([], ())


def test_tables_that_do_not_fit_are_refused() -> None:
    """Too few arrays in a call, or rows that are not the kernel's number of buffers."""
    device, loaded = CpuDevice(), load(counting(2, 2))
    with pytest.raises(ArgumentError, match="1 buffers and 0 variables is given 2 and 0"):
        load_sequence(device, [Launch(loaded, (0, 1))])
    run = load_sequence(device, [Launch(loaded, (3,))])
    with pytest.raises(ArgumentError, match="4 arrays and 0 variables was run with 1 and 0"):
        run([device.allocate(64)], ())


def test_threads_run_one_sequence_at_once() -> None:
    """Calls from several threads write their own arrays only."""
    device = CpuDevice()
    run = load_sequence(device, [Launch(load(counting(2, 3)), (0,))] * 3)
    arrays = [fresh(2, 3) for _ in range(4)]

    def work(array: np.ndarray) -> None:
        for _ in range(200):
            run([device.from_host(array)], ())

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a.tolist() == [[600, 600, 600, 0], [600, 600, 600, 1]] for a in arrays)
