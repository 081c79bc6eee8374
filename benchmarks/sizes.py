"""Sizes that nobody tuned for: random extents from 1 to 3000, against NumPy, the slowest listed.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE uv run python benchmarks/sizes.py [--seed N]

One thread. Both run in this process, in turns, on NumPy's arrays; a ratio is of medians of the
thread's own processor time. The expressions: products in all layouts, batched, with one long side
or a short one; sums along both axes, softmax, a transpose. Results are compared with NumPy's first.
A call at most 2 us beyond NumPy's is its latency: it is listed apart.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "LOOPWRIGHT_THREADS"):
    os.environ[_name] = "1"  # read when NumPy is imported

import numpy as np  # noqa: E402

import loopwright as lw  # noqa: E402

Array = Any
MOST_FLOPS = 4e9
GOOD = 0.7
LATENCY = 2e-6


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Family:
    """`extents`: which of m, n, k (and b, few) each operand has. `theirs`: NumPy's, where it is
    written in another way than ours."""

    name: str
    extents: tuple[str, ...]
    ours: Callable[..., Array]
    theirs: Callable[..., Array]


FAMILIES = (
    Family("A @ B", ("mk", "kn"), lw.matmul, np.matmul),
    Family("A.T @ B", ("km", "kn"), lambda a, b: a.mT @ b, lambda a, b: a.T @ b),
    Family("A @ B.T", ("mk", "nk"), lambda a, b: a @ b.mT, lambda a, b: a @ b.T),
    Family("A.T @ B.T", ("km", "nk"), lambda a, b: a.mT @ b.mT, lambda a, b: a.T @ b.T),
    Family("batched", ("bmk", "bkn"), lw.matmul, np.matmul),
    Family("A @ x", ("mk", "k"), lw.matmul, np.matmul),
    Family("x @ A", ("k", "kn"), lw.matmul, np.matmul),
    Family("outer", ("m", "n"), lambda x, y: lw.expand_dims(x, axis=1) * y, np.multiply.outer),
    Family("few columns", ("mk", "kf"), lw.matmul, np.matmul),
    Family("few rows", ("fk", "kn"), lw.matmul, np.matmul),
    Family("few steps", ("mf", "fn"), lw.matmul, np.matmul),
    Family("row sums", ("mn",), lambda x: lw.sum(x, axis=1), lambda x: x.sum(axis=1)),
    Family("column sums", ("mn",), lambda x: lw.sum(x, axis=0), lambda x: x.sum(axis=0)),
    Family("softmax", ("mn",), lambda x: lw.softmax(x, axis=-1), softmax),
    Family("transpose", ("mn",), lambda x: lw.asarray(x.mT, copy=True), lambda x: x.T.copy()),
)


@dataclass(frozen=True)
class Result:
    ratio: float
    family: str
    sizes: str
    ours: float
    theirs: float

    def __str__(self) -> str:
        times = f"{1e6 * self.ours:10.1f} us, NumPy {1e6 * self.theirs:10.1f} us"
        return f"{self.ratio:6.2f}  {self.family:12} {self.sizes:32} {times}"


def measure(family: Family, rng: np.random.Generator) -> Result:
    """One draw of the extents. Exits where the result is wrong."""
    sizes = {name: _extent(rng) for name in "mnk"}
    sizes |= {"b": int(rng.integers(2, 20)), "f": int(rng.integers(1, 10))}
    used = sorted(set("".join(family.extents)), key="bmnkf".index)
    while math.prod(sizes[name] for name in used) * 2 > MOST_FLOPS:
        largest = max("mnk", key=sizes.__getitem__)
        sizes[largest] //= 2
    shapes = [[sizes[name] for name in axes] for axes in family.extents]
    arrays = [rng.standard_normal(shape, np.float32) for shape in shapes]
    ours = lw.jit(family.ours)
    label = " ".join(f"{name}={sizes[name]}" for name in used)
    found, wanted = np.asarray(ours(*arrays)), family.theirs(*arrays)
    if not np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * max(sizes["k"], sizes["n"]) ** 0.5):
        sys.exit(f"{family.name} {label}: wrong")
    once = _seconds(family.theirs, arrays, 1)
    n = max(1, int(2e-4 / max(once, 1e-7)))
    rounds = 5 if once > 0.05 else 15
    pairs = [(_seconds(ours, arrays, n), _seconds(family.theirs, arrays, n)) for _ in range(rounds)]
    mine, numpy = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Result(numpy / mine, family.name, label, mine, numpy)


def _extent(rng: np.random.Generator) -> int:
    """From 1 to 3000: half of them of any size, half of any magnitude."""
    if rng.random() < 0.5:
        return int(rng.integers(1, 3001))
    return int(3000 ** rng.random())


def _seconds(f: Callable[..., Array], arrays: list[Array], n: int) -> float:
    start = time.thread_time()
    for _ in range(n):
        f(*arrays)
    return (time.thread_time() - start) / n


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=4, help="draws of each expression")
    parser.add_argument("--only", default="", help="expressions whose name holds this")
    given = parser.parse_args()
    print(f"seed {given.seed}; NumPy {np.__version__}; NumPy's time / ours, the slowest first")
    rng = np.random.default_rng(given.seed)
    families = [f for f in FAMILIES if given.only in f.name]
    results = [measure(f, rng) for _ in range(given.rounds) for f in families]
    results.sort(key=lambda r: r.ratio)
    late = [r for r in results if r.ratio < 1 and r.ours <= r.theirs + LATENCY]
    rest = [r for r in results if r not in late]
    for result in rest[:10]:
        print(result)
    if late:
        print(f"{len(late)} within 2 us of NumPy's call, the slowest:\n{late[0]}")
    below = sum(r.ratio < GOOD for r in rest)
    mean = math.exp(statistics.fmean(math.log(r.ratio) for r in results))
    print(f"{len(results)} drawn, {below} below {GOOD}, geometric mean {mean:.2f}")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
