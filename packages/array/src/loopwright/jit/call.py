"""One call of a jitted function, taken apart: its inputs, and the key of the variant it needs."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright.array import Array, as_device, from_host, refuse_devices
from loopwright.evaluate import compute
from loopwright.jit import tree
from loopwright.jit.trace import Kind
from loopwright.jit.variant import Input
from loopwright.jit.variants import Key
from loopwright.memory import Storage, storage
from loopwright.options import current
from loopwright_core.errors import ArgumentTypeError, fail
from loopwright_core.ir.dtype import from_numpy
from loopwright_core.ir.ops import Op


@dataclass(frozen=True, slots=True)
class Call:
    """`kinds` and `paths` are of every array, `inputs` of those with elements, in order.

    `is_numpy`: all arrays are NumPy's. `donated`: places in `inputs`.
    """

    bound: inspect.BoundArguments
    kinds: tuple[Kind, ...]
    paths: tuple[str, ...]
    inputs: tuple[Input, ...]
    donated: tuple[int, ...]
    device: str
    is_numpy: bool
    key: Key


def take_call(
    bound: inspect.BoundArguments,
    static: Sequence[str],
    donate: Sequence[str],
    owner: str | None,
) -> Call:
    """`owner`: the parameter that holds the object a method was called on.

    Raises ArgumentTypeError for arguments that are neither arrays, nor plain, nor static.
    """
    arrays: list[Any] = []
    paths: list[str] = []
    donated: list[bool] = []
    parts: list[tuple[str, Hashable]] = []
    for name, value in bound.arguments.items():
        if name == owner:
            parts.append((name, id(value)))
        elif name in static:
            parts.append((name, static_token(name, value)))
        else:
            taken = tree.take_apart(value, name)
            arrays += taken.arrays
            paths += taken.paths
            donated += [name in donate] * len(taken.arrays)
            parts.append((name, taken.key))
    device = _device(arrays, paths)
    _compute_lazy(arrays)
    taken_in = [_take_in(array, device) for array in arrays]
    kinds = tuple([kind for kind, _ in taken_in])
    with_memory = [
        (one, d) for (_, one), d in zip(taken_in, donated, strict=True) if one is not None
    ]
    is_numpy = bool(arrays) and not any(isinstance(a, Array) for a in arrays)
    parts += [(path, kind) for path, kind in zip(paths, kinds, strict=True)]
    parts += [("the device", device), ("NumPy or not", is_numpy), ("the options", current())]
    return Call(
        bound,
        kinds,
        tuple(paths),
        tuple([one for one, _ in with_memory]),
        tuple([i for i, (_, is_donated) in enumerate(with_memory) if is_donated]),
        device,
        is_numpy,
        tuple(parts),
    )


def static_token(name: str, value: Any) -> Hashable:
    """What tells a static value apart. Raises ArgumentTypeError where it cannot be hashed."""
    try:
        found = tree.token(value)
        hash(found)
    except TypeError:
        fail(
            ArgumentTypeError,
            f"the static argument {name} is a {type(value).__name__}, which cannot be hashed",
            fix="pass a tuple for a list, a frozenset for a set, or leave it out of static=",
        )
    return found


def _device(arrays: Sequence[Any], paths: Sequence[str]) -> str:
    """The device of all Loopwright arrays, else the default."""
    found: str | None = None
    for array, path in zip(arrays, paths, strict=True):
        if isinstance(array, Array):
            if found is not None and array._device != found:
                refuse_devices(path, found, array._device)
            found = array._device
    return as_device(found)


def _compute_lazy(arrays: Sequence[Any]) -> None:
    """Compute what is an expression still, all of it together."""
    lazy = []
    for array in arrays:
        if isinstance(array, Array) and array.size:
            base = array._uop.src[0] if array._uop.op is Op.PERMUTE else array._uop
            if base.op is not Op.BUFFER:
                lazy.append(array)
    if lazy:
        compute(lazy)


def _take_in(array: Any, device: str) -> tuple[Kind, Input | None]:
    """What a trace knows of an array, and its memory; without elements it has none."""
    if isinstance(array, Array):
        node, known = array._uop, True
    else:
        values = np.asarray(array)
        dtype = from_numpy(values.dtype)
        flags = values.flags
        if dtype is not None and flags.c_contiguous and flags.aligned and values.size:
            return Kind(dtype, values.shape), Input(
                Storage(dtype, values.shape, device, values), None
            )
        node, known = from_host(values, device, None)._uop, False
    axes: tuple[int, ...] | None = None
    if node.op is Op.PERMUTE and node.src[0].op is Op.BUFFER:
        axes, node = node.arg, node.src[0]
    if node.op is not Op.BUFFER:  # without elements
        return Kind(node.dtype, _shape(array)), None
    return Kind(node.dtype, node.arg.shape, axes), Input(storage(node), node if known else None)


def _shape(array: Any) -> tuple[int, ...]:
    return tuple(array.shape)
