"""The lazy array: a level-1 node and the device it will be computed on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np

from loopwright import graph
from loopwright.extents import shown
from loopwright.methods import Methods
from loopwright.operators import Operators
from loopwright_core.errors import (
    ArgumentError,
    ArgumentTypeError,
    ConstantRangeError,
    DeviceError,
    DTypeError,
    ShapeError,
    fail,
)
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import UOp


class Array(Methods, Operators):
    """An n-dimensional array: a value that is computed when somebody looks at it.

    Arrays are values: `x[...] = v` and `x += v` bind this object to a new value; views and
    expressions made before keep the old one.
    """

    __slots__ = ("__weakref__", "_device", "_uop")
    __hash__ = None  # type: ignore[assignment]  # == is elementwise

    _uop: UOp
    _device: str

    def __init__(self, uop: UOp, device: str) -> None:
        self._uop, self._device = uop, device

    @property
    def dtype(self) -> DType:
        """The elements' dtype; it equals its NumPy counterpart."""
        return self._uop.dtype

    @property
    def device(self) -> str:
        """The device's text, like "cpu" or "cuda:1"."""
        return self._device

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes; those of dynamic axes are DynamicSizes while a function is traced."""
        sizes = graph.shape(self._uop)
        for n in sizes:
            if type(n) is not int:
                return shown(sizes)
        return sizes

    @property
    def ndim(self) -> int:
        return len(graph.shape(self._uop))

    @property
    def size(self) -> int:
        """The number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def T(self) -> Array:
        """The axes in reverse order."""
        return Array(graph.permute(self._uop, range(self.ndim)[::-1]), self._device)

    @property
    def mT(self) -> Array:
        """The last two axes exchanged."""
        from loopwright.api.linalg import matrix_transpose

        return matrix_transpose(self)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Computed, as a read-only NumPy array; no copy on CPU devices."""
        from loopwright.evaluate import compute
        from loopwright.memory import to_numpy

        compute((self,))
        out = to_numpy(self._uop).view()
        out.flags.writeable = False
        return out

    def item(self) -> bool | int | float:
        """The only element as a Python number. Raises ShapeError where there are more."""
        if self.size != 1:
            fail(
                ShapeError,
                f"an array of shape {self.shape} is no single number",
                fix="index or reduce it to one element first",
            )
        value = self.numpy().reshape(()).item()
        return float(value) if self.dtype.is_float else value

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        values = self.numpy()
        return (values.astype(np.float64) if self.dtype.is_float else values).tolist()

    def to_device(self, device: str, /, *, stream: Any = None) -> Array:
        """The same values on another device; computed first where that is another one."""
        if stream is not None:
            fail(ArgumentError, "to_device takes no stream", fix="leave it None")
        if isinstance(device, str) and device == self._device:
            return self
        device = as_device(device)
        if device == self._device:
            return self
        from loopwright.memory import new_buffer

        return Array(new_buffer(self.numpy(), device, copy=True), device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        out = self.numpy()
        if dtype is not None and np.dtype(dtype) != out.dtype:
            if copy is False:
                fail(ArgumentError, f"{out.dtype} to {dtype} needs a copy", fix="allow copy")
            return out.astype(dtype)
        return out.copy() if copy else out

    def __buffer__(self, flags: int) -> memoryview:
        """`memoryview(x)` from Python 3.12 on, where classes written in Python can have it."""
        numpy: Any = self.numpy()
        found: memoryview = numpy.__buffer__(flags)
        return found

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        """`np.sin(x)` and, with a NumPy array on the left, `a + x`."""
        from loopwright.dispatch import call_ufunc

        known = (Array, bool, int, float, complex, list, tuple, np.ndarray, np.generic)
        if not all(isinstance(value, known) for value in inputs):
            return NotImplemented
        return call_ufunc(ufunc, method, inputs, settings)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from loopwright.dispatch import call_function

        if not all(issubclass(t, (Array, np.ndarray)) for t in types):
            return NotImplemented
        return call_function(func, args, kwargs)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        import loopwright

        if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
            fail(ArgumentError, f"array API version {api_version!r} is not offered, 2024.12 is")
        return loopwright

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        from loopwright.interchange import exported

        return exported(self.numpy(), stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __bool__(self) -> bool:
        if self.size != 1:
            fail(
                ShapeError,
                f"the truth of an array of shape {self.shape} is ambiguous",
                fix="use lw.any(x) or lw.all(x)",
            )
        return bool(self.numpy().reshape(()).item())

    def _number(self) -> bool | int | float:
        """`item` for Python's conversions, which raise a TypeError where there are more."""
        if self.size != 1:
            fail(
                ArgumentTypeError,
                f"an array of shape {self.shape} is no single number",
                fix="index or reduce it to one element first",
            )
        return self.item()

    def __int__(self) -> int:
        number = self._number()
        try:
            return int(number)
        except OverflowError:
            fail(ConstantRangeError, f"{number} is no integer", where="int")
        except ValueError:
            fail(ArgumentError, f"{number} is no integer", where="int")

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if not self.dtype.is_int or self.ndim:
            fail(
                ArgumentTypeError,
                f"only a 0-d integer array is an index, this is {self.dtype} {self.shape}",
            )
        return int(self.item())

    def __len__(self) -> int:
        if not self.shape:
            fail(ArgumentTypeError, "a 0-d array has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            fail(ArgumentTypeError, "a 0-d array cannot be iterated over")
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        from loopwright.api.searching import any as any_

        return bool(any_(self == value))

    def __getitem__(self, key: Any) -> Array:
        from loopwright.api.indexing import get

        return get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from loopwright.api.assignment import put

        self._uop = put(self, key, value)

    def schedule(self, steps: str | Sequence[str]) -> Array:
        """The same value, stored by a kernel of its own that is scheduled by these steps.

        `steps`: one text, `"UPCAST i 4 · UNROLL k 8"`, or a list of texts. They come before what
        `lw.options` says. Raises ArgumentError where nothing is left to compute, and OptError for
        a text that is no step. A step that is not legal is an OptError when the kernel is made,
        which names the line of this call.
        """
        from loopwright.named import with_schedule
        from loopwright.options import steps as steps_of

        given = steps_of(steps, "schedule")
        if self._uop.op is Op.BUFFER or graph.scalar(self._uop) is not None:
            fail(
                ArgumentError,
                "no kernel computes this array: its values are there already",
                where="schedule",
                fix="schedule an expression before it is evaluated",
            )
        return Array(with_schedule(self._uop, given), self._device)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __reduce__(self) -> Any:
        """Copied and pickled as computed values on a device of that name."""
        return from_host, (self.numpy(), self._device, True)

    def __copy__(self) -> Array:
        return Array(self._uop, self._device)

    def __deepcopy__(self, memo: Any) -> Array:
        return Array(self._uop, self._device)  # the value itself never changes

    def __repr__(self) -> str:
        if self._uop.op is Op.BUFFER or graph.scalar(self._uop) is not None:
            return str(self)
        return self._described("not computed yet")

    def _described(self, why: str) -> str:
        return (
            f"<lazy Array of shape {self.shape}, dtype {self.dtype}, device {self._device}: {why}>"
        )

    def __str__(self) -> str:
        from loopwright.tracing import depends_on_trace

        if depends_on_trace(self._uop):
            return self._described("traced by lw.jit")
        value = graph.scalar(self._uop)
        if value is not None:
            values = np.broadcast_to(np.array(value.arg).astype(self.dtype.numpy), self.shape)
        else:
            values = self.numpy()
        shown = values.astype(np.float32) if values.dtype.kind == "V" else values
        text = np.array2string(shown, separator=", ", prefix="Array(", threshold=200)
        return f"Array({text}, dtype={self.dtype})"


def default_device() -> str:
    """The device of arrays made without one: LOOPWRIGHT_DEVICE, else the best that is ready."""
    return os.environ.get("LOOPWRIGHT_DEVICE") or _best_device()


@cache
def _best_device() -> str:
    from loopwright.devices import default_device as best
    from loopwright_core.plugin.loader import registry

    names = list(registry().devices())
    if len(names) < 2:  # nothing to choose: no compiler or driver is asked for its state
        return names[0] if names else "cpu"
    return best()


def as_device(device: str | None) -> str:
    """The device's text; None is the default. Raises DeviceError for one that is not there."""
    if device is None:
        return default_device()
    from loopwright_core.plugin.loader import registry

    if not isinstance(device, str):
        fail(ArgumentTypeError, f"a device is a text like 'cpu', got {device!r}")
    if device != default_device():  # arrays may be written down before any device is installed
        registry().device(device)
    return device


def refuse_devices(name: str, first: str, second: str) -> NoReturn:
    """Raise the error of an operation whose arrays lie on two devices."""
    fail(
        DeviceError,
        f"{name}: one array is on {first}, another on {second}",
        fix="move one with x.to_device",
    )


def from_host(values: np.ndarray[Any, Any], device: str | None, copy: bool | None) -> Array:
    """An array over NumPy's memory; copied only where the layout or `copy` asks for it."""
    from loopwright.memory import new_buffer
    from loopwright.promotion import as_dtype

    device = as_device(device)
    dtype = as_dtype(values.dtype, "asarray")
    axes: tuple[int, ...] | None = None
    plain = values.dtype == dtype.numpy and values.flags.aligned
    if plain and not values.flags.c_contiguous and values.flags.f_contiguous:
        axes, values = tuple(range(values.ndim))[::-1], values.T
    if not plain or not values.flags.c_contiguous:
        if copy is False:
            fail(
                ArgumentError,
                "these strides or this byte order cannot be shared without a copy",
                where="asarray",
                fix="leave copy=None",
            )
        values, copy = np.array(values, dtype=dtype.numpy, order="C", copy=True), False
    if values.size == 0:
        node = graph.empty(values.shape, dtype)
    else:
        node = new_buffer(values, device, copy=bool(copy))
    return Array(node if axes is None else graph.permute(node, axes), device)


def asarray_like(value: Any, device: str | None, where: str, copy: bool | None = None) -> Array:
    """A NumPy array or scalar, list or other array as an Array; refuses everything else clearly."""
    from loopwright.promotion import as_dtype

    if isinstance(value, np.generic):
        if copy is False:
            fail(ArgumentError, "a number has no memory to share", where=where)
        dtype = as_dtype(value.dtype, where)
        number = float(value) if dtype.is_float else value.item()
        return Array(graph.constant(number, dtype, where), as_device(device))
    if isinstance(value, (str, bytes, dict, set, type(None))):
        fail(
            ArgumentTypeError,
            f"{type(value).__name__} is no array",
            where=where,
            fix="pass an array, a number, or nested lists of numbers",
        )
    if isinstance(value, np.ndarray):
        return from_host(value, device, copy)
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        from loopwright.interchange import imported

        return from_host(imported(value, where, device is not None, copy), device, copy)
    return from_host(host_values(value, where, copy), device, copy)


def host_values(value: Any, where: str, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """Nested lists, numbers or foreign arrays as a NumPy array; `copy=False`: over their memory."""
    try:
        values = np.asarray(value, copy=False if copy is False else None)
    except (ValueError, TypeError, OverflowError) as error:
        fail(ArgumentError, f"{type(value).__name__} is no array: {error}", where=where)
    if values.dtype.kind == "O":
        if all(isinstance(v, (bool, int, float)) for v in values.flat):
            fail(
                ConstantRangeError,
                "an integer in the list fits no 64-bit integer",
                where=where,
                fix="give dtype=lw.float64, or smaller numbers",
            )
        fail(
            DTypeError,
            f"{type(value).__name__} holds objects that are no numbers",
            where=where,
            fix="pass numbers, NumPy arrays or nested lists of one shape",
        )
    return values
