"""The library that calls kernels: begun beside them, finished when needed, never left over."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PRELUDE = """
import os, pathlib, sys, tempfile
from loopwright_render_clang import launcher
from loopwright_render_clang.device import CpuDevice
device = CpuDevice()
def folders(): return sorted(pathlib.Path(tempfile.gettempdir()).glob("loopwright-*"))
"""


def script(tmp_path: Path, text: str, **env: str) -> str:
    """What a Python process with empty caches and its own temporary folder prints."""
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(text)],
        env={
            **os.environ,
            "LOOPWRIGHT_CACHE_DIR": str(tmp_path / "cache"),
            "TMPDIR": str(tmp_path / "tmp"),
            **env,
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "tmp").iterdir()) == []
    return done.stdout


def test_it_begins_once_and_is_finished_when_it_is_needed(tmp_path: Path) -> None:
    """One compiler works from `begin_sequences` on; the library comes from it, and is kept."""
    text = """
        device.begin_sequences(); device.begin_sequences()
        print(len(folders()), launcher._begun is not None)
        print(bool(launcher.library().loopwright_pool_run), launcher._begun, len(folders()))
        device.begin_sequences()
        print(launcher._begun)
    """
    assert script(tmp_path, text).split() == ["1", "True", "True", "None", "0", "None"]


def test_it_ends_with_the_process(tmp_path: Path) -> None:
    """A compiler that nobody waited for is ended at exit, and its folder goes."""
    script(tmp_path, "device.begin_sequences()")


def test_what_is_in_the_cache_is_not_begun(tmp_path: Path) -> None:
    """Another process of the machine finds the library made."""
    text = """
        launcher.library()
        launcher._library = None
        device.begin_sequences()
        print(launcher._begun)
    """
    assert script(tmp_path, text).split() == ["None"]


def test_a_compiler_that_fails_is_asked_again(tmp_path: Path) -> None:
    """What was begun and failed is no error: the library is compiled when it is needed."""
    text = """
        from loopwright_render_clang.compile import Running
        launcher._begun = Running(["false"], "")
        print(bool(launcher.library().loopwright_pool_run))
    """
    assert script(tmp_path, text).split() == ["True"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_leaves_it_to_the_parent(tmp_path: Path) -> None:
    """The child compiles for itself, and what the parent waits for is still there."""
    text = """
        device.begin_sequences()
        child = os.fork()
        if child == 0:
            launcher.library()
            sys.exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(folders()))
        launcher.library()
    """
    assert script(tmp_path, text).split() == ["0", "1"]
