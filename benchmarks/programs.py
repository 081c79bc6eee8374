"""How fast programs written for NumPy run on lazy arrays, against NumPy itself.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE uv run python benchmarks/programs.py
    ... --sizes 64,1024 --dtype float64 --rounds 7 --jit gemm "jacobi 1-D"

Each program of tests/programs runs unchanged under both, in turns; medians in milliseconds, from
the call to the computed values, and NumPy's time over ours. Kernels are compiled before. With
--jit each program is compiled as one function, its numbers fixed, unless it goes to the host.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from programs.inputs import PROGRAMS, drawing, results


def timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


# It evaluates on the host, which no compiled function does.
NOT_JITTED = ("azimuthal histogram",)


def compare(name: str, n: int, dtype: str, rounds: int, jit: bool) -> tuple[float, float]:
    """Median milliseconds of NumPy and of Loopwright. Raises AssertionError where they differ."""
    program, inputs = PROGRAMS[name]
    given = inputs(n, drawing(dtype, n))
    mine = [lw.asarray(v) if isinstance(v, np.ndarray) else v for v in given]

    def theirs() -> Any:
        return results(program(np, *given))

    arrays = [v for v in mine if isinstance(v, lw.Array)]

    def on_arrays(*values: Any) -> Any:
        rest = iter(values)
        return program(lw, *[next(rest) if isinstance(v, lw.Array) else v for v in mine])

    run = lw.jit(on_arrays) if jit and name not in NOT_JITTED else on_arrays

    def ours() -> Any:
        found = results(run(*arrays))
        lw.evaluate(*found)
        return found

    for got, want in zip(ours(), theirs(), strict=True):
        loose = (1e-3 if dtype == "float32" else 1e-9) * np.abs(want).max()
        np.testing.assert_allclose(got.numpy(), want, rtol=0, atol=loose)
    times = [(timed(theirs), timed(ours)) for _ in range(rounds)]
    return statistics.median(t for t, _ in times), statistics.median(t for _, t in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs, all by default")
    parser.add_argument("--sizes", default="64,1024")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--jit", action="store_true")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in PROGRAMS]
    if unknown:
        parser.error(f"no program {unknown[0]!r}; there are {', '.join(PROGRAMS)}")
    print(f"{'program':<22}{'n':>6}{'NumPy ms':>11}{'ours ms':>11}{'ratio':>8}")
    ratios = []
    for n in map(int, given.sizes.split(",")):
        for name in given.names or PROGRAMS:
            theirs, ours = compare(name, n, given.dtype, given.rounds, given.jit)
            ratios.append(theirs / ours)
            print(f"{name:<22}{n:>6}{theirs:>11.3f}{ours:>11.3f}{ratios[-1]:>8.2f}", flush=True)
    print(f"{'geometric mean':<50}{statistics.geometric_mean(ratios):>8.2f}")


if __name__ == "__main__":
    main()
