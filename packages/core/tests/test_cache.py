"""The disk cache keeps what it is given and survives everything a disk can do."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
from pathlib import Path

import pytest

from loopwright_core import whole
from loopwright_core.cache import Cache
from loopwright_core.errors import ArgumentError


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def only_file(cache: Cache) -> Path:
    (entry,) = cache.ls()
    return entry.path


def test_round_trip(cache: Cache) -> None:
    """What was put under (kind, key) is what get returns, and only there."""
    assert cache.get("binary", "k") is None
    assert cache.put("binary", "k", b"data")
    assert cache.get("binary", "k") == b"data"
    assert cache.get("binary", "other") is None
    assert cache.get("text", "k") is None


@pytest.mark.parametrize("data", [b"", b"\0" * 3, bytes(range(256)) * 4096])
def test_any_bytes(cache: Cache, data: bytes) -> None:
    """Empty, binary and megabyte-sized data come back as they were."""
    assert cache.put("binary", "k", data)
    assert cache.get("binary", "k") == data


@pytest.mark.parametrize("key", ["", "a/b", "..", "k\0k", "x" * 100_000, "Grüße", "\ud800"])
def test_any_key(cache: Cache, key: str) -> None:
    """Keys are hashed: none is too long or reaches outside the folder."""
    assert cache.put("binary", key, b"data")
    assert cache.get("binary", key) == b"data"
    assert cache.root in only_file(cache).parents


def test_put_replaces(cache: Cache) -> None:
    """The last put wins."""
    cache.put("binary", "k", b"old")
    cache.put("binary", "k", b"new")
    assert cache.get("binary", "k") == b"new"
    assert len(cache.ls()) == 1


def test_every_truncation_reads_as_absent(cache: Cache) -> None:
    """A file cut at any length is no entry, and is removed."""
    cache.put("binary", "k", b"some data")
    path = only_file(cache)
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n])
        assert cache.get("binary", "k") is None
        assert not path.exists()


def test_every_flipped_byte_reads_as_absent(cache: Cache) -> None:
    """Damage anywhere, header or data, is noticed."""
    cache.put("binary", "k", b"some data")
    path = only_file(cache)
    whole = path.read_bytes()
    for n in range(len(whole)):
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        assert cache.get("binary", "k") is None


def test_appended_bytes_read_as_absent(cache: Cache) -> None:
    """A file that has grown is damaged as well."""
    cache.put("binary", "k", b"data")
    with only_file(cache).open("ab") as file:
        file.write(b"x")
    assert cache.get("binary", "k") is None


def test_misplaced_entry_reads_as_absent(cache: Cache) -> None:
    """An intact file under another key's name is not that key's entry."""
    cache.put("binary", "a", b"of a")
    cache.put("binary", "b", b"of b")
    a, b = (e.path for e in cache.ls())
    a.write_bytes(b.read_bytes())
    assert None in (cache.get("binary", "a"), cache.get("binary", "b"))


def test_root_is_a_file(tmp_path: Path) -> None:
    """Where the folder should be is a file: nothing is cached, nothing raised."""
    (tmp_path / "cache").write_text("in the way", encoding="utf-8")
    cache = Cache(tmp_path / "cache")
    assert not cache.put("binary", "k", b"data")
    assert cache.get("binary", "k") is None
    assert (cache.ls(), cache.clear(), cache.verify()) == ([], 0, [])


def test_missing_parent_that_cannot_be_made() -> None:
    """A root below a device file can never exist."""
    cache = Cache("/dev/null/cache")
    assert not cache.put("binary", "k", b"data")
    assert cache.get("binary", "k") is None


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000])
def test_impossible_path(name: str) -> None:
    """A path no file system takes reads as empty."""
    cache = Cache(name)
    assert not cache.put("binary", "k", b"data")
    assert cache.get("binary", "k") is None
    assert cache.ls() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes into read-only folders")
def test_read_only_folder(cache: Cache) -> None:
    """A read-only cache is read and not written."""
    cache.put("binary", "k", b"data")
    folders = [cache.root, *(p for p in cache.root.rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert cache.get("binary", "k") == b"data"
        assert not cache.put("binary", "new", b"data")
    finally:
        for folder in folders:
            folder.chmod(0o700)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EACCES, errno.EIO])
@pytest.mark.parametrize("call", ["mkdir", "open", "write", "replace"])
def test_failing_system_call(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, call: str, code: int
) -> None:
    """A full or read-only disk, at any step: put says False, the old entry stays."""
    cache.put("binary", "k", b"old")

    def failing(*args: object, **kwargs: object) -> None:
        raise OSError(code, os.strerror(code))

    class FullFile:
        def __init__(self, path: Path, mode: str) -> None:
            self.file = open(path, mode)  # noqa: SIM115

        def __enter__(self) -> FullFile:
            return self

        def __exit__(self, *exc: object) -> None:
            self.file.close()

        write = failing

    if call == "mkdir":
        monkeypatch.setattr(Path, "mkdir", failing)
    elif call == "replace":
        monkeypatch.setattr(os, "replace", failing)
    else:
        opener = failing if call == "open" else FullFile
        monkeypatch.setattr(whole, "open", opener, raising=False)
    assert not cache.put("binary", "k", b"new")
    monkeypatch.undo()
    assert cache.get("binary", "k") == b"old"
    assert [p.name for p in cache.root.rglob("*") if p.is_file()] == [only_file(cache).name]


def test_interrupt_leaves_no_partial_file(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle of a put passes through and leaves nothing behind."""

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.put("binary", "k", b"data")
    assert [p for p in cache.root.rglob("*") if p.is_file()] == []


