"""Running an ONNX model: its nodes in order, each by the function of its operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from onnx import numpy_helper

import loopwright as lw
from onnx_suite import ops
from onnx_suite.registry import OPERATORS, facts_for
from onnx_suite.values import UnsupportedError

_DEFAULT_DOMAINS = ("", "ai.onnx")


def run_model(model: Any, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Every value of the model by name: inputs, constants, and what each node gives; all lazy."""
    ops.load()
    values = constants(model)
    values.update(inputs)
    opset = next(o.version for o in model.opset_import if o.domain in _DEFAULT_DOMAINS)
    for node in model.graph.node:
        results = _run_node(node, values, opset)
        for name, result in zip(node.output, results):
            if name:
                values[name] = result
    return values


def constants(model: Any) -> dict[str, Any]:
    """The arrays that the model brings along."""
    return {t.name: lw.asarray(numpy_helper.to_array(t)) for t in model.graph.initializer}


def _run_node(node: Any, values: Mapping[str, Any], opset: int) -> tuple[Any, ...]:
    function = OPERATORS.get(node.op_type)
    if function is None or node.domain not in _DEFAULT_DOMAINS:
        raise UnsupportedError(f"no operator {node.domain}/{node.op_type}")
    arguments = [values[name] if name else None for name in node.input]
    attributes = {a.name: _attribute(a) for a in node.attribute}
    facts = facts_for(function, {"opset": opset, "n_outputs": len(node.output)})
    result = function(*arguments, **attributes, **facts)
    return result if isinstance(result, tuple) else (result,)


def _attribute(attribute: Any) -> Any:
    """An attribute as a Python value; a tensor as an array."""
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return lw.asarray(numpy_helper.to_array(value))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (int, float, str)):
        return value
    if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOATS):
        return list(value)
    kind = onnx.AttributeProto.AttributeType.Name(attribute.type)
    raise UnsupportedError(f"an attribute of kind {kind}")
