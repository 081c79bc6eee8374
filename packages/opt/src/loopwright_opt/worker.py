"""Supervised processes that compile, check and time candidates: one that fails costs itself only.

A worker is a process of its own that takes tasks on its standard input and answers on its
standard output, an empty answer first when it is ready. Memory is limited inside it, time from
outside: a worker that crashes, or answers too late, is ended with everything it started, and the
next task gets a fresh one.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

_LENGTH = struct.Struct("<Q")
_START_S = 60.0
NO_ANSWER = "no answer"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may take. Units: seconds; bytes of address space beyond what a worker has."""

    compile_s: float = 10.0
    run_s: float = 10.0
    memory_bytes: int = 4 << 30


@dataclass(frozen=True, slots=True)
class Task:
    """One schedule to compile, or (with `binary`) to check and time.

    kernel: as `portable.dump` gives it. target: the key of the target it was scheduled for.
    expected: file of the results to compare with; one that does not exist is written instead.
    best_s: the time to beat; a candidate three times slower is not timed further. 0: none.
    """

    kernel: bytes
    opts: tuple[str, ...]
    device: str
    target: str
    expected: str = ""
    seed: int = 0
    binary: bytes | None = None
    best_s: float = 0.0
    max_ops: int = 3000
    memory_bytes: int = 4 << 30
    timed_s: float = 0.05


@dataclass(frozen=True, slots=True)
class Outcome:
    """`problem` is "" or what went wrong; else the binary of a compiled task, times of a timed one.

    Units: seconds of each run.
    """

    problem: str = ""
    binary: bytes | None = None
    times: tuple[float, ...] = ()

    @property
    def best_s(self) -> float:
        return min(self.times, default=float("inf"))


class Worker:
    """One supervised process, started by its first task and again after each failure."""

    def __init__(self, command: Sequence[str] | None = None) -> None:
        # -c, not -m: the module must be the imported one, or its classes have two identities.
        start = "from loopwright_opt.perform import serve; serve()"
        self._command = list(command or (sys.executable, "-c", start))
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the process, if it does not run, without waiting for it."""
        self._started()

    def perform(self, task: Task, limit_s: float, end: float = float("inf")) -> Outcome:
        """The outcome of a task, at the latest when the limit has passed or at `end` (monotonic).

        A process that is still starting is no part of the limit.
        """
        if end <= time.monotonic():
            return Outcome("no time is left")
        process = self._started()
        done = False
        try:
            try:
                if not self._is_ready:
                    ready = min(end, time.monotonic() + _START_S)
                    self._is_ready = _receive(process, ready) == b""
                    if not self._is_ready:
                        return Outcome(_how_it_ended(process))
                limit_s = min(limit_s, end - time.monotonic())
                deadline = time.monotonic() + limit_s
                _send(process, pickle.dumps(task), deadline)
                data = _receive(process, deadline)
            except TimeoutError:
                return Outcome(f"{NO_ANSWER} within {max(limit_s, 0.0):.1f} s")
            except OSError:
                data = None
            if data is None:
                return Outcome(_how_it_ended(process))
            outcome = pickle.loads(data)
            done = isinstance(outcome, Outcome)
            return outcome if done else Outcome("the worker answered something else")
        except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError):
            return Outcome("the worker's answer is damaged")
        finally:
            if not done:  # Ctrl-C too: a worker in the middle of a task is of no more use
                self.close()

    def close(self) -> None:
        """End the process and all that it started."""
        process, self._process, self._is_ready = self._process, None, False
        if process is None:
            return
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.close()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the supervisor's; its group is killed as one
            bufsize=0,
        )
        return self._process


def carry(task: Task, limit_s: float) -> Outcome:
    """Compile one task in a supervised process of the machine this runs on: for executors.

    Each thread of each process keeps its worker; it ends with them, when its input ends.
    """
    if getattr(_carrier, "owner", 0) != os.getpid():  # a forked child must not share pipes
        _carrier.owner, _carrier.worker = os.getpid(), Worker()
    worker: Worker = _carrier.worker
    return worker.perform(task, limit_s)


_carrier = threading.local()


def _send(process: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
    assert process.stdin is not None
    out = process.stdin.fileno()
    os.set_blocking(out, False)
    left = memoryview(_LENGTH.pack(len(data)) + data)
    while left:
        _, ready, _ = select.select([], [out], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        left = left[os.write(out, left[: 1 << 16]) :]


def _receive(process: subprocess.Popen[bytes], deadline: float) -> bytes | None:
    head = _read(process, _LENGTH.size, deadline)
    return None if head is None else _read(process, _LENGTH.unpack(head)[0], deadline)


def _read(process: subprocess.Popen[bytes], n: int, deadline: float) -> bytes | None:
    assert process.stdout is not None
    source = process.stdout.fileno()
    found = bytearray()
    while len(found) < n:
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(source, min(n - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)


def _how_it_ended(process: subprocess.Popen[bytes]) -> str:
    with suppress(subprocess.TimeoutExpired):
        code = process.wait(timeout=1.0)
        if code < 0:
            return f"ended by {signal.Signals(-code).name}"
        return f"the worker ended with status {code}"
    return "the worker closed its answer"
