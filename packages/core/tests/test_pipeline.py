"""The pipeline asks the right plugin, blames the right one, and compiles only on demand."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fake_dists import device_plugin, entry_points_in, install

from loopwright_core import pipeline
from loopwright_core.errors import CompileError, LoweringError, OptError, PluginError, VerifyError
from loopwright_core.ir import dtype as dt
from loopwright_core.ir.ops import Op
from loopwright_core.ir.uop import Buffer, UOp, const
from loopwright_core.kernel.options import Options
from loopwright_core.plugin import loader
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import Registry

# A compiler's three stages, in miniature, and a device that counts what it is asked.
TOY = (
    device_plugin("toy")
    + """
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.kernel.schedule import Schedule
from loopwright_core.program.program import Estimate, Program

REQUIRES_API = (1, 0)
calls = []
told = []


@hookimpl
def loopwright_index(ast, name):
    calls.append("index")
    return Kernel(name or "e_4", ast, (), Schedule(()))


@hookimpl
def loopwright_lower(kernel, target):
    calls.append("lower")
    return Program(kernel.name, (), (), (), Estimate(0, 0))


@hookimpl
def loopwright_stage(stage, before, after):
    told.append((stage, type(before).__name__, type(after).__name__))


def _render(self, program):
    return f"text of {program.name}\\n"


def _compile(self, source, program):
    calls.append("compile")
    return source.upper().encode()


def _load(self, binary, program):
    calls.append("load")
    return binary.decode()


def _launch(self, loaded, buffers, variables, queue=None):
    calls.append(("launch", loaded, list(buffers), list(variables)))


def _compile_key(self):
    return "toycc 1"


Fake.render, Fake.compile, Fake.load = _render, _compile, _load
Fake.launch, Fake.compile_key = _launch, _compile_key
"""
)

Start = Callable[..., Any]


def ast_of(value: float = 1.0) -> UOp:
    """A kernel AST: B = A + value, four elements."""
    a, b = (UOp(Op.BUFFER, dt.float32, (), Buffer(s, (4,))) for s in (0, 1))
    total = UOp(Op.ADD, dt.float32, (a, const(value, dt.float32)))
    return UOp(Op.SINK, dt.void, (UOp(Op.STORE, dt.void, (b, total)),))


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Makes the given plugin sources, by name, this process's only plugins; returns the toy."""
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LOOPWRIGHT_CHECK", "0")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    names: list[str] = []

    def with_plugins(**sources: str) -> Any:
        for name, source in ({"toy_plugin": TOY} | sources).items():
            if source:
                install(tmp_path / "site", name, source)
                names.append(name)
        found = Registry(entry_points_in(tmp_path / "site"))
        monkeypatch.setattr(loader, "_registry", found)
        pipeline.forget_built()
        return sys.modules.get("toy_plugin")

    yield with_plugins
    pipeline.forget_built()
    for name in names:
        sys.modules.pop(name, None)


def toy_device() -> Device:
    return loader.registry().device("toy")


def test_no_compiler_for_text(start: Start) -> None:
    """The text is there before any compiler ran; launch compiles and loads once."""
    toy = start()
    built = pipeline.build(ast_of(), toy_device(), Options())
    assert built.source == "text of e_4\n"
    assert toy.calls == ["index", "lower"]
    built.launch(["a", "b"], [7])
    built.launch(["c", "d"])
    assert toy.calls[2:4] == ["compile", "load"]
    assert toy.calls[4:] == [
        ("launch", "TEXT OF E_4\n", ["a", "b"], [7]),
        ("launch", "TEXT OF E_4\n", ["c", "d"], []),
    ]


def test_listeners_are_told(start: Start) -> None:
    """Each stage is announced with what went in and what came out, in order."""
    toy = start()
    pipeline.build(ast_of(), toy_device(), Options())
    assert toy.told == [
        ("index", "UOp", "Kernel"),
        ("schedule", "Kernel", "Kernel"),
        ("lower", "Kernel", "Program"),
        ("render", "Program", "str"),
    ]


def test_equal_arguments_build_once(start: Start) -> None:
    """The memo goes by value: an equal AST made anew is found, other arguments are not."""
    toy = start()
    device = toy_device()
    first = pipeline.build(ast_of(), device, Options())
    assert pipeline.build(ast_of(), device, Options()) is first
    assert toy.calls == ["index", "lower"]
    others = [
        pipeline.build(ast_of(2.0), device, Options()),
        pipeline.build(ast_of(), device, Options(fast_math=True)),
        pipeline.build(ast_of(), device, Options(), "named"),
    ]
    assert len({id(b) for b in (first, *others)}) == 4
    assert others[2].source == "text of named\n"


