"""The disk cache: bytes by key, shared by processes, never a reason to fail.

A cache that cannot be read is empty, one that cannot be written keeps nothing. Every entry
carries a checksum and its key's hash, so a torn, damaged or misplaced file reads as absent.
Entries are opaque bytes; nothing is ever unpickled. What was not used for longest goes where all
entries together would take more than LOOPWRIGHT_CACHE_MIB.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from loopwright_core.errors import ArgumentError, fail
from loopwright_core.whole import PARTIAL_PREFIX, write_whole

_MAGIC = b"LWCACHE1"
# magic, length of the data, sha256 of the key, sha256 of the data
_HEADER = struct.Struct("<8sQ32s32s")
_SUFFIX = ".bin"
_DEFAULT_MIB = 1024
# Entries are spread over so many folders by their hashes.
_N_FOLDERS = 256
# A temporary file older than this was left by a process that died.
_ABANDONED_S = 3600.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. Units: n_bytes of data without the header; used_s seconds since 1970."""

    kind: str
    digest: str
    n_bytes: int
    used_s: float
    path: Path


class Cache:
    """Entries under `root/kind/xx/sha256(key).bin`; default: LOOPWRIGHT_CACHE_DIR, else the
    user's cache folder.

    `limit_bytes`: of all entries; default LOOPWRIGHT_CACHE_MIB, else 1 GiB. 0 keeps nothing.
    """

    def __init__(self, root: Path | str | None = None, limit_bytes: int | None = None) -> None:
        self.root = Path(root) if root is not None else _default_root()
        self.limit_bytes = limit_bytes if limit_bytes is not None else _default_limit()

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
        else:
            with suppress(OSError):  # of another user, or on a read-only disk
                os.utime(path)
        return data

    def put(self, kind: str, key: str, data: bytes) -> bool:
        """Store the data; False where that was not possible."""
        if self.limit_bytes == 0:
            return False
        digest = _digest(key)
        path = self._path(kind, digest)
        header = _HEADER.pack(
            _MAGIC, len(data), bytes.fromhex(digest), hashlib.sha256(data).digest()
        )
        try:
            # Binaries found here are run, so the folders are the user's alone.
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(path, header + data)
        except (OSError, ValueError):
            return False
        self._trim(path)
        return True

    def ls(self) -> list[Entry]:
        """Every entry, by kind and digest."""
        found: list[Entry] = []
        for path in self._files():
            if path.suffix != _SUFFIX or path.name.startswith(PARTIAL_PREFIX):
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
                is_partial = path.name.startswith(PARTIAL_PREFIX)
                if is_partial and now - path.stat().st_mtime > _ABANDONED_S:
                    path.unlink()
        return damaged

    def _trim(self, new: Path) -> None:
        """Remove what was not used for longest from the folders that a new entry's hash falls in.

        Each of them holds its share of the limit, so that no put has to look at all entries. The
        new entry stays.
        """
        found = []
        for path in self._files(new.parent.name):
            with suppress(OSError):
                stat = path.stat()
                found.append((path == new, stat.st_mtime_ns, path.name, stat.st_size, path))
        left = self.limit_bytes // _N_FOLDERS
        for is_new, _, _, n_bytes, path in sorted(found, reverse=True):
            left -= n_bytes
            if left < 0 and not is_new:
                with suppress(OSError):  # another process was faster
                    path.unlink()

    def _path(self, kind: str, digest: str) -> Path:
        return self.root / kind / digest[:2] / f"{digest}{_SUFFIX}"

    def _files(self, folder: str = "??") -> Iterator[Path]:
        """The files this class may have made: nothing else in the folder is touched."""
        try:
            found = sorted(self.root.glob(f"*/{folder}/*"))
        except (OSError, ValueError):  # ValueError: a path that no file system takes
            return
        for path in found:
            is_entry = path.suffix == _SUFFIX and path.stem.startswith(path.parent.name)
            if is_entry or path.name.startswith(PARTIAL_PREFIX):
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


def _default_limit() -> int:
    wanted = os.environ.get("LOOPWRIGHT_CACHE_MIB", "").strip()
    if wanted and not (wanted.isascii() and wanted.isdigit()):
        fail(
            ArgumentError,
            f"LOOPWRIGHT_CACHE_MIB is {wanted!r}",
            fix="set it to a number of MiB, 0 to keep nothing, or unset it",
        )
    return int(wanted or _DEFAULT_MIB) << 20


def _default_root() -> Path:
    chosen = os.environ.get("LOOPWRIGHT_CACHE_DIR")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir  # costs a third of a start-up where it is not needed

    return Path(user_cache_dir("loopwright", appauthor=False))
