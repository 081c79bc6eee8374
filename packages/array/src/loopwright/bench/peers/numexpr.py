"""NumExpr: what it has words for, into memory that is there already."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numexpr
import numpy as np

Run = Callable[[], Any]
numexpr.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))


def version() -> str:
    return str(numexpr.__version__)


def to_numpy(result: Any) -> Any:
    return np.asarray(result)


def _into(text: str) -> Callable[..., Run]:
    def make(*arrays: Any) -> Run:
        out = np.empty(arrays[0].shape, np.float32)
        names = dict(zip("xy", arrays))
        names |= {name: np.float32(v) for name, v in CONSTANTS.items()}
        return lambda: numexpr.evaluate(text, names, out=out)

    return make


def _reduced(text: str) -> Callable[..., Run]:
    return lambda *arrays: lambda: numexpr.evaluate(text, dict(zip("xy", arrays)))


CONSTANTS = {"a": 0.7978845608028654, "b": 0.044715, "one": 1.0, "half": 0.5}
WORKLOADS: dict[str, Callable[..., Run]] = {
    "dot_16M": _reduced("sum(x * y)"),
    "sum_axis0": _reduced("sum(x, axis=0)"),
    "sum_axis1": _reduced("sum(x, axis=1)"),
    "sum_all": _reduced("sum(x)"),
    "gelu_16M": _into("half * x * (one + tanh(a * (x + b * x * x * x)))"),
    "exp_16M": _into("exp(x)"),
    "small_add_16": _into("x + y"),
}
