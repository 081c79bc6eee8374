"""What belongs to the repository."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def _packages() -> dict[str, str]:
    """Folder under packages/ -> import name."""
    found = {}
    for folder in sorted((ROOT / "packages").iterdir()):
        if (folder / "pyproject.toml").is_file():
            (source,) = (p for p in (folder / "src").iterdir() if (p / "__init__.py").is_file())
            found[folder.name] = source.name
    return found


PACKAGES = _packages()


@cache
def python_files() -> list[Path]:
    """Every Python file under version control, or in the tree where git is not at hand."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if listing.returncode == 0 and listing.stdout:
        found = [Path(line) for line in listing.stdout.splitlines()]
    else:
        tops = ("packages", "tests", "examples", "benchmarks")
        found = [p.relative_to(ROOT) for t in tops for p in (ROOT / t).rglob("*.py")]
    return sorted(p for p in found if (ROOT / p).is_file())


def source_files(package: str = "") -> list[Path]:
    """The files a package ships; of every package by default."""
    heads = [f"packages/{p}/src/" for p in ([package] if package else PACKAGES)]
    return [p for p in python_files() if p.as_posix().startswith(tuple(heads))]
