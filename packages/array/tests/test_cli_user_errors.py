"""Failures of the user's own file: one message with its line, and no traceback of ours."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType

import pytest
from click.testing import CliRunner, Result

import loopwright
import loopwright_core.errors
from loopwright.cli.program import program

SOURCE = """
import loopwright as lw

def attribute(x):
    return x.no_such_thing

def raises(x):
    raise ValueError("boom")

def helper(x):
    return {}[x.shape]

def inner(x):
    return helper(x)

def shapes(x):
    return x + lw.ones((3, 7))
"""


def explain(file: Path, function: str) -> Result:
    args = ["explain", f"{file}:{function}", "--arg", "x=f32[5,6]"]
    return CliRunner().invoke(program, args)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("attribute", "5: AttributeError: 'Array' object has no attribute 'no_such_thing'"),
        ("raises", "8: ValueError: boom. Correct the file."),
        ("inner", "11: KeyError: (5, 6)"),
    ],
)
def test_errors_of_the_function(tmp_path: Path, function: str, message: str) -> None:
    """What the user's function raises is an error of that line of its file, status 1."""
    file = tmp_path / "functions.py"
    file.write_text(SOURCE)
    result = explain(file, function)
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    assert f"error: {file}:{message}" in result.output


def test_files_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is named as the file was typed."""
    (tmp_path / "functions.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    assert (
        "error: functions.py:8: ValueError: boom" in explain(Path("functions.py"), "raises").output
    )


def test_faults_of_ours_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails inside Loopwright is not blamed on the user's file."""
    file = tmp_path / "functions.py"
    file.write_text(SOURCE)

    def broken(_: object) -> None:
        raise RuntimeError("a fault of ours")

    broken_there = FunctionType(broken.__code__, vars(loopwright_core.errors))
    monkeypatch.setattr(loopwright, "ones", broken_there)
    result = explain(file, "shapes")
    assert isinstance(result.exception, RuntimeError)


def test_refusals_name_the_line(tmp_path: Path) -> None:
    """An operation that refuses its arguments says which line of the file asked for it."""
    file = tmp_path / "functions.py"
    file.write_text(SOURCE)
    result = explain(file, "shapes")
    assert result.exit_code == 1
    assert "do not broadcast" in result.output
    assert f"in {file}:17" in result.output


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nosuchmodule", "1: ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("def f(x:", "1: '(' was never closed"),
    ],
)
def test_errors_of_the_file(tmp_path: Path, source: str, message: str) -> None:
    """A file that cannot be imported is an error of the line that fails."""
    file = tmp_path / "broken.py"
    file.write_text(source)
    result = explain(file, "f")
    assert isinstance(result.exception, SystemExit)
    assert result.exit_code == 1
    assert f"error: {file}:{message}" in result.output
