"""Tiny installed-looking distributions, and a device that does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, distributions
from pathlib import Path
from typing import Any

from loopwright_core.plugin.api import GROUP

# A plugin module whose device lacks nothing a Device has.
DEVICE = """
from loopwright_core.plugin import hookimpl

REQUIRES_API = (1, 0)


class Fake:
    language = None
    target = None
    count = 1

    def __init__(self, name):
        self.name = name

    def state(self):
        return "render only", "a fake"

    def nothing(self, *args):
        return None

    render = compile_key = compile = load = launch = time = nothing
    allocate = from_host = to_host = synchronize = nothing


@hookimpl
def loopwright_devices():
    return [Fake(name) for name in {names!r}]
"""


def device_plugin(*names: str) -> str:
    """The source of a plugin that brings devices of these names."""
    return DEVICE.replace("{names!r}", repr(names))


def install(
    folder: Path,
    name: str,
    source: str,
    *,
    group: str = GROUP,
    version: str = "1.0",
    requires: Sequence[str] = (),
    plugin: str | None = None,
) -> None:
    """A distribution `name` in `folder` with one module and one entry point in `group`."""
    module = name.replace("-", "_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    info = folder / f"{module}-{version}.dist-info"
    info.mkdir()
    metadata = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    metadata += [f"Requires-Dist: {r}" for r in requires]
    (info / "METADATA").write_text("\n".join(metadata) + "\n", encoding="utf-8")
    entry = f"[{group}]\n{plugin or name} = {module}\n"
    (info / "entry_points.txt").write_text(entry, encoding="utf-8")


def entry_points_in(folder: Path) -> list[EntryPoint]:
    """Every entry point of the distributions in that folder alone."""
    found: list[Any] = []
    for dist in distributions(path=[str(folder)]):
        found.extend(dist.entry_points)
    return found
