"""How a dim ends that its axes do not divide: the same rule for loops and for those who tell."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

from loopwright_core.kernel.dims import Axis, Dim

Tail = Literal["exact", "peel", "guard"]
# What a step may say of its dim's tail: "pad" guards each position of whole blocks.
POLICIES = ("guard", "peel", "pad")


def tail_of(dim: Dim, axes: Sequence[Axis], policy: str = "") -> Tail:
    """ "exact": nothing is left over. "peel": loops end early, and what is left of the expanded
    block is a body of its own behind the innermost loop. "guard": each position asks whether it
    exists. A policy other than "peel" guards what could be peeled.

    >>> from loopwright_core.kernel.dims import AxisKind as K
    >>> i, blocks = Dim("i", 10), [Axis("i", 4, 3, K.LOOP), Axis("i", 1, 4, K.UPCAST)]
    >>> tail_of(i, blocks), tail_of(i, blocks[1:]), tail_of(Dim("i", 12), blocks)
    ('peel', 'guard', 'exact')
    """
    if dim.is_symbolic:
        return "peel"
    sizes = {a: a.size for a in axes if isinstance(a.size, int)}
    if prod(sizes.values()) == dim.size:
        return "exact"
    block = prod(n for a, n in sizes.items() if a.kind.is_expanded)
    loops = [a for a in axes if not a.kind.is_expanded]
    regular = all(a.stride % block == 0 for a in loops)
    return "peel" if regular and loops and policy in ("", "peel") else "guard"
