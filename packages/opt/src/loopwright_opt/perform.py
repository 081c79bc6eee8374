"""Inside a worker: a task's kernel is scheduled, compiled, compared with the reference, timed."""

from __future__ import annotations

import mmap
import os
import pickle
import resource
import signal
import struct
from functools import lru_cache
from pathlib import Path
from typing import Any

from loopwright_core import pipeline
from loopwright_core.errors import LoopwrightError
from loopwright_core.kernel.gathered import index_limits
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
    """Answer tasks until standard input ends.

    The tasks are done by a fork of this process. When it crashes this one answers for it and forks
    again, which is faster than a start.
    """
    # Whatever else prints must not end up among the answers.
    answers = os.dup(1)
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    registry()
    os.write(answers, _LENGTH.pack(0))
    is_busy = mmap.mmap(-1, 1)  # shared with the forks
    while True:
        child = os.fork()
        if not child:
            _work(answers, is_busy)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            return
        if is_busy[0]:
            _answer(answers, Outcome(_ended(os.waitstatus_to_exitcode(status))))
        is_busy[0] = 0


def _work(answers: int, is_busy: mmap.mmap) -> None:
    while (data := _take()) is not None:
        is_busy[0] = 1
        outcome = perform(pickle.loads(data))
        is_busy[0] = 0
        _answer(answers, outcome)


def _answer(answers: int, outcome: Outcome) -> None:
    data = pickle.dumps(outcome)
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        left = left[os.write(answers, left) :]


def _ended(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


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
        limits = index_limits(_kernel(task.kernel))
        tried = run_trial(
            device, loaded, program, task.seed, expected, task.best_s, task.timed_s, limits
        )
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


def _take() -> bytes | None:
    """The next task, read without looking ahead: a crash must not lose what follows."""
    head = _read(_LENGTH.size)
    return None if head is None else _read(_LENGTH.unpack(head)[0])


def _read(n: int) -> bytes | None:
    found = bytearray()
    while len(found) < n:
        part = os.read(0, n - len(found))
        if not part:
            return None
        found += part
    return bytes(found)
