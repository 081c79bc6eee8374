"""Real ONNX models from wheels, and onnxruntime's values for all that they compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx

Inputs = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class RealModel:
    """A model in a wheel: the package, the file in it, and inputs as it is used with."""

    name: str
    package: str
    file: str
    inputs: Callable[[], Inputs]

    def load(self) -> Any:
        return onnx.load(self.path())

    def path(self) -> Path:
        """Where the file is; the package's own code is not run."""
        spec = find_spec(self.package)
        if spec is None or spec.origin is None:
            raise FileNotFoundError(f"the package {self.package} is not installed")
        return Path(spec.origin).parent / self.file


def _voice() -> Inputs:
    """A second of a tone with harmonics that glides from 150 to 300 Hz, and some noise."""
    rng = np.random.default_rng(0)
    time = np.arange(16_000) / 16_000
    phase = 2 * np.pi * (150 * time + 75 * time**2)
    tone = sum(np.sin(k * phase) / k for k in range(1, 6))
    audio = 0.2 * tone + 0.01 * rng.standard_normal(16_000)
    return {
        "audio": audio[None].astype(np.float32),
        "fmin": np.array(46.875, np.float32),
        "fmax": np.array(2093.75, np.float32),
    }


def _text() -> Inputs:
    """The bytes of this file, padded as magika pads."""
    content = np.frombuffer(Path(__file__).read_bytes()[:1024], np.uint8).astype(np.int32)
    line = np.full((1, 2048), 256, np.int32)
    line[0, : len(content)] = content
    line[0, 2048 - len(content) :] = content
    return {"bytes": line}


MODELS = (
    RealModel("swift-f0", "swift_f0", "model.onnx", _voice),
    RealModel("magika", "magika", "models/standard_v3_3/model.onnx", _text),
)


def with_all_values(model: Any) -> Any:
    """A copy whose outputs are the results of all nodes, in order."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    known = {value.name for value in copy.graph.output}
    for node in copy.graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                copy.graph.output.append(onnx.ValueInfoProto(name=name))
    return copy


def runtime(model: Any, n_threads: int = 1, is_plain: bool = True) -> Any:
    """onnxruntime on the model; plain: node by node, nothing fused."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.log_severity_level = 3
    if is_plain:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    content = model.SerializeToString()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def expected_values(model: Any, inputs: Inputs) -> dict[str, Any]:
    """onnxruntime's result of every node, by name."""
    session = runtime(with_all_values(model))
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))
