"""A compiler that fails: the user is told everything, and gets a script that shows it again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMPILER = shutil.which("gcc") or shutil.which("clang")

WRAPPER = """#!/bin/sh
if [ -n "$WRAPPER_FAILS" ]; then
    echo "internal compiler error: out of luck" >&2
    exit 4
fi
exec {compiler} "$@"
"""

PROGRAM = """
import os
import numpy as np
import loopwright as lw
from loopwright_core.errors import CompileError

x = lw.asarray(np.arange(7, dtype=np.float32))
(x + 1).numpy()  # finds and probes the compiler
os.environ["WRAPPER_FAILS"] = "1"
try:
    lw.sum(lw.where(x > 2, lw.exp(x), float("inf"))).numpy()
except CompileError as error:
    print(error)
"""


def run(command: list[str], tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    wrapper, cache = tmp_path / "cc", tmp_path / "cache"
    switches = {"LOOPWRIGHT_CC": str(wrapper), "LOOPWRIGHT_CACHE_DIR": str(cache)}
    return subprocess.run(
        command,
        env={**os.environ, **switches, **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.skipif(COMPILER is None, reason="no gcc and no clang here")
def test_script_reproduces_a_real_kernel(tmp_path: Path) -> None:
    """The message has the compiler's own words and a script; the script fails while the compiler
    does, and compiles the same kernel once the compiler is well."""
    (tmp_path / "cc").write_text(WRAPPER.format(compiler=COMPILER), encoding="utf-8")
    (tmp_path / "cc").chmod(0o755)
    done = run([sys.executable, "-c", PROGRAM], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "internal compiler error: out of luck" in done.stdout
    script = done.stdout.split("Reproduce it with: python ")[1].strip()
    failing = run([sys.executable, script], tmp_path, WRAPPER_FAILS="1")
    assert failing.returncode != 0
    again = run([sys.executable, script], tmp_path)
    assert again.returncode == 0, again.stderr
    assert "bytes compiled" in again.stdout
