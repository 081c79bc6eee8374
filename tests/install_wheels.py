"""Installs the wheels in a folder into this environment, by path: never a namesake from an index.

usage: python install_wheels.py DIST_FOLDER
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# The distribution a user asks for, with the extra the smoke test needs.
WANTED = {"loopwright": "[clang]"}


def requirements(folder: Path) -> list[str]:
    """One direct reference a wheel."""
    wheels = sorted(folder.glob("*.whl"))
    found = []
    for wheel in wheels:
        name = wheel.name.split("-")[0].replace("_", "-")
        found.append(f"{name}{WANTED.get(name, '')} @ {wheel.resolve().as_uri()}")
    return found


def main(folder: str) -> int:
    """The exit status of the installation; 1 where there is nothing to install."""
    wheels = requirements(Path(folder))
    if not wheels:
        print(f"no wheels in {folder}", file=sys.stderr)
        return 1
    # --refresh: a rebuilt wheel of the same version must not come from uv's cache.
    command = ["uv", "pip", "install", "--refresh", "--python", sys.executable, *wheels]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
