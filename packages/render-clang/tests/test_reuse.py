"""Freed memory is used again, and never while somebody holds it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from loopwright_render_clang import reuse, runtime
from loopwright_render_clang.reuse import Block, Blocks, rounded

SIZE = 1 << 20


@pytest.fixture(autouse=True)
def own_blocks(monkeypatch: pytest.MonkeyPatch) -> Blocks:
    blocks = Blocks(8 << 20)
    monkeypatch.setattr(reuse, "blocks", blocks)
    return blocks


def test_freed_memory_is_used_again() -> None:
    """The next allocation of about the size gets the block; small ones come from elsewhere."""
    first = runtime.allocate(SIZE)
    address = first.address
    del first
    assert runtime.allocate(SIZE - 8).address == address
    small = runtime.allocate(1000)
    del small
    assert reuse.blocks.n_bytes == rounded(SIZE + 64)


def test_views_hold_the_memory() -> None:
    """While any NumPy view of it lives, memory is nobody else's."""
    memory = runtime.allocate(SIZE)
    address = memory.address
    view = np.asarray(memory)[:64].view(np.float32).reshape(4, 4)[1:]
    del memory
    gc.collect()
    assert reuse.blocks.n_bytes == 0
    assert runtime.allocate(SIZE).address != address
    del view
    gc.collect()
    assert reuse.blocks.n_bytes > 0


def test_memory_of_the_host_is_not_taken() -> None:
    """A user's array that was lent stays the user's."""
    array = np.zeros(SIZE, np.uint8)
    memory = runtime.from_host(array)
    del memory
    assert reuse.blocks.n_bytes == 0


def test_bounded() -> None:
    """No more than the bound is kept: the longest unused go; larger blocks are never kept."""
    blocks = Blocks(3 * SIZE)
    given = [Block(SIZE) for _ in range(5)]
    last = given[-1].address
    for block in given:
        blocks.give(block)
    blocks.give(Block(4 * SIZE))
    assert blocks.n_bytes == 3 * SIZE
    assert blocks.take(SIZE).address == last
    for _ in range(200):  # nobody takes: the inbox does not grow for good
        blocks.give(Block(SIZE // 8))
    assert len(blocks._inbox) <= 65
    blocks.clear()
    assert blocks.n_bytes == 0


def test_rounded() -> None:
    """Blocks are at most an eighth and a page larger than what is asked for."""
    for n in (SIZE, SIZE + 1, 5 * SIZE + 77, 200_000, (1 << 30) + 1):
        assert n <= rounded(n) <= n + max(n // 7, 4096)


def test_threads() -> None:
    """Threads that allocate and free at once never share a block."""
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            cells = np.asarray(runtime.allocate(SIZE // 4))
            cells[:] = number
            if (cells != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
