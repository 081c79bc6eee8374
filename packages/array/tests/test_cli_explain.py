"""`loopwright explain` and `compile --print-after`: what each stage made, as a page or text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from loopwright.cli.program import program

SOURCE = '''
def softmax_of_product(x, w):
    """Not <b>bold</b> & "not" <script>alert(1)</script>."""
    xp = x.__array_namespace__()
    y = x @ w
    e = xp.exp(y - xp.max(y, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)

def view(x):
    return x

def two(x):
    return x * 2, x.sum()
'''
ARGS = ["--arg", "x=f32[64,100]", "--arg", "w=f32[100,48]"]
VOID = {"meta", "br", "hr", "link", "img", "input"}


class Checker(HTMLParser):
    """Tags must nest; ids, links, tags and the text between them are kept."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            elif name in ("href", "src"):
                self.links.append(str(value))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "functions.py"
    path.write_text(SOURCE)
    return str(path)


def call(*args: str) -> Result:
    return CliRunner().invoke(program, list(args))


def good(*args: str) -> str:
    result = call(*args)
    assert result.exit_code == 0, result.output
    return result.output


def written(file: str, tmp_path: Path, *args: str) -> tuple[str, Checker]:
    target = tmp_path / "report.html"
    good("explain", file, "-o", str(target), *args)
    text = target.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return text, checker


def test_the_page_stands_alone(file: str, tmp_path: Path) -> None:
    """One page: tags nest, links lead to ids of its own, nothing is fetched, no script runs."""
    text, found = written(f"{file}:softmax_of_product", tmp_path, *ARGS)
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links} <= set(found.ids)
    assert all(link.startswith("#") for link in found.links)
    assert "script" not in found.tags and "link" not in found.tags
    assert "http" not in text and "url(" not in text and "@import" not in text


def test_what_the_user_wrote_is_escaped(file: str, tmp_path: Path) -> None:
    """Text that looks like HTML is shown as text."""
    _, found = written(f"{file}:softmax_of_product", tmp_path, *ARGS)
    assert '"""Not <b>bold</b> & "not" <script>alert(1)</script>."""' in found.text


def test_the_page_tells_every_stage(file: str, tmp_path: Path) -> None:
    """Fusion with its reasons, both kernels with words, accesses, steps, rules and source."""
    _, found = written(f"{file}:softmax_of_product", tmp_path, *ARGS)
    names = ("r_64_48_100", "r_64_48_48_48")
    for word in (
        *names,
        "stored: it is asked for",
        "stored: computing it where it is used costs more than memory; 3072 elements, 9216",
        "repeating it costs less than memory",
        *("fuse", "index", "schedule", "lower", "render"),
        "i +100, k +1",
        "The sum over k runs inside",
        "operations per byte",
        "exp_float",
        "UPCAST j/8 0",
    ):
        assert word in found.text, word
    for name in names:
        assert f"void {name}(const float *restrict A" in found.text
    assert found.ids == ["expression", "fusion", "kernel-0", "kernel-1"]


