"""Softmax over rows, written out in array operations: one kernel.

Run it:            python examples/softmax.py
See its kernel:    loopwright compile examples/softmax.py:f --arg x=f32[4096,1000]
"""

import numpy as np

import loopwright as lw


def f(x):
    """exp(x - max) / sum, over the array namespace of its argument."""
    xp = x.__array_namespace__()
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def main():
    x = 4 * np.random.default_rng(0).standard_normal((1024, 1000), dtype=np.float32)

    want = f(x.astype(np.float64))
    lazy = f(lw.asarray(x))
    kernels = lw.kernels(lazy)
    for kernel in kernels:
        print(kernel.describe())
    got = lazy.numpy()

    error = np.max(np.abs(got - want) / want)
    print(f"softmax {got.shape}: {len(kernels)} kernel, largest relative error {error:.1e}")
    if error > 2e-5:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
