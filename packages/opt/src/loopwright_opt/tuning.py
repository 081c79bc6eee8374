"""What a search's result depends on, as one text; taking a result from the database again."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from loopwright_core.errors import LoopwrightError
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.api import API
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.tuning import Result, TuningDatabase
from loopwright_opt.apply import apply_all
from loopwright_opt.portable import structure
from loopwright_opt.text import parse

__all__ = ["Result", "TuningDatabase", "key_of", "replay", "versions"]


def key_of(kernel: Kernel, device: Device, options: Options) -> str:
    """Kernel structure, device, architecture, threads, compiler, options and versions.

    The kernel's name is no part of it, nor are `beam` and `budget_s`: a longer search replaces a
    shorter one's result where it finds a faster schedule.
    """
    parts = {
        "kernel": structure(kernel),
        "device": device.name,
        "target": device.target.key,
        "compiler": device.compile_key(),
        "options": replace(options, schedule="beam", beam=0, budget_s=0.0).key,
        "versions": versions(),
    }
    return "\n".join(f"{name}: {value}" for name, value in parts.items())


def versions() -> str:
    """The API and every loaded plugin's version: another lowering may want another schedule."""
    found = [f"api {API[0]}.{API[1]}"]
    try:
        found.append(f"loopwright-core {version('loopwright-core')}")
    except PackageNotFoundError:
        found.append("loopwright-core unknown")
    loaded = [p for p in registry().plugins() if p.state == "loaded"]
    return ", ".join(found + [f"{p.name} {p.version}" for p in loaded])


def replay(kernel: Kernel, result: Result, device: Device) -> Kernel | None:
    """The kernel under a kept schedule, or None where its steps are not legal any more."""
    try:
        return apply_all(kernel, parse(result.opts), device.target)
    except LoopwrightError:
        return None
