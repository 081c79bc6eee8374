"""The device `cpu`: this machine's processor, running C."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from loopwright_core.errors import ArgumentError, DeviceError, fail
from loopwright_core.plugin.device import State
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program
from loopwright_core.sequence import Launch
from loopwright_render_clang import compilers, cpu, launcher, runtime
from loopwright_render_clang.compile import ENTRY_FORMAT, compile_program
from loopwright_render_clang.render import render
from loopwright_render_clang.runtime import Loaded, Memory
from loopwright_render_clang.sequence import LoadedSequence


class CpuDevice:
    """This machine's processor, or one of `cpu.VARIANTS`, which is only rendered for."""

    language: str | None = "c"

    def __init__(self, variant: str = "") -> None:
        self._variant = variant
        self.name = f"cpu:{variant}" if variant else "cpu"
        self.count = 0 if variant else 1
        self._problem = ""
        try:
            self.target: Target = cpu.variant(variant) if variant else cpu.host()
        except ArgumentError as error:  # said when a kernel is to run, not when plugins load
            self._problem = str(error)
            self.target = cpu.host(1)

    def with_variant(self, variant: str) -> CpuDevice:
        """The device for another processor. Raises DeviceError."""
        cpu.variant(variant)
        return CpuDevice(variant)

    def state(self) -> tuple[State, str]:
        reason = self._unready()
        return ("render only", reason) if reason else ("ready", compilers.find().version)

    def _unready(self) -> str:
        if self._variant:
            return f"{self._variant} is a named processor: text for it is rendered, not run"
        reason = self._problem or cpu.unsupported()
        if reason:
            return reason
        try:
            compilers.find()
        except DeviceError as error:
            return str(error)
        return ""

    def _need_ready(self) -> None:
        reason = self._unready()
        if reason:
            fail(DeviceError, f"the device {self.name!r} cannot run kernels here: {reason}")

    def render(self, program: Program) -> str:
        return render(program, self.target)

    def compile_key(self) -> str:
        self._need_ready()
        return f"{compilers.find().key}; entry {ENTRY_FORMAT}"

    def compile(self, source: str, program: Program) -> bytes:
        self._need_ready()
        return compile_program(source, program)

    def load(self, binary: bytes, program: Program) -> Loaded:
        self._need_ready()
        return Loaded(binary, program)

    def launch(
        self,
        loaded: Loaded,
        buffers: Sequence[Any],
        variables: Sequence[int] = (),
        queue: Any = None,
    ) -> None:
        loaded.bind(buffers, variables)()

    def begin_sequences(self) -> None:
        """Let the compiler begin with what `load_sequence` will need."""
        if not self._unready():
            launcher.begin()

    def load_sequence(self, launches: Sequence[Launch]) -> LoadedSequence:
        """The launches as one call of C."""
        return LoadedSequence(launches)

    def time(
        self, loaded: Loaded, buffers: Sequence[Any], variables: Sequence[int], n: int
    ) -> list[float]:
        if n < 1:
            fail(ArgumentError, f"{n} runs cannot be timed", fix="ask for at least one")
        run = loaded.bind(buffers, variables)
        # With one thread its own time, which no other load changes. Where kernels may have more all
        # are timed by one clock, those of one thread too.
        clock = time.thread_time_ns if self.target.threads == 1 else time.perf_counter_ns
        found = []
        for _ in range(n):
            start = clock()
            run()
            found.append((clock() - start) * 1e-9)
        return found

    def allocate(self, n_bytes: int) -> Memory:
        return runtime.allocate(n_bytes)

    def from_host(self, array: np.ndarray[Any, Any]) -> Memory:
        return runtime.from_host(array)

    def to_host(self, memory: Memory, out: np.ndarray[Any, Any]) -> None:
        runtime.to_host(memory, out)

    def synchronize(self) -> None:
        """Nothing to wait for: a launch returns when it has ended."""
