"""Shared objects as bytes, opened in this process."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import tempfile

from loopwright_core.errors import DeviceError, fail

_numbers = itertools.count()


def open_library(binary: bytes) -> ctypes.CDLL:
    """The shared object with these bytes, opened from a file that is gone afterwards."""
    # A file name the loader has seen gives the library it had then, so names never repeat.
    problems = []
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="loopwright-", ignore_cleanup_errors=True)
            )
            path = os.path.join(os.path.abspath(folder), f"k{next(_numbers)}.so")
            with open(path, "wb") as file:
                file.write(binary)
            return ctypes.CDLL(path)
        except OSError as error:
            problems.append(str(error))
    # A temporary folder that is full, read-only or forbids execution: a file in memory does it.
    if hasattr(os, "memfd_create"):
        try:
            fd = os.memfd_create("loopwright", os.MFD_CLOEXEC)
            os.write(fd, binary)
            return ctypes.CDLL(f"/proc/self/fd/{fd}")  # stays open, or its name would repeat
        except OSError as error:
            problems.append(str(error))
    fail(
        DeviceError,
        f"a compiled kernel could not be loaded: {'; '.join(problems)}",
        fix="set TMPDIR to a folder that can be written and executed from",
    )
