"""Memory the interpreter reads and writes: checked arrays by slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopwright_core.errors import VerifyError, fail
from loopwright_core.ir.uop import Extent, UOp, Variable

Array = np.ndarray[Any, Any]


def size_of(extent: Extent, variables: Mapping[str, int]) -> int:
    """The extent's value at this launch."""
    if not isinstance(extent, Variable):
        return int(extent)
    value = variables.get(extent.name)
    if value is None:
        fail(VerifyError, f"variable {extent.name} has no value", fix="pass it in `variables`")
    if not extent.lo <= value <= extent.hi:
        bounds = f"{extent.lo}..{extent.hi}"
        fail(VerifyError, f"variable {extent.name} is {value}, outside {bounds}")
    return value


def shape_at(shape: tuple[Extent, ...], variables: Mapping[str, int]) -> tuple[int, ...]:
    """A shape's value at this launch."""
    return tuple([size_of(n, variables) for n in shape])


def flat(node: UOp, buffers: Mapping[int, Array], variables: Mapping[str, int]) -> Array:
    """The 1-D array behind a BUFFER node, sharing memory with what the caller gave."""
    slot = node.arg.slot
    found = buffers.get(slot)
    if found is None:
        fail(VerifyError, f"buffer {slot} was not given", fix="pass one array per slot")
    if found.dtype != node.dtype.numpy:
        fail(VerifyError, f"buffer {slot} is {found.dtype}, the program says {node.dtype}")
    n = int(np.prod(shape_at(node.arg.shape, variables), dtype=np.int64))
    if found.size != n:
        fail(VerifyError, f"buffer {slot} has {found.size} elements, the program says {n}")
    if not found.flags.c_contiguous:
        fail(VerifyError, f"buffer {slot} is not contiguous", fix="np.ascontiguousarray")
    return found.reshape(-1)
