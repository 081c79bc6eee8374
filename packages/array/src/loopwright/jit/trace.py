"""Tracing: a function run once over arrays that stand for its inputs."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.array import Array, from_host, refuse_devices
from loopwright.jit import tree
from loopwright.jit.capture import Captured, capture
from loopwright.memory import buffer_node
from loopwright.options import current
from loopwright.tracing import Number, add_input, tracing
from loopwright_core.ir.dtype import DType
from loopwright_core.ir.uop import UOp


@dataclass(slots=True)
class Kind:
    """What is known of an array while tracing. `shape`: of its memory, in row-major order;
    `axes`: how the array's own axes are permuted from it, None where they are not."""

    dtype: DType
    shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None

    @property
    def key(self) -> tuple[Hashable, ...]:
        """What tells it apart."""
        return self.dtype.name, self.shape, self.axes

    @property
    def has_memory(self) -> bool:
        """Whether it has elements: only then it is an input of kernels."""
        return 0 not in self.shape

    def __str__(self) -> str:
        sizes = self.shape if self.axes is None else [self.shape[a] for a in self.axes]
        return f"{self.dtype}[{', '.join(map(str, sizes))}]"


@dataclass(frozen=True, slots=True)
class Traced:
    """`result`: what the function returned; the captured outputs are its arrays, in order.

    `numbers`: what the inputs hold that follow those of the arrays: Python floats.
    """

    captured: Captured
    result: Any
    numbers: tuple[np.ndarray[Any, Any], ...]


def trace(
    f: Callable[..., Any],
    name: str,
    signature: inspect.Signature,
    given: dict[str, Any],
    static: Sequence[str],
    kinds: Sequence[Kind],
    paths: Sequence[str],
    device: str,
    kernel_name: str | None,
    donated: Sequence[int],
    keeps_numbers: bool,
) -> Traced:
    """Run `f` over inputs of those kinds and capture what it returns.

    `given`: its arguments by parameter, whose arrays are exchanged. `donated`: places among the
    inputs. `keeps_numbers`: Python floats are constants, not inputs; defaults always are.
    """
    with tracing(name, device) as running:
        inputs: list[UOp] = []
        arrays = []
        for kind in kinds:
            if kind.has_memory:
                node = add_input(running, buffer_node(kind.dtype, kind.shape))
                inputs.append(node)
            else:
                node = graph.empty(kind.shape, kind.dtype)
            if kind.axes is not None:
                node = graph.permute(node, kind.axes)
            arrays.append(Array(node, device))
        left, places = iter(arrays), itertools.count()

        def number(value: float) -> float:
            return Number.of(value, running, next(places))

        arguments = {}
        for parameter, value in given.items():
            if parameter not in static:
                is_kept = keeps_numbers or value is signature.parameters[parameter].default
                value = tree.put_together(value, left, None if is_kept else number)
            arguments[parameter] = value
        own = inspect.BoundArguments(signature, arguments)
        try:
            result = f(*own.args, **own.kwargs)
        except Exception as error:
            said = ", ".join(f"{path}: {kind}" for path, kind in zip(paths, kinds, strict=True))
            error.add_note(f"while lw.jit traced {name}({said})")
            raise
        returned: list[Any] = []
        where: list[str] = []
        tree.take_apart(result, f"the result of {name}", returned, where)
        values = [_node(one, path, device) for one, path in zip(returned, where, strict=True)]
        numbers = tuple(running.numbers.values())
        inputs += [node for node, _ in numbers]
        captured = capture(
            values, inputs, device, current(), name, kernel_name, donated, running.calls
        )
        # what a later call fills the containers with is no value of this one
        shell = tree.put_together(result, iter([np.False_] * len(values)), float)
    found = tuple([np.array(value, node.dtype.numpy) for node, value in numbers])
    return Traced(captured, shell, found)


def _node(array: Any, path: str, device: str) -> UOp:
    """A result's node. NumPy's arrays that a function returns are constants."""
    own = array if isinstance(array, Array) else from_host(np.asarray(array), device, True)
    if own._device != device:
        refuse_devices(path, device, own._device)
    return own._uop
