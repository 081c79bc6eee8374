"""Inside a worker: a task's kernel is scheduled, compiled, compared with the reference, timed."""

from __future__ import annotations

import os
import pickle
import resource
import struct
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from loopwright_core import pipeline
from loopwright_core.errors import LoopwrightError
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.loader import registry
from loopwright_core.program.program import Program
from loopwright_core.trial import run_trial
from loopwright_opt import portable
from loopwright_opt.apply import apply_all
from loopwright_opt.text import parse
from loopwright_opt.worker import Outcome, Task

_LENGTH = struct.Struct("<Q")


def serve() -> None:
    """Answer tasks until standard input ends."""
    # Whatever else prints must not end up among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    registry()
    answers.write(_LENGTH.pack(0))
    answers.flush()
    tasks = sys.stdin.buffer
    while (data := _take(tasks)) is not None:
        outcome = perform(pickle.loads(data))
        answer = pickle.dumps(outcome)
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


def perform(task: Task) -> Outcome:
    """Do a task in this process."""
    try:
        _limit_memory(task.memory_bytes)
        device = registry().device(task.device)
        if device.target.key != task.target:
            return Outcome(f"the device {task.device!r} is another one here")
        program = _lowered(task.kernel, task.opts, task.device)
        if sum(len(p.uops) for p in program.phases) > task.max_ops:
            return Outcome(f"more than {task.max_ops} operations")
        if task.binary is None:
            return Outcome(binary=device.compile(pipeline.render(program, device), program))
        loaded = _loaded(task.kernel, task.opts, task.device, task.binary)
        expected = Path(task.expected) if task.expected else None
        tried = run_trial(device, loaded, program, task.seed, expected, task.best_s, task.timed_s)
        return Outcome(tried) if isinstance(tried, str) else Outcome(times=tried)
    except MemoryError:
        return Outcome("out of memory")
    except LoopwrightError as error:
        return Outcome(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    except Exception as error:  # a plugin's own failure costs this candidate only
        return Outcome(f"{type(error).__name__}: {error}")


# A candidate that is timed in turns with another one comes again and again.
@lru_cache(maxsize=8)
def _lowered(data: bytes, opts: tuple[str, ...], name: str) -> Program:
    target = registry().device(name).target
    return pipeline.lower(apply_all(_kernel(data), parse(opts), target), target)


@lru_cache(maxsize=8)
def _loaded(data: bytes, opts: tuple[str, ...], name: str, binary: bytes) -> Any:
    return registry().device(name).load(binary, _lowered(data, opts, name))


@lru_cache(maxsize=1)
def _kernel(data: bytes) -> Kernel:
    return portable.load(data)


def _limit_memory(n_bytes: int) -> None:
    """Address space that this process may have: what it has now and `n_bytes`."""
    global _base
    if _base is None:
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            _base = pages * resource.getpagesize()
        except (OSError, ValueError):
            _base = 1 << 30
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = _base + n_bytes
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


_base: int | None = None


def _take(source: BinaryIO) -> bytes | None:
    head = source.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    data = source.read(_LENGTH.unpack(head)[0])
    return data if len(data) == _LENGTH.unpack(head)[0] else None
