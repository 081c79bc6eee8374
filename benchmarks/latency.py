"""How long it takes from an expression to C text, and from the text to a binary.

    uv run python benchmarks/latency.py [--profile NAME]

Medians: processor time of every stage from the array operations to the text, with nothing kept
from the round before; and elapsed time of the compiler, without the disk cache.
Exit status 1 where a bound is exceeded.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import loopwright as lw
from loopwright_core.pipeline import forget_built

TEXT_BOUND_MS = 20.0
COMPILE_BOUND_MS = 150.0
N = 256


def operand(*shape: int) -> Any:
    return lw.asarray(np.ones(shape, np.float32), device="cpu")


def add() -> Any:
    return operand(N, N) + operand(N, N)


def softmax() -> Any:
    x = operand(N, N)
    e = lw.exp(x - lw.max(x, axis=1, keepdims=True))
    return e / lw.sum(e, axis=1, keepdims=True)


def matmul() -> Any:
    return operand(N, N) @ operand(N, N)


def stencil() -> Any:
    """The sum of the 3 x 3 points around each inner point."""
    x = operand(N, N)
    total = x[: N - 2, : N - 2]
    for i, j in [(i, j) for i in range(3) for j in range(3)][1:]:
        total = total + x[i : N - 2 + i, j : N - 2 + j]
    return total


def layer_norm() -> Any:
    x, weight, bias = operand(N, N), operand(N), operand(N)
    centred = x - lw.mean(x, axis=1, keepdims=True)
    variance = lw.mean(centred * centred, axis=1, keepdims=True)
    return centred / lw.sqrt(variance + 1e-5) * weight + bias


EXPRESSIONS: dict[str, Callable[[], Any]] = {
    f.__name__: f for f in (add, softmax, matmul, stencil, layer_norm)
}


def text(make: Callable[[], Any]) -> list[Any]:
    """The kernels of an expression, built from nothing."""
    forget_built()
    return lw.kernels(make())


def milliseconds(run: Callable[[], Any], rounds: int, clock: Callable[[], float]) -> float:
    """The median of so many runs."""
    found = []
    for _ in range(rounds):
        start = clock()
        run()
        found.append((clock() - start) * 1e3)
    return statistics.median(found)


def compile_all(make: Callable[[], Any]) -> Callable[[], None]:
    """Compile the expression's kernels, the disk cache left aside."""

    def run() -> None:
        for view in kernels:
            built = view.built
            built.device.compile(built.source, built.program)

    kernels = text(make)
    return run


def profile(make: Callable[[], Any], rounds: int) -> None:
    """Print where the time to the text goes."""
    recorder = cProfile.Profile()
    recorder.enable()
    for _ in range(rounds):
        text(make)
    recorder.disable()
    pstats.Stats(recorder).sort_stats("tottime").print_stats(30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21, help="texts that a median is of")
    parser.add_argument("--profile", choices=EXPRESSIONS, help="print the profile of one")
    arguments = parser.parse_args()
    text(add)  # plugins are loaded, modules imported
    if arguments.profile:
        profile(EXPRESSIONS[arguments.profile], arguments.rounds)
        return 0
    is_fine = True
    print(f"{'':12} text ms (<= {TEXT_BOUND_MS:g})  compile ms (<= {COMPILE_BOUND_MS:g})")
    for name, make in EXPRESSIONS.items():
        to_text = milliseconds(lambda make=make: text(make), arguments.rounds, time.process_time)
        to_binary = milliseconds(compile_all(make), 5, time.perf_counter)
        is_fine &= to_text <= TEXT_BOUND_MS and to_binary <= COMPILE_BOUND_MS
        print(f"{name:12} {to_text:14.2f}  {to_binary:19.1f}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
