"""The tuning database: one small JSON file a result, shared by processes, never a reason to fail.

Files lie in `tuning/` of the cache directory and outlive `loopwright cache clear`. Each holds its
key in full and a checksum: what is torn, damaged or misplaced reads as absent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from loopwright_core.cache import Cache
from loopwright_core.errors import ArgumentError, fail
from loopwright_core.whole import write_whole

FORMAT = 1
_SUFFIX = ".json"
# Far above any result; a larger file is none of ours.
_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Result:
    """What a search found. Units: best_s and start_s seconds of one launch.

    `key`: everything the result depends on. `opts`: the steps as text, to be replayed.
    """

    key: str
    kernel: str
    opts: tuple[str, ...]
    best_s: float
    start_s: float


class TuningDatabase:
    """Results by key, under `root`; default: `tuning/` in the cache directory."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else Cache().root / "tuning"

    def get(self, key: str) -> Result | None:
        """The result kept under that key, or None."""
        found = _read(self._path(key))
        return found if found is not None and found.key == key else None

    def put(self, result: Result) -> bool:
        """Keep a result in place of the one under its key; False where that was not possible."""
        path = self._path(result.key)
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return False
        return _write(path, _sealed(result))

    def need_room(self) -> None:
        """Raise ArgumentError where results cannot be kept, before anybody searches for them."""
        probe = self.root / "probe"
        is_new = not self.root.exists()
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(probe, b"")
            probe.unlink()
            if is_new:
                self.root.rmdir()
        except OSError as error:
            fail(
                ArgumentError,
                f"results cannot be kept in {self.root}: {error.strerror or error}",
                fix="set LOOPWRIGHT_CACHE_DIR to a directory that can be written to",
            )

    def ls(self) -> list[Result]:
        """Every readable result, by kernel and key."""
        try:
            paths = sorted(self.root.glob("*" + _SUFFIX))
        except OSError:
            return []
        found = [r for path in paths if (r := _read(path)) is not None]
        return sorted(found, key=lambda r: (r.kernel, r.key))

    def export(self, path: Path, results: Iterable[Result] | None = None) -> int:
        """Write results (all by default) as one JSON document; how many. Raises ArgumentError."""
        chosen = self.ls() if results is None else list(results)
        document = {"format": FORMAT, "results": [_sealed(r) for r in chosen]}
        if not _write(path, document):
            fail(ArgumentError, f"{path} could not be written", fix="name a file in a folder")
        return len(chosen)

    def import_(self, path: Path) -> tuple[int, int]:
        """Take in an exported document: (results taken, damaged ones left out).

        A result that is here already stays where it is the faster one. Raises ArgumentError.
        """
        try:
            if path.exists() and not path.is_file():  # a device may be read without end
                fail(ArgumentError, f"{path} is no file", fix="name what --export wrote")
            text = path.read_bytes()
        except OSError as error:
            reason = error.strerror or str(error)
            fail(ArgumentError, f"{path} cannot be read: {reason}", fix="name what --export wrote")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            fail(ArgumentError, f"{path} is no tuning export: {error}", fix="export it again")
        entries = document.get("results") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            fail(ArgumentError, f"{path} is no tuning export", fix="export it again")
        n_taken = n_damaged = 0
        for entry in entries:
            result = _unsealed(entry)
            if result is None:
                n_damaged += 1
                continue
            here = self.get(result.key)
            if here is None or result.best_s < here.best_s:
                n_taken += self.put(result)
        return n_taken, n_damaged

    def _path(self, key: str) -> Path:
        return self.root / (hashlib.sha256(key.encode()).hexdigest() + _SUFFIX)


def _read(path: Path) -> Result | None:
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        entry = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return _unsealed(entry)


def _write(path: Path, document: Any) -> bool:
    try:
        text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
        write_whole(path, f"{text}\n".encode())
    except (OSError, ValueError):
        return False
    return True


def _sealed(result: Result) -> dict[str, Any]:
    entry = {**asdict(result), "opts": list(result.opts), "format": FORMAT}
    return {**entry, "checksum": _checksum(entry)}


def _checksum(entry: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _unsealed(entry: Any) -> Result | None:
    """The result of an entry whose checksum fits, else None."""
    if not isinstance(entry, dict) or entry.get("format") != FORMAT:
        return None
    rest = {name: value for name, value in entry.items() if name != "checksum"}
    if entry.get("checksum") != _checksum(rest):
        return None
    if set(rest) != {"format", *(f.name for f in fields(Result))}:
        return None
    opts, times = rest["opts"], (rest["best_s"], rest["start_s"])
    if not isinstance(opts, list) or not all(isinstance(o, str) for o in opts):
        return None
    if not all(isinstance(t, float) and 0 < t < float("inf") for t in times):
        return None
    if not isinstance(rest["key"], str) or not isinstance(rest["kernel"], str):
        return None
    return Result(rest["key"], rest["kernel"], tuple(opts), *times)
