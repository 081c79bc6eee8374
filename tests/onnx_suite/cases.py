"""ONNX's node cases: which can be reached, and whether a run agrees with the stored results."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.loader import load_model_tests

import loopwright as lw
from onnx_suite.model import run_model

# Operators that are no functions of arrays, by reason: a case with one of them is not asked.
OUT_OF_REACH = {
    "strings": (
        "LabelEncoder",
        "RegexFullMatch",
        "StringConcat",
        "StringNormalizer",
        "StringSplit",
        "TfIdfVectorizer",
    ),
    "sequences": (
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
        "SplitToSequence",
    ),
    "optional values": ("Optional", "OptionalGetElement", "OptionalHasElement"),
    "control flow": ("If", "Loop", "Scan"),
    "training": ("Adagrad", "Adam", "Momentum"),
    "random numbers": ("Bernoulli", "RandomUniformLike"),
    "image files": ("ImageDecoder",),
}
_FAILING = Path(__file__).with_name("failing.txt")


@functools.cache
def all_cases() -> tuple[Any, ...]:
    """Every node case, made anew from ONNX's own code."""
    with warnings.catch_warnings():  # of NumPy, about the cases' own arithmetic
        warnings.simplefilter("ignore")
        return tuple(load_model_tests(kind="node"))


def operators(graph: Any) -> Iterator[tuple[str, str]]:
    """(domain, operator) of all nodes, those of inner graphs included."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().node:
            yield node.domain, node.op_type
            for attribute in node.attribute:
                graphs += [attribute.g, *attribute.graphs]


def reason_out_of_reach(case: Any) -> str | None:
    """Why a case is not asked; None for those that are."""
    found = set(operators(case.model.graph))
    for reason, names in OUT_OF_REACH.items():
        if any(name in names for _, name in found):
            return reason
    if any(domain for domain, _ in found):
        return "other domains"
    for value in (*case.model.graph.input, *case.model.graph.output):
        if value.type.WhichOneof("value") != "tensor_type":
            return "sequences"
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            return "strings"
    return None


def failing() -> list[str]:
    """The names of reachable cases that do not pass; the list may only shrink."""
    lines = _FAILING.read_text(encoding="utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


def check(case: Any) -> None:
    """Run a case; raise AssertionError where a result is not the stored one, within tolerance."""
    names = [value.name for value in case.model.graph.input]
    outputs = [value.name for value in case.model.graph.output]
    for inputs, expected in case.data_sets:
        given = {name: lw.asarray(_host(value)) for name, value in zip(names, inputs)}
        values = run_model(case.model, given)
        results = [values[name] for name in outputs]
        lw.evaluate(*results)
        for name, result, stored in zip(outputs, results, expected, strict=True):
            agree(name, np.asarray(result), _host(stored), case.rtol, case.atol)


def _host(value: Any) -> Any:
    """A stored value as a NumPy array: some are kept as ONNX's own tensors."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def agree(name: str, result: Any, stored: Any, rtol: float, atol: float) -> None:
    """Same shape, same dtype; integers and truth values equal, others within tolerance."""
    assert result.shape == stored.shape, f"{name}: {result.shape}, stored {stored.shape}"
    assert result.dtype == stored.dtype, f"{name}: {result.dtype}, stored {stored.dtype}"
    if result.dtype.kind in "biu":
        np.testing.assert_array_equal(result, stored, err_msg=name)
    else:
        pair = [a.astype(np.float64) for a in (result, stored)]
        np.testing.assert_allclose(*pair, rtol=rtol, atol=atol, err_msg=name)
