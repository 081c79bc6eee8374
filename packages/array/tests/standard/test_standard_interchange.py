"""How arrays are exchanged by the array API standard: DLPack, asarray of others, devices."""

from __future__ import annotations

import array
import operator
import sys
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.errors import LoopwrightError

CPU, CUDA, PINNED = (1, 0), (2, 0), (3, 0)
HOSTS = [np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64]


def refused(error: Any, function: Any, *args: Any, **how: Any) -> str:
    """The call is a LoopwrightError that is also the standard's error; its message."""
    with pytest.raises(LoopwrightError) as caught:
        function(*args, **how)
    assert isinstance(caught.value, error), type(caught.value).__mro__
    return str(caught.value)


class Exporter:
    """Another library's array: it lies on a device and notes how it is asked for its memory."""

    def __init__(self, values: Any, device: tuple[int, int] = CPU) -> None:
        self.values, self.device = values, device
        self.asked: list[dict[str, Any]] = []

    def __dlpack__(self, **how: Any) -> Any:
        self.asked.append(how)
        wanted = how.get("dl_device")
        if wanted is not None and tuple(wanted) != self.device and how.get("copy") is not False:
            return self.values.copy().__dlpack__(max_version=how.get("max_version"))
        return self.values.__dlpack__(max_version=how.get("max_version"), copy=how.get("copy"))

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class Unwilling(Exporter):
    """One that refuses to export."""

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("not today")


