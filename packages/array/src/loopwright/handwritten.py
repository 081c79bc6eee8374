"""Texts of kernels that users write by hand: what is known of one, compiled and loaded."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from loopwright.array import Array
from loopwright.identifiers import legal_name
from loopwright_core.cache import Cache
from loopwright_core.errors import ArgumentError, ArgumentTypeError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import const
from loopwright_core.locks import new_lock
from loopwright_core.plugin.device import Device
from loopwright_core.program.program import Estimate, Param, Phase, Program

# What C calls the elements of arrays, as far as a text says it without a typedef of its own.
_C_TYPES = {
    "float": ("float", 32),
    "double": ("float", 64),
    "_Bool": ("uint", 8),
    "bool": ("uint", 8),
    "signed char": ("int", 8),
    "unsigned char": ("uint", 8),
    "short": ("int", 16),
    "unsigned short": ("uint", 16),
    "int": ("int", 32),
    "unsigned": ("uint", 32),
    "unsigned int": ("uint", 32),
    "long": ("int", 8 * ctypes.sizeof(ctypes.c_long)),
    "unsigned long": ("uint", 8 * ctypes.sizeof(ctypes.c_long)),
    "size_t": ("uint", 8 * ctypes.sizeof(ctypes.c_size_t)),
    "long long": ("int", 64),
    "unsigned long long": ("uint", 64),
    **{f"int{n}_t": ("int", n) for n in (8, 16, 32, 64)},
    **{f"uint{n}_t": ("uint", n) for n in (8, 16, 32, 64)},
}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_FUNCTION = re.compile(r"^[^\S\n]*(?:extern\s+\"C\"\s+)?(?:__global__\s+)?void\s+(\w+)\s*\(", re.M)


class HandWritten:
    """A text for a device, and of its program all but the steps. Safe to share between threads."""

    def __init__(self, source: str, program: Program, device: Device) -> None:
        self.source, self.program, self.device = source, program, device
        self._lock = new_lock()
        self._loaded: Any = None
        types = ", ".join(f"{p.dtype}{list(p.shape)}" for p in program.params)
        self._key = (device.name, program.name, types, repr(program.phases[0]), source)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HandWritten) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def binary(self) -> bytes:
        """The compiled text, from the disk cache where it is there. Raises CompileError."""
        text = self.source
        if self.device.language == "c":  # messages of the compiler count the user's lines
            text = f'#line 1 "{self.program.name}"\n{text}\n'
        name, _, *parts, _ = self._key
        key = "\0".join(("hand-written", name, self.device.compile_key(), *parts, text))
        cache = Cache()
        found = cache.get("binary", key)
        if found is None:
            found = self.device.compile(text, self.program)
            cache.put("binary", key, found)
        return found

    @property
    def loaded(self) -> Any:
        """What `Device.launch` takes; compiled and loaded by the first use."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self.device.load(self.binary, self.program)
            return self._loaded


# Those of this process, the oldest out first: a library is loaded once however often it is used.
_known: dict[HandWritten, HandWritten] = {}
_MOST = 256


def hand_written(source: str, program: Program, device: Device) -> HandWritten:
    """The text as something to launch; the same object for the same text while it is kept."""
    made = HandWritten(source, program, device)
    found = _known.setdefault(made, made)
    if len(_known) > _MOST:
        _known.pop(next(iter(_known)), None)
    return found


def described_program(
    source: str,
    arrays: Sequence[Array],
    outputs: Sequence[tuple[tuple[int, ...], DType]],
    launch: Any,
    name: str | None,
    device: Device,
) -> Program:
    """What a device must know of the text to compile, load and launch it: all but its steps."""
    params = [Param(n, f"in{n}", a.dtype, tuple(a.shape), False) for n, a in enumerate(arrays)]
    params += [
        Param(len(arrays) + n, f"out{n}", dtype, shape, True)
        for n, (shape, dtype) in enumerate(outputs)
    ]
    sizes = [a.shape for a in arrays] + [shape for shape, _ in outputs]
    moved = sum(prod(size) * p.dtype.itemsize for size, p in zip(sizes, params, strict=True))
    code = _COMMENT.sub(" ", source)
    found = _name(code, name)
    phase = _phase(found, launch, device)
    if device.language == "c":
        _check_pointers(code, found, params)
    return Program(found, (phase,), tuple(params), (), Estimate(0, moved))


def _name(source: str, name: str | None) -> str:
    """The kernel's function: the one named, else the only one without a result."""
    known = list(dict.fromkeys(_FUNCTION.findall(source)))
    if name is None and len(known) == 1:
        return str(known[0])
    if name is not None and name in known and legal_name(name) == name:
        return name
    if name is not None:
        what = f"the text has no function void {name}(...)"
    elif known:
        what = f"the text has several functions: {', '.join(known)}"
    else:
        what = "the text has no function void NAME(...)"
    fail(ArgumentError, what, where="kernel", fix="define it, or give its name: name=...")


def _check_pointers(source: str, name: str, params: Sequence[Param]) -> None:
    """Compare the elements that a C function points to with the arrays', where both are known."""
    found = re.search(rf"\bvoid\s+{name}\s*\(([^()]*)\)", source)
    if found is None:
        return
    pointers = [part for part in found[1].split(",") if "*" in part]
    if len(pointers) != len(params):
        fail(
            ArgumentError,
            f"{name} has {len(pointers)} pointers for {len(params)} arrays",
            where="kernel",
            fix="write one for each input, then one for each output",
        )
    for pointer, param in zip(pointers, params, strict=True):
        words = re.findall(r"\w+", pointer.split("*")[0])
        text = " ".join(w for w in words if w not in ("const", "volatile", "restrict"))
        kind = _C_TYPES.get(text)
        wanted = (param.dtype.kind, param.dtype.bits)
        if param.dtype.is_bool:
            wanted = ("uint", 8)
        elif param.dtype.is_float and param.dtype.bits < 32:  # C knows their bits only
            wanted = ("uint", param.dtype.bits)
        if kind is not None and kind != wanted:
            fail(
                ArgumentTypeError,
                f"{name} takes {pointer.strip()!r} where the array has elements of {param.dtype}",
                where="kernel",
                fix="convert the array with lw.astype, or change the text",
            )


def _phase(name: str, launch: Any, device: Device) -> Phase:
    if not device.target.has_local:
        if not isinstance(launch, int) or isinstance(launch, bool) or launch < 1:
            fail(
                ArgumentError,
                f"launch is a number of threads on {device.name}, not {launch!r}",
                where="kernel",
            )
        return Phase(name, (), threads=launch)
    try:
        groups, threads = [tuple([int(n) for n in sizes]) for sizes in launch]
    except (TypeError, ValueError):
        fail(
            ArgumentError,
            f"launch is (workgroups, threads of one) on {device.name}, not {launch!r}",
            where="kernel",
            fix="write launch=((n_groups,), (256,))",
        )
    return Phase(
        name,
        (),
        global_size=tuple([const(n, dt.int32) for n in groups]),
        local_size=threads,
    )
