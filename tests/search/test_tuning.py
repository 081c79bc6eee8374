"""The tuning database: replay, exchange, damage, many writers."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import bodies
import pytest

from loopwright_core import tuning
from loopwright_core.errors import ArgumentError
from loopwright_core.kernel.options import Options
from loopwright_core.plugin.loader import registry
from loopwright_core.tuning import Result, TuningDatabase
from loopwright_opt import portable
from loopwright_opt.tuning import key_of, replay

RESULT = Result("a key", "matmul", ("VECTOR j 8", "UPCAST i 4"), 1e-3, 2e-3)


def test_what_is_put_is_found(tmp_path: Path) -> None:
    """A result comes back under its key, and no other does."""
    database = TuningDatabase(tmp_path)
    assert database.get("a key") is None
    assert database.put(RESULT)
    assert database.get("a key") == RESULT
    assert database.get("another") is None


def test_entries_are_plain_json(tmp_path: Path) -> None:
    """One readable file a result."""
    TuningDatabase(tmp_path).put(RESULT)
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["opts"] == ["VECTOR j 8", "UPCAST i 4"]


@pytest.mark.parametrize("damage", ["", "{", "[1]", '{"format": 1}', "[" * 5000, "\x00" * 100])
def test_damage_reads_as_absent(tmp_path: Path, damage: str) -> None:
    """A damaged file is no result, and the next one replaces it."""
    database = TuningDatabase(tmp_path)
    database.put(RESULT)
    (path,) = tmp_path.iterdir()
    path.write_text(damage)
    assert database.get("a key") is None
    assert database.ls() == []
    database.put(RESULT)
    assert database.get("a key") == RESULT


def test_an_altered_entry_reads_as_absent(tmp_path: Path) -> None:
    """A number changed by hand breaks the checksum."""
    database = TuningDatabase(tmp_path)
    database.put(RESULT)
    (path,) = tmp_path.iterdir()
    path.write_text(path.read_text().replace("UPCAST i 4", "UPCAST i 8"))
    assert database.get("a key") is None


@pytest.mark.parametrize(
    "wrong", [{"opts": 1}, {"opts": [1]}, {"best_s": "fast"}, {"best_s": 0.0}, {"kernel": None}]
)
def test_values_of_other_kinds_read_as_absent(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """An entry that is sealed well, but holds what no search writes, is no result."""
    database = TuningDatabase(tmp_path)
    database.put(RESULT)
    (path,) = tmp_path.iterdir()
    entry = {**json.loads(path.read_text()), **wrong}
    del entry["checksum"]
    path.write_text(json.dumps({**entry, "checksum": tuning._checksum(entry)}))
    assert database.get("a key") is None
    assert database.ls() == []


def test_any_bytes_read_as_absent(tmp_path: Path) -> None:
    """Whatever a file is turned into, by cuts, flips or noise, reading it never fails."""
    database = TuningDatabase(tmp_path)
    database.put(RESULT)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    rng = random.Random(0)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data))
        assert database.get("a key") in (None, RESULT)
        with suppress(ArgumentError):
            TuningDatabase(tmp_path / "other").import_(path)


def test_a_misplaced_entry_reads_as_absent(tmp_path: Path) -> None:
    """A file under another key's name is not taken for that key's."""
    database = TuningDatabase(tmp_path)
    database.put(RESULT)
    (path,) = tmp_path.iterdir()
    path.rename(database._path("another"))
    assert database.get("another") is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    """No failure where no result can be kept."""
    file = tmp_path / "file"
    file.write_text("")
    database = TuningDatabase(file / "tuning")
    assert not database.put(RESULT)
    assert database.get("a key") is None
    assert database.ls() == []


def test_export_and_import(tmp_path: Path) -> None:
    """Results move between databases; damaged ones stay behind, faster ones stay here."""
    first, second = TuningDatabase(tmp_path / "a"), TuningDatabase(tmp_path / "b")
    other = replace(RESULT, key="other", best_s=5e-3)
    first.put(RESULT)
    first.put(other)
    second.put(replace(other, best_s=1e-3))
    path = tmp_path / "out.json"
    assert first.export(path) == 2
    text = path.read_text()
    assert second.import_(path) == (1, 0)
    assert second.get("a key") == RESULT
    assert second.get("other") == replace(other, best_s=1e-3)
    path.write_text(text.replace("UPCAST i 4", "UPCAST i 8", 1))
    assert TuningDatabase(tmp_path / "c").import_(path) == (1, 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": 1}', "[" * 100_000])
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    """Another file is refused with its name."""
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=r"x\.json is no tuning export"):
        TuningDatabase(tmp_path / "a").import_(path)


WRITER = """
import sys
from loopwright_core.tuning import Result, TuningDatabase
database = TuningDatabase(sys.argv[1])
for n in range(200):
    database.put(Result("a key", "k", ("UPCAST i 4",) * (n % 7 + 1), float(n + 1), 2.0))
    found = database.get("a key")
    assert found is not None and len(found.opts) == (int(found.best_s) - 1) % 7 + 1, found
"""


def test_two_processes_write_one_result(tmp_path: Path) -> None:
    """Every read in between sees a whole result, and no temporary file is left."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    for writer in writers:
        _, errors = writer.communicate(timeout=30)
        assert writer.returncode == 0, errors.decode()
    assert len(list(tmp_path.iterdir())) == 1


def test_the_key_holds_what_a_result_depends_on() -> None:
    """Structure, device, threads and numeric options are in the key; name and budget are not."""
    device = registry().device("cpu")
    kernel, options = bodies.matmul(64, 64, 64), Options()
    key = key_of(kernel, device, options)
    assert key == key_of(replace(kernel, name="other"), device, options)
    assert key == key_of(kernel, device, replace(options, schedule="beam", budget_s=1.0, beam=9))
    assert key != key_of(bodies.matmul(64, 64, 65), device, options)
    assert key != key_of(kernel, device, replace(options, fast_math=True))
    assert f"threads={device.target.threads}" in key
    assert device.compile_key() in key
    assert "loopwright-core" in key


def test_kernels_travel() -> None:
    """A kernel of another process is the same nodes here: equal means identical."""
    for kernel in (bodies.matmul(), bodies.softmax(), bodies.stencil(), bodies.take()):
        again = portable.load(portable.dump(kernel))
        assert again.body is kernel.body
        assert again.dims == kernel.dims
        assert again.shared == kernel.shared
        assert again.schedule == kernel.schedule


def test_steps_that_are_not_legal_any_more_are_no_result() -> None:
    """A result of another version that cannot be replayed is none."""
    device = registry().device("cpu")
    kernel = bodies.matmul(64, 64, 64)
    made = replay(kernel, replace(RESULT, opts=("UPCAST i 4",)), device)
    assert made is not None
    assert [str(o) for o in made.schedule.opts] == ["UPCAST i 4"]
    for bad in ("UPCAST z 4", "NONSENSE", "UPCAST i 4000"):
        assert replay(kernel, replace(RESULT, opts=(bad,)), device) is None