def test_folder_removed_in_between(cache: Cache) -> None:
    """Somebody deletes the cache while it is in use: the next put makes it again."""
    cache.put("binary", "k", b"data")
    assert cache.clear() == 1
    for folder in sorted(cache.root.rglob("*"), reverse=True):
        folder.rmdir()
    cache.root.rmdir()
    assert cache.get("binary", "k") is None
    assert cache.put("binary", "k", b"data")
    assert cache.get("binary", "k") == b"data"


def test_ls_clear_verify(cache: Cache) -> None:
    """ls lists by kind, verify removes what is damaged, clear removes everything of ours."""
    cache.put("binary", "a", b"12345")
    cache.put("tuning", "b", b"678")
    assert [(e.kind, e.n_bytes) for e in cache.ls()] == [("binary", 5), ("tuning", 3)]
    assert cache.verify() == []
    damaged = cache.ls()[0]
    damaged.path.write_bytes(b"junk")
    assert [e.path for e in cache.verify()] == [damaged.path]
    assert [e.kind for e in cache.ls()] == ["tuning"]
    assert cache.clear() == 1
    assert cache.ls() == []


def test_foreign_files_are_left_alone(cache: Cache) -> None:
    """A user who points the cache at a folder in use loses nothing to clear or verify."""
    foreign = cache.root / "photos" / "ab" / "cat.bin"
    foreign.parent.mkdir(parents=True)
    foreign.write_bytes(b"meow")
    cache.put("binary", "k", b"data")
    assert len(cache.ls()) == 1
    cache.verify()
    cache.clear()
    assert foreign.read_bytes() == b"meow"


def test_verify_removes_abandoned_partial_files(cache: Cache) -> None:
    """What a killed process left goes, what a living one is writing stays."""
    cache.put("binary", "k", b"data")
    folder = only_file(cache).parent
    old, new = folder / ".partial-1-aa", folder / ".partial-2-bb"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    cache.verify()
    assert (old.exists(), new.exists()) == (False, True)
    assert len(cache.ls()) == 1


def hammer(root: str, seed: int) -> int:
    """Write and read few keys in turn; how many reads gave neither None nor a whole value."""
    cache, n_torn = Cache(root), 0
    for step in range(150):
        key = str((seed + step) % 3)
        cache.put("binary", key, key.encode() * (1000 + 37 * seed + step))
        data = cache.get("binary", key)
        n_torn += data is not None and set(data) != set(key.encode())
    return n_torn


def test_many_processes(cache: Cache) -> None:
    """Processes that write the same keys at once never read a torn value."""
    context = multiprocessing.get_context("fork")
    with context.Pool(4) as pool:
        assert pool.starmap(hammer, [(str(cache.root), s) for s in range(4)]) == [0] * 4
    assert len(cache.ls()) == 3
    assert cache.verify() == []


