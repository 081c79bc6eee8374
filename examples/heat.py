"""Heat spreading over a plate: a 2-D five-point stencil, many steps, no loop over points.

Run it:            python examples/heat.py
See its kernels:   loopwright compile examples/heat.py:step --arg u=f32[512,512]
"""

import numpy as np

import loopwright as lw


def step(u):
    """One explicit step; the border keeps its temperature."""
    xp = u.__array_namespace__()
    middle = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    rows = xp.concat([u[1:-1, :1], middle + 0.2 * (around - 4 * middle), u[1:-1, -1:]], axis=1)
    return xp.concat([u[:1], rows, u[-1:]], axis=0)


def simulate(u, n_steps):
    """Many steps, as one expression."""
    for _ in range(n_steps):
        u = step(u)
    return u


def main():
    n_steps = 100
    plate = np.zeros((256, 320), np.float32)
    plate[0] = 100  # the upper edge is hot
    plate[100:140, 60:90] = 50

    want = simulate(plate.astype(np.float64), n_steps)
    lazy = simulate(lw.asarray(plate), n_steps)
    different = lw.kernels(lazy)
    for kernel in different:
        print(kernel.describe())
    got = lazy.numpy()

    error = np.max(np.abs(got - want))
    print(
        f"{n_steps} steps on {got.shape}: {len(different)} different kernel(s), "
        f"hottest inner point {got[1:-1, 1:-1].max():.2f}, largest error {error:.1e} degrees"
    )
    if error > 1e-3:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
