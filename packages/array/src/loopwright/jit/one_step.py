"""Calls with NumPy's arrays in one step: checked and run by the device inside one native call."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from loopwright.jit import tree
from loopwright.jit.capture import Captured, Output
from loopwright.memory import HostArray, storage
from loopwright_core.plugin.device import Device
from loopwright_core.sequence import Run

# Arrays from here on get the device's memory, which is used again. For smaller ones, NumPy's own
# memory is there in less time, also where the C library gives it back in between.
_SMALL = 512 << 10


class OneStep:
    """What a device offers as `numpy_call`, with new arrays for results. Safe to share."""

    __slots__ = ("_is_one", "_launch", "_makers", "_result")

    def __init__(
        self,
        launch: Callable[[tuple[Any, ...], tuple[Any, ...]], int],
        makers: Sequence[Callable[[], HostArray]],
        result: Any,
    ) -> None:
        self._launch, self._makers, self._result = launch, tuple(makers), result
        self._is_one = tree.is_array(result)

    def call(self, arguments: tuple[Any, ...]) -> Any:
        """The function's result, in its containers; None where the arguments are of another kind,
        and then nothing has run."""
        outputs = tuple([make() for make in self._makers])
        if not self._launch(arguments, outputs):
            return None
        return outputs[0] if self._is_one else tree.put_together(self._result, iter(outputs))

    def call_into(self, arguments: tuple[Any, ...], outputs: tuple[HostArray, ...]) -> bool:
        """Run into these arrays; False where the arguments are of another kind."""
        return bool(self._launch(arguments, outputs))


def make_one_step(
    captured: Captured, run: Run, device: Device, result: Any, temporaries: Sequence[int]
) -> OneStep | None:
    """None where the device has no such calls, or a result is not an output of its own.

    `temporaries`: their sizes in bytes. `result`: the containers for results.
    """
    make = getattr(run, "numpy_call", None)
    own = range(captured.first_output, captured.first_constant)
    if make is None or [output.row for output in captured.outputs] != list(own):
        return None
    launch = make(
        [(row.dtype.numpy, row.shape) for row in captured.table[: captured.n_inputs]],
        len(captured.outputs),
        [storage(node).on(device) for node in captured.constants],
        temporaries,
    )
    if launch is None:
        return None
    return OneStep(
        launch, [_maker(output, captured, device) for output in captured.outputs], result
    )


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
