"""Real ONNX models as jitted functions beside onnxruntime: kernels, milliseconds, their ratio.

    uv run --group onnx python benchmarks/onnx_models.py [--rounds N] [--threads N]

Both take turns; the median of the rounds counts. Set LOOPWRIGHT_THREADS to the same number.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import loopwright as lw

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from onnx_suite.model import run_model
from onnx_suite.models import MODELS, RealModel, runtime


def compare(real: RealModel, n_rounds: int, n_threads: int) -> str:
    """One line of the table."""
    model, inputs = real.load(), real.inputs()
    session = runtime(model, n_threads, is_plain=False)
    names = [output.name for output in model.graph.output]
    arrays = {name: lw.asarray(array) for name, array in inputs.items()}

    def outputs(given: dict[str, Any]) -> list[Any]:
        values = run_model(model, {**arrays, **given})
        return [values[name] for name in names]

    n_kernels = len(lw.kernels(*outputs({})))
    # Scalars decide about sizes and stay constants; arrays are what a call brings.
    varied = {name: array for name, array in arrays.items() if array.ndim}
    step = lw.jit(outputs)
    step(varied)
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(n_rounds):
        begin = time.perf_counter()
        for result in step(varied):
            np.asarray(result)
        middle = time.perf_counter()
        session.run(names, inputs)
        times["ours"].append(middle - begin)
        times["theirs"].append(time.perf_counter() - middle)
    ours, theirs = [1e3 * statistics.median(times[who]) for who in ("ours", "theirs")]
    return f"{real.name:10} {n_kernels:7} {ours:8.2f} {theirs:12.2f} {ours / theirs:6.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    print("model      kernels  ours ms  onnxruntime  ratio")
    for real in MODELS:
        print(compare(real, given.rounds, given.threads), flush=True)


if __name__ == "__main__":
    main()
