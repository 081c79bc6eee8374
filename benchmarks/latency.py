"""How long it takes to import, from an expression to C text, to a binary, and to launch it.

    uv run python benchmarks/latency.py [--profile NAME]

Medians: processor time that `import loopwright` adds to `import numpy`, in processes of their
own in turns; processor time of every stage from the array operations to the text, with nothing
kept from the round before; elapsed time of the compiler, without the disk cache, of a launch
with bound arguments, and of calls of jitted functions on 16 elements next to NumPy's own, in turns.
Exit status 1 where a bound is exceeded.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import loopwright as lw
from loopwright_core.pipeline import forget_built

IMPORT_BOUND_MS = 40.0
TEXT_BOUND_MS = 20.0
COMPILE_BOUND_MS = 150.0
LAUNCH_BOUND_US = 20.0
CALL_BOUND_US = 2.0  # beyond NumPy's own call
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


def import_times(rounds: int) -> tuple[float, float]:
    """Milliseconds of `import numpy`, and what `import loopwright` adds, bytecode being there."""

    def taken(module: str) -> float:
        process = subprocess.Popen([sys.executable, "-c", f"import {module}"], env=environment)
        usage = os.wait4(process.pid, 0)[2]
        process.returncode = 0
        return (usage.ru_utime + usage.ru_stime) * 1e3

    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PYTHONPYCACHEPREFIX=folder, OPENBLAS_NUM_THREADS="1")
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        taken("loopwright")
        pairs = [(taken("numpy"), taken("loopwright")) for _ in range(rounds)]
    return statistics.median(a for a, _ in pairs), statistics.median(b - a for a, b in pairs)


def launch() -> Callable[[], None]:
    """A thousand launches of a kernel of one element that is compiled, loaded and bound."""
    built = text(lambda: operand(1) + operand(1))[0].built
    run = built.loaded.bind([built.device.allocate(64) for _ in built.program.params], ())

    def launches() -> None:
        for _ in range(1000):
            run()

    return launches


def calls(rounds: int) -> list[tuple[str, float, float]]:
    """What is called, microseconds of NumPy, and of the jitted function, the best of the rounds."""
    x, y = np.ones(16, np.float32), np.full(16, 2, np.float32)
    a, b = lw.asarray(x, device="cpu"), lw.asarray(y, device="cpu")
    out = np.empty_like(x)
    add, scale = lw.jit(lambda x, y: x + y), lw.jit(lambda x, s: x * s)
    chain = lw.jit(lambda x, y: lw.cumulative_sum(lw.cumulative_sum(x + y)[::-1]))
    tree = lw.jit(lambda t: {"sum": t["x"] + t["y"]})
    rows: list[tuple[str, Callable[[], Any], Callable[[], Any]]] = [
        ("x + y", lambda: x + y, lambda: add(x, y)),
        ("two scans", lambda: np.cumsum(np.cumsum(x + y)[::-1]), lambda: chain(x, y)),
        ("x + y, out=", lambda: np.add(x, y, out=out), lambda: add(x, y, out=out)),
        ("x * 0.5", lambda: x * 0.5, lambda: scale(x, 0.5)),
        ("dict of two", lambda: {"sum": x + y}, lambda: tree({"x": x, "y": y})),
        ("lw arrays", lambda: x + y, lambda: add(a, b)),
    ]
    found = []
    for name, *both in rows:
        best = [float("inf")] * 2
        for _ in range(rounds):
            for k, run in enumerate(both):
                run()
                start = time.perf_counter()
                for _ in range(500):
                    run()
                best[k] = min(best[k], (time.perf_counter() - start) * 2e3)
        found.append((name, best[0], best[1]))
    return found


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
    numpy_ms, added_ms = import_times(arguments.rounds)
    launch_us = milliseconds(launch(), 5, time.perf_counter)
    is_fine = added_ms <= IMPORT_BOUND_MS and launch_us <= LAUNCH_BOUND_US
    print(f"import ms: numpy {numpy_ms:.1f}, loopwright + {added_ms:.1f} (<= {IMPORT_BOUND_MS:g})")
    print(f"launch us: {launch_us:.2f} (<= {LAUNCH_BOUND_US:g})")
    print(f"{'call us':12} {'NumPy':>8} {'jitted':>8} beyond (the first <= {CALL_BOUND_US:g})")
    for i, (name, numpy_us, jitted_us) in enumerate(calls(arguments.rounds)):
        is_fine &= i > 0 or jitted_us - numpy_us <= CALL_BOUND_US
        print(f"{name:12} {numpy_us:8.2f} {jitted_us:8.2f} {jitted_us - numpy_us:6.2f}")
    print(f"{'':12} text ms (<= {TEXT_BOUND_MS:g})  compile ms (<= {COMPILE_BOUND_MS:g})")
    for name, make in EXPRESSIONS.items():
        to_text = milliseconds(lambda make=make: text(make), arguments.rounds, time.process_time)
        to_binary = milliseconds(compile_all(make), 5, time.perf_counter)
        is_fine &= to_text <= TEXT_BOUND_MS and to_binary <= COMPILE_BOUND_MS
        print(f"{name:12} {to_text:14.2f}  {to_binary:19.1f}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
