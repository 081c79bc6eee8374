"""The programs with inputs of a size: what tests compare and benchmarks time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from programs import grids, linear

Draw = Callable[..., Any]
Program = Callable[..., Any]

ALPHA, BETA = 1.5, 1.2


def _vectors(draw: Draw, n: int, count: int) -> list[Any]:
    return [draw(n) for _ in range(count)]


# name -> program, its arguments from a size and from what draws arrays
PROGRAMS: dict[str, tuple[Program, Callable[[int, Draw], list[Any]]]] = {
    "atax": (linear.atax, lambda n, d: [d(n, n + 3), d(n + 3)]),
    "bicg": (linear.bicg, lambda n, d: [d(n + 3, n), d(n), d(n + 3)]),
    "gesummv": (linear.gesummv, lambda n, d: [ALPHA, BETA, d(n, n), d(n, n), d(n)]),
    "gemm": (linear.gemm, lambda n, d: [ALPHA, BETA, d(n, n + 2), d(n + 2, n + 1), d(n, n + 1)]),
    "2mm": (
        linear.two_products,
        lambda n, d: [ALPHA, BETA, d(n, n + 1), d(n + 1, n - 2), d(n - 2, n + 3), d(n, n + 3)],
    ),
    "3mm": (
        linear.three_products,
        lambda n, d: [d(n, n + 1), d(n + 1, n - 2), d(n - 2, n + 3), d(n + 3, n + 2)],
    ),
    "mvt": (linear.mvt, lambda n, d: [d(n, n), *_vectors(d, n, 4)]),
    "gemver": (linear.gemver, lambda n, d: [ALPHA, BETA, d(n, n), *_vectors(d, n, 6)]),
    "covariance": (linear.covariance, lambda n, d: [d(n + 5, n)]),
    "pairwise distance": (linear.pairwise_distance, lambda n, d: [d(n, 3)]),
    "azimuthal histogram": (
        linear.azimuthal_histogram,
        lambda n, d: [d(n * n), d(n * n), 5 + n // 20],
    ),
    "perceptron": (
        linear.perceptron,
        lambda n, d: [
            d(n, 2 * n), d(2 * n, n + 5) / n, d(n + 5), d(n + 5, n) / n, d(n), d(n, 10), d(10)
        ],
    ),
    "hdiff": (grids.hdiff, lambda n, d: [d(n + 4, n + 5, 6), d(n, n + 1, 6)]),
    "jacobi 1-D": (grids.jacobi_line, lambda n, d: [4, *_vectors(d, n * n, 2)]),
    "jacobi 2-D": (grids.jacobi_plane, lambda n, d: [4, d(n, n + 1), d(n, n + 1)]),
    "heat 3-D": (grids.heat_cube, lambda n, d: [3, d(n, 9, n + 1), d(n, 9, n + 1)]),
    "fdtd 2-D": (
        grids.fdtd,
        lambda n, d: [3, d(n, n + 1), d(n, n + 1), d(n, n + 1), d(3)],
    ),
}  # fmt: skip

# Programs without sums over axes: every operation rounds once, so that results are the same bits.
STENCILS = ("hdiff", "jacobi 1-D", "jacobi 2-D", "heat 3-D", "fdtd 2-D")


def drawing(dtype: str, seed: int) -> Draw:
    """What makes arrays of a dtype: normal numbers, the same for the same seed."""
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.normal(size=shape).astype(dtype)


def results(found: Any) -> tuple[Any, ...]:
    """What a program returned, as a tuple."""
    return found if isinstance(found, tuple) else (found,)
