"""What a user may say about scheduling and numerics; frozen, part of every cache key."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Options:
    """`opts`: a schedule's text for the one kernel in scope, or (kernel name, texts) pairs.

    Units: budget_s seconds.
    """

    schedule: str = "heuristic"  # "none" | "heuristic" | "beam"
    opts: tuple[str, ...] | None = None
    opts_by_kernel: tuple[tuple[str, tuple[str, ...]], ...] = ()
    beam: int = 4
    budget_s: float = 30.0
    tensor_cores: str = "use"  # "use" | "off" | "shape"
    tensor_core_level: int = 2
    no_locals: bool = False
    parity: bool = False
    fast_math: bool = False
    tf32: bool = False
    half_accumulate: bool = False

    def given(self, kernel_name: str) -> tuple[str, ...] | None:
        """The opts a user gave for this kernel, else None."""
        return dict(self.opts_by_kernel).get(kernel_name, self.opts)

    @property
    def key(self) -> str:
        """Every option as text."""
        return ";".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self))
