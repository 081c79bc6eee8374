"""No peer but the machine: the same bytes moved, or multiply-adds done, and nothing else.

A row's limit is the best of several ways to walk arrays of the row's own sizes, or the peak of
float32 arithmetic, measured in the same run as the others.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from workloads import WORKLOADS as ROWS

Run = Callable[[], Any]
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
_ALIGNED = 1 << 21


def _load() -> Any:
    compiler = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
    if compiler is None:
        raise ImportError("no C compiler to measure the limits with")
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "limits.so"
        flags = ["-O3", "-march=native", "-ffp-contract=fast", "-fopenmp", "-shared", "-fPIC"]
        source = Path(__file__).parents[1] / "limits.c"
        subprocess.run([compiler, *flags, "-o", str(binary), str(source)], check=True)
        library = ctypes.CDLL(str(binary))
    for name in ("read_pages", "read_plain"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    for name in ("copy_plain", "copy_around", "copy_pages_around"):
        getattr(library, name).argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    library.multiply_add.argtypes = [ctypes.c_size_t, ctypes.c_int]
    return library


_library = _load()


def version() -> str:
    return "measured"


def to_numpy(result: Any) -> Any:
    return np.zeros(0)


def _memory(n_bytes: int) -> Any:
    """Zeros, written once, at the start of a large page."""
    raw = np.zeros(n_bytes + _ALIGNED, np.uint8)
    raw[:] = 0
    return raw[-raw.ctypes.data % _ALIGNED :]


def _best(ways: list[Run]) -> Run:
    times = []
    for way in ways:
        way()
        rounds = []
        for _ in range(3):
            start = time.perf_counter()
            way()
            rounds.append(time.perf_counter() - start)
        times.append(min(rounds))
    return ways[times.index(min(times))]


def _bytes(read: int, written: int) -> Run:
    n = max(read, written) // 4 // 16384 * 16384
    x = _memory(4 * n)
    names = ["read_pages", "read_plain"]
    places = [x]
    if 2 * written >= read:
        names = ["copy_plain", "copy_around", "copy_pages_around"]
        places.append(_memory(4 * n))
    pointers = [p.ctypes.data for p in places]

    def way(name: str) -> Run:
        f = getattr(_library, name)

        def run(places: Any = places) -> Any:  # which keeps the memory alive
            return f(*pointers, n)

        return run

    return _best([way(name) for name in names])


def _flops(amount: int) -> Run:
    n = max(1, amount // (24 * _library.lanes() * THREADS))
    return lambda: _library.multiply_add(n, THREADS)


WORKLOADS: dict[str, Callable[..., Run]] = {}
for _row in ROWS:
    if _row.flops and _row.dtype == "float32":
        WORKLOADS[_row.name] = lambda *_, row=_row: _flops(row.flops)
    elif _row.read:
        WORKLOADS[_row.name] = lambda *_, row=_row: _bytes(row.read, row.written)
