"""A cache that is damaged, full or not writable, threads at once, processes killed midway.

LOOPWRIGHT_LONG=1 does so 15 times as often, and lets threads run for a minute.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.pipeline import forget_built
from support.processes import finish, start

LONG = os.environ.get("LOOPWRIGHT_LONG", "") not in ("", "0")
N_ROUNDS = 30 if LONG else 2
THREADS_S = 60.0 if LONG else 2.0

BODY = """
import numpy as np, loopwright as lw
x = lw.asarray(np.arange(600, dtype="float32").reshape(20, 30), device="cpu")
with lw.options(**OPTIONS):
    assert float(lw.sum(x * 2 + 1)) == 360000.0
    assert np.array_equal((x @ x.T).numpy(), x.numpy() @ x.numpy().T)
    assert np.array_equal((x[::-1] + 1).numpy(), x.numpy()[::-1] + 1)
"""
# Keeps tuning results too.
SEARCHED = "OPTIONS = {'schedule': 'beam', 'budget_s': 0.2}\n" + BODY
PLAIN = "OPTIONS = {}\n" + BODY


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) or 1)]


def _flip(rng: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 20])):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


DAMAGES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "cut": _cut,
    "flipped": _flip,
    "empty": lambda rng, data: b"",
    "zeros": lambda rng, data: bytes(len(data)),
    "longer": lambda rng, data: data + rng.randbytes(9),
}


@pytest.mark.parametrize("how", DAMAGES)
def test_damaged_cache(tmp_path: Path, how: str) -> None:
    """Every file of a cache damaged at once: results are right, and good entries take their place.

    Of kernels and of tuning results alike, read by a process that has none of them in memory.
    """
    code = SEARCHED if how in ("cut", "flipped") else PLAIN
    finish(start(code, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    assert len(files(tmp_path)) >= 3
    for r in range(N_ROUNDS if how in ("cut", "flipped") else 1):
        rng = random.Random(f"{how} {r}")
        for path in files(tmp_path):
            data = path.read_bytes()
            if data:
                path.write_bytes(DAMAGES[how](rng, data))
        finish(start(code, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))


def test_entries_exchanged(tmp_path: Path) -> None:
    """Whole files under each other's names are not taken for each other."""
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    found = [path for path in files(tmp_path) if path.suffix == ".bin"]
    held = [path.read_bytes() for path in found]
    assert len(set(held)) > 1
    for path, data in zip(found, held[1:] + held[:1], strict=True):
        path.write_bytes(data)
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))


def test_folders_in_place_of_files(tmp_path: Path) -> None:
    """A folder under an entry's name is no entry."""
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    for path in files(tmp_path):
        path.unlink()
        path.mkdir()
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))


@pytest.mark.parametrize("where", ["a file", "below a file", "no such device"])
def test_cache_that_takes_nothing(tmp_path: Path, where: str) -> None:
    """A cache folder that cannot be made or written keeps nothing and disturbs nobody."""
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    folder = {"a file": file, "below a file": file / "cache", "no such device": Path("/proc/none")}
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(folder[where])))
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(os.name != "posix", reason="permissions as POSIX has them")
def test_read_only_cache(tmp_path: Path) -> None:
    """A filled cache that became read-only is used as it is; nothing is added."""
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    before = files(tmp_path)
    folders = [tmp_path, *(path for path in tmp_path.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
        other = PLAIN + "assert float(lw.max(x - 3)) == 596.0\n"
        finish(start(other, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    finally:
        for folder in folders:
            folder.chmod(0o755)
    if os.geteuid():  # the superuser writes anyway
        assert files(tmp_path) == before


def test_full_disk(tmp_path: Path) -> None:
    """Where no file of the cache can grow, everything is computed all the same, or refused.

    The limit stands in for a full disk: writing fails with an OSError midway through a file.
    """
    pytest.importorskip("resource")
    limited = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import loopwright_core.cache as cache
write = cache.write_whole
def write_limited(path, data):
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
    try:
        return write(path, data)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
cache.write_whole = write_limited
"""
    finish(start(limited + PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    assert files(tmp_path) == []
    everything = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import loopwright as lw
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
try:
    print(lw.sum(lw.arange(9.0, device="cpu") * 2).numpy())
except lw.LoopwrightError as error:
    print(error)
"""
    finish(start(everything, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))


def test_killed_midway(tmp_path: Path) -> None:
    """Processes killed while they compile leave a cache that the next one fills and reads."""
    for r in range(3 * N_ROUNDS):
        process = start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path))
        time.sleep(0.25 + 0.1 * (r % 9))
        process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
        process.communicate()
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))
    finish(start(PLAIN, LOOPWRIGHT_CACHE_DIR=str(tmp_path)))


def test_threads_at_once() -> None:
    """Two threads that evaluate the same and different expressions get their own right values."""
    wrong: list[BaseException] = []
    end = time.monotonic() + THREADS_S
    shared = lw.asarray(np.arange(60.0), device="cpu") * 2
    step = lw.jit(lambda a, b: lw.sum(a * b) + 1)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            r = 0
            while time.monotonic() < end:
                n = int(rng.integers(1, 40))
                host = rng.integers(-4, 5, (n, 12)).astype(np.float64)
                x = lw.asarray(host, device="cpu")
                np.testing.assert_array_equal((x @ x.T).numpy(), host @ host.T)
                np.testing.assert_array_equal(lw.cumulative_sum(x, axis=1), host.cumsum(axis=1))
                line = lw.asarray(host[0], device="cpu")
                assert float(step(line, line)) == host[0] @ host[0] + 1
                np.testing.assert_array_equal((shared + r).numpy(), np.arange(60) * 2.0 + r)
                r += 1
                if r % 5 == 0:
                    forget_built()  # the other thread may be about to launch
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(THREADS_S + 100)
        assert not thread.is_alive(), "a thread hangs"
    assert wrong == []
