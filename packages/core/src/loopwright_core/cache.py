"""The disk cache: bytes by key, shared by processes, never a reason to fail.

A cache that cannot be read is empty, one that cannot be written keeps nothing. Every entry
carries a checksum and its key's hash, so a torn, damaged or misplaced file reads as absent.
Entries are opaque bytes; nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"LWCACHE1"
# magic, length of the data, sha256 of the key, sha256 of the data
_HEADER = struct.Struct("<8sQ32s32s")
_SUFFIX = ".bin"
_PARTIAL_PREFIX = ".partial-"
# A temporary file older than this was left by a process that died.
_ABANDONED_S = 3600.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. Units: n_bytes of data without the header; modified_s seconds since 1970."""

    kind: str
    digest: str
    n_bytes: int
    modified_s: float
    path: Path


class Cache:
    """Entries under `root/kind/xx/sha256(key).bin`; default: LOOPWRIGHT_CACHE_DIR, else the
    user's cache folder."""

    def __init__(self, root: Path | str | None = None) -> None:
        self.root = Path(root) if root is not None else _default_root()

    def get(self, kind: str, key: str) -> bytes | None:
        """The data stored under that key, or None."""
        digest = _digest(key)
        path = self._path(kind, digest)
        try:
            raw = path.read_bytes()
        except (OSError, ValueError):
            return None
        data = _unwrap(raw, digest)
        if data is None:
            # Replacement is atomic: what does not check is damaged, not half written. Losing a
            # good entry that another process has just put here only costs building it again.
            with suppress(OSError):
                path.unlink()
        return data

    def put(self, kind: str, key: str, data: bytes) -> bool:
        """Store the data; False where that was not possible."""
        digest = _digest(key)
        path = self._path(kind, digest)
        header = _HEADER.pack(
            _MAGIC, len(data), bytes.fromhex(digest), hashlib.sha256(data).digest()
        )
        # In the same folder: a rename is atomic only within one file system.
        partial = path.with_name(f"{_PARTIAL_PREFIX}{os.getpid()}-{secrets.token_hex(8)}")
        try:
            # Binaries found here are run, so the folders are the user's alone.
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(partial, "xb") as file:
                file.write(header)
                file.write(data)
            os.replace(partial, path)
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                partial.unlink()
            return False
        except BaseException:  # Ctrl-C leaves no half-written file
            with suppress(OSError):
                partial.unlink()
            raise
        return True

    def ls(self) -> list[Entry]:
        """Every entry, by kind and digest."""
        found: list[Entry] = []
        for path in self._files():
            if path.suffix != _SUFFIX or path.name.startswith(_PARTIAL_PREFIX):
                continue
            try:
                stat = path.stat()
            except OSError:
                continue
            n_bytes = max(stat.st_size - _HEADER.size, 0)
            kind = path.parent.parent.name
            found.append(Entry(kind, path.stem, n_bytes, stat.st_mtime, path))
        return sorted(found, key=lambda e: (e.kind, e.digest))

    def clear(self) -> int:
        """Remove every entry and leftover; how many files went."""
        n_removed = 0
        for path in list(self._files()):
            with suppress(OSError):
                path.unlink()
                n_removed += 1
        return n_removed

    def verify(self) -> list[Entry]:
        """Read every entry, remove the damaged ones and abandoned leftovers; the damaged."""
        damaged: list[Entry] = []
        for entry in self.ls():
            try:
                raw = entry.path.read_bytes()
            except OSError:
                continue
            if _unwrap(raw, entry.digest) is None:
                damaged.append(entry)
                with suppress(OSError):
                    entry.path.unlink()
        now = time.time()
        for path in list(self._files()):
            with suppress(OSError):
                is_partial = path.name.startswith(_PARTIAL_PREFIX)
                if is_partial and now - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()
        return damaged

    def _path(self, kind: str, digest: str) -> Path:
        return self.root / kind / digest[:2] / f"{digest}{_SUFFIX}"

    def _files(self) -> Iterator[Path]:
        """The files this class may have made: nothing else in the folder is touched."""
        try:
            found = sorted(self.root.glob("*/??/*"))
        except (OSError, ValueError):  # ValueError: a path that no file system takes
            return
        for path in found:
            is_entry = path.suffix == _SUFFIX and path.stem.startswith(path.parent.name)
            if is_entry or path.name.startswith(_PARTIAL_PREFIX):
                yield path


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _unwrap(raw: bytes, digest: str) -> bytes | None:
    """The data of a file's bytes, or None where header, key or checksum do not fit."""
    if len(raw) < _HEADER.size:
        return None
    magic, n_bytes, key_hash, data_hash = _HEADER.unpack_from(raw)
    data = raw[_HEADER.size :]
    if magic != _MAGIC or n_bytes != len(data) or key_hash.hex() != digest:
        return None
    return data if hashlib.sha256(data).digest() == data_hash else None


def _default_root() -> Path:
    chosen = os.environ.get("LOOPWRIGHT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir  # costs a third of a start-up where it is not needed

    return Path(user_cache_dir("loopwright", appauthor=False))
