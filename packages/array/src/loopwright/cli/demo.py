"""`demo`: three real kernels, compiled and run on this machine, checked and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright.array import Array
from loopwright.cli.check import Comparison, Timed, compare, reference, run_timed
from loopwright.cli.limits import Limits, measure_limits
from loopwright.cli.output import Output, seconds
from loopwright.cli.request import given_options
from loopwright.devices import default_device, devices
from loopwright.memory import new_buffer
from loopwright_core.errors import DeviceError, fail
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry

HostArray = np.ndarray[Any, Any]


def dense(x: Any, w: Any, b: Any) -> Any:
    """gelu(x @ w + b), the tanh form."""
    xp = x.__array_namespace__()
    h = x @ w + b
    return h * 0.5 * (1 + xp.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))


def softmax(x: Any) -> Any:
    """exp(x - max) / sum along rows."""
    xp = x.__array_namespace__()
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def heat(u: Any) -> Any:
    """One step of heat spreading over the inside of a plate."""
    middle = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return middle + 0.2 * (around - 4 * middle)


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel of the demo; `is_compute`: its limit is arithmetic, else memory."""

    title: str
    code: str
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    is_compute: bool


CASES = (
    Case(
        "matmul + bias + gelu",
        "h = x @ w + b;  h * 0.5 * (1 + tanh(0.798 * (h + 0.0447 * h**3)))",
        dense,
        ((512, 512), (512, 512), (512,)),
        True,
    ),
    Case(
        "softmax",
        "e = exp(x - max(x, axis=-1));  e / sum(e, axis=-1)",
        softmax,
        ((4096, 1024),),
        False,
    ),
    Case(
        "2-D heat stencil",
        "m + 0.2 * (up + down + left + right - 4 * m)",
        heat,
        ((3002, 3002),),
        False,
    ),
)


def run_demo(
    device: str | None, with_source: bool, schedule: str | None, opts: Sequence[str], out: Output
) -> bool:
    """Every case under `--schedule` and `--opts`; False where one is wrong."""
    device = device or default_device()
    found = registry().device(device)
    state, why = found.state()
    if state != "ready":
        fail(DeviceError, f"the device {device!r} cannot run here: {state}. {why}")
    out.heading(f"Loopwright on {device} ({found.target.arch})")
    out.text(f"{_toolchain(found)}\n")
    limits = measure_limits(device)
    limits.show(out)
    with given_options(schedule, opts):
        results = [_run_case(case, device, found, limits, with_source, out) for case in CASES]
    is_good = all(r["ok"] for r in results)
    out.verdict(is_good, f"{len(CASES)} kernels compiled, run and compared with NumPy in float64")
    out.document(
        {
            "device": device,
            "devices": devices(),
            "ok": is_good,
            "limits": {"gflops": limits.gflops, "gbytes_per_s": limits.gbytes},
            "cases": results,
        }
    )
    return is_good


def _run_case(
    case: Case, device: str, found: Device, limits: Limits, with_source: bool, out: Output
) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    host = [rng.standard_normal(s, dtype=np.float32) for s in case.shapes]
    lazy = case.function(*[Array(new_buffer(h, device), device) for h in host])
    (got,), timed = run_timed([lazy._uop], device)
    (want,) = reference(case.function, host)
    result = compare(got, want)
    shapes = ", ".join("x".join(map(str, s)) for s in case.shapes)
    out.heading(f"{case.title}  float32 {shapes}")
    out.text(f"  {case.code}")
    for t in timed:
        _show_kernel(t, found, with_source, out)
    share = _show_speed(case, timed, limits, result, out)
    return {
        "title": case.title,
        "ok": result.is_good,
        "error": result.error,
        "share_of_limit": share,
        "kernels": [t.as_json() | {"source": t.built.source} for t in timed],
    }


def _show_kernel(t: Timed, found: Device, with_source: bool, out: Output) -> None:
    out.text(f"  nest      {t.built.kernel.describe(colour=out.is_colour)}")
    opts = " · ".join(map(str, t.built.kernel.schedule.opts)) or "none"
    out.text(f"  schedule  {opts}")
    if with_source:
        out.text()
        out.source(t.built.source, found.language)
        out.text()


def _show_speed(
    case: Case, timed: Sequence[Timed], limits: Limits, result: Comparison, out: Output
) -> float:
    total_s = sum(t.best_s for t in timed)
    gflops = sum(t.built.program.estimate.flops for t in timed) / total_s / 1e9
    gbytes = sum(t.built.program.estimate.bytes for t in timed) / total_s / 1e9
    share = gflops / limits.gflops if case.is_compute else gbytes / limits.gbytes
    unit = "arithmetic" if case.is_compute else "memory"
    speed = f"{gflops:.1f} GFLOP/s" if case.is_compute else f"{gbytes:.1f} GB/s"
    out.text(f"  time      {seconds(total_s)}, {speed}: {share:.0%} of the {unit} limit")
    out.verdict(result.is_good, f"{result}\n")
    return share


def _toolchain(device: Device) -> str:
    key = device.compile_key().split(" ")
    return " ".join([part for part in key if not part.startswith("-")][:2])
