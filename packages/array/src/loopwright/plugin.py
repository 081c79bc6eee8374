"""The array package's own plugin: fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loopwright_core.ir.uop import UOp
from loopwright_core.plugin import hookimpl
from loopwright_core.plugin.target import Target

if TYPE_CHECKING:
    from loopwright.fuse import FusedKernel

REQUIRES_API = (1, 0)


@hookimpl(trylast=True)
def loopwright_fuse(outputs: Sequence[UOp], target: Target) -> list[FusedKernel]:
    """Kernels wherever the cost of computing and storing values is lowest."""
    from loopwright.fuse import fuse

    return fuse(outputs, target)
