"""The command line: what it prints, its exit status, and that it leaves no half-written file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

from loopwright.cli import check
from loopwright.cli.arguments import Argument, parse_argument, parse_opts
from loopwright.cli.output import Output, write_file
from loopwright.cli.program import program
from loopwright_core.cache import Cache
from loopwright_core.errors import ArgumentError, LoopwrightError
from loopwright_core.ir import dtype as dt

SOURCE = """
import loopwright as lw

def f(x, w):
    return (x @ w).sum(axis=1)

def two(x, scale=None):
    xp = x.__array_namespace__()
    e = xp.exp(x - xp.max(x, axis=0))
    return e / xp.sum(e, axis=0), x + 1

def half(x):
    return x * 0.5

def wrong(x):
    return x * 0.5 if type(x).__module__ == "numpy" else x * 0.25

def no_array(x):
    return 3

def broken(x):
    return x @ x

def picked(x, i):
    return x.__array_namespace__().take(x, i, axis=0)

def picked_pairs(x, i, j):
    return x[i, j]

@lw.jit
def inner(x):
    return lw.exp(x) * 2

@lw.jit(static="n")
def jitted(x, n=3):
    return inner(x) * n + 1

@lw.jit
def wrong_jitted(x):
    return wrong(x)

TWICE = "void twice(const float *a, float *b) { for (int i = 0; i < 8; i++) b[i] = 2 * a[i]; }"

