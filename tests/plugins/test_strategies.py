"""Another plugin's strategies decide before ours; broken ones are told by name."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fake_dists import install

PROGRAM = """
import numpy as np
import loopwright as lw

x = lw.asarray(np.arange(64, dtype=np.float32))
(kernel,) = lw.kernels(x * 2.0)
print(kernel.opts)
"""
PLUGIN = """
from loopwright_core.kernel.schedule import Opt
from loopwright_core.plugin import hookimpl
from loopwright_core.plugin.strategy import Strategy, Suggestion

def suggest(kernel, target, options, values):
    {body}

@hookimpl
def loopwright_strategies():
    return [{given}]
"""
MINE = "Strategy('mine', (), suggest)"


def run(site: Path, body: str, given: str = MINE) -> subprocess.CompletedProcess[str]:
    install(site, "mine", PLUGIN.format(body=body, given=given))
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_another_plugin_decides(tmp_path: Path) -> None:
    """The first suggestion wins; None and illegal steps leave the kernel to the next strategy."""
    done = run(tmp_path / "a", "return Suggestion((Opt('UPCAST', 'i', 2),))")
    assert "UPCAST i 2" in done.stdout
    ours = run(tmp_path / "b", "return None").stdout
    assert "VECTOR i" in ours
    assert run(tmp_path / "c", "return Suggestion((Opt('UPCAST', 'z', 2),))").stdout == ours


def test_broken_strategies(tmp_path: Path) -> None:
    """An exception names the strategy; two of one name and things that are none are refused."""
    done = run(tmp_path / "a", "raise ValueError('boom')")
    assert "strategy mine failed with ValueError: boom" in done.stderr
    done = run(tmp_path / "b", "return None", f"{MINE}, {MINE}")
    assert "two plugins bring a strategy named 'mine'" in done.stderr
    assert "42, which is no Strategy" in run(tmp_path / "c", "return None", "42").stderr
