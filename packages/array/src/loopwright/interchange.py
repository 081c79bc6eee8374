"""DLPack, both ways: memory taken from other libraries, and handed to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopwright.api.arguments import flag, integers
from loopwright.memory import HostArray
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    MissingMethodError,
    SharingError,
    fail,
)

CPU = (1, 0)  # DLPack's number for the host, and which one
_HOST_KINDS = (1, 3, 11, 13)  # and pinned or managed memory, which the host reads too
_READ_ONLY = (1, 0)  # the first version that can say so


def imported(x: Any, where: str, to_cpu: bool = False, copy: bool | None = None) -> HostArray:
    """The elements of an object that speaks DLPack, as a NumPy array over its memory.

    With `to_cpu` an object of another device is asked for a copy in the CPU's memory.

    Raises MissingMethodError, SharingError where the object refuses, and ArgumentError where it
    would have to copy and `copy` is False.
    """
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        fail(MissingMethodError, f"{type(x).__name__} does not speak DLPack", where=where)
    try:
        if x.__dlpack_device__()[0] in _HOST_KINDS:
            return np.from_dlpack(x)
        if to_cpu and copy is not False:
            return np.from_dlpack(x, device="cpu")
    except (TypeError, ValueError, AttributeError, BufferError, RuntimeError) as error:
        fail(SharingError, f"{type(x).__name__} does not hand its memory on: {error}", where=where)
    fail(
        ArgumentError if to_cpu else SharingError,
        f"{type(x).__name__} lies in the memory of another device, and must be copied",
        where=where,
        fix="leave copy=None" if to_cpu else "name a device, as in device='cpu'",
    )


def exported(values: HostArray, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """A DLPack capsule of a read-only array; `__dlpack__` has the arguments' meaning."""
    where = "__dlpack__"
    copy = None if copy is None else flag(copy, "copy", where)
    if stream is not None:
        fail(DeviceError, "the CPU has no streams", where=where, fix="leave stream=None")
    if dl_device is not None and _pair(dl_device, "dl_device") != CPU:
        fail(
            SharingError,
            f"memory of the DLPack device {tuple(dl_device)} was asked for, this is the CPU's",
            where=where,
            fix="leave dl_device out, or hand the CPU's memory on",
        )
    version = (0, 0) if max_version is None else _pair(max_version, "max_version")
    if values.dtype.isbuiltin != 1:  # those of ml_dtypes
        fail(
            SharingError,
            f"DLPack does not carry {values.dtype}",
            where=where,
            fix="convert it with lw.astype, or hand x.numpy() on",
        )
    if version >= _READ_ONLY:
        return values.__dlpack__(max_version=version, copy=copy)
    if copy is False:
        fail(
            SharingError,
            "DLPack before 1.0 cannot say that memory is read-only, as this array's is",
            where=where,
            fix="ask for max_version=(1, 0), or leave out copy=False",
        )
    return values.copy().__dlpack__()


def _pair(value: Any, name: str) -> tuple[int, int]:
    found = integers(value, name, "__dlpack__")
    if len(found) != 2:
        fail(ArgumentTypeError, f"{name} is a pair of ints, got {value!r}", where="__dlpack__")
    return found[0], found[1]
