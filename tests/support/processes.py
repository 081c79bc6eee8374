"""Python processes that run a text side by side, each with an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys


def start(code: str, **env: str) -> subprocess.Popen[str]:
    """A process that runs the text, with these variables beside the others."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for its end, which is a good one. Raises AssertionError with all that it printed."""
    try:
        text, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, text
