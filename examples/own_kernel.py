"""Escape times of the Mandelbrot set: a loop of its own for each element, written by hand in C, and
array expressions around it.

Run it:            python examples/own_kernel.py
"""

import numpy as np

import loopwright as lw

HIGH, WIDE, N_STEPS = 120, 160, 100
ESCAPE = f"""
void escape(const double *x, const double *y, int *steps) {{
    for (int i = 0; i < {HIGH * WIDE}; i++) {{
        double re = 0, im = 0;
        int n = 0;
        for (; n < {N_STEPS} && re * re + im * im <= 4; n++) {{
            const double next = re * re - im * im + x[i];
            im = 2 * re * im + y[i];
            re = next;
        }}
        steps[i] = n;
    }}
}}
"""


def plane(xp):
    """Points of the complex plane: real and imaginary parts."""
    x = xp.linspace(-2.0, 0.6, WIDE) + xp.zeros((HIGH, 1))
    y = xp.reshape(xp.linspace(-1.2, 1.2, HIGH), (HIGH, 1)) + xp.zeros((1, WIDE))
    return x, y


def escape(x, y):
    """The same with NumPy: all points take every step."""
    re, im, steps = np.zeros_like(x), np.zeros_like(x), np.zeros(x.shape, np.int32)
    for _ in range(N_STEPS):
        inside = re * re + im * im <= 4
        steps += inside
        re, im = (
            np.where(inside, re * re - im * im + x, re),
            np.where(inside, 2 * re * im + y, im),
        )
    return steps


def main():
    x, y = plane(lw)
    steps = lw.kernel(ESCAPE, [x, y], ((HIGH, WIDE), lw.int32))
    share = lw.mean(lw.astype(steps == N_STEPS, lw.float64))  # of points that never escape
    want = escape(*plane(np))

    error = np.max(np.abs(steps.numpy() - want))
    print(f"{float(share):.1%} of {HIGH} x {WIDE} points stay; largest error against NumPy {error}")
    if error > 0:
        raise SystemExit("the results differ")


if __name__ == "__main__":
    main()