def test_memo_is_bounded(start: Start) -> None:
    """The least recently used kernel leaves first."""
    start()
    device, memo = toy_device(), pipeline.Memo(n_max=2)
    for value in (1.0, 2.0, 3.0):
        memo.put(pipeline.build(ast_of(value), device, Options()))
        memo.get(ast_of(1.0), device, Options(), None)
    kept = [memo.get(ast_of(v), device, Options(), None) is not None for v in (1.0, 2.0, 3.0)]
    assert kept == [True, False, True]


def test_threads_compile_once(start: Start) -> None:
    """Many threads that launch one kernel at once compile it once."""
    toy = start()
    built = pipeline.build(ast_of(), toy_device(), Options())
    threads = [threading.Thread(target=built.launch, args=([],)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert toy.calls.count("compile") == toy.calls.count("load") == 1


def test_binary_comes_from_disk(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process finds the binary on disk; another compiler does not."""
    toy = start()
    pipeline.build(ast_of(), toy_device(), Options()).launch([])
    pipeline.forget_built()
    assert pipeline.build(ast_of(), toy_device(), Options()).binary == b"TEXT OF E_4\n"
    assert toy.calls.count("compile") == 1
    pipeline.forget_built()
    monkeypatch.setattr(toy.Fake, "compile_key", lambda self: "toycc 2")
    assert pipeline.build(ast_of(), toy_device(), Options()).binary == b"TEXT OF E_4\n"
    assert toy.calls.count("compile") == 2


def test_dead_cache_is_survived(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cache folder that cannot be, kernels compile as ever."""
    toy = start()
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "file"))
    assert pipeline.build(ast_of(), toy_device(), Options()).binary == b"TEXT OF E_4\n"
    assert toy.calls.count("compile") == 1


def test_nobody_answers(start: Start) -> None:
    """Without a plugin that lowers, the error names the missing package and what is loaded."""
    start(toy_plugin=device_plugin("toy"), refused="raise ValueError('boom')")
    with pytest.raises(
        PluginError, match=r"no plugin can index.*toy_plugin.*boom.*loopwright-lower"
    ):
        pipeline.build(ast_of(), toy_device(), Options())


@pytest.mark.parametrize(
    "options",
    [Options(opts=("UPCAST i 4",)), Options(schedule="beam")],
)
def test_scheduler_is_optional_until_asked_for(start: Start, options: Options) -> None:
    """Without a scheduler kernels run as they stand, but opts and searches need one."""
    start()
    pipeline.build(ast_of(), toy_device(), Options())
    with pytest.raises(PluginError, match="pip install loopwright-opt"):
        pipeline.build(ast_of(), toy_device(), options)


FIRST = "from loopwright_core.plugin import hookimpl\n@hookimpl(tryfirst=True)\n"


def test_third_party_goes_first(start: Start) -> None:
    """A plugin that says tryfirst may answer, or pass with None."""
    body = "def loopwright_index(ast, name):\n    return None\n"
    passing = FIRST + body
    taking = FIRST + body.replace("None", "__import__('toy_plugin').loopwright_index(ast, 'mine')")
    start(passing=passing)
    assert pipeline.build(ast_of(), toy_device(), Options()).kernel.name == "e_4"
    start(toy_plugin="", taking=taking)
    assert pipeline.build(ast_of(), toy_device(), Options()).kernel.name == "mine"


def test_bug_in_a_plugin_is_called_that(start: Start) -> None:
    """An exception that is none of ours becomes a PluginError with stage, plugin and script."""
    start(buggy=FIRST + "def loopwright_lower(kernel):\n    assert kernel is None, 'deep inside'\n")
    with pytest.raises(PluginError) as error:
        pipeline.build(ast_of(), toy_device(), Options())
    text = str(error.value)
    for word in ("stage lower", "buggy 1.0", "AssertionError", "deep inside", "Reproduce it with"):
        assert word in text
    assert isinstance(error.value.__cause__, AssertionError)


def test_bug_in_a_device_is_called_that(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A renderer that trips is named by its device."""
    toy = start()
    monkeypatch.setattr(toy.Fake, "render", lambda self, program: program.absent)
    with pytest.raises(PluginError, match=r"stage render failed in the device 'toy'"):
        pipeline.build(ast_of(), toy_device(), Options())


def test_users_error_has_no_script(start: Start) -> None:
    """An illegal opt is the user's to correct: no script, same error."""
    raising = "def loopwright_schedule():\n    from loopwright_core.errors import OptError\n"
    start(opt=FIRST + raising + "    raise OptError('UPCAST i 3: not legal')\n")
    with pytest.raises(OptError) as error:
        pipeline.build(ast_of(), toy_device(), Options())
    assert str(error.value) == "UPCAST i 3: not legal"


def failing_compile(toy: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuse(self: Any, source: str, program: Any) -> bytes:
        raise CompileError("toycc: syntax error")

    monkeypatch.setattr(toy.Fake, "compile", refuse)
    built = pipeline.build(ast_of(float("nan")), toy_device(), Options(opts=()), "my_op")
    with pytest.raises(CompileError) as error:
        _ = built.binary
    return str(error.value)


def test_compile_failure_gives_a_script(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's message passes through; the script named behind it rebuilds the same AST."""
    text = failing_compile(start(), monkeypatch)
    assert text.startswith("toycc: syntax error\nReproduce it with: python ")
    script = Path(text.split("python ")[1])
    made: dict[str, Any] = {}
    lines = script.read_text(encoding="utf-8").splitlines()
    cut = next(i for i, line in enumerate(lines) if line.startswith("device ="))
    exec("\n".join(lines[:cut]), made)
    names = [line.split(" = ")[0] for line in lines if line.startswith("n")]
    assert made[names[-1]] is ast_of(float("nan"))
    assert f"build({names[-1]}, device, Options(" in lines[cut + 1]
    assert "'my_op'" in lines[cut + 1]


def test_script_fails_the_same_way(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Run in a fresh process beside the same plugins, the script ends in the same error."""
    refusing = TOY.replace(
        "return source.upper().encode()",
        "from loopwright_core.errors import CompileError\n    raise CompileError('no')",
    )
    start(toy_plugin=refusing)
    built = pipeline.build(ast_of(), toy_device(), Options())
    with pytest.raises(CompileError) as error:
        _ = built.binary
    script = str(error.value).split("python ")[1]
    done = subprocess.run(
        [sys.executable, script],
        env={"PYTHONPATH": str(tmp_path / "site"), "LOOPWRIGHT_PLUGINS": "toy_plugin"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "text of e_4" in done.stdout
    assert "CompileError: no" in done.stderr


def test_no_folder_for_the_script(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where no folder takes the script, the failure stays as it was."""
    toy = start()
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "file"))
    assert failing_compile(toy, monkeypatch) == "toycc: syntax error"


@pytest.mark.parametrize(
    ("verifier", "stage", "suspect"),
    [
        ("verify_tensor", "fuse", "this kernel AST"),
        ("verify_kernel", "index", "plugin toy_plugin 1.0"),
        ("verify_program", "lower", "plugin toy_plugin 1.0"),
    ],
)
def test_check_blames_the_stage(
    start: Start, monkeypatch: pytest.MonkeyPatch, verifier: str, stage: str, suspect: str
) -> None:
    """With LOOPWRIGHT_CHECK=1 each stage's result is verified, and its plugin is named."""
    start()

    def refuse(*args: object) -> None:
        raise VerifyError("a SINK of nothing")

    names = ("verify_tensor", "verify_kernel", "verify_program")
    spec = SimpleNamespace(**{n: lambda *args: None for n in names} | {verifier: refuse})
    monkeypatch.setitem(sys.modules, "loopwright_core.ir.spec", spec)
    monkeypatch.setattr("loopwright_core.ir.spec", spec, raising=False)
    monkeypatch.setenv("LOOPWRIGHT_CHECK", "1")
    monkeypatch.setattr(type(toy_device()), "target", "toy target")
    with pytest.raises(VerifyError, match=rf"stage {stage} .*{suspect}.*a SINK of nothing"):
        pipeline.build(ast_of(), toy_device(), Options())


def test_check_guards_the_body(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler that touches the body is caught and named."""
    changing = (
        "def loopwright_schedule(kernel):\n    from dataclasses import replace\n"
        "    return replace(kernel, body=kernel.body.src[0])\n"
    )
    start(opt=FIRST + changing)
    spec = SimpleNamespace(verify_tensor=lambda ast: None, verify_kernel=lambda kernel: None)
    monkeypatch.setitem(sys.modules, "loopwright_core.ir.spec", spec)
    monkeypatch.setattr("loopwright_core.ir.spec", spec, raising=False)
    monkeypatch.setenv("LOOPWRIGHT_CHECK", "1")
    with pytest.raises(VerifyError, match=r"stage schedule \(plugin opt 1.0\) changed the body"):
        pipeline.build(ast_of(), toy_device(), Options())


def test_lowering_error_passes_with_a_script(start: Start) -> None:
    """A kernel that cannot be lowered keeps its error's kind and gains the script."""
    raising = "def loopwright_lower():\n    from loopwright_core.errors import LoweringError\n"
    start(own=FIRST + raising + "    raise LoweringError('a scan in a scan')\n")
    with pytest.raises(LoweringError, match=r"^a scan in a scan\nReproduce it with"):
        pipeline.build(ast_of(), toy_device(), Options())
