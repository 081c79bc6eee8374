"""Calls in one step: small arguments are looked at, checked and run by the device in one go."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopwright.array import Array
from loopwright.jit import tree
from loopwright.jit.capture import Captured, Output
from loopwright.jit.pattern import Pattern, builder_of, pattern_of
from loopwright.memory import HostArray, Storage, attach, buffer_node, known_storage, storage
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.plugin.device import Device
from loopwright_core.sequence import NumpyCall, Run

# Arrays from here on get the device's memory, which is used again. For smaller ones, NumPy's own
# memory is there in less time, also where the C library gives it back in between.
_SMALL = 512 << 10


class OneStep:
    """What a device offers as `numpy_call`, with new arrays for results. Safe to share.

    `result`: the containers for results. `is_numpy`: whether they are NumPy's arrays. `numbers`:
    the last arguments, the same in every call.
    """

    __slots__ = (
        "_build",
        "_device",
        "_dtypes",
        "_is_bare",
        "_is_numpy",
        "_launch",
        "_makers",
        "_numbers",
    )

    def __init__(
        self,
        launch: NumpyCall,
        makers: Sequence[Callable[[], HostArray]],
        dtypes: Sequence[DType],
        result: Any,
        device: str,
        is_numpy: bool,
        numbers: Sequence[HostArray],
    ) -> None:
        self._launch, self._makers, self._numbers = launch, tuple(makers), tuple(numbers)
        self._dtypes, self._device, self._is_numpy = tuple(dtypes), device, is_numpy
        self._is_bare = is_numpy and not self._numbers and tree.is_array(result)
        self._build = builder_of(result) or (lambda arrays: tree.put_together(result, iter(arrays)))

    def call(self, given: Sequence[Any]) -> Any:
        """The function's result, in its containers; None where the arguments are of another kind,
        and then nothing has run."""
        arguments = self._arguments(given)
        if arguments is None:
            return None
        outputs = tuple([make() for make in self._makers])
        if not self._launch(arguments, outputs):
            return None
        if self._is_numpy:
            return self._build(outputs)
        device = self._device
        found = []
        for dtype, values in zip(self._dtypes, outputs, strict=True):
            shape = values.shape
            memory = Storage(dtype, shape, device, values)
            found.append(Array(attach(buffer_node(dtype, shape), memory), device))
        return self._build(tuple(found))

    def bare(self) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
        """`call` in one function of Python, for a call of NumPy's arrays alone that gives one; None
        where it is another."""
        if not self._is_bare:
            return None
        launch, (make,) = self._launch, self._makers

        def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if kwargs or (args and type(args[0]) is not np.ndarray):
                return None
            outputs = (make(),)  # the device looks at each array
            return outputs[0] if launch(args, outputs) else None

        return call

    def call_into(self, given: Sequence[Any], out: Any) -> bool:
        """Run into these arrays of NumPy; False where an argument is of another kind, or arrays do
        not fit or overlap."""
        arguments = self._arguments(given)
        outputs = (out,) if type(out) is np.ndarray else out
        if arguments is None or type(outputs) not in (tuple, list):
            return False
        return bool(self._launch(arguments, tuple(outputs), 1))

    def _arguments(self, given: Sequence[Any]) -> tuple[Any, ...] | None:
        if self._is_numpy:
            return (*given, *self._numbers) if self._numbers else tuple(given)
        found = []
        for value in given:
            if type(value) is Array:
                node = value._uop
                if node.op is not Op.BUFFER or value._device != self._device:
                    return None
                memory = known_storage(node)
                if memory is None:
                    return None
                value = memory.host
                if value is None:
                    value = memory.numpy()
            found.append(value)
        return (*found, *self._numbers)


class Recent:
    """A call in one step, for calls like the one it was made of.

    `call`: of arguments by position and by keyword, gives the function's result, or None where they
    are of another kind.
    """

    __slots__ = ("_call", "_is_plain", "_names", "_pattern", "call", "step")

    def __init__(
        self, step: OneStep, args: Sequence[Any], kwargs: dict[str, Any], pattern: Pattern
    ) -> None:
        self.step, self._call, self._pattern = step, step.call, pattern
        self._names = tuple(kwargs)
        self._is_plain = not kwargs and all(type(one) is np.ndarray for one in args)
        self.call = (step.bare() if self._is_plain else None) or self._any

    def _any(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        arrays = self._arrays(args, kwargs)
        return None if arrays is None else self._call(arrays)

    def call_into(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> bool:
        """Whether the function has run into these arrays."""
        arrays = self._arrays(args, kwargs)
        return arrays is not None and self.step.call_into(arrays, out)

    def _arrays(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any] | None:
        if self._is_plain:  # the device looks at each array
            return None if kwargs or (args and type(args[0]) is not np.ndarray) else args
        arrays: list[Any] = []
        if kwargs or self._names:
            if tuple(kwargs) != self._names:
                return None
            args = (*args, *kwargs.values())
        return arrays if self._pattern(args, arrays) else None


def recent_of(
    step: OneStep, args: tuple[Any, ...], kwargs: dict[str, Any], arrays: Sequence[Any]
) -> Recent | None:
    """For calls like this one, whose arrays are these; None where only a binding finds them."""
    whole = (*args, *kwargs.values())
    pattern = pattern_of(whole)
    found: list[Any] = []
    if pattern is None or not pattern(whole, found) or len(found) != len(arrays):
        return None
    if any(one is not other for one, other in zip(found, arrays, strict=True)):
        return None
    return Recent(step, args, kwargs, pattern)


def make_one_step(
    captured: Captured,
    run: Run,
    device: Device,
    result: Any,
    temporaries: Sequence[int],
    is_numpy: bool,
    numbers: Sequence[HostArray],
) -> OneStep | None:
    """None where the device has no such calls, or a result is not an output of its own.

    `temporaries`: their sizes in bytes. The others are as `OneStep` has them.
    """
    make = getattr(run, "numpy_call", None)
    own = range(captured.first_output, captured.first_constant)
    if make is None or [output.row for output in captured.outputs] != list(own):
        return None
    if not is_numpy and any(captured.table[row].n_bytes >= _SMALL for row in own):
        return None  # memory of the device, which a later call may be given
    launch = make(
        [(row.dtype.numpy, row.shape) for row in captured.table[: captured.n_inputs]],
        [(output.dtype.numpy, output.shape) for output in captured.outputs],
        [storage(node).on(device) for node in captured.constants],
        temporaries,
    )
    if launch is None:
        return None
    makers = [_maker(output, captured, device) for output in captured.outputs]
    dtypes = [output.dtype for output in captured.outputs]
    return OneStep(launch, makers, dtypes, result, captured.device, is_numpy, numbers)


def _maker(output: Output, captured: Captured, device: Device) -> Callable[[], HostArray]:
    """Makes uninitialised arrays for an output: small ones are NumPy's own."""
    assert output.row is not None
    dtype, row = output.dtype, captured.table[output.row]
    shape: tuple[int, ...] = output.shape  # type: ignore[assignment]  # never dynamic
    n_bytes = row.n_bytes
    if n_bytes < _SMALL:
        return functools.partial(np.empty, shape, dtype.numpy)

    def make() -> HostArray:  # the memory lives as long as the array: it is what this is a view of
        return np.ndarray(shape, dtype.numpy, np.asarray(device.allocate(n_bytes)))

    return make
