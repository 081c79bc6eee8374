"""`compile` and `run`: a user's function as kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from loopwright.array import Array
from loopwright.cli.arguments import (
    Argument,
    load_function,
    parse_arguments,
    parse_opts,
    random_array,
)
from loopwright.cli.check import compare, reference, run_timed
from loopwright.cli.output import Output, seconds, size, write_file
from loopwright.devices import default_device
from loopwright.kernels import KernelView, kernels
from loopwright.memory import empty_buffer, new_buffer
from loopwright.options import options
from loopwright_core.errors import ArgumentError, fail
from loopwright_core.plugin.loader import registry


def compile_function(
    text: str,
    args: Sequence[str],
    device: str | None,
    schedule: str | None,
    opts: str | None,
    output: str | None,
    out: Output,
) -> bool:
    """Print a function's kernels, or write them: one file a kernel."""
    device = device or default_device()
    function = load_function(text)
    arguments = parse_arguments(function, args)
    given = [Array(empty_buffer(a.dtype, a.shape, device), device) for a in arguments]
    with _options(schedule, opts):
        found = kernels(*call_function(function, arguments, given), device=device)
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
    out.document(
        {
            "device": device,
            "kernels": [_as_json(k) for k in found],
            "files": [str(p) for p in paths],
        }
    )
    return True


def run_function(
    text: str,
    args: Sequence[str],
    device: str | None,
    schedule: str | None,
    opts: str | None,
    seed: int,
    is_checked: bool,
    out: Output,
) -> bool:
    """Run a function on random arguments; print times, and whether NumPy agrees."""
    device = device or default_device()
    function = load_function(text)
    arguments = parse_arguments(function, args)
    rng = np.random.default_rng(seed)
    host = [random_array(a, rng) for a in arguments]
    given = [Array(new_buffer(h, device), device) for h in host]
    with _options(schedule, opts):
        nodes = [r._uop for r in call_function(function, arguments, given)]
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
        wanted = reference(_by_name(function, arguments), host)
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


def _by_name(function: Callable[..., Any], arguments: Sequence[Argument]) -> Callable[..., Any]:
    names = [a.name for a in arguments]
    return lambda *values: function(**dict(zip(names, values, strict=True)))


def call_function(
    function: Callable[..., Any], arguments: Sequence[Argument], given: Sequence[Array]
) -> list[Array]:
    """What a function gives for these arguments. Raises ArgumentError for other than arrays."""
    result = _by_name(function, arguments)(*given)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for r in results:
        if not isinstance(r, Array):
            fail(
                ArgumentError,
                f"the function returns {type(r).__name__}, not Loopwright arrays",
                fix="compute with its arguments' operators, methods and __array_namespace__()",
            )
    return results


def _options(schedule: str | None, opts: str | None) -> AbstractContextManager[Any]:
    changes: dict[str, Any] = {}
    if schedule is not None:
        changes["schedule"] = schedule
    if opts is not None:
        changes["opts"] = parse_opts(opts)
    return options(**changes)


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
