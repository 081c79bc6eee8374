"""The table of ONNX operators: each an ordinary function of arrays and attributes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

OPERATORS: dict[str, Callable[..., Any]] = {}


def operator(*names: str) -> Callable[[Function], Function]:
    """Enter a function under the operators' names; it takes inputs by place, attributes by name.

    A function with a parameter `opset` or `n_outputs` is told which version its model is written
    in, or how many results are asked for.
    """

    def enter(function: Function) -> Function:
        for name in names:
            if name in OPERATORS:
                raise ValueError(f"two functions for the operator {name}")
            OPERATORS[name] = function
        return function

    return enter


def facts_for(function: Callable[..., Any], facts: dict[str, int]) -> dict[str, int]:
    """Those facts about a node that the function asks for."""
    asked = inspect.signature(function).parameters
    return {name: value for name, value in facts.items() if name in asked}
