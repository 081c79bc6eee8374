"""What this machine's processor can do, and the targets of processors that are elsewhere."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache
from pathlib import Path

from loopwright_core.errors import ArgumentError, DeviceError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import RAW, Op
from loopwright_core.plugin.target import Target
from loopwright_core.plugin.tensor_core import TensorCore
from loopwright_core.targets.amx import AMX_BF16, AMX_INT8

_ARITH = frozenset({dt.bool_, *dt.INTS, dt.float32, dt.float64})
_STORAGE = frozenset(dt.FLOATS) - _ARITH
_OPS = RAW | {
    *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.AND, Op.OR, Op.XOR, Op.CMPLT, Op.CMPEQ, Op.CMPNE),
    *(Op.WHERE, Op.NEG, Op.SQRT, Op.TRUNC, Op.RINT, Op.CAST, Op.BITCAST),
}
_TILE_OPS = frozenset({Op.WMMA, Op.TILE_LOAD, Op.TILE_STORE})
_V3 = frozenset({"sse4_1", "avx", "avx2", "fma", "f16c", "bmi2"})
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
# Names of the features that code generation may ask for; others do not matter here.
_AMX = frozenset({"amx_tile", "amx_bf16", "amx_int8"})
_KNOWN = _V4 | _AMX | {"avx512_bf16", "avx512_vnni", "avx512_fp16"}
_CACHES = (32 << 10, 1 << 20, 0)
_FLUSHES = frozenset({"products of bfloat16 flush subnormals"})
# Targets by name: text for them does not depend on the machine that renders it.
VARIANTS: dict[str, tuple[str, frozenset[str]]] = {
    "x86-64": ("x86_64", frozenset()),
    "x86-64-v3": ("x86_64", _V3),
    "x86-64-v4": ("x86_64", _V4),
    "sapphirerapids": ("x86_64", _KNOWN),
    "armv8": ("aarch64", frozenset({"neon", "fma"})),
}
_VARIANT_THREADS = 4


def machine_flag(name: str) -> str:
    """The compilers' flag for the processor of a target: of this machine, or a named one.

    On Arm, compilers know this machine's processor, not its architecture.
    """
    _, _, variant = name.partition(":")
    if variant:
        return f"-march={'armv8-a' if variant == 'armv8' else variant}"
    return "-mcpu=native" if architecture() == "aarch64" else "-march=native"


def target(
    name: str,
    arch: str,
    features: frozenset[str],
    threads: int,
    caches: tuple[int, int, int] = _CACHES,
) -> Target:
    """The target of a processor with those features."""
    has_fma = "fma" in features
    cores = tensor_cores(features)
    if arch == "aarch64":
        vector_bytes: tuple[int, ...] = (16,)
    elif features >= _V4:
        vector_bytes = (16, 32, 64)
    else:
        vector_bytes = (16, 32) if features >= {"avx", "avx2"} else (16,)
    return Target(
        name=name,
        arch=arch,
        arith=_ARITH,
        storage=_STORAGE,
        ops=(_OPS if has_fma else _OPS - {Op.FMA}) | (_TILE_OPS if cores else frozenset()),
        has_fma=has_fma,
        vector_bytes=vector_bytes,
        registers=32 if arch == "aarch64" or 64 in vector_bytes else 16,
        threads=threads,
        caches=caches,
        tensor_cores=cores,
        features=features | _FLUSHES if AMX_BF16[0] in cores else features,
    )


def tensor_cores(features: frozenset[str]) -> tuple[TensorCore, ...]:
    """The matrix instructions of a processor with those features."""
    found: tuple[TensorCore, ...] = ()
    if features >= {"amx_tile", "amx_bf16"}:
        found += AMX_BF16
    if features >= {"amx_tile", "amx_int8"}:
        found += AMX_INT8
    return found


def variant(name: str) -> Target:
    """The fixed target of that name. Raises DeviceError."""
    found = VARIANTS.get(name)
    if found is None:
        fail(
            DeviceError,
            f"the device 'cpu' has no variant {name!r}",
            fix=f"use one of {', '.join(VARIANTS)}",
        )
    return target(f"cpu:{name}", *found, _VARIANT_THREADS)


def n_threads() -> int:
    """Threads one launch may use: LOOPWRIGHT_THREADS, else the cores this process may run on."""
    wanted = os.environ.get("LOOPWRIGHT_THREADS", "").strip()
    if wanted:
        if not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted) <= 1024:
            fail(
                ArgumentError,
                f"LOOPWRIGHT_THREADS is {wanted!r}",
                fix="set it to a number from 1 to 1024, or unset it",
            )
        return int(wanted)
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def architecture() -> str:
    """x86_64 or aarch64; "" where this package has no code for the machine."""
    machine = platform.machine().lower()
    arch = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}.get(
        machine, ""
    )
    if sys.platform == "linux":
        return arch
    return arch if sys.platform == "darwin" and arch == "aarch64" else ""


def unsupported() -> str:
    """Why kernels cannot run on this machine; "" where they can."""
    if architecture():
        return ""
    return (
        f"kernels run on Linux (x86-64, aarch64) and macOS (arm64), "
        f"not on {sys.platform} {platform.machine()}"
    )


@cache
def features() -> frozenset[str]:
    """The features of this processor that matter here, by their Linux names."""
    arch = architecture()
    if arch == "aarch64":
        return frozenset({"neon", "fma"})
    try:
        info = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in info.splitlines():
        if line.startswith("flags"):
            found = frozenset(line.partition(":")[2].split()) & _KNOWN
            return found if not found & _AMX or may_use_tiles() else found - _AMX
    return frozenset()


def may_use_tiles() -> bool:
    """Ask Linux to let this process use AMX's tile registers; whether it does.

    Once per process is enough: threads and forked children have the permission too. Source: the
    kernel's documentation of dynamically enabled x86 state (arch_prctl ARCH_REQ_XCOMP_PERM).
    """
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):
        return False
    arch_prctl, request, tile_data = 158, 0x1023, 18
    return bool(call(ctypes.c_long(arch_prctl), request, ctypes.c_ulong(tile_data)) == 0)


@cache
def cache_sizes() -> tuple[int, int, int]:
    """Bytes of L1d, L2 and L3 per core; usual sizes where the system does not say."""
    if sys.platform == "darwin":
        l1, l2 = _sysctl("hw.l1dcachesize"), _sysctl("hw.l2cachesize")
        return (l1 or 64 << 10, l2 or 4 << 20, 0)
    found: dict[int, int] = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if (folder / "type").read_text(encoding="utf-8").strip() == "Instruction":
                continue
            level = int((folder / "level").read_text(encoding="utf-8"))
            size = _size((folder / "size").read_text(encoding="utf-8").strip())
            sharers = _n_listed((folder / "shared_cpu_list").read_text(encoding="utf-8").strip())
        except (OSError, ValueError):
            continue
        found[level] = size // sharers if level == 3 else size
    return (found.get(1, _CACHES[0]), found.get(2, _CACHES[1]), found.get(3, 0))


def _size(text: str) -> int:
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * unit


def _n_listed(text: str) -> int:
    """How many numbers a list such as `0-3,8` names."""
    n = 0
    for part in text.split(","):
        low, _, high = part.partition("-")
        n += int(high or low) - int(low) + 1
    return max(n, 1)


def _sysctl(name: str) -> int:
    try:
        value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
        ctypes.CDLL(None).sysctlbyname(
            name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
        )
        return value.value
    except (OSError, AttributeError):
        return 0


def host(threads: int = 0) -> Target:
    """This machine's target, with `n_threads()` threads unless given; where kernels cannot run,
    one to render for."""
    threads = threads or n_threads()
    arch = architecture()
    if not arch:
        return target("cpu", "x86_64", _V3, threads)
    return target("cpu", arch, features(), threads, cache_sizes())
