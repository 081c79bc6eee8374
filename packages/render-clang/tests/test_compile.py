"""Compilers: found in order, asked once, and what a user sees when one is missing or refuses."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import test_memory
from level3 import check, installed

from loopwright_core.errors import ArgumentError, CompileError, DeviceError
from loopwright_render_clang import compilers
from loopwright_render_clang.compile import compile_c, compile_program
from loopwright_render_clang.cpu import host
from loopwright_render_clang.device import CpuDevice
from loopwright_render_clang.render import render


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LOOPWRIGHT_CC", raising=False)
    compilers.forget()
    yield
    compilers.forget()


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_refused_text_shows_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal names the kernel, the command, the compiler's message and where the text lies."""
    with pytest.raises(CompileError) as caught:
        compile_c("int f(void) { return nonsense; }\n", "k", compilers.find())
    message = str(caught.value)
    assert "the kernel 'k'" in message and "nonsense" in message and "command: " in message
    kept = re.search(r"source: +(\S+)", message)
    assert kept is not None and "nonsense" in Path(kept[1]).read_text()
    shutil.rmtree(Path(kept[1]).parent)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any compiler the device renders, and says how to get one."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    state, reason = CpuDevice().state()
    assert state == "render only"
    assert 'pip install "loopwright[zig]"' in reason and "apt install gcc" in reason
    device = CpuDevice()
    text = device.render(test_memory.row_sum())
    with pytest.raises(DeviceError, match="no C compiler was found"):
        device.compile(text, test_memory.row_sum())
    with pytest.raises(DeviceError, match="no C compiler was found"):
        device.compile_key()


