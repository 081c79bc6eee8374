"""The same input gives the same text: in another process, under any hash seed, in any order."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright_core.pipeline import forget_built

DEVICES = ("cpu:x86-64-v3", "cpu:armv8")


def array(device: str, *shape: int) -> Any:
    return lw.asarray(np.ones(shape, np.float32), device=device)


def softmax(d: str) -> Any:
    return lw.softmax(array(d, 13, 37), axis=1)


def layer_norm(d: str) -> Any:
    return lw.layer_norm(array(d, 9, 33), array(d, 33), array(d, 33))


def attention(d: str) -> Any:
    scores = array(d, 8, 12) @ array(d, 12, 10)
    return lw.softmax(scores, axis=-1) @ array(d, 10, 7)


def convolution(d: str) -> Any:
    return lw.conv(array(d, 1, 3, 11, 13), array(d, 4, 3, 3, 3), padding=1)


def concatenated(d: str) -> Any:
    return lw.concat([lw.tanh(array(d, 5, 7)), array(d, 3, 7)], axis=0)


def gathered(d: str) -> Any:
    return lw.take(array(d, 11, 6), lw.arange(4, device=d) * 2, axis=0)


def scanned(d: str) -> Any:
    return lw.cumulative_sum(array(d, 6, 15), axis=1)


def mixed(d: str) -> Any:
    """Many dtypes, many constants."""
    x = array(d, 17)
    y = lw.astype(x, lw.int16) // 3 + lw.astype(lw.sin(x), lw.int16)
    return lw.where(y > 2, lw.astype(y, lw.float16) * 2.5, lw.astype(x % 7.0, lw.float16))


def statistics(d: str) -> Any:
    x = array(d, 10, 21)
    return lw.std(x, axis=0) + lw.argmax(x, axis=0) - lw.prod(x, axis=0)


def scheduled(d: str) -> Any:
    return array(d, 24, 40) @ array(d, 40, 64)


OPTS = ["TILE j 32", "UPCAST i 4", "VECTOR j 4", "STAGE B @j/32", "ORDER j/32 i/4 j/4"]
KERNELS: dict[str, Callable[[str], Any]] = {
    f.__name__: f
    for f in (
        *(softmax, layer_norm, attention, convolution, concatenated),
        *(gathered, scanned, mixed, statistics, scheduled),
    )
}


def digests(names: list[str]) -> dict[str, str]:
    """A digest of all texts of a kernel, by device and name."""
    found = {}
    for device in DEVICES:
        for name in names:
            with lw.options(opts=OPTS if name == "scheduled" else None):
                texts = [k.source for k in lw.kernels(KERNELS[name](device))]
            found[f"{device} {name}"] = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    return found


@pytest.mark.parametrize("seed", ["0", "1", "4711"])
def test_other_processes_and_hash_seeds(seed: str) -> None:
    """A process of its own, in which sets and strings hash differently, writes the same bytes."""
    out = subprocess.run(
        [sys.executable, __file__, *reversed(KERNELS)],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert json.loads(out.stdout) == digests(list(KERNELS))


def test_a_second_build() -> None:
    """Building again in the same process, after everything was forgotten, gives the same bytes."""
    first = digests(list(KERNELS))
    forget_built()
    assert digests(list(reversed(KERNELS))) == first


def test_texts_are_tidy() -> None:
    """No carriage returns, tabs or trailing blanks, one newline at the end."""
    for device in DEVICES:
        for make in KERNELS.values():
            for kernel in lw.kernels(make(device)):
                lines = kernel.source.split("\n")
                assert lines[-1] == "" and lines[-2] != ""
                assert [s for s in lines if s != s.rstrip() or "\t" in s or "\r" in s] == []


if __name__ == "__main__":
    print(json.dumps(digests(sys.argv[1:])))
