"""What this package tells Loopwright: the device `cpu`."""

from __future__ import annotations

from loopwright_core.plugin import hookimpl
from loopwright_core.plugin.device import Device
from loopwright_render_clang.device import CpuDevice

REQUIRES_API = (1, 0)


@hookimpl
def loopwright_devices() -> list[Device]:
    return [CpuDevice()]
