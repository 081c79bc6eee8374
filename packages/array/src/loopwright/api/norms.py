"""Norms of vectors and matrices, and whole powers of matrices."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from loopwright.api.arguments import integer
from loopwright.api.creation import eye
from loopwright.api.dtypes import astype, broadcast_to, operand
from loopwright.api.elementwise import abs as abs_
from loopwright.api.elementwise import square
from loopwright.api.linalg import matmul
from loopwright.api.power import pow as pow_
from loopwright.api.power import sqrt
from loopwright.api.searching import count_nonzero
from loopwright.api.statistical import max as max_
from loopwright.api.statistical import min as min_
from loopwright.api.statistical import sum as sum_
from loopwright.array import Array
from loopwright_core.errors import ArgumentError, MissingFunctionError, ShapeError, fail
from loopwright_core.ir import dtype as dt


def _floating(name: str, x: Any) -> Array:
    x = operand(name, x)
    return x if x.dtype.is_float else astype(x, dt.float64)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of all elements, or of vectors along axes: (sum of |x|**ord)**(1/ord).

    ord is a number: 0 counts what is not zero, inf and -inf are the extremes of |x|.
    """
    x = _floating("vector_norm", x)
    if isinstance(ord, bool) or not isinstance(ord, Real) or math.isnan(ord):
        fail(ArgumentError, f"vector_norm: ord={ord!r} is no number", fix="give a number")
    how: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    if ord == math.inf:
        return max_(abs_(x), **how)
    if ord == -math.inf:
        return min_(abs_(x), **how)
    if ord == 0:
        return astype(count_nonzero(x, **how), x.dtype)
    if ord == 1:
        return sum_(abs_(x), **how)
    if ord == 2:
        return sqrt(sum_(square(x), **how))
    return pow_(sum_(pow_(abs_(x), ord), **how), 1.0 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices in the last two axes.

    ord is "fro" (root of the sum of squares), 1 or -1 (largest or smallest sum of |x| down a
    column), inf or -inf (the same along a row). Norms of singular values are refused.
    """
    x = _floating("matrix_norm", x)
    if x.ndim < 2:
        fail(ShapeError, f"matrix_norm of shape {x.shape}", fix="it needs two axes")
    if ord == "fro":
        return sqrt(sum_(square(x), axis=(-2, -1), keepdims=keepdims))
    if ord in (2, -2, "nuc"):
        fail(
            MissingFunctionError,
            f"matrix_norm: ord={ord!r} is a norm of singular values, which are not computed here",
            fix=f"lw.asarray(np.linalg.norm(x.numpy(), {ord!r}, (-2, -1))) hands x to NumPy",
        )
    if ord not in (1, -1, math.inf, -math.inf):
        fail(
            ArgumentError,
            f"matrix_norm: ord={ord!r} is no norm",
            fix='give "fro", 1, -1, inf or -inf',
        )
    along = -2 if ord in (1, -1) else -1
    sums = sum_(abs_(x), axis=along, keepdims=True)
    extreme = max_ if ord > 0 else min_
    return extreme(sums, axis=(-2, -1), keepdims=keepdims)


def matrix_power(x: Any, n: int, /) -> Array:
    """A square matrix (or a stack) times itself, n factors; n = 0 gives the identity."""
    x = operand("matrix_power", x)
    n = integer(n, "n", "matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        fail(ShapeError, f"matrix_power of shape {x.shape}", fix="its last two axes must be equal")
    if n < 0:
        fail(
            MissingFunctionError,
            f"matrix_power: the power {n} needs an inverse, which is not computed here",
            fix=f"lw.asarray(np.linalg.matrix_power(x.numpy(), {n})) hands x to NumPy",
        )
    if n == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype, device=x.device), x.shape)
    result: Array | None = None
    while True:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if not n:
            assert result is not None
            return result
        x = matmul(x, x)
