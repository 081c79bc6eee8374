"""The repository is laid out as CONTRIBUTING.md says, and its documents match its files."""

from __future__ import annotations

import ast
import configparser
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from loopwright_core.plugin.vetting import HOOKS
from repo_files import PACKAGES, ROOT, python_files, source_files

LONGEST_FILE = 500
# Distributions that are imported under another name.
IMPORT_NAMES = {"opt-einsum": "opt_einsum", "ml-dtypes": "ml_dtypes"}


def test_files_are_found() -> None:
    """The listing these tests go by is not empty."""
    assert len(source_files()) > 20


@pytest.mark.parametrize("path", python_files(), ids=str)
def test_file_length(path: Path) -> None:
    """No Python file is longer than 500 lines."""
    assert len((ROOT / path).read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


def listed_in_architecture() -> list[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return re.findall(r"^- `(packages/[^`]+\.py)`: \S", text, re.MULTILINE)


def test_architecture_lists_every_file() -> None:
    """ARCHITECTURE.md has one line for each source file that holds something, and no other."""
    listed = listed_in_architecture()
    filled = [p.as_posix() for p in source_files() if (ROOT / p).stat().st_size]
    assert [name for name, n in Counter(listed).items() if n > 1] == []
    assert sorted(set(filled) - set(listed)) == [], "missing from ARCHITECTURE.md"
    assert sorted(set(listed) - set(filled)) == [], "gone, but in ARCHITECTURE.md"


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_is_documented(hook: str) -> None:
    """Every hook has a section of its own and a row in docs/hooks.md."""
    text = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    assert f"\n### {hook}\n" in text
    assert f"\n| [`{hook}`](#{hook}) |" in text


def test_no_hook_is_invented() -> None:
    """docs/hooks.md has no section on a hook that does not exist."""
    text = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (loopwright_\w+)$", text, re.MULTILINE)) == set(HOOKS)


def project(package: str) -> dict[str, object]:
    path = ROOT / "packages" / package / "pyproject.toml"
    found: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return found


def declared(package: str) -> list[Requirement]:
    """Requirements and those of all extras."""
    data = project(package)
    lines = list(data.get("dependencies", []))  # type: ignore[call-overload]
    for extra in data.get("optional-dependencies", {}).values():  # type: ignore[attr-defined]
        lines.extend(extra)
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_ranges_between_members(package: str) -> None:
    """Ranges between packages admit the versions in the tree: uv's workspace ignores them."""
    versions = {str(project(p)["name"]): str(project(p)["version"]) for p in PACKAGES}
    for requirement in declared(package):
        if requirement.name in versions:
            assert requirement.specifier.contains(versions[requirement.name]), str(requirement)
            assert {s.operator for s in requirement.specifier} == {">=", "<"}, str(requirement)


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_imports_are_declared(package: str) -> None:
    """A package imports itself, core, the standard library and what its metadata declares."""
    own = PACKAGES[package]
    names = {IMPORT_NAMES.get(r.name, r.name.replace("-", "_")) for r in declared(package)}
    allowed = {own, "loopwright_core", *names} - ({*PACKAGES.values()} - {own, "loopwright_core"})
    for path in source_files(package):
        if "bench/peers/" in str(path):
            continue  # each runs under the Python of the peer it is named after
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            found: list[str] = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}:{node.lineno} imports relatively"
                found = [node.module or ""]
            for name in found:
                top = name.split(".")[0]
                is_fine = top in allowed or top in sys.stdlib_module_names
                assert is_fine, f"{path}:{node.lineno} imports {name}"


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package_metadata(package: str) -> None:
    """Names follow the folder, versions are static, types are shipped."""
    data = project(package)
    assert data["name"] == ("loopwright" if package == "array" else f"loopwright-{package}")
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(data["version"]))
    assert "dynamic" not in data
    assert (ROOT / "packages" / package / "src" / PACKAGES[package] / "py.typed").is_file()


@pytest.mark.parametrize("path", source_files(), ids=str)
def test_no_loose_ends(path: Path) -> None:
    """Sources hold no bare `type: ignore` and no note of work left undone."""
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not re.search(r"type: ignore(?!\[)", text)
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


def test_helper_names_are_unique() -> None:
    """Helpers in test folders are imported by bare name, so no two share one."""
    folders = [*(ROOT / "packages").glob("*/tests"), ROOT / "tests"]
    helpers = [p.name for f in folders for p in f.glob("*.py") if not p.name.startswith("test_")]
    assert [n for n, count in Counter(helpers).items() if count > 1 and n != "conftest.py"] == []


def test_changelog_fragments() -> None:
    """Every fragment is named package.kind.words.md and says something."""
    kinds = "added|changed|fixed|removed|api"
    for path in (ROOT / "changelog.d").iterdir():
        if path.name == "README.md":
            continue
        match = re.fullmatch(rf"([a-z-]+)\.({kinds})\.[a-z0-9-]+\.md", path.name)
        assert match, path.name
        assert match[1] in {*PACKAGES, "repo"}, path.name
        assert path.read_text(encoding="utf-8").strip()


def tox_environment(name: str) -> dict[str, str]:
    reader = configparser.ConfigParser(interpolation=None)
    reader.read(ROOT / "tox.ini", encoding="utf-8")
    return dict(reader[f"testenv:{name}"])


@pytest.mark.parametrize("package", sorted(PACKAGES))
def test_package_has_its_environment(package: str) -> None:
    """Each package is tested alone, by an environment of its name, and is in lint's list."""
    alone = tox_environment(package)
    assert f"--package={project(package)['name']}" in alone["uv_sync_flags"].split()
    assert f"packages/{package}" in alone["commands"].split()
    assert f"packages/{package}/src" in tox_environment("lint")["commands"].split()
