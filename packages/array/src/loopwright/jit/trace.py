"""Tracing: a function run once over arrays that stand for its inputs."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopwright import graph
from loopwright.array import Array, from_host, refuse_devices
from loopwright.jit import tree
from loopwright.jit.call import Call
from loopwright.jit.capture import Captured, capture
from loopwright.memory import buffer_node
from loopwright.tracing import Number, add_input, tracing
from loopwright_core.ir.uop import UOp


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
    call: Call,
    static: Sequence[str],
    kernel_name: str | None,
) -> Traced:
    """Run `f` over inputs like those of the call and capture what it returns.

    Python floats become inputs, except defaults and where the call keeps them.
    """
    device = call.device
    with tracing(name, device) as running:
        inputs: list[UOp] = []
        arrays = []
        for kind in call.kinds:
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
        for parameter, value in call.arguments.items():
            if parameter not in static:
                is_kept = call.keeps_numbers or value is signature.parameters[parameter].default
                value = tree.put_together(value, left, None if is_kept else number)
            arguments[parameter] = value
        own = inspect.BoundArguments(signature, arguments)
        try:
            result = f(*own.args, **own.kwargs)
        except Exception as error:
            pairs = zip(call.paths, call.kinds, strict=True)
            said = ", ".join(f"{path}: {kind}" for path, kind in pairs)
            error.add_note(f"while lw.jit traced {name}({said})")
            raise
        returned: list[Any] = []
        where: list[str] = []
        whole = f"the result of {name}"
        tree.take_apart(result, whole, returned, where)
        values = [_node(one, path, device) for one, path in zip(returned, where, strict=True)]
        numbers = tuple(running.numbers.values())
        inputs += [node for node, _ in numbers]
        captured = capture(
            values, inputs, device, call.options, name, kernel_name, call.donated, running.calls
        )
        known = [path for path, kind in zip(call.paths, call.kinds, strict=True) if kind.has_memory]
        known += [f"number{n}" for n in range(len(numbers))]
        outputs = tuple([f"out{path.removeprefix(whole)}" for path in where])
        captured = replace(captured, input_paths=tuple(known), output_paths=outputs)
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
