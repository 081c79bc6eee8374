"""Matrix product of float32 on one thread, scheduled by hand, against NumPy on one thread.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE uv run python benchmarks/sgemm.py

Both run in this process, in turns; the numbers are medians of the thread's own processor time, the
ratio is the median of the pairs' ratios.
Exit status 1 where a product is wrong or slower than NumPy's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"  # read when NumPy is imported

import numpy as np  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright_core.plugin.loader import registry  # noqa: E402

SIZES = ((1024, 1024, 1024), (511, 513, 509))  # M, N, K of (M, K) @ (K, N)


def schedule(vector_bytes: int) -> list[str]:
    """A register tile of six rows by several vectors, over packed panels.

    32 registers hold six rows by four vectors; a panel of B stays in L2. 16 registers hold six rows
    by two vectors; a panel of A stays in L2 and each narrow piece of B in L1 for all of its rows.
    """
    lanes = vector_bytes // 4
    if vector_bytes == 64:
        tile, k_block = 4 * lanes, 1024
        start = ["TILE j 256", f"TILE k {k_block}"]
        order = f"ORDER j/256 k/{k_block} i/6 j/{tile} k"
        rows = []
    else:
        tile, k_block = 2 * lanes, 512
        start = [f"TILE k {k_block}", "TILE i 72"]
        order = f"ORDER k/{k_block} i/72 j/{tile} i/6 k"
        rows = ["STAGE A @i/72 layout i/6,k,i"]
    return [
        *start,
        "UPCAST i 6",
        f"TILE j {tile}",
        f"VECTOR j {lanes}",
        f"UPCAST j/{lanes} 0",
        order,
        f"STAGE B @k/{k_block} layout j/{tile},k,j/{lanes},j order k,j/{tile},j/{lanes},j",
        *rows,
        "PREFETCH C",
    ]


def kernel(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> tuple[Callable[[], None], str]:
    """The launch of our product into `out`, and its schedule in one line."""
    x, y = lw.asarray(a, device="cpu"), lw.asarray(b, device="cpu")
    device = registry().device("cpu")
    with lw.options(opts=schedule(max(device.target.vector_bytes))):
        (view,) = lw.kernels(x @ y)
    buffers = [device.from_host(array) for array in (a, b, out)]
    return lambda: view.built.launch(buffers), view.describe()


def seconds(run: Callable[[], object]) -> float:
    start = time.thread_time()
    run()
    return time.thread_time() - start


def measure(m: int, n: int, k: int, rounds: int) -> bool:
    """Print one line; whether ours is right and as fast."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k), np.float32)
    b = rng.standard_normal((k, n), np.float32)
    ours, theirs = np.zeros((m, n), np.float32), np.zeros((m, n), np.float32)
    run, line = kernel(a, b, ours)
    run()
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b)
    error = float(np.max(np.abs(ours - exact) / size))
    is_right = error <= k * 2.0**-24
    times = [(seconds(run), seconds(lambda: np.matmul(a, b, out=theirs))) for _ in range(rounds)]
    mine, numpy = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(them / us for us, them in times)
    flops = 2 * m * n * k * 1e-9
    print(line)
    print(
        f"{m} x {k} @ {k} x {n}: loopwright {flops / mine:.1f} GFLOP/s, "
        f"NumPy {flops / numpy:.1f} GFLOP/s, ratio {ratio:.3f}"
        + ("" if is_right else f", WRONG: relative error {error:.1e}")
    )
    return is_right and ratio >= 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25, help="pairs of runs a median is of")
    rounds = parser.parse_args().rounds
    fine = [measure(*size, rounds) for size in SIZES]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
