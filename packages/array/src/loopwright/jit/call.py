"""One call of a jitted function, taken apart: its inputs, and the key of the variant it needs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright.array import Array, as_device, from_host, refuse_devices
from loopwright.evaluate import compute
from loopwright.jit import tree
from loopwright.jit.dynamic import Dynamic, bind
from loopwright.jit.kind import Kind
from loopwright.jit.variant import Input
from loopwright.memory import Storage, storage
from loopwright.options import current
from loopwright_core.errors import ArgumentTypeError, fail
from loopwright_core.ir.dtype import from_numpy
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Variable
from loopwright_core.kernel.options import Options


@dataclass(frozen=True, slots=True)
class Call:
    """`kinds` and `paths` are of every array, `inputs` of those with elements, in order.

    `is_numpy`: all arrays are NumPy's. `donated`: places in `inputs`. `key` tells calls apart;
    `labels` name its parts. `values`: of the Variables. `keeps_numbers`: Python floats are to be
    constants.
    """

    arguments: dict[str, Any]
    arrays: list[Any]
    kinds: list[Kind]
    paths: list[str]
    inputs: list[Input]
    donated: tuple[int, ...]
    device: str
    is_numpy: bool
    options: Options
    key: tuple[Hashable, ...]
    values: dict[Variable, int]
    keeps_numbers: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """What each part of the key is of."""
        return (
            *self.arguments,
            *self.paths,
            "the device",
            "NumPy or not",
            "numbers",
            "the options",
        )


@dataclass(frozen=True, slots=True)
class Roles:
    """What parameters are for: `static` and `donate` name them, `dynamic` their Variables."""

    static: tuple[str, ...]
    donate: tuple[str, ...]
    dynamic: Dynamic


def take_call(
    arguments: dict[str, Any], roles: Roles, owner: str | None, keeps_numbers: bool
) -> Call:
    """`owner`: the parameter that holds the object a method was called on.

    Raises ArgumentTypeError for arguments that are neither arrays, nor plain, nor static.
    """
    arrays: list[Any] = []
    paths: list[str] = []
    donated: set[int] = set()  # places in `arrays`
    key: list[Hashable] = []
    for name, value in arguments.items():
        before = len(arrays)
        if name == owner:
            key.append(("owner", id(value)))
        elif name in roles.static:
            key.append(static_token(name, value))
        else:
            key.append(tree.take_apart(value, name, arrays, paths))
        if name in roles.donate:
            donated.update(range(before, len(arrays)))
    device = _device(arrays, paths)
    own = [array for array in arrays if isinstance(array, Array)]
    is_numpy = bool(arrays) and not own
    _compute_lazy(own)
    kinds: list[Kind] = []
    inputs: list[Input] = []
    given_up: list[int] = []
    values: dict[Variable, int] = {}
    _check_dynamic(roles.dynamic, paths)
    for place, (array, path) in enumerate(zip(arrays, paths, strict=True)):
        kind, one = _take_in(array, device)
        if path in roles.dynamic:
            kind = bind(kind, path, roles.dynamic[path], values)
        kinds.append(kind)
        key.append(kind.key)
        if one is not None:
            if place in donated:
                given_up.append(len(inputs))
            inputs.append(one)
    options = current()
    key += [device, is_numpy, keeps_numbers, options]
    return Call(
        arguments,
        arrays,
        kinds,
        paths,
        inputs,
        tuple(given_up),
        device,
        is_numpy,
        options,
        tuple(key),
        values,
        keeps_numbers,
    )


def _check_dynamic(dynamic: Dynamic, paths: Sequence[str]) -> None:
    for name in dynamic:
        if name not in paths:
            fail(
                ArgumentTypeError,
                f"{name} has dynamic axes and is no array",
                where="dynamic=",
                fix="give an array for it",
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
    return as_device(None) if found is None else found


def _compute_lazy(arrays: Sequence[Array]) -> None:
    """Compute what is an expression still, all of it together."""
    lazy = []
    for array in arrays:
        if array.size:
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
        dtype, flags, shape = from_numpy(values.dtype), values.flags, values.shape
        if dtype is not None and flags.c_contiguous and flags.aligned and 0 not in shape:
            return Kind(dtype, shape), Input(Storage(dtype, shape, device, values), None)
        node, known = from_host(values, device, None)._uop, False
    axes: tuple[int, ...] | None = None
    if node.op is Op.PERMUTE and node.src[0].op is Op.BUFFER:
        axes, node = node.arg, node.src[0]
    if node.op is not Op.BUFFER:  # without elements
        return Kind(node.dtype, tuple(array.shape)), None
    return Kind(node.dtype, node.arg.shape, axes), Input(storage(node), node if known else None)
