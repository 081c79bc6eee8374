"""The same input gives the same bytes: results in every run, text in every process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import loopwright as lw
from support.numeric import array

TEXTS = """
import hashlib, sys
import numpy as np
import loopwright as lw
x = lw.asarray(np.zeros((33, 70), np.float32), device="cpu")
w = lw.asarray(np.zeros((70, 41), np.float32), device="cpu")
i = lw.astype(x, lw.int8)
values = [lw.softmax(x), x @ w, lw.sum(x, axis=0), lw.argmax(x, axis=1), lw.layer_norm(x),
          lw.concat([x, x[::-1] * 2]), lw.cumulative_sum(x, axis=1),
          lw.pad(i // 3, ((1, 2), (0, 1))),
          lw.where(x > 0, lw.exp(x), lw.sin(x)), lw.sum(lw.exp(x[:, 1:] - x[:, :-1]))]
text = "".join(k.source for v in values for k in lw.kernels(v))
together = "".join(k.source for k in lw.kernels(*values))
print(hashlib.sha256((text + together).encode()).hexdigest())
"""


def test_results() -> None:
    """Sums, softmax, matrix products and scans of mixed magnitudes: the same bits every time."""
    rng = np.random.default_rng(11)
    v = (rng.uniform(-1, 1, 10007) * 10.0 ** (np.arange(10007) % 9 - 4)).astype(np.float32)

    def run() -> str:
        x = array(v.copy())
        square = lw.reshape(x[:10000], (100, 100))
        values = [
            lw.sum(x),
            lw.mean(x),
            lw.softmax(square),
            square @ square,
            lw.sum(square, axis=0),
        ]
        values += [lw.cumulative_sum(x), lw.prod(x[:60]), lw.exp(x)]
        lw.evaluate(*values)
        return hashlib.sha256(b"".join(y.numpy().tobytes() for y in values)).hexdigest()

    assert len({run() for _ in range(20)}) == 1


def test_results_at_any_address() -> None:
    """Where in memory the data starts does not change a sum's bits."""
    rng = np.random.default_rng(1)
    v = rng.standard_normal(1000).astype(np.float32)
    found = set()
    for offset in range(17):
        room = np.zeros(1100, np.float32)
        room[offset : offset + 1000] = v
        found.add(lw.sum(array(room[offset : offset + 1000])).numpy().tobytes())
    assert len(found) == 1


def test_text_in_other_processes(tmp_path: Path) -> None:
    """Kernel text is the same, byte for byte, under other hash seeds and with a cold cache."""
    texts = set()
    for i, seed in enumerate(("0", "1", "4242")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "LOOPWRIGHT_CACHE_DIR": str(tmp_path / str(i))}
        done = subprocess.run(
            [sys.executable, "-c", TEXTS], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 1