def own(x):
    return lw.kernel(TWICE, [x + 1.0], ((8,), lw.float32)) - 1.0
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of functions, and a cache of its own."""
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "functions.py"
    path.write_text(SOURCE)
    return str(path)


def call(*args: str) -> Result:
    return CliRunner().invoke(program, args)


def good(*args: str) -> str:
    result = call(*args)
    assert result.exit_code == 0, result.output
    return result.output


def bad(*args: str) -> str:
    """What a failing command says on stderr: one message, no traceback."""
    result = call(*args)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    return result.output


def test_compile_prints_the_kernel(file: str) -> None:
    """The text of the one kernel, with its nest, plain where it is no terminal."""
    text = good("compile", f"{file}:f", "--arg", "x=f32[8,16]", "--arg", "w=f32[16,4]")
    assert "void r_" in text and "\x1b[" not in text
    assert text.startswith("// r_8_")


def test_jitted_functions_are_what_they_compute(file: str) -> None:
    """A jitted function is compiled and compared as it was written, fused with those it calls."""
    done = call("compile", f"{file}:jitted", "--arg", "x=f32[64]")
    assert done.exit_code == 0
    assert done.output.count("void ") == 1
    assert call("run", f"{file}:jitted", "--arg", "x=f32[64]").exit_code == 0
    done = call("run", f"{file}:wrong_jitted", "--arg", "x=f32[64]")
    assert done.exit_code == 1
    assert call("run", f"{file}:wrong", "--arg", "x=f32[64]").exit_code == 1


def test_compile_obeys_schedule_and_opts(file: str) -> None:
    """Opts and schedules given on the command line reach the kernel."""
    args = ["compile", f"{file}:half", "--arg", "x=f32[64]", "--json"]
    (plain,) = json.loads(good(*args, "--schedule", "none"))["kernels"]
    (given,) = json.loads(good(*args, "--opts", "UPCAST i 4"))["kernels"]
    assert plain["opts"] == [] and given["opts"] == ["UPCAST i 4"]
    assert plain["source"] != given["source"]
    assert "error" in json.loads(bad(*args, "--opts", "UPCAST q 4"))


def test_compile_writes_files(file: str, tmp_path: Path) -> None:
    """`-o` writes one file a kernel, and nothing else."""
    target = tmp_path / "out" / "k.c"
    target.parent.mkdir()
    good("compile", f"{file}:two", "--arg", "x=f32[40,30]", "-o", str(target))
    names = sorted(p.name for p in target.parent.iterdir())
    assert names[0] == "k.c" and len(names) >= 2
    assert "void" in target.read_text()
    assert "cannot write" in bad(
        "compile", f"{file}:half", "--arg", "x=f32[4]", "-o", str(tmp_path / "nowhere" / "k.c")
    )


def test_files_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt while writing leaves the old file and no other."""
    target = tmp_path / "k.c"
    write_file(target, "old\n")

    def interrupt(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_file(target, "new\n")
    assert target.read_text() == "old\n"
    assert [p.name for p in tmp_path.iterdir()] == ["k.c"]


def test_hand_written_kernels(file: str) -> None:
    """compile shows them between the generated ones, and run runs them."""
    document = json.loads(good("compile", f"{file}:own", "--arg", "x=f32[8]", "--json"))
    assert [k["name"] for k in document["kernels"]] == ["e_8", "twice", "e_8"]
    good("run", f"{file}:own", "--arg", "x=f32[8]", "--no-check")


def test_run_compares_with_numpy(file: str) -> None:
    """A right function is a success; one that differs, or that NumPy cannot run, is not."""
    text = good("run", f"{file}:f", "--arg", "x=f32[8,16]", "--arg", "w=f32[16,4]")
    assert "GFLOP/s" in text and "ok" in text
    document = json.loads(good("run", f"{file}:two", "--arg", "x=f64[40,30]", "--json"))
    assert document["ok"] and len(document["compared"]) == 2
    assert all(k["seconds"] > 0 for k in document["kernels"])
    assert "FAIL" in bad("run", f"{file}:wrong", "--arg", "x=f32[8]")
    good("run", f"{file}:wrong", "--arg", "x=f32[8]", "--no-check")


def test_run_draws_positions_that_exist(file: str) -> None:
    """What another argument is indexed by is drawn from its positions: NumPy takes no others."""
    good("run", f"{file}:picked", "--arg", "x=f32[3,5]", "--arg", "i=i32[50]")
    sizes = ("--arg", "x=f32[7,2]", "--arg", "i=i64[40]", "--arg", "j=u8[40]")
    good("run", f"{file}:picked_pairs", *sizes)


@pytest.mark.parametrize("dtype", ["f64", "f16", "bf16", "i32", "u8"])
def test_run_in_other_dtypes(file: str, dtype: str) -> None:
    """Comparison allows what the dtype allows; integers are exact."""
    good("run", f"{file}:f", "--arg", f"x={dtype}[6,5]", "--arg", f"w={dtype}[5,3]")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{file}:f"], "no --arg for 'x'"),
        (["{file}:g"], "no function 'g'"),
        (["{file}"], "is not FILE.py:FUNC"),
        (["nowhere.py:f"], "no file nowhere.py"),
        (["{file}:half", "--arg", "y=f32[3]"], "no parameter 'y'"),
        (["{file}:half", "--arg", "x=f33[3]"], "no dtype 'f33'"),
        (["{file}:half", "--arg", "x"], "is not NAME=DTYPE"),
        (["{file}:half", "--arg", "x=f32[3]", "--arg", "x=f32[3]"], "given twice"),
        (["{file}:half", "--arg", "x=f32[3]", "--device", "nowhere"], "no device 'nowhere'"),
        (["{file}:no_array", "--arg", "x=f32[3]"], "returns int"),
        (["{file}:broken", "--arg", "x=f32[3,4]"], "matmul"),
    ],
)
def test_what_is_wrong_is_said(file: str, args: list[str], message: str) -> None:
    """Every wrong call is one clear message and status 1, as text and as JSON."""
    filled = [a.format(file=file) for a in args]
    assert message in bad("compile", *filled)
    document = json.loads(bad("compile", *filled, "--json"))
    assert message in document["error"]


def test_commands_that_are_not_there() -> None:
    """An unknown command is a usage error."""
    assert call("tuna").exit_code == 2
    assert call("--help").exit_code == 0


def test_devices_plugins_doctor(file: str) -> None:
    """What is installed, in text and JSON."""
    assert "cpu" in json.loads(good("devices", "--json"))
    assert "cpu" in good("devices")
    names = {p["name"]: p["state"] for p in json.loads(good("plugins", "--json"))}
    assert names["array"] == "loaded" and names["clang"] == "loaded"
    assert "loopwright_fuse: array" in good("doctor")
    assert json.loads(good("doctor", "--json"))["ok"]


