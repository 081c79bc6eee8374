"""Runs kernels for their time, and compares results with NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright.evaluate import Plan, build_distinct, make_plan, run_plan
from loopwright.memory import has_storage, storage, to_numpy
from loopwright.options import current
from loopwright_core.built import Built
from loopwright_core.errors import LoopwrightError
from loopwright_core.ir.dtype import from_numpy
from loopwright_core.ir.uop import UOp
from loopwright_core.plugin.loader import registry

# Relative to an element and to the typical one, for a chain of operations in that dtype.
_TOLERANCE = {
    "float64": 1e-11,
    "float32": 2e-5,
    "float16": 5e-3,
    "bfloat16": 4e-2,
    "float8_e4m3fn": 0.3,
    "float8_e5m2": 0.5,
}


@dataclass(frozen=True, slots=True)
class Timed:
    """A kernel and its best time. Units: seconds of one launch."""

    built: Built
    best_s: float

    @property
    def gflops(self) -> float:
        """Billions of operations a second, by the kernel's estimate."""
        return self.built.program.estimate.flops / self.best_s / 1e9

    @property
    def gbytes(self) -> float:
        """Billions of bytes a second, counting each element once."""
        return self.built.program.estimate.bytes / self.best_s / 1e9

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints of it."""
        kernel = self.built.kernel
        return {
            "name": kernel.name,
            "opts": [str(o) for o in kernel.schedule.opts],
            "seconds": self.best_s,
            "flops": self.built.program.estimate.flops,
            "bytes": self.built.program.estimate.bytes,
            "gflops": self.gflops,
            "gbytes_per_s": self.gbytes,
        }


def run_timed(nodes: Sequence[UOp], device_name: str, n: int = 10) -> tuple[list[Any], list[Timed]]:
    """The values of the nodes as NumPy arrays, and each kernel's time over `n` launches."""
    plan = make_plan(nodes, device_name)
    keep_all = Plan(plan.kernels, plan.names, _every_buffer(plan))
    run_plan(keep_all, device_name)
    device = registry().device(device_name)
    timed = []
    for kernel, built in zip(plan.kernels, build_distinct(plan, device, current()), strict=True):
        memory = [storage(b).on(device) for b in kernel.buffers]
        timed.append(Timed(built, min(device.time(built.loaded, memory, (), n))))
    return [to_numpy(r) for r in plan.results], timed


def _every_buffer(plan: Plan) -> tuple[UOp, ...]:
    """Each buffer that a kernel writes: kept, because its kernels run again to be timed."""
    made = [b for k in plan.kernels for b in k.buffers if not has_storage(b)]
    return tuple(dict.fromkeys((*plan.results, *made)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far results are from NumPy's. `error`: largest, relative to element plus typical one."""

    is_good: bool
    error: float
    tolerance: float
    why: str = ""

    def __str__(self) -> str:
        if self.why:
            return self.why
        if not self.tolerance:
            return "equal to NumPy's" if self.is_good else "differs from NumPy's"
        sign = "<=" if self.is_good else ">"
        return f"largest relative error {self.error:.2g} {sign} {self.tolerance:.2g}"


def reference(
    function: Callable[..., Any], arguments: Sequence[np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """The function under NumPy, floats in float64. Raises LoopwrightError where NumPy cannot."""
    wide = []
    for array in arguments:
        dtype = from_numpy(array.dtype)
        wide.append(array.astype(np.float64) if dtype is not None and dtype.is_float else array)
    try:
        with np.errstate(all="ignore"):
            result = function(*wide)
    except Exception as error:
        raise LoopwrightError(
            f"NumPy cannot run this function: {type(error).__name__}: {error}. Write it over "
            "x.__array_namespace__(), or give --no-check."
        ) from error
    return [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else (result,))]


def compare(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> Comparison:
    """Elementwise, within what the result's dtype allows."""
    if got.shape != want.shape:
        return Comparison(False, np.inf, 0.0, f"shape {got.shape}, NumPy gives {want.shape}")
    dtype = from_numpy(got.dtype)
    if dtype is None or not dtype.is_float:
        return Comparison(bool(np.array_equal(got, want)), 0.0, 0.0)
    tolerance = _TOLERANCE[dtype.name]
    wide = got.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (wide == want) | (np.isnan(wide) & np.isnan(want))
        rest = ~same
        if not rest.any():
            return Comparison(True, 0.0, tolerance)
        finite = np.abs(want[np.isfinite(want)])
        typical = float(finite.mean()) if finite.size else 0.0
        error = np.abs(wide[rest] - want[rest]) / (np.abs(want[rest]) + typical)
        worst = float(np.max(np.where(np.isnan(error), np.inf, error)))
    return Comparison(worst <= tolerance, worst, tolerance)
