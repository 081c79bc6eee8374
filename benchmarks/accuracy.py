"""The worst error of every float function in units in the last place, and where it is.

`python benchmarks/accuracy.py [STRIDE [NAME ...]]` walks the bit patterns of float32 in steps of
STRIDE (1: all 2**32 of them) and prints one line a function. The reference is NumPy in float64,
whose own error is about 2**-29 of a float32 unit.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import loopwright as lw

NAMES = [
    "sqrt",
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "tanh",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "cosh",
    "expm1",
    "log10",
    "log1p",
    "sinh",
    "tan",
]
CHUNK = 1 << 22


def errors(got: Any, want: Any) -> Any:
    """Errors in units of the float32 nearest to `want`; infinite for a wrong NaN or infinity."""
    final = want.astype(np.float32)
    unit = np.spacing(np.abs(final)).astype(np.float64)
    error = np.abs(got.astype(np.float64) - want) / unit
    same = (got == final) & (np.isinf(final) | (final == want))
    same |= np.isnan(got) & np.isnan(final)
    return np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))


def worst(name: str, stride: int) -> tuple[float, Any, int]:
    """The worst error of a function, its input, and how many inputs were tried."""
    function = getattr(lw, name)
    found, at, n = -1.0, np.float32(0), 0
    for start in range(0, 1 << 32, CHUNK * stride):
        bits = np.arange(start, min(start + CHUNK * stride, 1 << 32), stride, np.uint64)
        x = bits.astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            error = errors(np.asarray(function(lw.asarray(x))), getattr(np, name)(x.astype("f8")))
        i = int(np.argmax(error))
        n += len(x)
        if error[i] > found:
            found, at = float(error[i]), x[i]
    return found, at, n


def main() -> None:
    """Print the table."""
    stride = int(sys.argv[1]) if len(sys.argv) > 1 else 997
    for name in sys.argv[2:] or NAMES:
        found, at, n = worst(name, stride)
        print(f"{name:6} {found:6.3f} ULP at {float(at).hex()} of {n} inputs", flush=True)


if __name__ == "__main__":
    main()
