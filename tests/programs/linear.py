"""Programs of matrix and vector products, as anyone would write them with NumPy.

Each is a function of a namespace, NumPy or Loopwright, and of its arrays; it returns its results.
"""

from __future__ import annotations

from typing import Any


def atax(xp: Any, a: Any, x: Any) -> Any:
    """A transposed times A times x."""
    return (a @ x) @ a


def bicg(xp: Any, a: Any, p: Any, r: Any) -> Any:
    """The two products of a step of the biconjugate gradient method."""
    return r @ a, a @ p


def gesummv(xp: Any, alpha: float, beta: float, a: Any, b: Any, x: Any) -> Any:
    """The sum of two scaled products with one vector."""
    return alpha * (a @ x) + beta * (b @ x)


def gemm(xp: Any, alpha: float, beta: float, a: Any, b: Any, c: Any) -> Any:
    """A scaled matrix product added to a scaled matrix."""
    return alpha * (a @ b) + beta * c


def two_products(xp: Any, alpha: float, beta: float, a: Any, b: Any, c: Any, d: Any) -> Any:
    """2mm: the product of three matrices, scaled, added to a scaled one."""
    return alpha * (a @ b) @ c + beta * d


def three_products(xp: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """3mm: the product of two products."""
    return (a @ b) @ (c @ d)


def mvt(xp: Any, a: Any, x1: Any, x2: Any, y1: Any, y2: Any) -> Any:
    """Two vectors, each moved by a product with one matrix, once transposed."""
    x1 = xp.asarray(x1, copy=True)
    x2 = xp.asarray(x2, copy=True)
    x1 += a @ y1
    x2 += y2 @ a
    return x1, x2


def gemver(
    xp: Any,
    alpha: float,
    beta: float,
    a: Any,
    u1: Any,
    v1: Any,
    u2: Any,
    v2: Any,
    y: Any,
    z: Any,
) -> Any:
    """A matrix moved by two outer products, then two products with it."""
    a = a + u1[:, None] * v1 + u2[:, xp.newaxis] * v2
    x = beta * (y @ a) + z
    return a, x, alpha * (a @ x)


def covariance(xp: Any, data: Any) -> Any:
    """The covariances of a table's columns."""
    apart = data - xp.mean(data, axis=0)
    return apart.T @ apart / (data.shape[0] - 1)


def pairwise_distance(xp: Any, points: Any) -> Any:
    """The distances of all points from all others."""
    apart = points[:, None, :] - points[None, :, :]
    return xp.sqrt(xp.sum(apart**2, axis=-1))


def azimuthal_histogram(xp: Any, values: Any, radius: Any, n: int) -> Any:
    """The mean of the values in each of n rings around a centre."""
    counted = xp.histogram(radius, n)[0]
    summed = xp.histogram(radius, n, weights=values)[0]
    return summed / counted


def perceptron(xp: Any, x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    """Two hidden layers with relu, an output layer with softmax."""
    x = xp.maximum(x @ w1 + b1, 0)
    x = xp.maximum(x @ w2 + b2, 0)
    x = x @ w3 + b3
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)
