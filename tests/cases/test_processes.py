"""Other processes: a cache filled by many at once, odd paths, forks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.processes import finish, start

PRODUCT = """
a = lw.ones((512, 64), device="cpu")
lw.evaluate(a @ lw.ones((64, 512), device="cpu"))
"""
BODY = """
import numpy as np, loopwright as lw
x = lw.asarray(np.arange(1000, dtype="float32"), device="cpu")
assert float(np.asarray(lw.sum(x * 2.0 + 1.0))) == 1000000.0
assert np.array_equal(np.asarray(x[::-1] + 1), np.arange(1000, 0, -1))
"""


def test_many_fill_one_cache(tmp_path: Path) -> None:
    """Eight processes started together with one empty cache are all right, twice."""
    for r in range(2):
        folder = tmp_path / str(r)
        folder.mkdir()
        for process in [start(BODY, LOOPWRIGHT_CACHE_DIR=str(folder)) for _ in range(8)]:
            finish(process)
        finish(start(BODY, LOOPWRIGHT_CACHE_DIR=str(folder)))


@pytest.mark.parametrize(
    "name", ["a b", "it's", "café 日本", "$x;y", "-o", 'q"q', "back\\slash", "%s"]
)
def test_odd_paths(tmp_path: Path, name: str) -> None:
    """Spaces, quotes, other alphabets, a shell's signs in the paths of cache and scratch files."""
    folder = tmp_path / name
    folder.mkdir()
    finish(start(BODY, LOOPWRIGHT_CACHE_DIR=str(folder), TMPDIR=str(folder)))


def test_relative_cache(tmp_path: Path) -> None:
    """A relative cache folder that does not exist yet is made."""
    code = f"import os; os.chdir({str(tmp_path)!r})\n{BODY}"
    finish(start(code, LOOPWRIGHT_CACHE_DIR="new/cache"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_after_use() -> None:
    """A forked child runs the parent's kernel and a new one, with and without threads."""
    child = """
import os, sys
pid = os.fork()
if pid == 0:
    try:
        assert float(np.asarray(lw.sum(x * 2.0 + 1.0))) == 1000000.0
        assert float(np.asarray(lw.max(x - 3.0))) == 996.0
        os._exit(0)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(3)
_, status = os.waitpid(pid, 0)
assert float(np.asarray(lw.min(x + 3.0))) == 3.0
sys.exit(0 if status == 0 else 4)
"""
    finish(start(BODY + child))
    finish(start(BODY + PRODUCT + child, LOOPWRIGHT_THREADS="2"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_pool_of_forks() -> None:
    """Four children of a multiprocessing pool compile and run at once."""
    pool = """
import multiprocessing
def job(n):
    y = lw.asarray(np.arange(n, dtype="float32"), device="cpu")
    return float(np.asarray(lw.sum(y * float(n))))
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(4) as workers:
        found = workers.map(job, [10, 20, 30, 40, 10, 20])
    assert found == [n * (n * (n - 1) / 2) for n in (10, 20, 30, 40, 10, 20)], found
"""
    finish(start(BODY + pool))
