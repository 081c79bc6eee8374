"""Real ONNX models, every value that they compute beside onnxruntime's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopwright as lw

pytest.importorskip("onnx.backend", reason="onnx is in the dependency group `onnx`")
pytest.importorskip("onnxruntime", reason="onnxruntime is in the dependency group `onnx`")

from onnx_suite.model import run_model
from onnx_suite.models import MODELS, RealModel, expected_values

RTOL = 1e-4


def _agree(name: str, result: Any, expected: Any) -> None:
    """Equal integers; floats within RTOL of the largest element: sums cancel in small ones."""
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype), name
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(result, expected, err_msg=name)
        return
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(result, expected, rtol=RTOL, atol=RTOL * largest, err_msg=name)


@pytest.mark.parametrize("real", MODELS, ids=[real.name for real in MODELS])
@pytest.mark.parametrize("is_whole", [True, False], ids=["every value", "outputs alone"])
def test_model_gives_what_onnxruntime_gives(real: RealModel, is_whole: bool) -> None:
    """All nodes' results agree when all are stored, and the outputs when only they are."""
    model, inputs = real.load(), real.inputs()
    expected = expected_values(model, inputs)
    values = run_model(model, {name: lw.asarray(array) for name, array in inputs.items()})
    names = list(expected) if is_whole else [output.name for output in model.graph.output]
    lw.evaluate(*[values[name] for name in names])
    for name in names:
        _agree(name, np.asarray(values[name]), expected[name])
