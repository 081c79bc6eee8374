"""Installs the wheels in a folder into this environment, by path: never a namesake from an index.

usage: python install_wheels.py DIST_FOLDER [--lowest]

--lowest takes the oldest version of everything that the wheels say they work with.
"""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from pathlib import Path

# The distribution a user asks for, with the extra the smoke test needs.
WANTED = {"loopwright": "[clang]"}


def wheels_in(folder: Path) -> dict[str, Path]:
    """Distribution name -> wheel."""
    found = sorted(folder.glob("*.whl"))
    return {wheel.name.split("-")[0].replace("_", "-"): wheel.resolve() for wheel in found}


def declared(wheel: Path) -> list[str]:
    """Requires-Dist without those of extras."""
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(path))
    lines = metadata.get_all("Requires-Dist") or []
    return [line for line in lines if "extra ==" not in line]


def main(folder: str, is_lowest: bool) -> int:
    """The exit status of the installation; 1 where there is nothing to install."""
    wheels = wheels_in(Path(folder))
    if not wheels:
        print(f"no wheels in {folder}", file=sys.stderr)
        return 1
    # --refresh: a rebuilt wheel of the same version must not come from uv's cache.
    command = ["uv", "pip", "install", "--refresh", "--python", sys.executable]
    command += [f"{n}{WANTED.get(n, '')} @ {w.as_uri()}" for n, w in wheels.items()]
    if is_lowest:
        # Only what is asked for directly is lowered: what others' old versions need is not ours.
        lines = {line for wheel in wheels.values() for line in declared(wheel)}
        command += ["--resolution=lowest-direct"]
        command += sorted(line for line in lines if not line.startswith("loopwright"))
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--lowest" in sys.argv[2:]))
