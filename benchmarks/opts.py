"""How many scheduling steps a second are applied: product, convolution, softmax, by kind of step.

    uv run python benchmarks/opts.py [--profile KERNEL:TARGET]

Each step of a list is applied again and again to the kernel as the steps before it left it; the
best of several rounds counts, in the process's own time. Exit status 1 where a step of the matrix
product, a kernel of three dims, is applied less than 20,000 times a second.
"""

from __future__ import annotations

import argparse
import cProfile
import math
import pstats
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import loopwright as lw
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin.target import Target
from loopwright_core.targets.cuda import cuda
from loopwright_core.targets.metal import metal
from loopwright_opt.apply import apply, apply_all
from loopwright_opt.text import parse
from loopwright_render_clang.cpu import variant

BOUND = 20_000
CPU = variant("x86-64-v4")


def operand(*shape: int) -> Any:
    return lw.asarray(np.ones(shape, np.float32), device="cpu")


def matmul() -> Any:
    return operand(1024, 1024) @ operand(1024, 1024)


def conv() -> Any:
    return lw.conv(operand(8, 64, 32, 32), operand(64, 64, 3, 3), padding=1)


def softmax() -> Any:
    return lw.softmax(operand(1024, 1024), axis=-1)


EXPRESSIONS: dict[str, Callable[[], Any]] = {f.__name__: f for f in (matmul, conv, softmax)}


STEPS: dict[str, dict[str, str]] = {
    "matmul": {
        "cpu": "TILE j 256 · TILE k 512 · THREAD i 4 · UPCAST i 8 · VECTOR j/1 16 · UNROLL k 4"
        " · ORDER j/256 k/512 i/8 j/16 k/4 · SWAP j/16 k/4 · STAGE B @k/512 · PREFETCH A"
        " · NTSTORE C",
        "cuda": "UPCAST i 4 · UPCAST j 4 · UNROLL k 4 · LOCAL i/4 8 · LOCAL j/4 16"
        " · TILE k/4 16 · STAGE B @k/64 · SWAP i/32 j/64",
        "metal": "UPCAST i 4 · UNROLL k 4 · LOCAL i/4 8 · GROUP k/4 8",
    },
    "conv": {
        "cpu": "VECTOR n 8 · UPCAST n/8 2 · UPCAST j 4 · UNROLL k2 0 · UNROLL l 0 · TILE k 16"
        " · ORDER k/16 m n/16",
        "cuda": "UPCAST n 4 · UPCAST j 4 · UNROLL k2 0 · UNROLL l 0 · LOCAL m 16 · LOCAL n/4 8",
        "metal": "UPCAST j 4 · LOCAL n 32 · GROUP k 8 · UNROLL l 0",
    },
    "softmax": {
        "cpu": "THREAD i 4 · VECTOR j* 16 · UPCAST j*/16 4 · TILE j*/64 4 · KEEP v0 @i/1",
        "cuda": "LOCAL i 2 · GROUP j.0 32 · GROUP j.1 32 · LOCAL j 32 · UPCAST j/32 4"
        " · UNROLL j.0/32 4",
        "metal": "GROUPTOP j.0 16 · GROUPTOP j.1 16 · UNROLL j.0 4 · UPCAST i 2",
    },
}
TARGETS: dict[str, Target] = {"cpu": CPU, "cuda": cuda("sm_80"), "metal": metal()}


def unscheduled(make: Callable[[], Any]) -> Kernel:
    with lw.options(schedule="none"):
        (view,) = lw.kernels(make())
    return view.built.kernel


def microseconds(kernel: Kernel, opt: Opt, target: Target, rounds: int) -> float:
    """The best of so many rounds of 20 applications each."""
    best = math.inf
    for _ in range(rounds):
        start = time.process_time()
        for _ in range(20):
            apply(kernel, opt, target)
        best = min(best, time.process_time() - start)
    return best / 20 * 1e6


def profile(kernel: Kernel, opts: tuple[Opt, ...], target: Target) -> None:
    """Print where the time of a whole list goes."""
    recorder = cProfile.Profile()
    recorder.enable()
    for _ in range(300):
        apply_all(kernel, opts, target)
    recorder.disable()
    pstats.Stats(recorder).sort_stats("tottime").print_stats(25)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=150, help="rounds that the best is of")
    parser.add_argument("--profile", help="KERNEL:TARGET, for example matmul:cpu")
    arguments = parser.parse_args()
    kernels = {name: unscheduled(make) for name, make in EXPRESSIONS.items()}
    if arguments.profile:
        name, _, device = arguments.profile.partition(":")
        profile(kernels[name], parse(STEPS[name][device]), TARGETS[device])
        return 0
    is_fine = True
    for name, lists in STEPS.items():
        for device, text in lists.items():
            target, kernel = TARGETS[device], kernels[name]
            print(f"{name} on {target.name}")
            total, opts = 0.0, parse(text)
            for opt in opts:
                taken = microseconds(kernel, opt, target, arguments.rounds)
                total += taken
                is_slow = name == "matmul" and 1e6 / taken < BOUND
                is_fine &= not is_slow
                mark = f"  below {BOUND:,}" if is_slow else ""
                print(f"  {opt!s:36} {1e6 / taken:10,.0f} a second{mark}")
                kernel = apply(kernel, opt, target)
            print(f"  {'together':36} {len(opts) * 1e6 / total:10,.0f} a second")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
