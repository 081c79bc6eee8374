"""A dense layer, matmul + bias + gelu (tanh form), under NumPy and under Loopwright.

Run it:            python examples/matmul.py
See its kernel:    loopwright compile examples/matmul.py:f \
                       --arg x=f32[512,512] --arg w=f32[512,512] --arg b=f32[512]
"""

import numpy as np

import loopwright as lw


def f(x, w, b):
    """gelu(x @ w + b), over the array namespace of its arguments."""
    xp = x.__array_namespace__()
    h = x @ w + b
    return h * 0.5 * (1 + xp.tanh(0.7978845608028654 * (h + 0.044715 * h * h * h)))


def main():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 384), dtype=np.float32)
    w = rng.standard_normal((384, 256), dtype=np.float32)
    b = rng.standard_normal(256, dtype=np.float32)

    want = f(*(a.astype(np.float64) for a in (x, w, b)))
    lazy = f(lw.asarray(x), lw.asarray(w), lw.asarray(b))
    for kernel in lw.kernels(lazy):
        print(kernel.describe())
    got = lazy.numpy()

    error = np.max(np.abs(got - want) / (np.abs(want) + np.mean(np.abs(want))))
    print(f"matmul + bias + gelu {got.shape}: largest relative error {error:.1e}")
    if error > 2e-5:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
