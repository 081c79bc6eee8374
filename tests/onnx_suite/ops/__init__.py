"""The operators, in one module per kind."""

from __future__ import annotations

import importlib

KINDS = (
    "activation",
    "attention",
    "casting",
    "elementwise",
    "indexing",
    "linear",
    "logical",
    "loss",
    "normalization",
    "pooling",
    "quantized",
    "recurrent",
    "reduction",
    "resize",
    "sampling",
    "scatter",
    "shape",
    "signal",
)


def load() -> None:
    """Enter all operators in the table."""
    for kind in KINDS:
        importlib.import_module(f"onnx_suite.ops.{kind}")
