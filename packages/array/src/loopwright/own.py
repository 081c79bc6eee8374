"""Kernels that users write by hand, as values of the lazy graph."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from math import prod
from typing import Any

from loopwright.array import Array, as_device, refuse_devices
from loopwright.evaluate import compute
from loopwright.identifiers import legal_name
from loopwright.memory import HostArray, Storage, attach, buffer_node, storage
from loopwright.promotion import as_dtype
from loopwright.tracing import depends_on_trace
from loopwright_core.cache import Cache
from loopwright_core.errors import ArgumentError, ArgumentTypeError, TraceError, fail
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import const
from loopwright_core.locks import new_rlock
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry
from loopwright_core.program.program import Estimate, Param, Phase, Program

Output = tuple[tuple[int, ...], Any]
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


def kernel(
    source: str,
    inputs: Sequence[Any],
    outputs: Output | Sequence[Output],
    launch: int | tuple[tuple[int, ...], tuple[int, ...]] = 1,
    *,
    name: str | None = None,
) -> Array | tuple[Array, ...]:
    """The results of a kernel that you wrote in the device's language.

    `source`: a text with a function `void NAME(const T *in, ..., U *out, ...)`: a pointer for each
    of `inputs`, then one for each of `outputs`, all in row-major order. `outputs`: (shape, dtype),
    or a list of those, which gives a tuple of arrays. `launch`: on a CPU in how many threads the
    function runs, each with its number as a last argument `int thread` if there are several; on a
    GPU (workgroups, threads of one), up to three numbers each, the fastest first. `name`: of the
    function, where the text has several.

    It runs once, when a result is first needed; nothing is fused with it. Every element of every
    output must be written. Raises ArgumentError and ArgumentTypeError here; CompileError with the
    lines of `source` when it runs.
    """
    if not isinstance(source, str):
        fail(
            ArgumentTypeError, f"the source is a text, not {type(source).__name__}", where="kernel"
        )
    arrays = _inputs(inputs)
    if not isinstance(outputs, Sequence) or isinstance(outputs, str):
        fail(
            ArgumentTypeError,
            f"outputs is (shape, dtype) or a list of those, not {outputs!r}",
            where="kernel",
        )
    single = isinstance(outputs, tuple) and len(outputs) == 2 and _is_shape(outputs[0])
    described = [_described(o) for o in ([outputs] if single else outputs)]
    if not described:
        fail(ArgumentError, "a kernel has at least one output", where="kernel")
    device_name = arrays[0]._device if arrays else as_device(None)
    device = registry().device(device_name)
    program = _program(source, arrays, described, launch, name, device)
    call = _Call(source, arrays, program, device)
    found = []
    for shape, dtype in described:
        node = buffer_node(dtype, shape)
        call.results.append(_Result(dtype, shape, device_name, call))
        found.append(Array(attach(node, call.results[-1]), device_name))
    return found[0] if single else tuple(found)


def _is_shape(value: Any) -> bool:
    """Whether this is a shape, and not an output of a pair of them."""
    return isinstance(value, int) or (
        isinstance(value, tuple) and all(isinstance(n, int) for n in value)
    )


class _Call:
    """One launch of a hand-written kernel: done once, by whoever needs a result first."""

    def __init__(
        self, source: str, arrays: Sequence[Array], program: Program, device: Device
    ) -> None:
        self.results: list[_Result] = []
        self._source, self._program, self._device = source, program, device
        self._arrays: Sequence[Array] | None = arrays
        self._lock = new_rlock()

    def run(self) -> None:
        """Launch it, unless that is done."""
        if self._arrays is None:
            return
        with self._lock:
            if self._arrays is None:
                return
            compute(self._arrays)
            memory = [storage(a._uop).on(self._device) for a in self._arrays]
            memory += [result.room(self._device) for result in self.results]
            loaded = self._device.load(self._binary(), self._program)
            self._device.launch(loaded, memory, ())
            self._device.synchronize()
            self._arrays = None

    def _binary(self) -> bytes:
        text = self._source
        if self._device.language == "c":  # messages of the compiler count the user's lines
            text = f'#line 1 "{self._program.name}"\n{text}\n'
        types = ", ".join(f"{p.dtype}{list(p.shape)}" for p in self._program.params)
        phase = self._program.phases[0]
        parts = (self._device.name, self._device.compile_key(), types, repr(phase), text)
        key = "\0".join(("hand-written", *parts))
        cache = Cache()
        found = cache.get("binary", key)
        if found is None:
            found = self._device.compile(text, self._program)
            cache.put("binary", key, found)
        return found


class _Result(Storage):
    """The memory of a result, which its kernel fills before anybody sees it."""

    __slots__ = ("_call",)

    def __init__(self, dtype: DType, shape: tuple[int, ...], device: str, call: _Call) -> None:
        super().__init__(dtype, shape, device)
        self._call: _Call | None = call

    def room(self, device: Device) -> Any:
        """The memory as it is, for the kernel to fill."""
        return super().on(device)

    def settle(self) -> None:
        """Run the kernel unless it has run."""
        call = self._call
        if call is not None:
            call.run()
            self._call = None

    def on(self, device: Device) -> Any:
        self.settle()
        return super().on(device)

    def numpy(self) -> HostArray:
        self.settle()
        return super().numpy()


def _inputs(inputs: Sequence[Any]) -> list[Array]:
    if isinstance(inputs, (Array, str)) or not isinstance(inputs, Sequence):
        fail(
            ArgumentTypeError,
            f"inputs is a list of arrays, not {type(inputs).__name__}",
            where="kernel",
        )
    from loopwright.api.creation import asarray

    arrays = [asarray(value) for value in inputs]
    for n, array in enumerate(arrays):
        if array._device != arrays[0]._device:
            refuse_devices(f"input {n}", arrays[0]._device, array._device)
        if depends_on_trace(array._uop):
            fail(
                TraceError,
                "a hand-written kernel runs by itself and is not traced",
                where="kernel",
                fix="call it outside of lw.jit, and give its results to the jitted function",
            )
    return arrays


def _described(output: Any) -> tuple[tuple[int, ...], DType]:
    try:
        shape, dtype = output
        sizes = tuple([int(n) for n in ((shape,) if isinstance(shape, int) else shape)])
    except (TypeError, ValueError):
        fail(
            ArgumentTypeError,
            f"an output is (shape, dtype), not {output!r}",
            where="kernel",
            fix="write outputs=((1024,), lw.float32)",
        )
    if any(n < 0 for n in sizes):
        fail(ArgumentError, f"the shape {sizes} has a negative size", where="kernel")
    return sizes, as_dtype(dtype, "kernel")


def _program(
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
