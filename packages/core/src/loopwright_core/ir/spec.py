"""What is legal at each level of the IR; docs/ir.md is the manual, `ops.py` lists the ops."""

from __future__ import annotations

from loopwright_core.ir.spec_kernel import verify_kernel
from loopwright_core.ir.spec_program import unproved, unproved_accesses, verify_program
from loopwright_core.ir.spec_tensor import verify_tensor

__all__ = ["unproved", "unproved_accesses", "verify_kernel", "verify_program", "verify_tensor"]
