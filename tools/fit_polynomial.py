"""Fits the minimax polynomials of the decompositions: the Remez exchange in multiple precision.

Run with an interpreter that has mpmath: `python tools/fit_polynomial.py [name]`. It prints the
coefficients, lowest power first, and the largest weighted error as a power of two. Coefficients
are rounded to the format one after another, the rest fitted again after each.
Source: E. W. Cheney, Introduction to Approximation Theory, 1966, chapter 3.
"""

from __future__ import annotations

import struct
import sys

import mpmath as mp

mp.mp.prec = 240


def rounded(value, digits):
    """The nearest binary number of 24 or 53 digits."""
    if digits == 24:
        return mp.mpf(struct.unpack("<f", struct.pack("<f", float(value)))[0])
    return mp.mpf(float(value))


def remez(f, weight, low, high, powers, grid=1200, rounds=12):
    """Coefficients c of min max weight * |f - sum c_k x**powers_k|, and that maximum."""
    n = len(powers)
    half, middle = (high - low) / 2, (high + low) / 2
    points = [middle - half * mp.cos(mp.pi * k / n) for k in range(n + 1)]
    xs = [middle - half * mp.cos(mp.pi * k / grid) for k in range(grid + 1)]
    table = [(x, f(x), weight(x)) for x in xs]
    coefficients = None
    for _ in range(rounds):
        rows = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for i, x in enumerate(points):
            for j, p in enumerate(powers):
                rows[i, j] = x**p
            rows[i, n] = (-1) ** i / weight(x)
            right[i] = f(x)
        solved = mp.lu_solve(rows, right)
        coefficients = [solved[j] for j in range(n)]
        errors = [
            (w * (y - sum(c * x**p for c, p in zip(coefficients, powers))), x) for x, y, w in table
        ]
        runs, sign = [], 0
        for e, x in errors:
            s = 1 if e > 0 else -1
            if s != sign:
                runs.append((abs(e), x))
                sign = s
            elif abs(e) > runs[-1][0]:
                runs[-1] = (abs(e), x)
        while len(runs) > n + 1:
            runs.pop(0 if runs[0][0] < runs[-1][0] else -1)
        if len(runs) < n + 1:
            break
        points = [x for _, x in runs]
    return coefficients, max(abs(e) for e, _ in errors)


def fit(f, weight, low, high, degree, digits):
    """Coefficients that are numbers of the format, and their largest weighted error."""
    eps = mp.mpf(2) ** -60
    low, high = mp.mpf(low) + eps, mp.mpf(high) + eps / 3
    if low < 0:  # powers without the constant share a zero inside: fit once, round each
        found, _ = remez(f, weight, low, high, list(range(degree + 1)))
        fixed = [rounded(c, digits) for c in found]
    else:
        fixed = []
        for k in range(degree + 1):

            def rest(x, done=tuple(fixed)):
                return f(x) - sum(c * x**p for p, c in enumerate(done))

            found, _ = remez(rest, weight, low, high, list(range(k, degree + 1)))
            fixed.append(rounded(found[0], digits))
    worst = max(
        abs(weight(x) * (f(x) - sum(c * x**p for p, c in enumerate(fixed))))
        for x in [low + (high - low) * k / 3000 for k in range(3001)]
    )
    return fixed, worst


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.01")
LOG_LOW, LOG_HIGH = mp.sqrt(mp.mpf(1) / 2) - 1, mp.sqrt(2) - 1
S_MAX = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mp.mpf("1.0001")
Z_MAX = (mp.pi / 4 * mp.mpf("1.02")) ** 2


def exp_tail(r):
    """(exp(r) - 1 - r) / r**2."""
    return (mp.exp(r) - 1 - r) / r**2


def log_tail(f):
    """(log(1 + f) - f + f**2/2) / f**3."""
    return (mp.log(1 + f) - f + f * f / 2) / f**3


def atanh_tail(z):
    """(2*atanh(s)/s - 2) / z, z = s**2."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2) / z


def atanh_tail2(z):
    """(2*atanh(s)/s - 2 - 2*z/3) / z**2."""
    s = mp.sqrt(z)
    return (2 * mp.atanh(s) / s - 2 - 2 * z / 3) / z**2


def log2_even(z):
    """2*atanh(s) / (s*ln 2)."""
    s = mp.sqrt(z)
    return 2 * mp.atanh(s) / s / mp.log(2)


def sin_tail(z):
    r = mp.sqrt(z)
    return (mp.sin(r) / r - 1) / z


def cos_tail(z):
    r = mp.sqrt(z)
    return (mp.cos(r) - 1 + z / 2) / z**2


def tanh_tail(z):
    x = mp.sqrt(z)
    return (mp.tanh(x) / x - 1) / z


def exp2_full(r):
    return mp.mpf(2) ** r


def exp_weight(r):
    """r**2 / exp(r), kept from vanishing at 0."""
    return (r**2 + mp.mpf("0.002")) / mp.exp(r)


def log_weight(f):
    """f**3 / log(1 + f), kept from vanishing at 0."""
    return (f**3 / mp.log(1 + f)) + mp.mpf("0.002")


def sin_weight(z):
    return z / (mp.sin(mp.sqrt(z)) / mp.sqrt(z))


def cos_weight(z):
    return z**2 / mp.cos(mp.sqrt(z))


def tanh_weight(z):
    return z / (mp.tanh(mp.sqrt(z)) / mp.sqrt(z))


# name: (function, weight that makes the error relative, interval, degree, digits)
FITS = {
    "EXP_32": (exp_tail, exp_weight, -HALF_LN2, HALF_LN2, 4, 24),
    "EXP_64": (exp_tail, exp_weight, -HALF_LN2, HALF_LN2, 10, 53),
    "LOG_32": (log_tail, log_weight, LOG_LOW, LOG_HIGH, 8, 24),
    "LOG_64": (atanh_tail, lambda z: z / 2, 0, S_MAX, 6, 53),
    "SIN_32": (sin_tail, sin_weight, 0, Z_MAX, 2, 24),
    "SIN_64": (sin_tail, sin_weight, 0, Z_MAX, 5, 53),
    "COS_32": (cos_tail, cos_weight, 0, Z_MAX, 2, 24),
    "COS_64": (cos_tail, cos_weight, 0, Z_MAX, 5, 53),
    "TANH_32": (tanh_tail, tanh_weight, 0, mp.mpf("0.5625"), 5, 24),
    "TANH_64": (tanh_tail, tanh_weight, 0, mp.mpf("0.3025"), 10, 53),
    "POW_LOG2": (log2_even, lambda z: 1 / log2_even(z), 0, S_MAX, 4, 53),
    "POW_EXP2": (exp2_full, lambda r: mp.mpf(2) ** -r, mp.mpf("-0.51"), mp.mpf("0.51"), 8, 53),
    "ATANH_32": (atanh_tail2, lambda z: z**2 / 2, 0, S_MAX, 3, 24),
    "ATANH_64": (atanh_tail2, lambda z: z**2 / 2, 0, S_MAX, 8, 53),
}


def main():
    for name in sys.argv[1:] or FITS:
        *what, digits = FITS[name]
        found, worst = fit(*what, digits)
        print(f"{name} = (  # error 2**{float(mp.log(worst, 2)):.1f}")
        for c in found:
            print(f"    {float(c)!r},")
        print(")")


if __name__ == "__main__":
    main()
