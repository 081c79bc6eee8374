"""`loopwright tune`: what it prints, what it keeps, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loopwright.cli.program import program
from loopwright_core.pipeline import forget_built
from loopwright_core.plugin.loader import registry

SOURCE = """
def f(x):
    return x * 2 + 1

def view(x):
    return x
"""


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if registry().device("cpu").state()[0] != "ready":
        pytest.skip("no compiler")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    forget_built()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "user.py"
    path.write_text(SOURCE)
    return str(path)


def call(*args: str) -> Result:
    return CliRunner().invoke(program, list(args))


def test_a_search_reports_and_keeps(file: str, tmp_path: Path) -> None:
    """Steps, counts and the best time in plain text; the second call replays, as JSON too."""
    args = ["tune", f"{file}:f", "--arg", "x=f32[65536]", "--budget", "2"]
    first = call(*args)
    assert first.exit_code == 0, first.output
    for word in ("ranked", "timed", "failed", "s left", "GB/s", "rank correlation", "gain"):
        assert word in first.output
    assert len(list((tmp_path / "cache" / "tuning").iterdir())) == 1
    forget_built()
    again = json.loads(call(*args, "--json").output)["kernels"]
    assert [k["is_replay"] for k in again] == [True]
    assert " · ".join(again[0]["opts"]) in first.output
    forget_built()
    compiled = json.loads(
        call("compile", *args[1:4], "--schedule", "beam", "--json").output
    )["kernels"]  # fmt: skip
    assert compiled[0]["opts"] == again[0]["opts"]


def test_export_and_import(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """What one cache directory knows, another one replays."""
    out = str(tmp_path / "out.json")
    args = ["tune", f"{file}:f", "--arg", "x=f32[4096]", "--budget", "1"]
    assert "out.json: 1 results" in call(*args, "--export", out).output
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "other"))
    forget_built()
    result = call(*args, "--import", out)
    assert "1 results taken, 0 damaged" in result.output
    assert "kept from an earlier search" in result.output


def test_nothing_to_tune(file: str) -> None:
    """A view has no kernel; no work at all is refused."""
    assert "no kernel" in call("tune", f"{file}:view", "--arg", "x=f32[4]").output
    refused = call("tune")
    assert refused.exit_code == 1
    assert "nothing to do" in refused.output
    assert call("tune", f"{file}:f", "--arg", "x=f32[4]", "--budget", "0").exit_code == 2


def test_a_device_that_cannot_run_is_refused(file: str) -> None:
    """Another processor's kernels cannot be timed: one clear message."""
    result = call("tune", f"{file}:f", "--arg", "x=f32[64]", "--device", "cpu:x86-64-v3")
    assert result.exit_code == 1
    assert "beam search times kernels" in result.output
