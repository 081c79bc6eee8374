"""What a device plugin ships."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program

State = Literal["ready", "compile only", "render only"]


@runtime_checkable
class Device(Protocol):
    """One device of one kind. Calls without a driver or compiler raise DeviceError with the fix."""

    name: str  # "cpu"
    language: str | None  # "c", "cuda", "metal", "opencl"
    target: Target
    count: int

    def state(self) -> tuple[State, str]:
        """How far this device gets on this machine, and why not further."""

    def render(self, program: Program) -> str:
        """The program as text: same program, same bytes."""

    def compile_key(self) -> str:
        """Compiler, version, flags and resolved CPU features: what a binary depends on."""

    def compile(self, source: str, program: Program) -> bytes:
        """Text to binary. Raises CompileError."""

    def load(self, binary: bytes, program: Program) -> Any:
        """Binary to something `launch` takes."""

    def launch(
        self, loaded: Any, buffers: Sequence[Any], variables: Sequence[int], queue: Any = None
    ) -> None:
        """Run it: buffers by slot (from `allocate`), variables in the program's order."""

    def time(
        self, loaded: Any, buffers: Sequence[Any], variables: Sequence[int], n: int
    ) -> list[float]:
        """Seconds of each of n runs, measured on the device."""

    def allocate(self, n_bytes: int) -> Any:
        """Uninitialised device memory, at least 64-byte aligned."""

    def from_host(self, array: np.ndarray[Any, Any]) -> Any:
        """Device memory with the bytes of a C-contiguous array; may share memory."""

    def to_host(self, memory: Any, out: np.ndarray[Any, Any]) -> None:
        """Copy device memory into a C-contiguous array."""

    def synchronize(self) -> None:
        """Wait until every launch has ended."""
