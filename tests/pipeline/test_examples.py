"""The examples run, and agree with NumPy."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw

FOLDER = Path(__file__).parents[2] / "examples"


def run(name: str, *args: str, cwd: Path) -> str:
    command = [sys.executable, str(FOLDER / name), *args]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name", ["matmul.py", "softmax.py", "heat.py", "regression.py", "own_kernel.py"]
)
def test_example(name: str, tmp_path: Path) -> None:
    """The script exits with 0: its own comparison with NumPy holds."""
    assert "error" in run(name, cwd=tmp_path)


def test_edges_of_an_array() -> None:
    """The photograph's function, on pixels made here, is NumPy's up to one step of rounding."""
    spec = importlib.util.spec_from_file_location("edges_example", FOLDER / "edges.py")
    assert spec is not None and spec.loader is not None
    edges: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(edges)
    photo = np.random.default_rng(0).integers(0, 256, (60, 71, 3)).astype(np.uint8)
    got = edges.f(lw.asarray(photo, device="cpu")).numpy()
    want = edges.f(photo)
    assert got.dtype == np.uint8 and got.shape == (54, 65)
    assert np.abs(got.astype(int) - want).max() <= 1


def test_edges_of_a_photograph(tmp_path: Path) -> None:
    """The sample photograph becomes a PNG of its edges."""
    pytest.importorskip("PIL", reason="edges.py reads photographs with Pillow: group `examples`")
    pytest.importorskip("matplotlib", reason="the sample photograph is in matplotlib")
    run("edges.py", "-o", "out.png", cwd=tmp_path)
    from PIL import Image

    with Image.open(tmp_path / "out.png") as image:
        assert image.mode == "L" and image.size[0] > 400
