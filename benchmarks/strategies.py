"""What the strategies gain: Loopwright as it schedules, unscheduled, and NumPy, in one process.

    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE uv run python benchmarks/strategies.py
    env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE uv run python benchmarks/strategies.py --threads 2

The three run in turns, into memory that is there already; the numbers are medians, of the thread's
own processor time with one thread and of wall time with more. `x numpy` and `x plain` are how many
times as long NumPy and the initial schedule take.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
_parser.add_argument("names", nargs="*", help="cases that begin with one of these; all by default")
_parser.add_argument("--threads", type=int, default=1)
_parser.add_argument("--rounds", type=int, default=9)
_parser.add_argument("--plain", action="store_true", help="also time the unscheduled kernels")
_parser.add_argument("--show", action="store_true", help="print each schedule")
OPTIONS = _parser.parse_args() if __name__ == "__main__" else _parser.parse_args([])

for _name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = str(OPTIONS.threads)  # read when NumPy is imported
os.environ["LOOPWRIGHT_THREADS"] = str(OPTIONS.threads)

import numpy as np  # noqa: E402

import loopwright as lw  # noqa: E402
from loopwright_core.plugin.loader import registry  # noqa: E402

Host = np.ndarray[Any, Any]


class Case(NamedTuple):
    """`theirs` is given the inputs and the memory for the result."""

    name: str
    shapes: tuple[tuple[int, ...], ...]
    ours: Callable[..., lw.Array]
    theirs: Callable[..., object]


def _softmax(x: Host, out: Host) -> None:
    np.subtract(x, x.max(1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(1, keepdims=True), out=out)


def _layer_norm(x: Host, w: Host, b: Host, out: Host) -> None:
    np.subtract(x, x.mean(1, keepdims=True), out=out)
    scale = np.sqrt(np.mean(out * out, 1, keepdims=True) + 1e-5)
    np.divide(out, scale, out=out)
    np.multiply(out, w, out=out)
    np.add(out, b, out=out)


def _gelu(x: Host, out: Host) -> None:
    np.multiply(x, x, out=out)
    out *= x
    out *= 0.044715
    out += x
    out *= 0.7978845608028654
    np.tanh(out, out=out)
    out += 1
    out *= x
    out *= 0.5


def _conv(x: Host, w: Host, out: Host) -> None:
    """By patches in columns and one matrix product."""
    _, c, high, wide = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    patches = np.lib.stride_tricks.sliding_window_view(padded[0], (3, 3), axis=(1, 2))
    columns = np.ascontiguousarray(patches.transpose(0, 3, 4, 1, 2)).reshape(c * 9, high * wide)
    np.matmul(w.reshape(len(w), -1), columns, out=out.reshape(len(w), -1))


def _products(m: int, n: int, k: int, name: str = "") -> Case:
    return Case(
        name or f"matmul {m}x{k}x{n}",
        ((m, k), (k, n)),
        lambda a, b: a @ b,
        lambda a, b, out: np.matmul(a, b, out=out),
    )


def cases() -> list[Case]:
    found = [_products(n, n, n, f"matmul {n}") for n in (64, 128, 256, 512, 1024)]
    found += [_products(511, 513, 509), _products(1000, 7, 1000), _products(7, 1000, 1000)]
    for n in (512, 1024):
        sizes = ((n, n), (n, n))
        found += [
            Case(f"matmul A^T {n}", sizes, lambda a, b: lw.matrix_transpose(a) @ b, _t_matmul),
            Case(f"matmul B^T {n}", sizes, lambda a, b: a @ lw.matrix_transpose(b), _matmul_t),
        ]
    found.append(
        Case(
            "matmul 32 x 128^3",
            ((32, 128, 128), (32, 128, 128)),
            lambda a, b: a @ b,
            lambda a, b, out: np.matmul(a, b, out=out),
        )
    )
    for n in (1024, 4096):
        found += [
            Case(f"matvec {n}", ((n, n), (n,)), lambda a, b: a @ b, _matvec),
            Case(f"matvec A^T {n}", ((n, n), (n,)), lambda a, b: lw.matrix_transpose(a) @ b, _tvec),
            Case(f"sum all {n}", ((n, n),), lw.sum, lambda a, out: np.sum(a, out=out)),
            Case(
                f"sum axis 0 {n}",
                ((n, n),),
                lambda a: lw.sum(a, axis=0),
                lambda a, out: np.sum(a, 0, out=out),
            ),
            Case(
                f"sum axis 1 {n}",
                ((n, n),),
                lambda a: lw.sum(a, axis=1),
                lambda a, out: np.sum(a, 1, out=out),
            ),
        ]
    rows, big = (4096, 1024), (16 << 20,)
    found += [
        Case("softmax 4096x1024", (rows,), lambda a: lw.softmax(a, -1), _softmax),
        Case("layer_norm 4096x1024", (rows, (1024,), (1024,)), lw.layer_norm, _layer_norm),
        Case("exp 16M", (big,), lw.exp, lambda a, out: np.exp(a, out=out)),
        Case("gelu 16M", (big,), lambda a: lw.gelu(a, "tanh"), _gelu),
        Case("add 16M", (big, big), lambda a, b: a + b, lambda a, b, out: np.add(a, b, out=out)),
        Case(
            "transpose 4096",
            ((4096, 4096),),
            lambda a: lw.permute_dims(a, (1, 0)) + 0,
            lambda a, out: np.copyto(out, a.T),
        ),
        Case(
            "conv 3x3 1x64x56x56",
            ((1, 64, 56, 56), (64, 64, 3, 3)),
            lambda x, w: lw.conv(x, w, padding=1),
            _conv,
        ),
        Case(
            "argmax rows",
            (rows,),
            lambda a: lw.argmax(a, axis=1),
            lambda a, out: np.argmax(a, 1, out=out),
        ),
        Case(
            "cumsum rows",
            (rows,),
            lambda a: lw.cumulative_sum(a, axis=1),
            lambda a, out: np.cumsum(a, 1, out=out),
        ),
    ]
    return found


def _t_matmul(a: Host, b: Host, out: Host) -> None:
    np.matmul(a.T, b, out=out)


def _matmul_t(a: Host, b: Host, out: Host) -> None:
    np.matmul(a, b.T, out=out)


def _matvec(a: Host, b: Host, out: Host) -> None:
    np.matmul(a, b, out=out)


def _tvec(a: Host, b: Host, out: Host) -> None:
    np.matmul(a.T, b, out=out)


def launch(case: Case, inputs: list[Host], schedule: str) -> tuple[Callable[[], None], Host, str]:
    """(run, its result, its schedule) of a case that is one kernel."""
    device = registry().device("cpu")
    arrays = [lw.asarray(x, device="cpu") for x in inputs]
    with lw.options(schedule=schedule):
        (view,) = lw.kernels(case.ours(*arrays))
    built, left = view.built, iter(inputs)
    memory: list[Host] = []
    for p in built.program.params:
        memory.append(np.zeros(p.shape, p.dtype.numpy) if p.is_output else next(left))
    out = next(x for x, p in zip(memory, built.program.params, strict=True) if p.is_output)
    run = built.loaded.bind([device.from_host(x) for x in memory], ())
    return run, out, str(built.kernel.schedule)


def timed(run: Callable[[], object]) -> float:
    clock = time.thread_time if OPTIONS.threads == 1 else time.perf_counter
    start = clock()
    run()
    return clock() - start


def measure(case: Case) -> None:
    """One line of the table."""
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s, np.float32) for s in case.shapes]
    ours, out, text = launch(case, inputs, "heuristic")
    shape = out.shape
    if case.name.startswith("conv"):
        shape = (1, *out.shape)
    theirs = np.zeros(shape, out.dtype)
    runs: list[Callable[[], object]] = [ours, lambda: case.theirs(*inputs, theirs)]
    if OPTIONS.plain:
        runs.append(launch(case, inputs, "none")[0])
    for run in runs:
        run()
    scale = max(1.0, float(np.abs(theirs).max()))
    is_right = bool(np.allclose(out.reshape(shape), theirs, rtol=1e-4, atol=1e-4 * scale))
    rounds = [[timed(run) for run in runs] for _ in range(OPTIONS.rounds)]
    mine = statistics.median(r[0] for r in rounds)
    words = [f"{case.name:22}", f"{mine * 1e3:9.3f} ms"]
    words.append(f"{statistics.median(r[1] / r[0] for r in rounds):8.2f} x numpy")
    if OPTIONS.plain:
        words.append(f"{statistics.median(r[2] / r[0] for r in rounds):8.2f} x plain")
    print(" ".join(words) + ("" if is_right else "   WRONG"), flush=True)
    if OPTIONS.show:
        print("    " + text)


def main() -> int:
    for case in cases():
        if not OPTIONS.names or any(case.name.startswith(n) for n in OPTIONS.names):
            measure(case)
    return 0


if __name__ == "__main__":
    sys.exit(main())
