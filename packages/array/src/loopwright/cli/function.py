"""`compile` and `run`: a user's function as kernels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loopwright.array import Array
from loopwright.cli.arguments import random_array
from loopwright.cli.check import compare, reference, run_timed
from loopwright.cli.output import Output, seconds, size, write_file
from loopwright.cli.request import Request
from loopwright.kernels import KernelView, kernels
from loopwright.memory import new_buffer
from loopwright.options import current
from loopwright.road import STAGES, Road, follow
from loopwright_core.ir.ops import Op
from loopwright_core.ir.shape import Shape, shape_of
from loopwright_core.ir.uop import toposort
from loopwright_core.plugin.loader import registry


def compile_function(
    request: Request, output: str | None, print_after: Sequence[str], out: Output
) -> bool:
    """Print a function's kernels, or write them: one file a kernel.

    `print_after`: stages whose result is printed too, "all" for each.
    """
    device = request.device
    results = request.results(request.empty())
    with request.options():
        found = kernels(*results, device=device)
        road = follow([r._uop for r in results], device, current()) if print_after else None
    stages = [s for s in STAGES if s in print_after or "all" in print_after]
    if road is not None:
        _print_stages(road, stages, out)
    paths = _paths(output, len(found)) if output else []
    for path, kernel in zip(paths, found, strict=False):
        write_file(path, kernel.source)
    language = registry().device(device).language
    for i, kernel in enumerate(found):
        if paths:
            out.text(f"{paths[i]}: {kernel.describe()}")
        else:
            out.heading(f"{'' if i == 0 else chr(10)}{_comment(kernel.describe())}")
            out.source(kernel.source, language)
    if not found:
        out.text("no kernel: every result is a view of an argument, or empty")
    document: dict[str, Any] = {
        "device": device,
        "kernels": [_as_json(k) for k in found],
        "files": [str(p) for p in paths],
    }
    if road is not None:
        document["after"] = {
            k.kernel.name: {s.name: s.after for s in k.stages if s.name in stages}
            for k in road.kernels
        }
    out.document(document)
    return True


def _print_stages(road: Road, stages: Sequence[str], out: Output) -> None:
    for kernel in road.kernels:
        for stage in kernel.stages:
            if stage.name in stages:
                out.heading(_comment(f"{kernel.kernel.name} after {stage.name}"))
                out.text(f"{stage.after.rstrip()}\n")


def _index_limits(request: Request) -> list[int | None]:
    """For each argument that gathers others' elements: how many positions those have."""
    arrays = request.empty()
    place = {a._uop: n for n, a in enumerate(arrays)}
    limits: list[int | None] = [None] * len(arrays)
    for node in toposort(tuple([r._uop for r in request.results(arrays)])):
        if node.op is not Op.GATHER:
            continue
        of, indices = node.src
        sizes: Shape = (shape_of(of)[node.arg],)
        if of.op is Op.RESHAPE:  # several indices as one number: each counts along some axis
            sizes = shape_of(of.src[0])
        shortest = min([n for n in sizes if isinstance(n, int)], default=1)
        for part in toposort((indices,)):
            n = place.get(part)
            if n is not None and part.dtype.is_int:
                limits[n] = min(shortest, limits[n] or shortest)
    return limits


def run_function(request: Request, seed: int, is_checked: bool, out: Output) -> bool:
    """Run a function on random arguments; print times, and whether NumPy agrees."""
    device = request.device
    rng = np.random.default_rng(seed)
    limits = _index_limits(request)
    host = [random_array(a, rng, limit) for a, limit in zip(request.arguments, limits, strict=True)]
    given = [Array(new_buffer(h, device), device) for h in host]
    with request.options():
        nodes = [r._uop for r in request.results(given)]
        values, timed = run_timed(nodes, device)
    rows = [
        [
            t.built.kernel.name,
            seconds(t.best_s),
            f"{t.gflops:.1f}",
            f"{t.gbytes:.1f}",
            " · ".join(map(str, t.built.kernel.schedule.opts)) or "-",
        ]
        for t in timed
    ]
    out.table(["kernel", "time", "GFLOP/s", "GB/s", "schedule"], rows)
    n_bytes = sum(t.built.program.estimate.bytes for t in timed)
    out.text(f"total {seconds(sum(t.best_s for t in timed))}, {size(n_bytes)} moved")
    is_good = True
    compared = []
    if is_checked:
        wanted = reference(lambda *values: request.call(values), host)
        for i, (got, want) in enumerate(zip(values, wanted, strict=True)):
            result = compare(got, want)
            is_good &= result.is_good
            compared.append({"ok": result.is_good, "error": result.error, "text": str(result)})
            out.verdict(result.is_good, f"result {i} {got.dtype}{list(got.shape)}: {result}")
    out.document(
        {
            "device": device,
            "ok": is_good,
            "kernels": [t.as_json() for t in timed],
            "compared": compared,
        }
    )
    return is_good


def _paths(output: str, n: int) -> list[Path]:
    """kernel.c, kernel_1.c, kernel_2.c, ..."""
    path = Path(output)
    return [path if i == 0 else path.with_stem(f"{path.stem}_{i}") for i in range(n)]


def _comment(line: str) -> str:
    return f"// {line}"


def _as_json(kernel: KernelView) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "schedule": kernel.describe(),
        "opts": list(kernel.opts),
        "flops": kernel.estimate.flops,
        "bytes": kernel.estimate.bytes,
        "source": kernel.source,
    }
