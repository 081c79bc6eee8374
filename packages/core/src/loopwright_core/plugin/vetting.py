"""The checks a plugin passes before it counts: each returns what is wrong, or nothing."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, version
from typing import Any

import pluggy

from loopwright_core.plugin import hookspecs
from loopwright_core.plugin.api import API, PROJECT
from loopwright_core.plugin.device import Device

HOOKS: tuple[str, ...] = tuple(
    name
    for name, member in vars(hookspecs).items()
    if name.startswith("loopwright_") and inspect.isfunction(member)
)
_DEVICE_MEMBERS = tuple(
    name for name in (*Device.__annotations__, *vars(Device)) if not name.startswith("_")
)


class Refusal(Exception):
    """Why a plugin is not loaded, and what its user can do. Never leaves the loader."""

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.reason, self.fix = reason, fix


def check_api(plugin: Any, dist: Distribution | None) -> None:
    """The handshake. No REQUIRES_API reads as the first minor of the group's major."""
    wanted = getattr(plugin, "REQUIRES_API", (API[0], 0))
    is_pair = isinstance(wanted, tuple) and len(wanted) == 2
    if not is_pair or not all(type(n) is int for n in wanted):
        raise Refusal(
            f"its REQUIRES_API is {wanted!r}, not a pair of integers like {API}",
            "report this to the plugin's author",
        )
    if wanted[0] != API[0] or wanted[1] > API[1]:
        raise Refusal(
            f"it needs plugin API {wanted[0]}.{wanted[1]}, this loopwright-core has "
            f"{API[0]}.{API[1]}{declared_core(dist)}",
            "pip install --upgrade loopwright-core"
            if wanted > API
            else f"install a version of {dist_name(dist)} for API {API[0]}.{API[1]}",
        )


def check_hooks(plugin: Any) -> None:
    """Every function that looks like a hook is one, and is marked as one."""
    for name in sorted(dir(plugin)):
        if not name.startswith("loopwright_"):
            continue
        function = getattr(plugin, name)
        if not inspect.isroutine(function):
            continue
        if name not in HOOKS:
            close = difflib.get_close_matches(name, HOOKS, 1)
            hint = f"; did it mean {close[0]}?" if close else ""
            raise Refusal(f"there is no hook {name}{hint}", "report this to the plugin's author")
        if not hasattr(function, f"{PROJECT}_impl"):
            raise Refusal(
                f"its function {name} is not marked with @hookimpl",
                "report this to the plugin's author",
            )


def devices_of(plugin: Any, manager: pluggy.PluginManager) -> list[Device]:
    """What this plugin's own `loopwright_devices` returns, each checked to be a device."""
    found: list[Device] = []
    for impl in manager.hook.loopwright_devices.get_hookimpls():
        if impl.plugin is not plugin or impl.hookwrapper or impl.wrapper:
            continue
        returned = impl.function()
        if not isinstance(returned, list | tuple):
            raise Refusal(f"loopwright_devices returned {type(returned).__name__}, not a list")
        for device in returned:
            _check_device(device)
            found.append(device)
    return found


def _check_device(device: Any) -> None:
    # Looked up without running properties: reading `target` may probe the machine.
    absent = object()
    missing = [m for m in _DEVICE_MEMBERS if inspect.getattr_static(device, m, absent) is absent]
    if missing:
        raise Refusal(f"{type(device).__name__} is no Device: it lacks {', '.join(missing)}")
    name = device.name
    if not isinstance(name, str) or not name.replace("_", "").replace("-", "").isalnum():
        raise Refusal(f"a device is named {name!r}; letters, digits, '-' and '_' only")


def describe_import_error(error: BaseException, dist: Distribution | None) -> Refusal:
    """An import failure in the user's words: the missing package first, if that is what it is."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    unmet = list(_unmet_requirements(dist))
    if unmet:
        return Refusal(
            f"importing it failed ({text}); it requires {', '.join(unmet)}",
            f"pip install --upgrade {dist_name(dist)}",
        )
    if isinstance(error, ModuleNotFoundError) and error.name:
        return Refusal(
            f"it needs the module {error.name!r}, which is not installed ({text})",
            f"pip install --force-reinstall {dist_name(dist)}",
        )
    return Refusal(f"importing it failed ({text})", f"pip install --upgrade {dist_name(dist)}")


def _unmet_requirements(dist: Distribution | None) -> Iterator[str]:
    """Lines of Requires-Dist that this environment does not satisfy, with what is there."""
    from packaging.requirements import InvalidRequirement, Requirement

    for line in (dist.requires if dist else None) or ():
        try:
            requirement = Requirement(line)
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            found = version(requirement.name)
        except InvalidRequirement:
            continue
        except PackageNotFoundError:
            yield f"{requirement.name}{requirement.specifier} (not installed)"
            continue
        if not requirement.specifier.contains(found, prereleases=True):
            yield f"{requirement.name}{requirement.specifier} (installed: {found})"


def declared_core(dist: Distribution | None) -> str:
    """What the metadata says about core, as the end of a sentence."""
    from packaging.utils import canonicalize_name

    for line in (dist.requires if dist else None) or ():
        name = line.split(";")[0].strip()
        if canonicalize_name(name).startswith("loopwright-core"):
            return f" (its metadata asks for {name})"
    return ""


def dist_name(dist: Distribution | None) -> str:
    """The distribution's name, also where its metadata is broken."""
    try:
        return str(dist.metadata["Name"]) if dist and dist.metadata["Name"] else "the plugin"
    except Exception:
        return "the plugin"


def dist_version(dist: Distribution | None) -> str:
    """The distribution's version, also where its metadata is broken."""
    try:
        return str(dist.version) if dist and dist.version else ""
    except Exception:
        return ""
