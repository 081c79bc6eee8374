"""Kernels that users write by hand, as values of the lazy graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright import graph, tracing
from loopwright.array import Array, as_device, refuse_devices
from loopwright.evaluate import compute
from loopwright.handwritten import HandWritten, described_program, hand_written
from loopwright.memory import HostArray, Storage, attach, buffer_node, has_storage, storage
from loopwright.promotion import as_dtype
from loopwright_core.errors import ArgumentError, ArgumentTypeError, DynamicShapeError, fail
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp, toposort
from loopwright_core.locks import new_rlock
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import registry

Output = tuple[tuple[int, ...], Any]


@dataclass(frozen=True, slots=True, eq=False)
class OwnLaunch:
    """One launch of a hand-written kernel in a traced function. `results`: BUFFERs."""

    written: HandWritten
    inputs: tuple[UOp, ...]
    results: tuple[UOp, ...]


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

    It runs once, when a result is first needed, and in a function under `lw.jit` once a call;
    nothing is fused with it. Every element of every output must be written.

    Raises ArgumentError and ArgumentTypeError here; CompileError with the
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
    device_name = arrays[0]._device if arrays else as_device(tracing.trace_device())
    device = registry().device(device_name)
    program = described_program(source, arrays, described, launch, name, device)
    written = hand_written(source, program, device)
    nodes = [buffer_node(dtype, shape) for shape, dtype in described]
    if tracing.is_capturing():
        tracing.add_call(OwnLaunch(written, tuple([a._uop for a in arrays]), tuple(nodes)))
    else:
        call = _Call(written, arrays)
        for node in nodes:
            call.results.append(_Result(node.dtype, node.arg.shape, device_name, call))
            attach(node, call.results[-1])
    found = [Array(node, device_name) for node in nodes]
    return found[0] if single else tuple(found)


def _is_shape(value: Any) -> bool:
    """Whether this is a shape, and not an output of a pair of them."""
    return isinstance(value, int) or (
        isinstance(value, tuple) and all(isinstance(n, int) for n in value)
    )


class _Call:
    """One launch of a hand-written kernel: done once, by whoever needs a result first."""

    def __init__(self, written: HandWritten, arrays: Sequence[Array]) -> None:
        self.written = written
        self.results: list[_Result] = []
        self.arrays: Sequence[Array] | None = arrays  # None: it has run
        self._lock = new_rlock()

    def run(self) -> None:
        """Launch it, unless that is done."""
        if self.arrays is None:
            return
        with self._lock:
            if self.arrays is None:
                return
            device = self.written.device
            compute(self.arrays)
            memory = [storage(a._uop).on(device) for a in self.arrays]
            memory += [result.room(device) for result in self.results]
            device.launch(self.written.loaded, memory, ())
            device.synchronize()
            self.arrays = None


class _Result(Storage):
    """The memory of a result, which its kernel fills before anybody sees it."""

    __slots__ = ("call",)

    def __init__(self, dtype: DType, shape: tuple[int, ...], device: str, call: _Call) -> None:
        super().__init__(dtype, shape, device)
        self.call: _Call | None = call

    def room(self, device: Device) -> Any:
        """The memory as it is, for the kernel to fill."""
        return super().on(device)

    def settle(self) -> None:
        """Run the kernel unless it has run."""
        call = self.call
        if call is not None:
            call.run()
            self.call = None

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

    own = [value._device for value in inputs if isinstance(value, Array)]
    device = own[0] if own else as_device(tracing.trace_device())
    arrays = []
    for n, value in enumerate(inputs):
        array = value if isinstance(value, Array) else asarray(value, device=device)
        if array._device != device:
            refuse_devices(f"input {n}", device, array._device)
        array = Array(array._uop, device)  # the value as it is, whatever the user binds later
        arrays.append(array)
        if not all(type(n) is int for n in graph.shape(array._uop)):
            fail(
                DynamicShapeError,
                f"input {n} has an axis of varying size, and a hand-written text has fixed ones",
                where="kernel",
                fix="leave the axis out of dynamic=",
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


def pending_calls(uops: Iterable[UOp]) -> list[tuple[HandWritten, tuple[UOp, ...]]]:
    """The hand-written kernels that values wait for, in order, each with its inputs."""
    found: dict[_Call, tuple[HandWritten, tuple[UOp, ...]]] = {}
    todo: list[tuple[_Call | None, tuple[UOp, ...]]] = [(None, tuple(uops))]
    while todo:
        call, inputs = todo.pop()
        if call is not None and call in found:
            continue
        waiting = [c for c in _calls_below(inputs) if c not in found]
        if waiting:
            todo.append((call, inputs))
            todo += [(c, tuple([a._uop for a in c.arrays or ()])) for c in reversed(waiting)]
        elif call is not None:
            found[call] = (call.written, inputs)
    return list(found.values())


def _calls_below(inputs: Sequence[UOp]) -> list[_Call]:
    """The calls that have not run whose results values are computed from."""
    leaves = [node for node in toposort(inputs) if node.op is Op.BUFFER and has_storage(node)]
    memory = [storage(node) for node in leaves]
    calls = [m.call for m in memory if isinstance(m, _Result) and m.call is not None]
    return [call for call in dict.fromkeys(calls) if call.arrays is not None]
