"""Kernels for 64-bit Arm, cross-compiled and emulated: golden ones, random schedules, exports.

`tox -e aarch64` runs this where aarch64-linux-gnu-gcc and qemu-aarch64 are installed; plain tests
skip it. LOOPWRIGHT_LONG=1 and LOOPWRIGHT_FUZZ=FIRST:END are as in tests/fuzz.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import loopwright as lw
from loopwright.cli.program import program as commands
from support.emulated import DEVICE, EMULATOR, FLAGS, GCC, MISSING, emulated
from support.machines import CACHES
from support.schedule_cases import Machine, Report, run_cases

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"no {', '.join(MISSING)} here")

ARM = Machine("armv8", replace(DEVICE.target, threads=3, caches=CACHES), emulated, 1500, 40, 1000)

# Each runs under NumPy's names too; the arguments, and how far from NumPy a result may be.
FUNCTIONS = """
import loopwright as lw


def product(x, w):
    return x @ w


def softmax(x):
    return lw.softmax(x, axis=-1)


def norm(x, w, b):
    return lw.layer_norm(x, w, b)


def conv(x, w):
    return lw.relu(lw.conv(x, w, padding=1))


def curves(x):
    return lw.exp(x), lw.log(lw.abs(x)), lw.sin(x * 100.0), lw.tanh(x), lw.gelu(x), lw.pow(x, 3.0)


def sums(x):
    return lw.sum(x, axis=0), lw.cumulative_sum(x, axis=1), lw.argmax(x, axis=1), lw.max(x)


def integers(i, j):
    return i // j, i % j, i << 3, i * j, lw.astype(i, lw.float32)


def halves(h):
    return h * h + 1.0, lw.sum(h, axis=-1)


def turned(x):
    return lw.asarray(lw.permute_dims(x, (1, 0)), copy=True), x[::-1, 1:]
"""
ARGUMENTS = {
    "product": ["x=f32[37,41]", "w=f32[41,29]"],
    "softmax": ["x=f32[11,130]"],
    "norm": ["x=f32[9,70]", "w=f32[70]", "b=f32[70]"],
    "conv": ["x=f32[2,3,13,17]", "w=f32[5,3,3,3]"],
    "curves": ["x=f64[203]"],
    "sums": ["x=f32[33,45]"],
    "integers": ["i=i32[77]", "j=i32[77]"],
    "halves": ["h=f16[5,64]"],
    "turned": ["x=f32[31,22]"],
}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("functions") / "functions.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return path


def drawn(text: str, rng: np.random.Generator) -> Any:
    """Numbers for an argument such as x=f32[3,4]; no integer is 0."""
    kind, _, sizes = text.partition("=")[2].partition("[")
    shape = tuple(map(int, sizes.rstrip("]").split(",")))
    if kind == "i32":
        return rng.integers(1, 1000, shape, np.int32) * rng.choice([-1, 1], shape).astype(np.int32)
    return rng.standard_normal(shape).astype(DTYPES[kind])


@pytest.mark.parametrize("name", ARGUMENTS)
def test_exported_functions(name: str, file: Path, tmp_path: Path) -> None:
    """A function exported for Arm gives there what this machine's kernels give: integers and single
    operations to the bit, sums within rounding."""
    options = [part for text in ARGUMENTS[name] for part in ("--arg", text)]
    options += ["--device", "cpu:armv8", "-o", str(tmp_path / "made"), "--json"]
    done = CliRunner().invoke(commands, ["export", f"{file}:{name}", *options])
    assert done.exit_code == 0, done.output
    assert "-march=armv8-a" in json.loads(done.stdout)["command"]
    texts = sorted(str(p) for p in (tmp_path / "made").glob("*.c"))
    binary = tmp_path / "run"
    subprocess.run([GCC, *FLAGS, "-o", str(binary), *texts, "-lm"], check=True)
    rng = np.random.default_rng(1)
    given = [drawn(text, rng) for text in ARGUMENTS[name]]
    scope: dict[str, Callable[..., Any]] = {}
    exec(FUNCTIONS, scope)
    found = scope[name](*[lw.asarray(a, device="cpu") for a in given])
    wanted = [w.numpy() for w in (found if isinstance(found, tuple) else (found,))]
    for n, array in enumerate(given):
        (tmp_path / f"in{n}").write_bytes(array.tobytes())
    names = [f"in{n}" for n in range(len(given))] + [f"out{n}" for n in range(len(wanted))]
    subprocess.run([EMULATOR, str(binary), *names], check=True, cwd=tmp_path, env={})
    for n, want in enumerate(wanted):
        got = np.frombuffer((tmp_path / f"out{n}").read_bytes(), want.dtype).reshape(want.shape)
        if name in ("integers", "turned", "curves"):
            np.testing.assert_array_equal(got, want)
        else:
            unit = np.finfo(want.dtype).eps if want.dtype.kind == "f" else 0
            scale = np.max(np.abs(want))
            np.testing.assert_allclose(got, want, rtol=16 * unit, atol=16 * unit * scale)


def test_random_legal_schedules() -> None:
    """As in tests/fuzz: no schedule changes a bit of exact results, or a byte beside a buffer."""
    report = Report()
    run_cases(ARM, report)
    assert report.cases and (os.environ.get("LOOPWRIGHT_FUZZ") or report.opts / report.cases > 3)
