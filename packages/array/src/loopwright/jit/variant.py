"""A function compiled for one kind of arguments: memory for a call, the call, its results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from loopwright import graph
from loopwright.array import Array
from loopwright.extents import actual
from loopwright.jit.capture import Captured, Output
from loopwright.jit.one_step import OneStep, make_one_step
from loopwright.memory import (
    HostArray,
    Storage,
    attach,
    buffer_node,
    donate,
    give_back,
    new_buffer,
    storage,
)
from loopwright_core.ir.dtype import from_numpy
from loopwright_core.ir.uop import UOp, Variable
from loopwright_core.plugin.loader import registry
from loopwright_core.sequence import Launch, Run, load_sequence

# Temporaries up to here may lie in memory that a thread keeps; more is allocated for each call.
_KEPT_BYTES = 8 << 20


class Input:
    """An array given to a call. `node`: its BUFFER; None where NumPy's array was given."""

    __slots__ = ("memory", "node")

    def __init__(self, memory: Storage, node: UOp | None) -> None:
        self.memory, self.node = memory, node


class Variant:
    """What was captured, ready to run. Safe to call from several threads at once.

    `result`: what the function returned, arrays included: the containers that results are put in.
    `is_numpy`: whether arrays are handed out as NumPy's. `donated`: inputs by number. `numbers`:
    the last inputs, which are the same in every call.
    """

    def __init__(
        self,
        captured: Captured,
        result: Any,
        is_numpy: bool,
        donated: Sequence[int],
        numbers: Sequence[HostArray] = (),
    ) -> None:
        self.captured, self.result, self.is_numpy = captured, result, is_numpy
        self.numbers = tuple([_number(value, captured.device) for value in numbers])
        self.number_arrays = tuple(numbers)
        self.donated = tuple(donated)
        self.device = registry().device(captured.device)
        shapes = [row.shape for row in captured.table] + [one.shape for one in captured.outputs]
        self.is_dynamic = any(isinstance(n, Variable) for shape in shapes for n in shape)
        self._run: Run | None = None
        self._one_step: OneStep | Literal[False] | None = None  # False: there is none
        temporaries = captured.table[captured.first_temporary :]
        self._sizes = [row.n_bytes for row in temporaries]

    def run(
        self,
        inputs: Sequence[Input],
        given: Mapping[int, Any],
        values: Mapping[Variable, int],
        name: str,
    ) -> tuple[Sequence[Input], list[Any]]:
        """Run over the inputs: these, of which those donated are this call's alone by now, and the
        memory of every row of the table but the temporaries'.

        `given`: memory for some output rows. The others get memory of their own, or that of a
        donated input which nobody else holds. `values`: of the Variables. `name`: of the function,
        which donated arrays have gone to; they have not where it fails before kernels run.
        """
        captured, device = self.captured, self.device
        run = self._loaded() if captured.kernels else None
        claimed: dict[UOp, Storage] = {}
        try:
            if self.donated:
                inputs = self._claim(inputs, name, claimed)
            table = [one.memory.on(device) for one in inputs]
            for row in range(captured.first_output, captured.first_constant):
                memory = given.get(row)
                if memory is None:
                    memory = self._in_place(row, inputs)
                if memory is None:
                    memory = device.allocate(captured.table[row].n_bytes_of(values))
                table.append(memory)
            table += [storage(node).on(device) for node in captured.constants]
            sizes = self._sizes
            if self.is_dynamic:
                rows = captured.table[captured.first_temporary :]
                sizes = [row.n_bytes_of(values) for row in rows]
            temporaries = [device.allocate(n) for n in sizes]
        except BaseException:
            for node, back in claimed.items():
                give_back(node, back)
            raise
        if run is not None:
            run([*table, *temporaries], [values[variable] for variable in captured.variables])
            device.synchronize()
        return inputs, table

    def _claim(
        self, inputs: Sequence[Input], name: str, claimed: dict[UOp, Storage]
    ) -> list[Input]:
        """The inputs, those donated with memory that their arrays no longer have (`claimed`)."""
        found = list(inputs)
        for place in self.donated:
            node = inputs[place].node
            if node is not None:
                if node not in claimed:
                    claimed[node] = donate(node, name)
                found[place] = Input(claimed[node], node)
        return found

    def one_step(self) -> OneStep | None:
        """The call in one step; None where there is none."""
        if self._one_step is None:
            made = None
            is_small = sum(self._sizes) <= _KEPT_BYTES
            is_plain = not self.donated and not self.is_dynamic
            if is_plain and is_small and self.captured.kernels:
                made = make_one_step(
                    self.captured,
                    self._loaded(),
                    self.device,
                    self.result,
                    self._sizes,
                    self.is_numpy,
                    self.number_arrays,
                )
            self._one_step = made or False
        return self._one_step or None

    def _loaded(self) -> Run:
        run = self._run
        if run is None:  # two threads at once make two, either of which will do
            launches = [Launch(k.built.loaded, k.rows, k.variables) for k in self.captured.kernels]
            run = self._run = load_sequence(self.device, launches)
        return run

    def _in_place(self, row: int, inputs: Sequence[Input]) -> Any:
        """The memory of the donated input that an output may take, if the call is its only user."""
        for output, given in self.captured.in_place:
            if output == row:
                return exclusive_memory(given, inputs, self.captured.constants, self.device)
        return None

    def results(
        self, inputs: Sequence[Input], table: Sequence[Any], variables: Mapping[Variable, int]
    ) -> list[Any]:
        """The arrays of every output, in order: of memory that nobody else has, or of a value that
        never changes."""
        given: dict[int, Any] = {}
        found = []
        for output in self.captured.outputs:
            sizes = actual(output.shape, variables)
            if output.row is None:
                found.append(self._empty(output, sizes))
            elif self.is_numpy:
                is_shared = output.row in given or self._kind(output.row) != "output"
                values = self._storage(output.row, inputs, table, variables).numpy()
                given[output.row] = values
                values = values.reshape(sizes)
                found.append(values.copy() if is_shared else values)
            else:
                node = given.get(output.row)
                if node is None:
                    node = given[output.row] = self._node(output.row, inputs, table, variables)
                view = graph.reshape(node, sizes)
                found.append(Array(view, self.captured.device))
        return found

    def _kind(self, row: int) -> str:
        return self.captured.table[row].kind

    def _empty(self, output: Output, sizes: tuple[int, ...]) -> Any:
        if self.is_numpy:
            return np.empty(sizes, output.dtype.numpy)
        node = graph.empty(sizes, output.dtype)
        return Array(node, self.captured.device)

    def _storage(
        self,
        row: int,
        inputs: Sequence[Input],
        table: Sequence[Any],
        variables: Mapping[Variable, int],
    ) -> Storage:
        captured = self.captured
        kind, what = self._kind(row), captured.table[row]
        if kind == "input":
            return inputs[row].memory
        if kind == "constant":
            return storage(captured.constants[row - captured.first_constant])
        made = Storage(what.dtype, actual(what.shape, variables), captured.device)
        made.give(table[row])
        return made

    def _node(
        self,
        row: int,
        inputs: Sequence[Input],
        table: Sequence[Any],
        variables: Mapping[Variable, int],
    ) -> UOp:
        """A BUFFER over a row's memory: a new one for what was computed."""
        captured, kind = self.captured, self._kind(row)
        if kind == "constant":
            return captured.constants[row - captured.first_constant]
        known = inputs[row].node if kind == "input" else None
        if known is not None and row not in self.donated:
            return known
        memory = self._storage(row, inputs, table, variables)
        if kind == "input":  # the user's own memory, or what the donated array gives up
            return new_buffer(memory.numpy(), captured.device, copy=True)
        return attach(buffer_node(memory.dtype, memory.shape), memory)


def _number(value: HostArray, device: str) -> Input:
    dtype = from_numpy(value.dtype)
    assert dtype is not None
    return Input(Storage(dtype, (), device, value), None)


def exclusive_memory(
    place: int, inputs: Sequence[Input], constants: Sequence[UOp], device: Any
) -> Any:
    """The memory of an input that nobody but the caller's array holds; None if somebody may."""
    memory = inputs[place].memory
    if inputs[place].node is not None:
        if memory.host is not None:
            return None
        found = memory.on(device)
        # held by the call's storage, its table, `found`, and the function that counts
        return found if sys.getrefcount(found) <= 4 else None
    # NumPy's array, whose owner said that it may be written
    if memory.host is None or not memory.host.flags.writeable:
        return None
    others = [one.memory for i, one in enumerate(inputs) if i != place]
    others += [storage(node) for node in constants]
    if any(o.host is not None and np.may_share_memory(o.host, memory.host) for o in others):
        return None
    return memory.on(device)
