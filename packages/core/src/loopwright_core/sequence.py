"""Several launches as one call: a device's own way where it offers one, else one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from loopwright_core.plugin.device import Device

# Runs the launches in order over one table of device memory and one list of variables.
Run: TypeAlias = Callable[[Sequence[Any], Sequence[int]], None]


class NumpyCall(Protocol):
    """A sequence as a function of NumPy's arrays, which looks at each argument's type, dtype, shape
    and layout."""

    def __call__(
        self, given: tuple[Any, ...], made: tuple[Any, ...], is_checked: int = 0, /
    ) -> int:
        """Runs over arguments and outputs and returns 1; 0, without running, where an argument is
        of another kind. `is_checked`: also where outputs do not fit, cannot be written, or overlap
        each other, an argument or a constant."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a sequence. `loaded`: what `Device.load` gave.

    `rows`: which arrays of the call's table are its buffers, by slot. `variables`: which of the
    call's variables are its own, in the order of its program.
    """

    loaded: Any
    rows: tuple[int, ...]
    variables: tuple[int, ...] = ()


def begin_sequences(device: Device) -> None:
    """Say that sequences are to come, before their kernels are made.

    A device may offer `begin_sequences()`, to prepare what they need in the meantime. It returns
    at once and raises nothing.
    """
    begin = getattr(device, "begin_sequences", None)
    if begin is not None:
        begin()


def load_sequence(device: Device, launches: Sequence[Launch]) -> Run:
    """The launches as one function of a table of memory and the variables.

    A device may offer `load_sequence(launches)` itself, to run them without coming back to Python
    in between. Calls may come from several threads at once. What it returns may offer
    `numpy_call(arguments, outputs, constants, temporaries)` in turn, on devices whose memory is
    this process's: (dtype, shape) of arguments and outputs, memory, and sizes in bytes give a
    NumpyCall, or None where that cannot be.
    """
    own = getattr(device, "load_sequence", None)
    if own is not None:
        run: Run = own(launches)
        return run

    def one_by_one(table: Sequence[Any], variables: Sequence[int] = ()) -> None:
        for launch in launches:
            buffers = [table[row] for row in launch.rows]
            device.launch(launch.loaded, buffers, [variables[v] for v in launch.variables])

    return one_by_one
