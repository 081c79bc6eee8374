"""Calls with NumPy's arrays in one step: arguments are checked and kernels run inside one C call.

Where the parts of Python's and NumPy's objects lie is public and has not changed for years; it is
tried out on arrays once, and where it does not hold there is no such call.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from loopwright_core.sequence import NumpyCall
from loopwright_render_clang import launcher, runtime

_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400


class Layout(ctypes.Structure):
    """`layout_t` of call.c."""

    _fields_ = tuple(
        (part, ctypes.c_longlong)
        for part in ("type", "size", "items", "data", "n_axes", "shape", "dtype", "flags")
    )


class _Expected(ctypes.Structure):
    """`expected_t` of call.c."""

    _fields_ = (
        ("dtype", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_longlong)),
        ("n_bytes", ctypes.c_longlong),
        ("n_axes", ctypes.c_int),
    )


class Call(ctypes.Structure):
    """`call_t` of call.c."""

    _fields_ = (
        ("at", Layout),
        ("array_type", ctypes.c_void_p),
        ("launches", ctypes.c_void_p),
        ("expected", ctypes.POINTER(_Expected)),
        ("constants", ctypes.POINTER(ctypes.c_void_p)),
        ("constant_bytes", ctypes.POINTER(ctypes.c_longlong)),
        ("temporaries", ctypes.POINTER(ctypes.c_longlong)),
        ("flags", ctypes.c_longlong),
        ("writeable", ctypes.c_longlong),
        ("n_launches", ctypes.c_int),
        ("n_most", ctypes.c_int),
        ("n_arguments", ctypes.c_int),
        ("n_outputs", ctypes.c_int),
        ("n_constants", ctypes.c_int),
        ("n_temporaries", ctypes.c_int),
    )


@cache
def layout() -> Layout | None:
    """Where the parts of arrays and tuples lie; None where they are not where they should be."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    head = object.__basicsize__
    found = Layout(
        type=head - 8,
        size=head,
        items=tuple.__basicsize__,
        data=head,
        n_axes=head + 8,
        shape=head + 16,
        dtype=head + 40,
        flags=head + 48,
    )
    return found if np.ndarray.__basicsize__ >= head + 56 and _holds(found) else None


def _holds(at: Layout) -> bool:
    """Whether arrays of several kinds look through it as they do through NumPy."""
    look: Any = launcher.library().loopwright_look
    look.argtypes = (ctypes.POINTER(Layout), ctypes.py_object, ctypes.POINTER(ctypes.c_longlong))
    look.restype = None
    base = np.zeros((3, 4, 5), np.float32)
    frozen = np.zeros(7, np.float64)
    frozen.flags.writeable = False
    for array in (base, base[1:, ::2], np.zeros((), np.int8), frozen):
        seen = (ctypes.c_longlong * 8)()
        look(ctypes.byref(at), array, seen)
        flags = _C_CONTIGUOUS * array.flags.c_contiguous | _ALIGNED * array.flags.aligned
        flags |= _WRITEABLE * array.flags.writeable
        wanted = [array.__array_interface__["data"][0], array.ndim, id(array.dtype)]
        known = seen[3] & (_C_CONTIGUOUS | _ALIGNED | _WRITEABLE)
        if [*seen[:3], known, seen[4]] != [*wanted, flags, id(np.ndarray)]:
            return False
        if tuple(seen[5 : 5 + array.ndim]) != array.shape:
            return False
    return True


def make_call(
    launches: Any,
    n_launches: int,
    n_most: int,
    scratch_bytes: int,
    arguments: Sequence[tuple[Any, tuple[int, ...]]],
    outputs: Sequence[tuple[Any, tuple[int, ...]]],
    constants: Sequence[runtime.Memory],
    temporaries: Sequence[int],
) -> NumpyCall | None:
    """A call of launches over a table of arguments, outputs, constants and temporaries.

    `arguments`, `outputs`: (NumPy dtype, shape) of each. `constants`: memory, held by the call.
    `temporaries`: sizes in bytes; they lie in the launching thread's scratch memory, behind
    `scratch_bytes`.
    """
    at = layout()
    if at is None:
        return None
    total = runtime.aligned(scratch_bytes)
    offsets = []
    for n_bytes in temporaries:
        offsets.append(total)
        total += runtime.aligned(n_bytes)
    arrays = [*arguments, *outputs]
    shapes = [(ctypes.c_longlong * max(len(s), 1))(*s) for _, s in arrays]
    expected = [
        _Expected(id(dtype), shape, math.prod(sizes) * dtype.itemsize, len(sizes))
        for (dtype, sizes), shape in zip(arrays, shapes, strict=True)
    ]
    sizes_of_constants = [memory.n_bytes for memory in constants]
    call = Call(
        at,
        id(np.ndarray),
        ctypes.addressof(launches),
        (_Expected * max(len(expected), 1))(*expected),
        (ctypes.c_void_p * max(len(constants), 1))(*[memory.address for memory in constants]),
        (ctypes.c_longlong * max(len(constants), 1))(*sizes_of_constants),
        (ctypes.c_longlong * max(len(offsets), 1))(*offsets),
        _C_CONTIGUOUS | _ALIGNED,
        _WRITEABLE,
        n_launches,
        n_most,
        len(arguments),
        len(outputs),
        len(constants),
        len(offsets),
    )
    function: Any = launcher.library()["loopwright_call"]  # a function object of its own
    function.argtypes = (
        ctypes.c_void_p,
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_void_p,
        ctypes.c_int,
    )
    function.restype = ctypes.c_int
    run: Callable[[int, tuple[Any, ...], tuple[Any, ...], int | None, int], int] = function
    where = ctypes.addressof(call)
    kept = (call, launches, shapes, arrays, tuple(constants))
    scratch = runtime.scratch

    if not total:

        def plain(
            given: tuple[Any, ...], made: tuple[Any, ...], is_checked: int = 0, _: Any = kept
        ) -> int:
            return run(where, given, made, None, is_checked)

        return plain

    def with_scratch(
        given: tuple[Any, ...], made: tuple[Any, ...], is_checked: int = 0, _: Any = kept
    ) -> int:
        own = scratch.get(total)
        return run(where, given, made, own.address, is_checked)

    return with_scratch
