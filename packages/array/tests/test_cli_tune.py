"""`loopwright tune`: what it prints, what it keeps, and what it refuses."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loopwright.cli import tune
from loopwright.cli.limits import Limits
from loopwright.cli.program import program
from loopwright_core.pipeline import forget_built
from loopwright_core.plugin.loader import registry
from loopwright_core.progress import Progress

SOURCE = """
def f(x):
    return x * 2 + 1

def view(x):
    return x

def two(x):
    return x * 2 + 1, x.sum()
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
    args = ["tune", f"{file}:f", "--arg", "x=f32[65536]", "--budget", "10"]
    first = call(*args)
    assert first.exit_code == 0, first.output
    for word in ("ranked", "timed", "failed", "s left", "GB/s", "of the memory limit", "gain"):
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
    args = ["tune", f"{file}:f", "--arg", "x=f32[4096]", "--budget", "10"]
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


def test_what_is_told_before_a_search(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget that is no number, a file that is none or is not there, and a place where nothing
    can be kept are told at once."""
    args = ["tune", f"{file}:f", "--arg", "x=f32[4096]"]
    refused = call(*args, "--budget", "nan")
    assert refused.exit_code == 1 and "no number of seconds" in refused.output
    refused = call("tune", "--import", os.devnull)
    assert refused.exit_code == 1 and "is no file" in refused.output
    refused = call("tune", "--import", str(tmp_path / "nothing"))
    assert refused.exit_code == 1 and "cannot be read: No such file" in refused.output
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "file" / "cache"))
    refused = call(*args, "--budget", "10")
    assert refused.exit_code == 1 and "results cannot be kept in" in refused.output


def test_a_device_that_cannot_run_is_refused(file: str) -> None:
    """Another processor's kernels cannot be timed: one clear message."""
    result = call("tune", f"{file}:f", "--arg", "x=f32[64]", "--device", "cpu:x86-64-v3")
    assert result.exit_code == 1
    assert "cannot run kernels here" in result.output


def test_ctrl_c_keeps_the_best_so_far(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupt ends the search and those to follow; what was found is kept."""
    line = tune._line

    def interrupted(p: Progress, limits: Limits) -> str:
        if p.n_timed == 2 and not p.done:
            raise KeyboardInterrupt
        return line(p, limits)

    monkeypatch.setattr(tune, "_line", interrupted)
    args = ["tune", f"{file}:two", "--arg", "x=f32[65536]", "--budget", "60"]
    result = call(*args)
    assert result.exit_code == 0, result.output
    assert "interrupted: the best so far is kept" in result.output
    assert "interrupted: not searched for e_65536" in result.output
    assert len(list((tmp_path / "cache" / "tuning").iterdir())) == 1


def test_ctrl_c_before_a_schedule_ran_keeps_nothing(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The unoptimized kernel alone is no result: a later search begins anew."""
    line = tune._line

    def interrupted(p: Progress, limits: Limits) -> str:
        if p.n_timed == 1 and not p.done:
            raise KeyboardInterrupt
        return line(p, limits)

    monkeypatch.setattr(tune, "_line", interrupted)
    result = call("tune", f"{file}:f", "--arg", "x=f32[65536]", "--budget", "60", "--json")
    (found,) = json.loads(result.output)["kernels"]
    assert found["is_interrupted"] and found["best_s"] == 0 and found["opts"]
    assert not (tmp_path / "cache" / "tuning").exists()


def test_the_live_display() -> None:
    """On a terminal: the budget as a bar, counts, the best with its share of the limit."""
    from rich.console import Console

    p = Progress("r_8", 3, 248, 19, 2, 2e-3, 4e-3, 5.0, (), 10**8, 10**6)
    console = Console(width=80, file=io.StringIO(), force_terminal=True)
    console.print(tune._bar(p, Limits(100.0, 10.0), 20.0))
    text = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    assert "5 s left, step 3" in text and "━" in text
    assert "248 ranked, 19 timed, 2 failed" in text
    assert "best 2 ms, 50.0 GFLOP/s: 50% of the arithmetic limit" in text
    assert all(len(row) <= 80 for row in text.splitlines())


def test_given_steps_are_not_searched_for(file: str) -> None:
    """Steps given for one of two kernels stand; the other kernel is searched for."""
    args = ["tune", f"{file}:two", "--arg", "x=f32[4096]", "--budget", "10"]
    output = call(*args, "--opts", "e_4096: UPCAST i 4").output
    assert re.search(r"e_4096 .* given, not searched for", output)
    assert re.search(r"r_4096: step", output)
    refused = call(*args, "--schedule", "heuristic")
    assert refused.exit_code == 1
    assert "tune searches; --schedule heuristic does not" in refused.output


def test_limits() -> None:
    """A kernel is held back by arithmetic or memory, whichever takes longer."""
    limits = Limits(gflops=100.0, gbytes=10.0)
    assert limits.share(10**9, 10**6, 0.02) == (0.5, "arithmetic")
    assert limits.share(10**6, 10**8, 0.04) == (0.25, "memory")
