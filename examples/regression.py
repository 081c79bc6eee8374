r"""Logistic regression by gradient descent: one jitted step, called many times on NumPy arrays.

Run it:            python examples/regression.py
See its kernels:   loopwright compile examples/regression.py:gradient \
                       --arg w=f32[20] --arg x=f32[1000,20] --arg y=f32[1000]
"""

import numpy as np

import loopwright as lw


def gradient(w, x, y):
    """Of the mean negative log likelihood."""
    xp = w.__array_namespace__()
    p = 1 / (1 + xp.exp(-(x @ w)))
    return (p - y) @ x / x.shape[0]


def step(state, x, y, lr):
    """One step with momentum; `lr` may change with every call and compiles nothing."""
    velocity = 0.9 * state["velocity"] + gradient(state["w"], x, y)
    return {"w": state["w"] - lr * velocity, "velocity": velocity}


def train(step, x, y, n_steps):
    """Many steps, the later ones smaller."""
    zeros = np.zeros(x.shape[1], np.float32)
    state = {"w": zeros, "velocity": zeros}
    for n in range(n_steps):
        state = step(state, x, y, 1.0 / (1.0 + 0.01 * n))
    return state["w"]


def main():
    n_steps = 200
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1000, 20)).astype(np.float32)
    truth = rng.standard_normal(20).astype(np.float32)
    y = (x @ truth + rng.logistic(size=1000) > 0).astype(np.float32)

    jitted = lw.jit(step)
    got, want = train(jitted, x, y, n_steps), train(step, x, y, n_steps)

    error = np.max(np.abs(got - want))
    right = np.mean((x @ got > 0) == (y > 0))
    zeros = np.zeros(20, np.float32)
    kernels = jitted.kernels({"w": zeros, "velocity": zeros}, x, y, 1.0)
    print(
        f"{n_steps} steps of {len(kernels)} kernel(s): {right:.0%} of the labels right, "
        f"largest error against NumPy {error:.1e}"
    )
    if error > 1e-4:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
