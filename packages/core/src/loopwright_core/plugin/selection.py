"""From a device string, `name[:variant][:index]`, to a device, or to the reason there is none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, Protocol, runtime_checkable

from loopwright_core.errors import DeviceError, fail
from loopwright_core.plugin.device import Device

if TYPE_CHECKING:
    from loopwright_core.plugin.loader import PluginInfo

# Which extra of the `loopwright` distribution brings a device that is not installed.
_EXTRAS = {"cpu": "clang"}


@runtime_checkable
class HasVariants(Protocol):
    """A device with variants (`cuda:sm_90`, `cuda:simt`) offers this besides Device's members."""

    def with_variant(self, variant: str) -> Device:
        """The same device for another architecture or runtime. Raises DeviceError."""


@runtime_checkable
class HasIndices(Protocol):
    """A device of which a machine can have several (`cuda:1`) offers this."""

    def with_index(self, index: int) -> Device:
        """The device of that number, counted from 0."""


class Selection:
    """Looks devices up by text; the same text gives the same object."""

    def __init__(self, devices: Mapping[str, Device], plugins: Sequence[PluginInfo]) -> None:
        self._devices = devices
        self._plugins = plugins
        self._found: dict[str, Device] = {}

    def find(self, text: str) -> Device:
        """The device. Raises DeviceError: what is loaded, what is refused and why, the fix."""
        found = self._found.get(text)
        if found is None:
            found = self._found.setdefault(text, self._find(text))
        return found

    def _find(self, text: str) -> Device:
        name, variant, index = parse_device(text)
        device = self._devices.get(name)
        if device is None:
            self._fail_missing(name)
        if variant:
            if not isinstance(device, HasVariants):
                fail(
                    DeviceError,
                    f"the device {name!r} has no variants, and {text!r} asks for {variant!r}",
                    fix=f"say {name!r}",
                )
            device = device.with_variant(variant)
        if index:
            if index >= device.count:
                fail(
                    DeviceError,
                    f"{text!r} asks for number {index}, and this machine has {device.count} of "
                    f"{name!r}",
                    fix=f"say {name!r}, or a number below {max(device.count, 1)}",
                )
            if not isinstance(device, HasIndices):
                fail(
                    DeviceError, f"the device {name!r} is not chosen by number", fix=f"say {name!r}"
                )
            device = device.with_index(index)
        return device

    def _fail_missing(self, name: str) -> NoReturn:
        loaded = ", ".join(sorted(self._devices)) or "none"
        others = [p for p in self._plugins if p.state != "loaded"]
        what = f"no device {name!r}. Loaded devices: {loaded}"
        if others:
            what += ". Plugins not loaded: " + "; ".join(f"{p} [{p.state}]" for p in others)
        fail(DeviceError, what, fix=self._fix_missing(name, others))

    def _fix_missing(self, name: str, others: Sequence[PluginInfo]) -> str:
        extra = _EXTRAS.get(name, name)
        for p in others:
            if p.fix and extra in (p.name, p.dist.removeprefix("loopwright-render-")):
                return p.fix
        close = difflib.get_close_matches(name.lower(), self._devices, 1)
        if close:
            return f"say {close[0]!r}"
        fixes = dict.fromkeys(p.fix for p in others if p.fix)
        if fixes:
            return "; ".join(fixes)
        if name in _EXTRAS:
            return f'pip install "loopwright[{extra}]"'
        return "install the package that ships it; `loopwright plugins` lists what is here"


def parse_device(text: str) -> tuple[str, str, int]:
    """Name, variant ("" for none) and index of a device string. Raises DeviceError.

    >>> parse_device("cuda:sm_90:1"), parse_device("cuda:1"), parse_device("cpu")
    (('cuda', 'sm_90', 1), ('cuda', '', 1), ('cpu', '', 0))
    """
    parts = text.split(":") if isinstance(text, str) else [""]
    index = 0
    if len(parts) > 1 and parts[-1].isascii() and parts[-1].isdigit():
        index = int(parts.pop())
    if len(parts) > 2 or not all(parts) or any(p != p.strip() for p in parts):
        fail(
            DeviceError,
            f"{text!r} is no device string",
            fix="write name[:variant][:index], such as 'cpu', 'cuda:1' or 'cuda:sm_90'",
        )
    return parts[0], parts[1] if len(parts) == 2 else "", index