def test_the_same_page_every_time(file: str, tmp_path: Path) -> None:
    """Two processes with other hash seeds write the same bytes."""
    pages = []
    for seed in ("1", "2"):
        target = tmp_path / f"{seed}.html"
        command = [sys.executable, "-m", "loopwright", "explain", f"{file}:softmax_of_product"]
        subprocess.run(
            [*command, *ARGS, "-o", str(target)],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        pages.append(target.read_bytes())
    assert pages[0] == pages[1]


@pytest.mark.parametrize("device", ["cpu:armv8", "cpu:x86-64-v4", "cpu:x86-64"])
def test_any_device_that_renders(file: str, tmp_path: Path, device: str) -> None:
    """Devices that are not on this machine are explained too."""
    _, found = written(f"{file}:softmax_of_product", tmp_path, *ARGS, "--device", device)
    assert f"2 kernels for the device {device}." in found.text


def test_text_and_json(file: str) -> None:
    """Without -o the terminal gets the essence; --json gives all of it."""
    args = ["explain", f"{file}:softmax_of_product", *ARGS]
    text = good(*args)
    for word in ("Fusion", "Why this schedule", "Step by step", "In words", "Source", "exp_float"):
        assert word in text
    assert "\x1b[" not in text and "<" not in text.split("Source")[0]
    document = json.loads(good(*args, "--json"))
    first = document["kernels"][0]
    assert [s["name"] for s in first["stages"]] == ["fuse", "index", "schedule", "lower", "render"]
    assert [s["opt"] for s in first["steps"]] == first["opts"]
    assert first["stages"][-1]["after"] == first["source"]
    assert document["fusion"][-1]["text"] == "stored: it is asked for"


def test_given_steps_are_explained(file: str) -> None:
    """Given steps are the reason; each is shown with the nest it makes."""
    args = ["explain", f"{file}:two", "--arg", "x=f32[64]", "--json"]
    opts = ["--opts", "e_64: UPCAST i 4 · TILE i/4 4", "--opts", "r_64: UNROLL k 4"]
    second, first = json.loads(good(*args, *opts))["kernels"]
    assert first["why"] == second["why"] == ["the steps were given"]
    assert [s["opt"] for s in first["steps"]] == ["UPCAST i 4", "TILE i/4 4"]
    assert (
        first["steps"][1]["after"] == "loop i/16(4)\n  loop i/4(4)\n    the store to B\nupcast i(4)"
    )
    assert "i/16: a loop over 4 blocks of 16 steps of i." in first["steps"][1]["sentences"]
    assert second["opts"] == ["UNROLL k 4"]
    plain = json.loads(good(*args, "--schedule", "none"))["kernels"][0]
    assert plain["why"] == ["the option schedule is none: every dim is a loop as it stands"]
    assert plain["steps"] == []


def test_nothing_to_explain(file: str, tmp_path: Path) -> None:
    """A view needs no kernel, and the page says so."""
    _, found = written(f"{file}:view", tmp_path, "--arg", "x=f32[4]")
    assert "No kernel: every result is in memory already." in found.text
    assert "no kernel" in good("explain", f"{file}:view", "--arg", "x=f32[4]")


def test_print_after(file: str) -> None:
    """compile --print-after shows what a stage made, readable, in the order of the stages."""
    args = ["compile", f"{file}:softmax_of_product", *ARGS]
    text = good(*args, "--print-after", "index")
    assert "// r_64_48_100 after index" in text and "// r_64_48_48_48 after index" in text
    assert "load A[i, k]: float32, strides i +100, k +1" in text
    assert "after lower" not in text and "void r_64_48_100(" in text
    everything = good(*args, "--print-after", "all")
    stages = ("fuse", "index", "schedule", "lower", "render")
    places = [everything.index(f"// r_64_48_100 after {stage}") for stage in stages]
    assert places == sorted(places)
    assert "phase r_64_48_100 on one thread" in everything
    document = json.loads(good(*args, "--print-after", "schedule", "--json"))
    assert list(document["after"]["r_64_48_100"]) == ["schedule"]
    assert "step UPCAST i 6" in document["after"]["r_64_48_100"]["schedule"]


@pytest.mark.parametrize("command", ["compile", "run", "explain", "tune"])
def test_wrong_kernel_names_everywhere(file: str, command: str) -> None:
    """--opts for a kernel that is not there names the kernels there are, in every command."""
    result = call(command, f"{file}:two", "--arg", "x=f32[64]", "--opts", "nosuch: UPCAST i 4")
    assert result.exit_code == 1
    assert "given for nosuch" in result.output and "the kernels are r_64, e_64" in result.output


def test_opts_with_and_without_names(file: str) -> None:
    """Steps for one kernel and steps by name do not mix."""
    args = ["compile", f"{file}:two", "--arg", "x=f32[64]"]
    result = call(*args, "--opts", "e_64: UPCAST i 4", "--opts", "UPCAST i 4")
    assert result.exit_code == 1
    assert "do not go together" in result.output
