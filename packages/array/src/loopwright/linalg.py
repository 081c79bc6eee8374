"""`lw.linalg`: the standard's linear algebra extension, without matrix decompositions."""

from __future__ import annotations

from typing import Any

from loopwright.api.linalg import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    trace,
    vecdot,
)
from loopwright.api.norms import matrix_norm, matrix_power, vector_norm
from loopwright_core.errors import MissingFunctionError, fail

# What the extension has beside them.
_MISSING = frozenset({
    *("cholesky", "det", "eigh", "eigvalsh", "inv", "matrix_rank", "pinv", "qr", "slogdet"),
    *("solve", "svd", "svdvals"),
})  # fmt: skip

__all__ = [
    "cross",
    "diagonal",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "outer",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> Any:
    if name in _MISSING:
        fail(
            MissingFunctionError,
            f"Loopwright computes no {name}: its linalg has products and norms",
            fix=f"lw.asarray(np.linalg.{name}(x.numpy())) computes x and hands it to NumPy",
        )
    raise AttributeError(f"lw.linalg has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted(__all__)