def in_one_folder(n: int) -> list[str]:
    """Keys whose entries lie in one folder."""
    keys: dict[str, list[str]] = {}
    for step in range(256 * n * n):
        key = str(step)
        found = keys.setdefault(hashlib.sha256(key.encode()).hexdigest()[:2], [])
        found.append(key)
        if len(found) == n:
            return found
    raise AssertionError("hashes do not spread")


def test_what_was_not_used_for_longest_goes(tmp_path: Path) -> None:
    """Beyond the limit the entry goes that was neither written nor read for longest."""
    cache = Cache(tmp_path, 256 * 3 * 1100)  # three entries of 1000 bytes a folder
    keys = in_one_folder(4)
    for age, key in enumerate(keys[:3]):
        cache.put("binary", key, bytes(1000))
        path = cache._path("binary", hashlib.sha256(key.encode()).hexdigest())
        os.utime(path, (100 + age, 100 + age))
    assert cache.get("binary", keys[0]) is not None
    cache.put("text", keys[3], bytes(1000))
    kept = [cache.get("text" if k == keys[3] else "binary", k) is not None for k in keys]
    assert kept == [True, False, True, True]


def test_an_entry_larger_than_its_share_stays(tmp_path: Path) -> None:
    """What was written last is there, whatever its size; it goes with the next one."""
    cache = Cache(tmp_path, 256 * 1000)
    first, second = in_one_folder(2)
    assert cache.put("binary", first, bytes(5000))
    assert cache.get("binary", first) == bytes(5000)
    cache.put("binary", second, bytes(10))
    assert [e.n_bytes for e in cache.ls()] == [10]


def test_a_limit_of_nothing_keeps_nothing(tmp_path: Path) -> None:
    """LOOPWRIGHT_CACHE_MIB 0 writes no file."""
    cache = Cache(tmp_path / "cache", 0)
    assert not cache.put("binary", "k", b"data")
    assert not cache.root.exists()


@pytest.mark.parametrize("wanted", ["-1", "much", "1.5"])
def test_limits_from_the_environment(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_CACHE_MIB decides; nonsense in it is refused by name."""
    monkeypatch.setenv("LOOPWRIGHT_CACHE_MIB", "3")
    assert Cache().limit_bytes == 3 << 20
    monkeypatch.setenv("LOOPWRIGHT_CACHE_MIB", wanted)
    with pytest.raises(ArgumentError, match="LOOPWRIGHT_CACHE_MIB"):
        Cache()


def fill(root: str, seed: int) -> int:
    """Write many keys and read others' in a small cache; how many reads gave a wrong value."""
    cache, n_wrong = Cache(root, 256 * 3000), 0
    for step in range(150):
        key = f"{seed} {step}"
        cache.put("binary", key, key.encode() * 100)
        other = f"{(seed + 1) % 8} {step // 2}"
        n_wrong += cache.get("binary", other) not in (None, other.encode() * 100)
    return n_wrong


def test_a_small_cache_of_many_processes(tmp_path: Path) -> None:
    """Processes that push out each other's entries read whole ones, and the limit holds."""
    with multiprocessing.get_context("fork").Pool(8) as pool:
        assert pool.starmap(fill, [(str(tmp_path), seed) for seed in range(8)]) == [0] * 8
    entries = Cache(tmp_path).ls()
    assert 256 < len(entries) < 8 * 150
    assert sum(e.path.stat().st_size for e in entries) <= 256 * 3000
    assert Cache(tmp_path).verify() == []


def test_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """LOOPWRIGHT_CACHE_DIR decides, else the platform's cache folder."""
    monkeypatch.setenv("LOOPWRIGHT_CACHE_DIR", str(tmp_path / "mine"))
    assert Cache().root == tmp_path / "mine"
    monkeypatch.delenv("LOOPWRIGHT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Cache().root.name == "loopwright"


def test_folders_are_private(cache: Cache) -> None:
    """Binaries found here are run: no other user can write them."""
    cache.put("binary", "k", b"data")
    for folder in (cache.root, only_file(cache).parent):
        assert folder.stat().st_mode & 0o022 == 0
