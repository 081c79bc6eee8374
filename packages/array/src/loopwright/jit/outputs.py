"""`out=`: arrays of the caller that results are written into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopwright.array import Array, from_host
from loopwright.extents import actual
from loopwright.jit import tree
from loopwright.jit.capture import Captured
from loopwright.jit.variant import Input
from loopwright.memory import HostArray, storage
from loopwright_core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError, fail
from loopwright_core.ir.uop import Variable


class Out:
    """The arrays given as `out`, checked against what the function returns.

    Results are what they would be if nothing was written before all was computed: an array that
    overlaps an input, or another one, gets its elements afterwards. A Loopwright array is bound to
    its result; expressions made of it before keep the old value.
    """

    def __init__(self, out: Any, captured: Captured, values: Mapping[Variable, int]) -> None:
        self.value = out
        self._captured = captured
        self._arrays: list[Any] = []
        paths: list[str] = []
        tree.take_apart(out, "out", self._arrays, paths)
        outputs = captured.outputs
        if len(self._arrays) != len(outputs):
            fail(
                ArgumentError,
                f"out holds {len(self._arrays)} arrays, {captured.name} returns {len(outputs)}",
                fix="give one array for each, in the same containers",
            )
        for array, path, output in zip(self._arrays, paths, outputs, strict=True):
            if not isinstance(array, (np.ndarray, Array)):
                fail(ArgumentTypeError, f"{path} is a {type(array).__name__}, not an array")
            sizes = actual(output.shape, values)
            if tuple(array.shape) != sizes:
                fail(ShapeError, f"{path} has shape {array.shape}, the result {sizes}")
            dtype = array.dtype
            if isinstance(dtype, np.dtype):
                dtype = dtype.newbyteorder("=")
            if dtype != output.dtype:
                fail(DTypeError, f"{path} is of {array.dtype}, the result of {output.dtype}")
            if isinstance(array, Array):
                if array.device != captured.device:
                    fail(ArgumentError, f"{path} is on {array.device}, not {captured.device}")
            elif not array.flags.writeable:
                fail(ArgumentError, f"{path} is read-only", fix="give an array that is writeable")

    def direct(self, inputs: Sequence[Input]) -> dict[int, HostArray]:
        """The arrays that kernels can write themselves, by the output's row."""
        found: dict[int, HostArray] = {}
        hosts = [one.memory.host for one in inputs]
        hosts += [storage(node).host for node in self._captured.constants]
        for i, (array, output) in enumerate(zip(self._arrays, self._captured.outputs, strict=True)):
            row = output.row
            if row is None or row in found or self._captured.table[row].kind != "output":
                continue
            if not isinstance(array, np.ndarray) or array.dtype != output.dtype:
                continue
            if not (array.flags.c_contiguous and array.flags.aligned):
                continue
            others = hosts + [a for j, a in enumerate(self._arrays) if j != i]
            if any(isinstance(o, np.ndarray) and np.may_share_memory(o, array) for o in others):
                continue
            found[row] = array
        return found

    def fill(self, results: Sequence[Any], written: Sequence[HostArray]) -> None:
        """Write the results into the arrays that kernels did not write."""
        done = {id(array) for array in written}
        for array, result in zip(self._arrays, results, strict=True):
            if isinstance(array, Array):
                if not isinstance(result, Array):
                    result = from_host(result, self._captured.device, None)
                array._uop = result._uop
            elif id(array) not in done:
                np.copyto(array, result.numpy() if isinstance(result, Array) else result)
