"""Which devices this installation has, and which one is meant where none is named."""

from __future__ import annotations

import os

from loopwright_core.errors import DeviceError, fail
from loopwright_core.plugin.loader import registry

# Best first: the device of arrays made without one is the first of these that is ready.
_PREFERRED = ("cuda", "metal", "opencl", "cpu")


def devices() -> dict[str, str]:
    """Every device by name, with its state: ready | compile only | render only | refused (why)."""
    found: dict[str, str] = {}
    for name, device in registry().devices().items():
        state, why = device.state()
        found[name] = state if state == "ready" or not why else f"{state} ({why})"
    for plugin in registry().plugins():
        if plugin.state == "refused":
            found.setdefault(plugin.name, f"refused ({plugin.reason})")
    return found


def default_device() -> str:
    """LOOPWRIGHT_DEVICE, else the best device that is ready, else the first there is."""
    named = os.environ.get("LOOPWRIGHT_DEVICE")
    if named:
        return named
    here = registry().devices()
    names = [n for n in _PREFERRED if n in here] + [n for n in here if n not in _PREFERRED]
    for name in names:
        if here[name].state()[0] == "ready":
            return name
    if names:
        return names[0]
    fail(
        DeviceError,
        "no device is installed",
        fix='pip install "loopwright[clang]"; `loopwright plugins` lists what is here',
    )
