"""`loopwright export`: what it writes is compiled by gcc alone and runs without Python."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import loopwright as lw
from loopwright.cli.program import program
from loopwright.jit.export import export_c
from loopwright_core.errors import ArgumentError
from loopwright_core.plugin.loader import registry

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

FUNCTIONS = """
import numpy as np
import loopwright as lw

TABLE = lw.asarray(np.arange(5, dtype=np.int64) * 3)


def one(x):
    return lw.exp(x) + 1.0


def several(x, w):
    return lw.softmax(x @ w, axis=-1) @ lw.permute_dims(w, (1, 0))


def two(x):
    return lw.sum(x * x), lw.cumulative_sum(x)


def table(i):
    return lw.take(TABLE, i) + i


def twins(a, b):
    return (a * 2.0).sum() + (b * 3.0).sum(), a * 2.0, b * 3.0


def same(x):
    return x, x + 1.0, lw.zeros((0, 3))


def halves(x):
    return x * x


def best(x):
    return lw.named_kernel("work", lambda a: a + 1.0)(x) * 2.0


TWICE = "void twice(const float *a, float *b) { for (int i = 0; i < 12; i++) b[i] = 2 * a[i]; }"
PARTS = '''
static float third(float x) { return x / 3; }
void twice(const float *a, float *b, int thread) {
    for (int i = thread * 6; i < thread * 6 + 6; i++) b[i] = third(a[i]);
}
'''


def own(x):
    y = lw.kernel(TWICE, [x + 1.0], ((12,), lw.float32))
    z = lw.kernel(TWICE, [y], ((12,), lw.float32))
    return lw.kernel(PARTS, [y], ((12,), lw.float32), 2) - 1.0, z


def flags(x):
    return lw.logical_not(x), lw.any(x)
"""
CASES = {
    "one": ["x=f32[1000]"],
    "several": ["x=f32[33,17]", "w=f32[17,29]"],
    "two": ["x=f64[77]"],
    "table": ["i=i64[4]"],
    "twins": ["a=f32[64]", "b=f32[64]"],
    "same": ["x=f32[5,4]"],
    "halves": ["x=bf16[50]"],
    "flags": ["x=bool[9]"],
    "best": ["x=f32[12]"],
    "own": ["x=f32[12]"],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "functions.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    return path


def export(file: Path, name: str, directory: Path, *more: str) -> Any:
    arguments = [part for arg in CASES[name] for part in ("--arg", arg)]
    return CliRunner().invoke(
        program, ["export", f"{file}:{name}", *arguments, "-o", str(directory), *more]
    )


def inputs(name: str) -> list[Any]:
    """Numbers for the arguments of a case."""
    rng = np.random.default_rng(3)
    kinds = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "bool": np.bool_}
    found = []
    for text in CASES[name]:
        kind, sizes = re.fullmatch(r"\w+=(\w+)\[(.*)\]", text).groups()  # type: ignore[union-attr]
        shape = tuple(map(int, sizes.split(",")))
        if kind == "bf16":
            found.append(rng.standard_normal(shape).astype(lw.bfloat16.numpy))
        elif kind == "i64":
            found.append(rng.integers(0, 5, shape))
        else:
            found.append((rng.standard_normal(shape) * 2).astype(kinds[kind]))
    return found


@pytest.mark.parametrize("name", CASES)
def test_it_runs_without_python(name: str, file: Path, tmp_path: Path) -> None:
    """Compiled by the command of its README, it writes the bytes that Loopwright computes; its
    header and its own text compile without a warning."""
    made = tmp_path / "made"
    done = export(file, name, made, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    command = document["command"]
    assert command in (made / "README.md").read_text("utf-8")
    subprocess.run(command, shell=True, check=True, cwd=made)
    exported = Path(command.split(" -o ")[1].split()[0]).name  # `best` is main.c's own
    strict = shlex.split("gcc -std=gnu11 -Wall -Wextra -Werror -c -o strict.o")
    for text in (f"{exported}.c", "main.c"):
        subprocess.run([*strict, text], check=True, cwd=made)
    given = inputs(name)
    for n, array in enumerate(given):
        (made / f"in{n}").write_bytes(array.tobytes())
    scope: dict[str, Any] = {}
    exec(FUNCTIONS, scope)
    wanted = scope[name](*[lw.asarray(a) for a in given])
    wanted = [np.asarray(w) for w in (wanted if isinstance(wanted, tuple) else (wanted,))]
    names = [f"in{n}" for n in range(len(given))] + [f"out{n}" for n in range(len(wanted))]
    subprocess.run([f"./{exported}", *names], check=True, cwd=made, env={})
    for n, array in enumerate(wanted):
        found = np.frombuffer((made / f"out{n}").read_bytes(), array.dtype).reshape(array.shape)
        if array.dtype.kind == "f":  # threads may cut a sum elsewhere
            np.testing.assert_allclose(found, array, rtol=1e-6)
        else:
            assert found.tobytes() == array.tobytes()
    alone = subprocess.run([f"./{exported}"], check=True, cwd=made, env={}, capture_output=True)
    assert alone.stdout.decode().count("checksum") == len(wanted)


def test_equal_names_are_told_apart(file: Path, tmp_path: Path) -> None:
    """Two kernels of one size have functions, and files, of their own."""
    files = json.loads(export(file, "twins", tmp_path / "made", "--json").stdout)["files"]
    assert len(files) == len(set(files))


def test_what_is_refused(file: Path, tmp_path: Path) -> None:
    """A directory with something in it is left as it is, and so is a file; nothing is left over."""
    made = tmp_path / "made"
    made.mkdir()
    (made / "mine").write_text("mine")
    done = export(file, "one", made)
    assert done.exit_code == 1
    assert "not empty" in done.output
    assert [p.name for p in made.iterdir()] == ["mine"]
    (tmp_path / "file").write_text("")
    assert export(file, "one", tmp_path / "file" / "made").exit_code == 1
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".export")]


def test_sizes_that_vary_are_refused() -> None:
    """A function compiled for every size of an axis has no C of fixed sizes, nor has one without
    kernels."""
    n = lw.Variable("n", 1, 9)
    for f in (lambda x: x, lambda x: x * 2.0):
        jitted = lw.jit(f, dynamic={"x": {0: n}})
        with pytest.raises(ArgumentError, match="fixed sizes"):
            export_c(jitted.captured(np.ones((3, 2), np.float32)), "f")


def test_a_device_without_c_is_refused(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names device and language, and what else writes the texts; nothing is written."""
    monkeypatch.setattr(registry().device("cpu"), "language", "metal")
    done = export(file, "one", tmp_path / "made")
    assert done.exit_code == 1
    assert "the texts for cpu are metal" in " ".join(done.output.split())
    assert "compile -o" in done.output
    assert {p.name for p in tmp_path.iterdir()} <= {file.name, "__pycache__"}