@pytest.mark.parametrize("wanted", ["/nonexistent/cc", "no-such-cc", "'unclosed"])
def test_wrong_choice(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_CC that names no compiler is refused by name."""
    monkeypatch.setenv("LOOPWRIGHT_CC", wanted)
    with pytest.raises(DeviceError, match="LOOPWRIGHT_CC"):
        compilers.find()


def test_choice_that_does_not_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_CC that names another program is refused with what that program said."""
    monkeypatch.setenv("LOOPWRIGHT_CC", str(script(tmp_path / "cc", "echo no >&2; exit 1")))
    with pytest.raises(DeviceError, match="does not compile C: no"):
        compilers.find()


def test_a_choice_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_CC that names a program which never answers is refused by name."""
    monkeypatch.setenv("LOOPWRIGHT_CC", str(script(tmp_path / "cc", "exec sleep 600")))
    monkeypatch.setattr(compilers, "_PROBE_TIMEOUT_S", 0.2)
    with pytest.raises(DeviceError, match=r"does not compile C: no answer within 0\.2 s"):
        compilers.find()


def test_a_compilation_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that does not finish is ended, and the message names both ways out."""
    found = replace(compilers.find(), argv=(str(script(tmp_path / "cc", "exec sleep 600")),))
    monkeypatch.setenv("LOOPWRIGHT_COMPILE_TIMEOUT", "1")
    with pytest.raises(CompileError, match="not done after 1 s") as caught:
        compile_c("int f(void) { return 1; }\n", "k", found)
    assert "LOOPWRIGHT_COMPILE_TIMEOUT" in str(caught.value)
    assert "LOOPWRIGHT_CC" in str(caught.value)


@pytest.mark.parametrize("cure", ["-fno-tree-forwprop", "-O0", "none"])
def test_a_compiler_that_crashes(cure: str, tmp_path: Path) -> None:
    """A compiler that fails itself is asked again with less to do; at last the crash is told."""
    found, log = compilers.find(), tmp_path / "log"
    crash = 'echo "kernel.c:1: internal compiler error: in f" >&2; exit 1'
    body = f'echo x >> "{log}"; for a in "$@"; do [ "$a" = "{cure}" ] && exec {found.argv[0]} "$@"'
    cc = replace(found, argv=(str(script(tmp_path / "cc", f"{body}; done; {crash}")),))
    text = "int f(void) { return 1; }\n"
    if cure == "none":
        with pytest.raises(CompileError, match="internal compiler error"):
            compile_c(text, "k", cc)
    else:
        assert compile_c(text, "k", cc)[:4] == b"\x7fELF"
    assert len(log.read_text().split()) == (2 if cure == "-fno-tree-forwprop" else 3)


def test_an_error_is_not_tried_again(tmp_path: Path) -> None:
    """Text that is no C is refused at once."""
    log = tmp_path / "log"
    cc = script(tmp_path / "cc", f'echo x >> "{log}"; echo "kernel.c:1: error: no" >&2; exit 1')
    with pytest.raises(CompileError, match="error: no"):
        compile_c("no C\n", "k", replace(compilers.find(), argv=(str(cc),)))
    assert len(log.read_text().split()) == 1


def test_a_compiler_that_hangs_ends_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the time limit neither the driver nor what it has started is left running."""
    monkeypatch.setenv("LOOPWRIGHT_COMPILE_TIMEOUT", "1")
    log = tmp_path / "log"
    cc = script(tmp_path / "cc", f'sleep 600 & echo $! > "{log}"; wait')
    with pytest.raises(CompileError, match="not done after 1 s"):
        compile_c("int f(void) { return 1; }\n", "k", replace(compilers.find(), argv=(str(cc),)))
    status = Path(f"/proc/{log.read_text().strip()}/stat")
    for _ in range(100):
        if not status.exists() or status.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the compiler's child still runs")


@pytest.mark.parametrize("wanted", ["0", "-1", "soon", "1.5"])
def test_a_timeout_that_is_none(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_COMPILE_TIMEOUT that is no number of seconds is refused by name."""
    monkeypatch.setenv("LOOPWRIGHT_COMPILE_TIMEOUT", wanted)
    with pytest.raises(ArgumentError, match="LOOPWRIGHT_COMPILE_TIMEOUT"):
        compile_c("int f(void) { return 1; }\n", "k", compilers.find())


def test_choice_with_arguments_and_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_CC may hold arguments, or be a path with spaces."""
    gcc = compilers.candidates()[0][0]
    folder = tmp_path / "a folder"
    folder.mkdir()
    for wanted in (f"{gcc} -DSOMETHING", str(script(folder / "my cc", f'exec "{gcc}" "$@"'))):
        monkeypatch.setenv("LOOPWRIGHT_CC", wanted)
        program = test_memory.row_sum()
        assert compile_program(render(program, host()), program)[:4] == b"\x7fELF"


def test_a_compiler_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is kept in the process and on disk, until the compiler changes."""
    gcc, log = compilers.candidates()[0][0], tmp_path / "log"
    cc = script(tmp_path / "cc", f'echo x >> "{log}"; exec "{gcc}" "$@"')
    monkeypatch.setenv("LOOPWRIGHT_CC", str(cc))
    for _ in range(3):
        assert compilers.find().key
        compilers.forget()
    assert log.read_text() == "x\n"
    script(cc, f'echo y >> "{log}"; exec "{gcc}" "$@" ')
    compilers.find()
    assert log.read_text() == "x\ny\n"


@pytest.mark.parametrize("name", ["with space", "-dash", "qu'o\"te", "ünï", "$HOME;x", "a\nb"])
def test_odd_folders(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TMPDIR and the cache may be spelled in any way."""
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr("tempfile.tempdir", None)
    a = np.ones((2, 64), np.float32)
    check(test_memory.row_sum(), [a, np.zeros(2, np.float32)], [2])
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TMPDIR", "-x")
    monkeypatch.setattr("tempfile.tempdir", None)
    check(test_memory.row_sum(), [a, np.zeros(2, np.float32)], [2])


def test_unusable_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that does not exist changes nothing."""
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    for compiler in installed().values():
        assert compile_c("int f(void) { return 1; }\n", "k", compiler)[:4] == b"\x7fELF"


def test_flags_are_strict() -> None:
    """No compiler is asked to change floating-point results."""
    for compiler in installed().values():
        flags = " ".join(compiler.flags)
        assert "-ffp-contract=off" in flags
        assert "fast" not in flags and "finite" not in flags and "associative" not in flags


def test_key_names_the_processor() -> None:
    """What a binary depends on: compiler, version, flags and what native means."""
    key = CpuDevice().compile_key()
    compiler = compilers.find()
    assert compiler.kind in key and compiler.version in key and compiler.macros in key
    assert "-march=native" in key


def test_zig_is_found_beside_its_module(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compiler in ziglang's wheel is used directly, without starting Python."""
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PATH", "/nonexistent")
    assert compilers.candidates() == [(sys.executable, "-m", "ziglang", "cc")]
    script(package / "zig", "exit 0")
    assert compilers.candidates() == [(os.fspath(package / "zig"), "cc")]
