"""Level-2 elementwise ops, total functions, in the primitive ops that a target lists."""

from loopwright_lower.decompose.driver import decompose, decompose_rules

__all__ = ["decompose", "decompose_rules"]