@dataclass
class Weights:
    scale: Any
    double: Any


def nested(params: Any, X: Any, x: Any, work: Any, e_6: Any) -> Any:
    y = params["w"][0] * params["w"][1].scale + params["w"][1].double
    return {"sum": lw.sum(y + X), "parts": (y * x, work - e_6), "x": x + 1.0}


def exported_nested() -> dict[str, str]:
    a = np.ones(6, np.float32)
    given = {"w": [a, Weights(a, a)]}
    return export_c(lw.jit(nested).captured(given, a, a, a, a), "f").files


def test_names_are_those_of_the_parameters() -> None:
    """Arrays in containers are named by the way there; what C or the texts around use already, or
    what differs in small letters only, gets another name."""
    header = exported_nested()["f.h"]
    (declared,) = re.findall(r"^int f\((.*)\);", header, re.MULTILINE)
    assert re.findall(r"\*(\w+)", declared) == [
        "params_w_0",
        "params_w_1_scale",
        "params_w_1_double",
        "X",
        "x_2",
        "work_2",
        "e_6",
        "out_sum",
        "out_parts_0",
        "out_parts_1",
        "out_x",
    ]
    assert " * out_parts_1: float32[6]" in header
    assert "#define F_X_SIZE 6" in header and "#define F_X_2_SIZE 6" in header
    one = lw.jit(lambda double, größe: double + größe)
    header = export_c(one.captured(np.ones(2), np.ones(2)), "g").files["g.h"]
    assert re.search(
        r"^int g\(const double \*k_double, const double \*k_\w+, double \*out\);", header, re.M
    )


def test_texts_with_such_names_compile(tmp_path: Path) -> None:
    """A kernel called as an argument is gets another name."""
    for name, text in exported_nested().items():
        (tmp_path / name).write_text(text)
    subprocess.run(
        "gcc -std=gnu11 -march=native -o f *.c -lm", shell=True, check=True, cwd=tmp_path
    )
    subprocess.run(["./f"], check=True, cwd=tmp_path)


WORKSPACE = """
#include "several.h"
#include <stdio.h>
#include <string.h>
static _Alignas(SEVERAL_WORKSPACE_ALIGNMENT) char work[SEVERAL_WORKSPACE_BYTES + 128];
static float x[SEVERAL_X_SIZE], w[SEVERAL_W_SIZE], want[SEVERAL_OUT_SIZE], out[SEVERAL_OUT_SIZE];
int main(void) {
    for (int i = 0; i < SEVERAL_X_SIZE; i++) x[i] = i % 7 / 7.0f;
    for (int i = 0; i < SEVERAL_W_SIZE; i++) w[i] = i % 5 / 5.0f;
    memset(work, 111, sizeof work);
    if (several(x, w, want) != 0) return 1;
    if (several_with_workspace(work, x, w, out) != 0) return 2;
    if (memcmp(out, want, sizeof out) != 0) return 3;
    for (int i = 0; i < 128; i++) if (work[SEVERAL_WORKSPACE_BYTES + i] != 111) return 4;
    memset(out, 0, sizeof out);
    if (several_with_workspace(NULL, x, w, out) != 1) return 5;
    if (several_with_workspace(work + 4, x, w, out) != 1) return 6;
    for (int i = 0; i < SEVERAL_OUT_SIZE; i++) if (out[i] != 0) return 7;
    puts("fine");
    return 0;
}
"""


def test_the_caller_may_give_the_memory(file: Path, tmp_path: Path) -> None:
    """In a workspace of the size that the header says the results are the same, and nothing beyond
    it is touched; without one, or with one at an odd address, nothing is written."""
    made = tmp_path / "made"
    command = json.loads(export(file, "several", made, "--json").stdout)["command"]
    (made / "main.c").write_text(WORKSPACE)
    subprocess.run(command, shell=True, check=True, cwd=made)
    done = subprocess.run(["./several"], cwd=made, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "fine\n")
    header = (made / "several.h").read_text()
    assert int(re.findall(r"WORKSPACE_BYTES (\d+)", header)[0]) > 0


ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the page's flags are those of x86-64")
def test_the_page_shows_what_happens(tmp_path: Path) -> None:
    """Each command of docs/export.md prints what stands under it, but for times and checksums."""
    page = (ROOT / "docs" / "export.md").read_text("utf-8")
    (block,) = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    script = "\n".join(f"echo {shlex.quote(f'$ {line}')}\n{line}" for line in commands)
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    masked = [
        re.sub(r"checksum \w{16}|best of 10: \S+ ms", "...", text) for text in (done.stdout, block)
    ]
    assert masked[0] == masked[1]
    assert masked[1].count("...") == 2
