"""The C compilers of this machine: found in a fixed order, asked once what they are."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from loopwright_core.cache import Cache
from loopwright_core.errors import DeviceError, fail
from loopwright_render_clang import cpu

Kind = Literal["gcc", "clang", "zig"]

HOW_TO_GET_ONE = (
    'install one: pip install "loopwright[zig]" brings one that needs nothing else, '
    "or apt install gcc"
)
_COMMON = (
    "-std=gnu11",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fvisibility=hidden",
    "-fPIC",
    "-shared",
    "-w",
)
_PROBE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler that answered: how to call it, what it is, what native code means to it."""

    argv: tuple[str, ...]
    kind: Kind
    version: str
    macros: str  # a hash of all predefined macros: the resolved CPU features among them
    has_avx512: bool

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of every kernel. Never fast-math: it changes results, and GCC's also the
        whole process, by setting flush-to-zero when the library is loaded."""
        if self.kind != "gcc":
            # More brings nothing to text that is explicit about its vectors. Zig adds checks.
            extra = ("-fno-sanitize=all",) if self.kind == "zig" else ()
            return ("-O1", cpu.machine_flag("cpu"), *_COMMON, *extra)
        wide = ("-mprefer-vector-width=512",) if self.has_avx512 else ()
        return ("-O2", cpu.machine_flag("cpu"), *wide, *_COMMON, *self._without_purity())

    def _without_purity(self) -> tuple[str, ...]:
        """GCC 12 takes some vectorized loops over restrict pointers for functions that store
        nothing, and drops the calls. Kernels are called for what they store: none is pure."""
        major = self.version.partition(".")[0]
        has_modref = major.isdigit() and int(major) >= 11
        return ("-fno-ipa-pure-const", *(("-fno-ipa-modref",) if has_modref else ()))

    @property
    def key(self) -> str:
        """What a binary depends on."""
        return " ".join((self.kind, self.version, *self.flags, self.macros))


def environment() -> dict[str, str]:
    """The environment of a compiler's process: messages in English, temporary files beside the
    source, which a TMPDIR of any spelling would otherwise decide."""
    env = dict(os.environ, LC_ALL="C", TMPDIR=".")
    if not os.access(os.path.expanduser("~"), os.W_OK):
        for name in ("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"):
            env.setdefault(name, os.path.join(tempfile.gettempdir(), "loopwright-zig"))
    return env


_found: dict[str, Compiler] = {}


def find() -> Compiler:
    """The compiler to use. Raises DeviceError where there is none, or LOOPWRIGHT_CC is wrong."""
    wanted = os.environ.get("LOOPWRIGHT_CC", "").strip()
    known = _found.get(wanted)
    if known is not None:
        return known
    compiler = _named(wanted) if wanted else _first()
    _found[wanted] = compiler
    return compiler


def forget() -> None:
    """Look again at the next use: for tests, and after an installation."""
    _found.clear()


def _named(wanted: str) -> Compiler:
    is_path = os.path.exists(wanted)
    try:
        argv = (wanted,) if is_path else tuple(shlex.split(wanted))
    except ValueError as error:
        fail(DeviceError, f"LOOPWRIGHT_CC is {wanted!r}: {error}", fix="quote it like a shell")
    program = shutil.which(argv[0])
    if program is None:
        fail(
            DeviceError,
            f"LOOPWRIGHT_CC names {wanted!r}, which is no program here",
            fix="set it to a C compiler such as gcc, or unset it",
        )
    compiler, problem = probe((os.path.abspath(program), *argv[1:]))
    if compiler is None:
        fail(
            DeviceError,
            f"LOOPWRIGHT_CC names {wanted!r}, which does not compile C: {problem}",
            fix="set it to a C compiler such as gcc, or unset it",
        )
    return compiler


def _first() -> Compiler:
    problems = []
    for argv in candidates():
        compiler, problem = probe(argv)
        if compiler is not None:
            return compiler
        problems.append(f"{' '.join(argv)}: {problem}")
    tried = f" ({'; '.join(problems)})" if problems else ""
    fail(DeviceError, f"no C compiler was found on this machine{tried}", fix=HOW_TO_GET_ONE)


def candidates() -> list[tuple[str, ...]]:
    """The compilers that seem to be there, best first."""
    found: list[tuple[str, ...]] = []
    for name in ("clang", "gcc"):
        program = shutil.which(name)
        if program is not None:
            found.append((os.path.abspath(program),))
    spec = importlib.util.find_spec("ziglang")
    if spec is not None and spec.origin is not None:
        # Directly where it is: starting Python for it costs more than a small compilation.
        zig = Path(spec.origin).parent / "zig"
        found.append((str(zig), "cc") if zig.exists() else (sys.executable, "-m", "ziglang", "cc"))
    return found


def probe(argv: tuple[str, ...]) -> tuple[Compiler | None, str]:
    """Ask a compiler for its predefined macros: what it is, or why it is of no use."""
    key = _probe_key(argv)
    cached = Cache().get("compiler", key)
    text = cached.decode(errors="replace") if cached is not None else ""
    if not text:
        text, problem = _ask(argv)
        if problem:
            return None, problem
        Cache().put("compiler", key, text.encode())
    return _read(argv, text), ""


def _probe_key(argv: tuple[str, ...]) -> str:
    """Another file under the same name, or another processor, is asked again."""
    try:
        stat = os.stat(os.path.realpath(argv[0]))
        identity = f"{os.path.realpath(argv[0])} {stat.st_size} {stat.st_mtime_ns}"
    except OSError:
        identity = argv[0]
    model = hashlib.sha256(_cpu_text().encode()).hexdigest()
    return "\0".join((*argv, identity, cpu.architecture(), model))


def _cpu_text() -> str:
    """All that this processor says of itself but what changes from moment to moment."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    wanted = ("flags", "Features", "model", "vendor_id", "cpu family", "stepping", "CPU ")
    return "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _ask(argv: tuple[str, ...]) -> tuple[str, str]:
    command = [*argv, "-x", "c", cpu.machine_flag("cpu"), "-dM", "-E", "-"]
    try:
        with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
            done = subprocess.run(
                command,
                input=b"",
                capture_output=True,
                cwd=folder,
                env=environment(),
                timeout=_PROBE_TIMEOUT_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return "", f"no answer within {_PROBE_TIMEOUT_S:g} s"
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return "", str(error)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0 or "#define __GNUC__" not in text:
        message = done.stderr.decode(errors="replace").strip().splitlines()
        return "", message[0] if message else f"exit status {done.returncode}"
    return text, ""


def _read(argv: tuple[str, ...], text: str) -> Compiler:
    macros: dict[str, str] = {}
    for line in text.splitlines():
        parts = line.split(None, 2)
        if len(parts) >= 2 and parts[0] == "#define":
            macros[parts[1]] = parts[2] if len(parts) == 3 else ""
    kind: Kind = "gcc"
    if "__clang__" in macros:
        kind = "zig" if "zig" in argv[0] or "ziglang" in argv else "clang"
    digest = hashlib.sha256("\n".join(sorted(text.splitlines())).encode()).hexdigest()
    version = macros.get("__VERSION__", "").strip('"')
    return Compiler(argv, kind, version, digest[:16], "__AVX512F__" in macros)
