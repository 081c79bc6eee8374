"""Lowering as a plugin: `loopwright_index` and `loopwright_lower`."""

from __future__ import annotations

from loopwright_core.ir.uop import UOp
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin import hookimpl
from loopwright_core.plugin.target import Target
from loopwright_core.program.program import Program

REQUIRES_API = (1, 0)


@hookimpl(trylast=True)
def loopwright_index(ast: UOp, name: str | None) -> Kernel:
    """Movement ops become index expressions over dims."""
    from loopwright_lower.indexing import index

    return index(ast, name)


@hookimpl(trylast=True)
def loopwright_lower(kernel: Kernel, target: Target) -> Program:
    """Axes become loops, lanes and registers."""
    from loopwright_lower.lowering import lower

    return lower(kernel, target)