class Wrapped:
    """An object that NumPy understands through `__array__`."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


def is_shared(x: lw.Array, host: Any) -> bool:
    """Whether x sees a change of the host memory that it was made of."""
    before = x.numpy().tolist()
    view = np.asarray(host)
    view[0] += 1
    return bool(x.numpy().tolist() != before)


MEMORIES = {
    "NumPy": lambda: np.arange(3.0),
    "buffer": lambda: array.array("d", [0.0, 1.0, 2.0]),
    "memoryview": lambda: memoryview(bytearray(b"abc")),
    "DLPack": lambda: np.arange(3.0),
    "__array__": lambda: np.arange(3.0),
}


@pytest.mark.parametrize("kind", MEMORIES)
def test_asarray_obeys_copy_for_every_kind_of_memory(kind: str) -> None:
    """copy=True never shares; None and False share whatever can be shared."""
    for copy in (True, None, False):
        host = MEMORIES[kind]()
        wrap = {"DLPack": Exporter, "__array__": Wrapped}.get(kind, lambda memory: memory)
        x = lw.asarray(wrap(host), copy=copy)
        assert x.shape == (3,)
        assert is_shared(x, host) is (copy is not True)


def test_asarray_refuses_copies_that_it_would_have_to_make() -> None:
    """copy=False is a ValueError for what has no memory, or not of this dtype or layout."""
    things = [1, 2.5, True, np.float32(2), np.float64(2), [1, 2], (1, 2), [lw.asarray(1)], range(3)]
    for thing in (*things, np.arange(6.0)[::2], np.arange(3, dtype=">i4")):
        refused(ValueError, lw.asarray, thing, copy=False)
    refused(ValueError, lw.asarray, lw.arange(3), dtype=lw.int8, copy=False)
    refused(ValueError, lw.asarray, array.array("d", [1.0]), dtype=lw.int8, copy=False)


SAME_VALUES: dict[str, Any] = {
    "asarray": lambda x: lw.asarray(x, copy=True),
    "from_dlpack": lw.from_dlpack,
    "from_dlpack, not copied": lambda x: lw.from_dlpack(x, copy=False),
    "from_dlpack, copied": lambda x: lw.from_dlpack(x, copy=True),
    "astype": lambda x: lw.astype(x, x.dtype),
    "conj": lw.conj,
    "real": lw.real,
    "positive": lw.positive,
    "diff": lambda x: lw.diff(x, n=0),
    "reshape": lambda x: lw.reshape(x, x.shape, copy=False),
    "broadcast_to": lambda x: lw.broadcast_to(x, x.shape),
    "broadcast_arrays": lambda x: lw.broadcast_arrays(x, x)[0],
    "permute_dims": lambda x: lw.permute_dims(x, (0,)),
    "squeeze": lambda x: lw.squeeze(x, ()),
    "flip": lambda x: lw.flip(x, axis=()),
    "roll": lambda x: lw.roll(x, 0),
    "repeat": lambda x: lw.repeat(x, 1),
    "tile": lambda x: lw.tile(x, 1),
    "concat": lambda x: lw.concat([x]),
    "meshgrid": lambda x: lw.meshgrid(x)[0],
    "clip": lambda x: lw.clip(x),
    "x[...]": lambda x: x[...],
    "x.T": lambda x: x.T,
}


@pytest.mark.parametrize("name", SAME_VALUES)
def test_results_are_values_of_their_own(name: str) -> None:
    """Even where nothing changes: writing into the result or the operand leaves the other alone."""
    x = lw.arange(3)
    y = SAME_VALUES[name](x)
    y += 5
    assert x.numpy().tolist() == [0, 1, 2]
    x[0] = 9
    assert y.numpy().tolist() == [5, 6, 7]


@pytest.mark.parametrize("dtype", HOSTS, ids=lambda d: d.__name__)
def test_memory_goes_round_through_dlpack(dtype: Any) -> None:
    """Values, shape and dtype arrive both ways, of every rank, of empty and of strided arrays."""
    for values in (
        np.array(1, dtype),
        np.zeros((0, 2), dtype),
        np.arange(6).astype(dtype).reshape(2, 3),
        np.arange(6).astype(dtype).reshape(2, 3).T,
        np.arange(6).astype(dtype)[::-2],
    ):
        x = lw.from_dlpack(Exporter(values))
        back = np.from_dlpack(x)
        assert x.shape == values.shape and x.dtype.numpy == dtype and back.dtype == dtype
        assert x.numpy().tolist() == values.tolist() == back.tolist()


def test_from_dlpack_copies_or_not() -> None:
    """copy=True never shares, None and False do; a layout that cannot be shared is refused."""
    for copy in (True, None, False):
        host = np.arange(3.0)
        assert is_shared(lw.from_dlpack(Exporter(host), copy=copy), host) is (copy is not True)
        x = lw.from_dlpack(lw.arange(3) * 2, copy=copy)
        assert x.numpy().tolist() == [0, 2, 4]
    refused(ValueError, lw.from_dlpack, Exporter(np.arange(6.0)[::2]), copy=False)
    refused(TypeError, lw.from_dlpack, Exporter(np.arange(3.0)), copy="yes")


def test_from_dlpack_of_another_device() -> None:
    """With a device named the exporter is asked for a copy there; else, or uncopied, it is refused.

    Memory that the host reads too, like pinned memory, is taken as it is.
    """
    far = Exporter(np.arange(3.0), CUDA)
    x = lw.from_dlpack(far, device="cpu")
    assert x.numpy().tolist() == [0.0, 1.0, 2.0] and x.device == "cpu"
    assert [tuple(how["dl_device"]) for how in far.asked] == [CPU]
    refused(ValueError, lw.from_dlpack, far, device="cpu", copy=False)
    assert "device='cpu'" in refused(BufferError, lw.from_dlpack, far)
    assert "device='cpu'" in refused(BufferError, lw.asarray, far)
    assert lw.asarray(far, device="cpu").numpy().tolist() == [0.0, 1.0, 2.0]
    assert len(far.asked) == 2
    host = np.arange(3.0)
    assert is_shared(lw.from_dlpack(Exporter(host, PINNED)), host)


def test_from_dlpack_of_what_does_not_export() -> None:
    """An AttributeError where the methods are missing, a BufferError where the exporter refuses."""
    for thing in ([1, 2], 3, None, Wrapped(np.arange(3))):
        refused(AttributeError, lw.from_dlpack, thing)
    for device in (CPU, CUDA):
        unwilling = Unwilling(np.arange(3.0), device)
        assert "not today" in refused(BufferError, lw.from_dlpack, unwilling, device="cpu")
        refused(BufferError, lw.asarray, unwilling)
    refused(TypeError, lw.from_dlpack, Exporter(np.array([1j])))


def test_what_dlpack_hands_over() -> None:
    """Memory handed on as it is cannot be written to; a copy can, and stays apart."""
    x = lw.arange(4) * 3
    for how in ({}, {"copy": False}):
        assert not np.from_dlpack(x, **how).flags.writeable
        assert np.shares_memory(np.from_dlpack(x, **how), x.numpy())
    copied = np.from_dlpack(x, copy=True)
    copied[0] = 99
    assert x.numpy().tolist() == [0, 3, 6, 9]
    assert x.__dlpack_device__() == CPU
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 3, 6, 9]


def test_the_arguments_of_dlpack() -> None:
    """Versions before 1.0 get a copy; every wrong argument is named where it was given."""
    x = lw.arange(4)
    for version in (None, (0, 8), (1, 0), (1, 1), (2, 0)):
        for copy in (None, True):
            for device in (None, CPU):
                assert x.__dlpack__(max_version=version, copy=copy, dl_device=device) is not None
    for version in (None, (0, 8)):
        refused(BufferError, lambda v=version: x.__dlpack__(max_version=v, copy=False))
        refused(RuntimeError, lambda v=version: x.__dlpack__(max_version=v, stream=1))
    refused(RuntimeError, lambda: x.__dlpack__(max_version=(1, 0), stream=1))
    refused(BufferError, lambda: x.__dlpack__(dl_device=CUDA))
    for name in ("dl_device", "max_version"):
        for value in (1, "1", (1,), (1, 0, 0), (1.5, 0)):
            assert name in refused(TypeError, lambda n=name, v=value: x.__dlpack__(**{n: v}))
    for version in (None, (1, 0)):
        refused(TypeError, lambda v=version: x.__dlpack__(max_version=v, copy="no"))
    for dtype in (lw.bfloat16, lw.float8_e4m3fn, lw.float8_e5m2):
        message = refused(BufferError, lw.ones((2,), dtype=dtype).__dlpack__)
        assert dtype.name in message and "lw.astype" in message


MAKERS: dict[str, Any] = {
    "arange": lambda **how: lw.arange(2, **how),
    "asarray of an Array": lambda **how: lw.asarray(lw.ones((2,)), **how),
    "asarray of arrays": lambda **how: lw.asarray([lw.ones(()), 1], **how),
    "asarray of numbers": lambda **how: lw.asarray([1, 2], **how),
    "asarray of a number": lambda **how: lw.asarray(1, **how),
    "asarray of NumPy": lambda **how: lw.asarray(np.ones(2), **how),
    "empty": lambda **how: lw.empty((2,), **how),
    "empty_like": lambda **how: lw.empty_like(lw.ones((2,)), **how),
    "eye": lambda **how: lw.eye(2, **how),
    "from_dlpack": lambda **how: lw.from_dlpack(np.ones(2), **how),
    "full": lambda **how: lw.full((2,), 1, **how),
    "full_like": lambda **how: lw.full_like(lw.ones((2,)), 1, **how),
    "linspace": lambda **how: lw.linspace(0, 1, 2, **how),
    "ones": lambda **how: lw.ones((2,), **how),
    "ones_like": lambda **how: lw.ones_like(lw.ones((2,)), **how),
    "zeros": lambda **how: lw.zeros((2,), **how),
    "zeros_like": lambda **how: lw.zeros_like(lw.ones((2,)), **how),
    "astype": lambda **how: lw.astype(lw.ones((2,)), lw.int8, **how),
}


@pytest.mark.parametrize("name", MAKERS)
def test_device_and_dtype_of_what_is_made(name: str) -> None:
    """x.device is what device= takes; what names no device, or no dtype, is refused."""
    make = MAKERS[name]
    x = make()
    assert x.device == lw.__array_namespace_info__().default_device()
    assert make(device=x.device).device == x.device
    assert "nowhere" in refused(RuntimeError, make, device="nowhere")
    refused(TypeError, make, device=3)
    if name not in ("from_dlpack", "astype"):
        assert "complex" in refused(TypeError, make, dtype="complex64")
        refused(TypeError, make, dtype="nonsense")
        assert make(dtype=lw.float32).dtype == lw.float32


def test_to_device() -> None:
    """The own device gives the same values; streams and unknown devices are refused."""
    x = lw.arange(3)
    assert x.to_device(x.device).numpy().tolist() == [0, 1, 2]
    assert x.to_device(x.device, stream=None).device == x.device
    refused(ValueError, x.to_device, x.device, stream=1)
    refused(RuntimeError, x.to_device, "nowhere")
    refused(TypeError, x.to_device, 3)


def test_inspection_by_device_and_kind() -> None:
    """What is asked of a device that is not there, or of an unknown kind, is refused."""
    info = lw.__array_namespace_info__()
    assert info.default_device() in info.devices()
    for device in (None, *info.devices()):
        assert info.dtypes(device=device) == info.dtypes()
        assert info.default_dtypes(device=device) == info.default_dtypes()
    for ask in (info.dtypes, info.default_dtypes):
        refused(RuntimeError, ask, device="nowhere")
        refused(TypeError, ask, device=3)
    refused(ValueError, info.dtypes, kind="nonsense")
    assert info.dtypes(kind=()) == {} == info.dtypes(kind="complex floating")
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {
        "bool",
        *(f"uint{bits}" for bits in (8, 16, 32, 64)),
    }


def test_array_conversion_of_numpy() -> None:
    """np.asarray shares what is computed, read-only; copy=False is refused where dtypes differ."""
    x = lw.arange(4) + 1
    shared = np.asarray(x)
    assert shared.tolist() == [1, 2, 3, 4] and np.shares_memory(shared, np.asarray(x, copy=False))
    assert not shared.flags.writeable and np.array(x).flags.writeable
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="copy"):  # NumPy's own, where it takes the buffer
        np.asarray(x, dtype=np.float32, copy=False)
    with pytest.raises(ValueError, match="read-only"):
        operator.setitem(shared, 0, 5)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 lets classes offer buffers")
def test_buffers() -> None:
    """`memoryview` and all that takes buffers share the memory, which is read-only; NumPy still
    gets dtypes that buffers have no name for."""
    for dtype in (np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, np.float64):
        host = np.arange(6).reshape(2, 3).astype(dtype)
        x = lw.asarray(host)
        view = memoryview(x)  # type: ignore[arg-type]
        assert view.shape == (2, 3) and view.tolist() == host.tolist()
        assert bytes(view) == host.tobytes()
        y = x + x
        seen = memoryview(y)  # type: ignore[arg-type]
        assert seen.readonly and seen.tolist() == (host + host).tolist()
        assert np.shares_memory(np.asarray(y), np.asarray(seen))
    narrow = lw.astype(lw.ones((3,)), lw.bfloat16)
    assert np.asarray(narrow).dtype == lw.bfloat16.numpy
    with pytest.raises((BufferError, ValueError)):
        memoryview(narrow)  # type: ignore[arg-type]
    with pytest.raises(LoopwrightError, match=r"memoryview\(x\) needs values"):
        lw.jit(lambda a: a + len(memoryview(a)))(np.ones(3))
