"""`lw.jit`: a function traced once per kind of arguments, then run as one call."""

from __future__ import annotations

from loopwright.jit.function import Jitted, jit

__all__ = ["Jitted", "jit"]
