"""The option `schedule="beam"`: a kept result where there is one, else a search that keeps its."""

from __future__ import annotations

from concurrent.futures import Executor

from loopwright_core.errors import DeviceError, OptError, fail
from loopwright_core.kernel.estimate import estimate
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.plugin.target import Target
from loopwright_core.progress import Progress, report
from loopwright_core.tuning import Result, TuningDatabase
from loopwright_opt.search import Search
from loopwright_opt.tuning import key_of, replay


def tune(
    kernel: Kernel,
    target: Target,
    options: Options,
    executor: Executor | None = None,
    database: TuningDatabase | None = None,
) -> Kernel:
    """The kernel under the best schedule known for it here; searched for where none is kept.

    `executor`: any `concurrent.futures.Executor`, to carry the compiling. Raises OptError where
    the device cannot run kernels here.
    """
    device = _device(kernel, target)
    database = database or TuningDatabase()
    key = key_of(kernel, device, options)
    kept = database.get(key)
    if kept is not None:
        made = replay(kernel, kept, device)
        if made is not None:
            _report_replay(made, kept)
            return made
    search = Search(kernel, device, options.beam, options.budget_s, executor, options=options)
    found = search.run()
    if not found.best_s:  # nothing ran: nothing to keep
        return found.kernel
    opts = tuple(map(str, found.kernel.schedule.opts))
    database.put(Result(key, kernel.name, opts, found.best_s, found.start_s))
    return found.kernel


def _device(kernel: Kernel, target: Target) -> Device:
    """The device that runs kernels of this target."""
    try:
        device = registry().device(target.name)
    except DeviceError as error:
        fail(OptError, f"beam search for {kernel.name} has no device: {error}", fix=_FIX)
    state, reason = device.state()
    if device.target.key != target.key or state != "ready":
        why = reason or f"the device {target.name!r} here is another one"
        fail(OptError, f"beam search times kernels, and {target.name} runs none: {why}", fix=_FIX)
    return device


_FIX = 'Use schedule="heuristic", or give the opts that a search on such a machine found'


def _report_replay(kernel: Kernel, kept: Result) -> None:
    counted = estimate(kernel)
    report(
        Progress(
            kernel=kernel.name,
            step=0,
            n_ranked=0,
            n_timed=0,
            n_failed=0,
            best_s=kept.best_s,
            start_s=kept.start_s,
            left_s=0.0,
            opts=kept.opts,
            flops=counted.flops,
            bytes=counted.bytes,
            done="kept from an earlier search",
            is_replay=True,
        )
    )
