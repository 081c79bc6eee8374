"""C text to a shared object, in a private folder, without a shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from loopwright_core.errors import ArgumentError, CompileError, fail
from loopwright_core.program.clayout import function_names, scratch_offsets
from loopwright_core.program.program import Program
from loopwright_render_clang import compilers
from loopwright_render_clang.compilers import Compiler
from loopwright_render_clang.render import memory_element, variable_type

# A kernel takes a fraction of a second; this is for the largest ones on slow and busy machines.
_TIMEOUT_S = 120


# What GCC and Clang say when they fail themselves. GCC 12's pass that joins comparisons does, on
# vectors twice as wide as the processor's.
_CRASHES = ("internal compiler error", "PLEASE submit a bug report")
_AFTER_A_CRASH = (("-fno-tree-forwprop",), ("-O0",))


def entry_names(program: Program) -> tuple[str, ...]:
    """The functions a launch calls, one a phase; all have one signature."""
    return tuple([f"{name}_entry" for name in function_names(program)])


# Part of every binary's cache key: raise it when `entries` or what `Loaded` expects changes.
ENTRY_FORMAT = 2


def entries(program: Program) -> str:
    """The text of the functions a launch calls: each unpacks its arguments for one phase."""
    found = []
    for name, phase in zip(function_names(program), program.phases, strict=True):
        arguments = []
        for k, p in enumerate(program.arrays):
            const = "" if p.is_output else "const "
            arguments.append(f"({const}{memory_element(p.dtype)} *)buffers[{k}]")
        for k, v in enumerate(program.variables):
            arguments.append(f"({variable_type(v.hi)})variables[{k}]")
        if phase.threads > 1:
            arguments.append("thread")
        if scratch_offsets(phase)[1]:
            arguments.append("scratch")
        found.append(
            f'\n__attribute__((visibility("default")))\n'
            f"void {name}_entry(void *const *buffers, const long long *variables, int thread, "
            f"void *scratch) {{\n    {name}({', '.join(arguments)});\n}}\n"
        )
    return "".join(found)


def compile_program(source: str, program: Program) -> bytes:
    """The shared object of a rendered program. Raises CompileError, DeviceError."""
    return compile_c(source + entries(program), program.name, compilers.find())


def command_line(compiler: Compiler, extra: Sequence[str] = ()) -> list[str]:
    """The command that makes kernel.so of kernel.c in the current folder.

    The names are relative: whatever TMPDIR holds, the compiler never sees it.
    """
    return [*compiler.argv, *compiler.flags, *extra, "-o", "kernel.so", "kernel.c", "-lm"]


def compile_c(text: str, name: str, compiler: Compiler, extra: tuple[str, ...] = ()) -> bytes:
    """The shared object of any C text. Raises CompileError.

    A compiler that crashes is asked again without the pass that is known to, then without passes.
    """
    limit_s = timeout_s()
    for less in ((), *_AFTER_A_CRASH):
        command = command_line(compiler, (*extra, *less))
        try:
            binary, message = Running(command, text).finish(limit_s)
        except subprocess.TimeoutExpired:
            binary, message = (
                b"",
                (
                    f"it was not done after {limit_s} s. Set LOOPWRIGHT_COMPILE_TIMEOUT to more "
                    "seconds, or LOOPWRIGHT_CC to another compiler."
                ),
            )
        except OSError as error:
            binary, message = b"", str(error)
        if binary:
            return binary
        if not any(words in message for words in _CRASHES):
            break
    _refuse(command, message, text, name)


class Running:
    """A compiler at work in a private folder: `finish` waits for it, `end` ends it."""

    def __init__(self, command: Sequence[str], text: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="loopwright-"))
        try:
            (self._folder / "kernel.c").write_text(text, encoding="utf-8", newline="\n")
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd=self._folder,
                env=compilers.environment(),
                start_new_session=True,  # a driver's own children end with it
            )
        except BaseException:
            self._remove()
            raise

    def finish(self, limit_s: int) -> tuple[bytes, str]:
        """(the shared object, "") or (nothing, the compiler's message). Raises TimeoutExpired."""
        try:
            _, told = self._process.communicate(timeout=limit_s)
            if self._process.returncode == 0:
                return (self._folder / "kernel.so").read_bytes(), ""
        except BaseException:
            self._kill()
            raise
        finally:
            self._remove()
        message = told.decode(errors="replace").strip()
        return b"", message or f"exit status {self._process.returncode}"

    def end(self) -> None:
        """End the compiler and all that it has started."""
        self._kill()
        self._remove()

    def leave(self) -> None:
        """In a forked child: the process and its folder are the parent's."""
        self._process.returncode = 0

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _kill(self) -> None:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.communicate()


def timeout_s() -> int:
    """Seconds a compiler may take: LOOPWRIGHT_COMPILE_TIMEOUT, else what suffices for any kernel.

    Raises ArgumentError.
    """
    wanted = os.environ.get("LOOPWRIGHT_COMPILE_TIMEOUT", "").strip()
    if not wanted:
        return _TIMEOUT_S
    if not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted) <= 86400:
        fail(
            ArgumentError,
            f"LOOPWRIGHT_COMPILE_TIMEOUT is {wanted!r}",
            fix="set it to a number of seconds from 1 to 86400, or unset it",
        )
    return int(wanted)


def _refuse(command: list[str], message: str, text: str, name: str) -> NoReturn:
    lines = message.splitlines()
    if len(lines) > 40:
        message = "\n".join([*lines[:40], f"... {len(lines) - 40} more lines"])
    fail(
        CompileError,
        f"the C compiler refused the kernel {name!r}\n"
        f"command: {shlex.join(command)}\n"
        f"source:  {_keep(text)}\n"
        f"{message}",
    )


def _keep(text: str) -> str:
    """Where the source lies for the user to look at."""
    with contextlib.suppress(OSError):
        folder = Path(tempfile.mkdtemp(prefix="loopwright-refused-"))
        path = folder / "kernel.c"
        path.write_text(text, encoding="utf-8", newline="\n")
        return os.fspath(path)
    return "could not be kept: no temporary folder can be written"