def test_cache(file: str) -> None:
    """List, verify and clear what is kept; a damaged entry is named and removed."""
    good("run", f"{file}:half", "--arg", "x=f32[8]")
    document = json.loads(good("cache", "ls", "--json"))
    assert document["entries"] and "entries" in good("cache", "ls")
    assert "0 damaged" in good("cache", "verify")
    entry = next(e for e in Cache().ls() if e.kind == "binary")
    entry.path.write_bytes(entry.path.read_bytes()[:-1])
    assert "damaged" in bad("cache", "verify")
    assert "removed" in good("cache", "clear")
    assert json.loads(good("cache", "ls", "--json"))["entries"] == []


def test_interrupt(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends with status 130 and no traceback."""
    from loopwright.cli import report

    def interrupt(out: Output) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(report, "report_devices", interrupt)
    result = call("devices")
    assert result.exit_code == 130 and "Traceback" not in result.output


def test_help_is_instant() -> None:
    """`--help` imports neither arrays nor plugins."""
    code = (
        "import sys; sys.argv = ['loopwright', '--help']\n"
        "from loopwright.cli.program import program\n"
        "try: program()\n"
        "except SystemExit: pass\n"
        "print(sorted(m for m in sys.modules if m.startswith(('rich', 'loopwright_lower'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("[]")


def test_demo(file: str) -> None:
    """Three kernels, right and measured."""
    document = json.loads(good("demo", "--json"))
    assert document["ok"] and len(document["cases"]) == 3
    assert all(len(c["kernels"]) == 1 and c["share_of_limit"] > 0 for c in document["cases"])
    assert document["limits"]["gflops"] > 0.1 and document["limits"]["gbytes_per_s"] > 0.1


def test_parse_argument() -> None:
    """Short and full dtype names, spaces, 0-d, trailing comma."""
    assert parse_argument("x=f32[2,3]") == Argument("x", dt.float32, (2, 3))
    assert parse_argument(" w = bfloat16 [ 4 , ]") == Argument("w", dt.bfloat16, (4,))
    assert parse_argument("s=i8") == parse_argument("s=int8[]") == Argument("s", dt.int8, ())
    for text in ("x=f32[2", "x=f32[a]", "1x=f32[2]", "x=f32[2,,3]", "f32[2]", "x=f32[-1]"):
        with pytest.raises(ArgumentError):
            parse_argument(text)
    assert parse_opts(["TILE j 256 · ORDER j/256 i\nVECTOR j 8;"]) == [
        "TILE j 256",
        "ORDER j/256 i",
        "VECTOR j 8",
    ]


def test_compare() -> None:
    """Errors are relative to element and typical element; NaN equals NaN, inf equals inf."""
    want = np.array([1.0, -2.0, np.nan, np.inf, 0.0])
    assert check.compare(want.astype(np.float32), want).is_good
    assert not check.compare((want * 1.01).astype(np.float32), want).is_good
    assert not check.compare(np.array([0.0, 1.0]), np.array([np.nan, 1.0])).is_good
    assert not check.compare(np.zeros((2, 1)), np.zeros(2)).is_good
    assert check.compare(np.array([1, 2]), np.array([1, 2])).is_good
    assert not check.compare(np.array([1, 2]), np.array([1, 3])).is_good
    with pytest.raises(LoopwrightError, match="NumPy cannot run"):
        check.reference(lambda x: x.no_such_method(), [want])


def test_plain_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """Columns line up, and nothing is coloured, where no terminal looks."""
    Output(False).table(["a", "bb"], [["1", "2"], ["333", "4"]])
    assert capsys.readouterr().out == "a    bb\n1    2\n333  4\n"
    assert isinstance(program, click.Group)


def test_data_that_does_not_fit_the_memory(file: str) -> None:
    """Arguments larger than the memory end in a message, not in a traceback."""
    result = call("run", f"{file}:half", "--arg", "x=f32[4000000,4000000]")
    assert result.exit_code == 1
    assert "not enough memory" in result.stderr
    assert isinstance(result.exception, SystemExit)
