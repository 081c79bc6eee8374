"""The C that calls kernels: the threads' pool, sequences and whole calls, in one library."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import hashlib
import os
import subprocess
from importlib import resources
from typing import Any

from loopwright_core.cache import Cache
from loopwright_core.errors import LoopwrightError
from loopwright_core.locks import new_lock
from loopwright_render_clang import compilers
from loopwright_render_clang.compile import Running, command_line, compile_c, timeout_s
from loopwright_render_clang.shared_object import open_library

_EXTRA = ("-pthread",)
_library: ctypes.CDLL | None = None
_begun: Running | None = None
_lock = new_lock()


def library() -> Any:
    """The library, compiled once per machine."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                _library = open_library(_binary())
    return _library


def begin() -> None:
    """Let the compiler begin with the library, beside the kernels that will need it.

    What goes wrong here is told by `library`, which tries again.
    """
    global _begun
    if _library is None and _begun is None:
        with _lock, contextlib.suppress(LoopwrightError, OSError):
            if _library is None and _begun is None:
                source = _source()
                if Cache().get("binary", _key(source)) is None:
                    _begun = Running(command_line(compilers.find(), _EXTRA), source)
                    atexit.register(_end)


def _binary() -> bytes:
    source = _source()
    cache, key = Cache(), _key(source)
    binary = cache.get("binary", key)
    if binary is None:
        binary = _finish() or compile_c(source, "pool", compilers.find(), _EXTRA)
        cache.put("binary", key, binary)
    return binary


def _source() -> str:
    files = resources.files("loopwright_render_clang")
    return "\n".join(files.joinpath(name).read_text("utf-8") for name in ("pool.c", "call.c"))


def _key(source: str) -> str:
    digest = hashlib.sha256(source.encode()).hexdigest()
    return "\0".join(("loopwright pool", digest, compilers.find().key))


def _finish() -> bytes:
    """What the compiler that was begun has made; nothing where none was, or it failed."""
    global _begun
    running, _begun = _begun, None
    if running is None:
        return b""
    atexit.unregister(_end)
    try:
        return running.finish(timeout_s())[0]
    except (OSError, subprocess.TimeoutExpired):
        return b""


def _end() -> None:
    """End what was begun and never needed."""
    global _begun
    running, _begun = _begun, None
    if running is not None:
        running.end()


def _forget() -> None:
    """In a forked child: the compiler is the parent's."""
    global _begun
    running, _begun = _begun, None
    if running is not None:
        running.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
