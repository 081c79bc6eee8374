"""What a user does first, against what is installed; the exit status says whether it works.

usage: python -I tests/smoke.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

import loopwright as lw
from loopwright_core.plugin.loader import registry


def check_plugins() -> None:
    """Everything installed is loaded."""
    for plugin in registry().plugins():
        print(f"plugin {plugin}: {plugin.state}")
        assert plugin.state == "loaded", plugin.fix


def check_kernels() -> None:
    """A matmul with an epilogue, a softmax and an integer reduce agree with NumPy."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((37, 37), dtype=np.float32) for _ in range(2))
    got = lw.tanh(lw.asarray(a) @ lw.asarray(b) + 1.0).numpy()
    np.testing.assert_allclose(got, np.tanh(a @ b + 1.0), rtol=1e-4, atol=1e-5)
    shifted = np.exp(a - a.max(axis=1, keepdims=True))
    got = lw.softmax(lw.asarray(a), axis=-1).numpy()
    np.testing.assert_allclose(got, shifted / shifted.sum(axis=1, keepdims=True), rtol=1e-5)
    n = np.arange(1000, dtype=np.int64).reshape(10, 100)
    np.testing.assert_array_equal(lw.sum(lw.asarray(n) * 3, axis=0).numpy(), (n * 3).sum(axis=0))


def check_command_line() -> None:
    """`loopwright demo` works."""
    command = Path(sys.executable).with_name("loopwright")
    subprocess.run([str(command), "demo"], check=True)


if __name__ == "__main__":
    for check in (check_plugins, check_kernels, check_command_line):
        check()
        print(f"{check.__name__}: ok")
