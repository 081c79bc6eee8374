"""What beam search gains over the strategies, on four kernels, in one process.

    LOOPWRIGHT_CACHE_DIR=$(mktemp -d) uv run python benchmarks/beam.py
    uv run python benchmarks/beam.py softmax --budget 10

Each kernel is built by both schedules and run in turns; times are medians over rounds of the best
of five runs, `ratio` is the median of the rounds' ratios: above 1, beam is faster; `kept` tells
that it is the same schedule, so that its ratio shows the noise of this machine.
`LOOPWRIGHT_THREADS=1` measures with one thread. A kept result is replayed: name an empty cache
directory to search anew.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import loopwright as lw
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress, listening

Shapes = tuple[tuple[int, ...], ...]
CASES: dict[str, tuple[Shapes, Callable[..., lw.Array]]] = {
    "softmax 1024x1024": (((1024, 1024),), lambda x: lw.softmax(x, axis=-1)),
    "matmul 511x509x513": (((511, 509), (509, 513)), lw.matmul),
    "conv 3x3 8x64x32x32": (
        ((8, 64, 32, 32), (64, 64, 3, 3)),
        lambda x, w: lw.conv(x, w, padding=1),
    ),
    "matvec 4096": (((4096, 4096), (4096,)), lw.matmul),
}


def compare(name: str, budget_s: float, rounds: int) -> str:
    """One row: both times, their ratio, how long the search took and what it tried."""
    shapes, expression = CASES[name]
    rng = np.random.default_rng(0)
    arrays = [lw.asarray(rng.standard_normal(s).astype(np.float32)) for s in shapes]
    device = registry().device("cpu")
    ended: list[Progress] = []
    ready = []
    begin = time.monotonic()
    for schedule in ("heuristic", "beam"):
        with (
            lw.options(schedule=schedule, budget_s=budget_s),
            listening(lambda p: ended.append(p) if p.done else None),
        ):
            begin = time.monotonic()
            ready.append(lw.kernels(expression(*arrays)))
    took_s = time.monotonic() - begin
    times: list[list[float]] = [[], []]
    runs = []
    for kernels in ready:
        (kernel,) = kernels  # each of these expressions is one kernel
        params = kernel.built.program.params
        memory = [device.allocate(int(np.prod(p.shape)) * p.dtype.itemsize) for p in params]
        for m in memory:
            np.asarray(m)[:] = 0
        runs.append((kernel.built.loaded, memory))
        device.time(kernel.built.loaded, memory, (), 2)
    for _ in range(rounds):  # the best of a few runs in turn, so that both meet the same load
        for taken, (loaded, memory) in zip(times, runs, strict=True):
            taken.append(min(device.time(loaded, memory, (), 5)))
    mine, beam = (statistics.median(t) * 1e3 for t in times)
    ratio = statistics.median(a / b for a, b in zip(*times, strict=True))
    p = ended[-1]
    schedules = [kernels[0].built.kernel.schedule for kernels in ready]
    found = "kept" if schedules[0] == schedules[1] else "new"
    return (
        f"{name:22}{mine:10.3f}{beam:10.3f}{ratio:8.2f}{took_s:9.1f}"
        f"{p.n_ranked:8}{p.n_timed:7}{p.n_failed:8}{p.correlation:8.2f}{found:>6}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases that begin with one of these; default all")
    parser.add_argument("--budget", type=float, default=30.0, help="seconds for each kernel")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    print(
        f"{'kernel':22}{'rules ms':>10}{'beam ms':>10}{'ratio':>8}{'search s':>9}"
        f"{'ranked':>8}{'timed':>7}{'failed':>8}{'rank r':>8}{'':>6}"
    )
    for name in CASES:
        if not given.names or name.startswith(tuple(given.names)):
            print(compare(name, given.budget, given.rounds), flush=True)


if __name__ == "__main__":
    main()
