"""What a trace knows of an array that is given to it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from loopwright_core.ir.dtype import DType


@dataclass(slots=True)
class Kind:
    """What is known of an array while tracing. `shape`: of its memory, in row-major order;
    `axes`: how the array's own axes are permuted from it, None where they are not."""

    dtype: DType
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What tells it apart."""
        return self.dtype.name, self.shape, self.axes

    @property
    def has_memory(self) -> bool:
        """Whether it has elements: only then it is an input of kernels."""
        return 0 not in self.shape

    def __str__(self) -> str:
        sizes = self.shape if self.axes is None else [self.shape[a] for a in self.axes]
        return f"{self.dtype}[{', '.join(map(str, sizes))}]"
