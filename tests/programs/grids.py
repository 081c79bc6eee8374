"""Stencils over slices, as anyone would write them with NumPy.

Each is a function of a namespace, NumPy or Loopwright, and of its arrays; it returns its results.
"""

from __future__ import annotations

from typing import Any


def hdiff(xp: Any, field: Any, coefficient: Any) -> Any:
    """Horizontal diffusion with flux limiting: a Laplacian, two fluxes, their differences."""
    nx, ny = coefficient.shape[:2]
    lap = 4.0 * field[1 : nx + 3, 1 : ny + 3] - (
        field[2 : nx + 4, 1 : ny + 3]
        + field[0 : nx + 2, 1 : ny + 3]
        + field[1 : nx + 3, 2 : ny + 4]
        + field[1 : nx + 3, 0 : ny + 2]
    )
    flux = lap[1:, 1 : ny + 1] - lap[:-1, 1 : ny + 1]
    step = field[2 : nx + 3, 2 : ny + 2] - field[1 : nx + 2, 2 : ny + 2]
    across = xp.where(flux * step > 0, 0, flux)
    flux = lap[1 : nx + 1, 1:] - lap[1 : nx + 1, :-1]
    step = field[2 : nx + 2, 2 : ny + 3] - field[2 : nx + 2, 1 : ny + 2]
    along = xp.where(flux * step > 0, 0, flux)
    change = across[1:] - across[:-1] + along[:, 1:] - along[:, :-1]
    return field[2 : nx + 2, 2 : ny + 2] - coefficient * change


def jacobi_line(xp: Any, n_steps: int, a: Any, b: Any) -> Any:
    """jacobi 1-D: means of three neighbours, to and fro between two lines."""
    a = xp.asarray(a, copy=True)
    b = xp.asarray(b, copy=True)
    for _ in range(n_steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return a, b


def jacobi_plane(xp: Any, n_steps: int, a: Any, b: Any) -> Any:
    """jacobi 2-D: means of a point and its four neighbours."""
    a = xp.asarray(a, copy=True)
    b = xp.asarray(b, copy=True)
    for _ in range(n_steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return a, b


def _diffused(a: Any) -> Any:
    """The inner points of a cube after a step of the heat equation."""
    c = a[1:-1, 1:-1, 1:-1]
    return (
        0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * c + a[:-2, 1:-1, 1:-1])
        + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * c + a[1:-1, :-2, 1:-1])
        + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * c + a[1:-1, 1:-1, :-2])
        + c
    )


def heat_cube(xp: Any, n_steps: int, a: Any, b: Any) -> Any:
    """heat 3-D: the heat equation, to and fro between two cubes."""
    a = xp.asarray(a, copy=True)
    b = xp.asarray(b, copy=True)
    for _ in range(n_steps):
        b[1:-1, 1:-1, 1:-1] = _diffused(a)
        a[1:-1, 1:-1, 1:-1] = _diffused(b)
    return a, b


def fdtd(xp: Any, n_steps: int, ex: Any, ey: Any, hz: Any, pulse: Any) -> Any:
    """fdtd 2-D: an electromagnetic wave from a pulse at one side."""
    ex = xp.asarray(ex, copy=True)
    ey = xp.asarray(ey, copy=True)
    hz = xp.asarray(hz, copy=True)
    for t in range(n_steps):
        ey[0, :] = pulse[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz
