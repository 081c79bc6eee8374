"""Finds plugins, loads each on its own terms, and answers who is here and who is not.

pluggy's own loader stops at the first broken plugin and can leave it half registered. Here each
plugin is imported, vetted and registered alone; one that fails is refused with its reason and
all others load on. Nothing is imported before the first `registry()`.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

import pluggy

from loopwright_core.errors import PluginError, fail
from loopwright_core.locks import new_rlock
from loopwright_core.plugin import hookspecs, vetting
from loopwright_core.plugin.api import API, GROUP, GROUP_PREFIX, PROJECT
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.selection import Selection
from loopwright_core.plugin.vetting import Refusal

PluginState = Literal["loaded", "refused", "disabled", "missing"]


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """One plugin found in this environment, or one that LOOPWRIGHT_PLUGINS asks for in vain.

    `reason` and `fix` say why it is not loaded and what to do. Units: load_s seconds.
    """

    name: str
    dist: str
    version: str
    state: PluginState
    reason: str = ""
    fix: str = ""
    devices: tuple[str, ...] = ()
    load_s: float = 0.0

    def __str__(self) -> str:
        owner = " ".join(x for x in (self.dist, self.version) if x)
        label = f"{self.name} ({owner})" if owner else self.name
        return f"{label}: {self.reason}" if self.reason else label


class Registry:
    """The plugins of this process. Made once by `registry()`; immutable after that."""

    def __init__(self, found: Iterable[EntryPoint] | None = None) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._plugins: list[PluginInfo] = []
        self._devices: dict[str, Device] = {}
        self._owners: dict[str, PluginInfo] = {}
        self._trace = _tracer() if os.environ.get("LOOPWRIGHT_TRACE_PLUGINS") == "1" else None
        self._load_all(_installed() if found is None else found)
        self._selection = Selection(self._devices, self._plugins)
        if self._trace:
            _trace_hooks(self._manager, self._trace)
        refused = [p for p in self._plugins if p.state in ("refused", "missing")]
        if refused and os.environ.get("LOOPWRIGHT_STRICT_PLUGINS") == "1":
            fail(
                PluginError,
                "LOOPWRIGHT_STRICT_PLUGINS=1 and not every plugin loads: "
                + "; ".join(map(str, refused)),
                fix="; ".join(dict.fromkeys(p.fix for p in refused if p.fix)),
            )

    @property
    def hook(self) -> pluggy.HookRelay:
        """Calls every plugin's implementation: `registry().hook.loopwright_lower(...)`."""
        return self._manager.hook

    def devices(self) -> dict[str, Device]:
        """Every device by name, in name order."""
        return dict(sorted(self._devices.items()))

    def device(self, text: str) -> Device:
        """The device that `name[:variant][:index]` names. Raises DeviceError."""
        return self._selection.find(text)

    def plugins(self) -> list[PluginInfo]:
        """Every plugin found, loaded or not, by name."""
        return list(self._plugins)

    def implementers(self, hook: str) -> list[str]:
        """The plugins that implement a hook, in the order they are asked.

        More than one at a first-result hook: the earlier may answer for the later.
        """
        caller: pluggy.HookCaller = getattr(self._manager.hook, hook)
        return [impl.plugin_name for impl in reversed(caller.get_hookimpls())]

    def contested(self) -> dict[str, list[str]]:
        """First-result hooks that several plugins implement, with the plugins in asking order."""
        found = {}
        for hook in vetting.HOOKS:
            spec = getattr(self._manager.hook, hook).spec
            names = self.implementers(hook)
            if spec is not None and spec.opts.get("firstresult") and len(names) > 1:
                found[hook] = names
        return found

    def _load_all(self, found: Iterable[EntryPoint]) -> None:
        points = sorted(found, key=lambda p: (p.name, p.group, vetting.dist_name(p.dist)))
        text = os.environ.get("LOOPWRIGHT_PLUGINS", "")
        wanted = [name.strip() for name in text.split(",") if name.strip()]
        for point in points:
            if wanted and point.name not in wanted:
                self._note(point, "disabled", reason=f"LOOPWRIGHT_PLUGINS={text} leaves it out")
                continue
            self._load(point)
        known = {p.name for p in points}
        for name in sorted({w for w in wanted if w not in known}):
            self._plugins.append(
                PluginInfo(
                    name,
                    "",
                    "",
                    "missing",
                    f"LOOPWRIGHT_PLUGINS={text} names it, and no such plugin is installed",
                    "install the package that ships it, or correct LOOPWRIGHT_PLUGINS",
                )
            )
        self._plugins.sort(key=lambda p: (p.name, p.dist))

    def _load(self, point: EntryPoint) -> None:
        """Import, vet, register; a plugin that fails any of it leaves no trace."""
        begin = time.perf_counter()
        plugin: Any = None
        try:
            self._check_name(point)
            plugin = _import(point)
            vetting.check_api(plugin, point.dist)
            vetting.check_hooks(plugin)
            _register(self._manager, plugin, point)
            devices = _devices_of(self._manager, plugin)
            self._check_free(devices, point)
        except Refusal as refusal:
            if plugin is not None and self._manager.get_plugin(point.name) is plugin:
                self._manager.unregister(plugin)
            self._note(point, "refused", reason=refusal.reason, fix=refusal.fix)
            return
        names = tuple(d.name for d in devices)
        info = self._note(point, "loaded", devices=names, load_s=time.perf_counter() - begin)
        for device in devices:
            self._devices[device.name], self._owners[device.name] = device, info

    def _check_name(self, point: EntryPoint) -> None:
        if point.group != GROUP:
            major = point.group.removeprefix(GROUP_PREFIX)
            raise Refusal(
                f"it is made for plugin API {major}, this loopwright-core has "
                f"{API[0]}.{API[1]}{vetting.declared_core(point.dist)}",
                "pip install --upgrade loopwright-core"
                if int(major) > API[0]
                else f"pip install --upgrade {vetting.dist_name(point.dist)}",
            )
        for other in self._plugins:
            if other.name == point.name and other.state == "loaded":
                raise Refusal(
                    f"the plugin name {point.name!r} is taken by {other.dist} {other.version}",
                    f"pip uninstall {other.dist} or {vetting.dist_name(point.dist)}",
                )

    def _check_free(self, devices: Sequence[Device], point: EntryPoint) -> None:
        mine = f"{point.name} ({vetting.dist_name(point.dist)})"
        seen: set[str] = set()
        for name in (d.name for d in devices):
            if name in self._owners:
                other = self._owners[name]
                raise Refusal(
                    f"the device name {name!r} of {mine} is taken by {other}",
                    f"pip uninstall {other.dist} or {vetting.dist_name(point.dist)}",
                )
            if name in seen:
                raise Refusal(f"{mine} brings the device name {name!r} twice")
            seen.add(name)

    def _note(self, point: EntryPoint, state: PluginState, **more: Any) -> PluginInfo:
        dist, version = vetting.dist_name(point.dist), vetting.dist_version(point.dist)
        info = PluginInfo(point.name, dist, version, state, **more)
        self._plugins.append(info)
        if self._trace:
            took = f" in {info.load_s * 1e3:.1f} ms" if info.load_s else ""
            self._trace(f"plugin {info.state}{took}: {info}")
        return info


def _installed() -> list[EntryPoint]:
    """The entry points of every API major, ours and others'."""
    found = entry_points()
    ours = [g for g in found.groups if re.fullmatch(re.escape(GROUP_PREFIX) + r"\d+", g)]
    return [p for group in sorted(ours) for p in found.select(group=group)]


def _import(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:
        raise vetting.describe_import_error(error, point.dist) from error


def _register(manager: pluggy.PluginManager, plugin: Any, point: EntryPoint) -> None:
    try:
        if manager.register(plugin, point.name) is None:
            raise Refusal("pluggy blocks its name")
    except Refusal:
        raise
    except Exception as error:
        # pluggy notes the name before it looks at the functions: take back what it has done.
        if manager.get_plugin(point.name) is plugin:
            manager.unregister(plugin)
        raise Refusal(
            f"its hooks do not fit: {' '.join(str(error).split())}",
            "report this to the plugin's author",
        ) from error


def _devices_of(manager: pluggy.PluginManager, plugin: Any) -> list[Device]:
    try:
        return vetting.devices_of(plugin, manager)
    except Refusal:
        raise
    except (Exception, SystemExit) as error:
        raise Refusal(
            f"its loopwright_devices raised {type(error).__name__}: {error}",
            "report this to the plugin's author",
        ) from error


def _tracer() -> Callable[[str], None]:
    return lambda text: print(f"loopwright: {text}", file=sys.stderr)


def _trace_hooks(manager: pluggy.PluginManager, trace: Callable[[str], None]) -> None:
    """One line a hook call: who was asked and how long it took."""
    here = threading.local()  # hooks may call hooks, in many threads

    def before(name: str, impls: Sequence[pluggy.HookImpl], kwargs: Any) -> None:
        here.began = [*getattr(here, "began", ()), time.perf_counter()]

    def after(outcome: Any, name: str, impls: Sequence[pluggy.HookImpl], kwargs: Any) -> None:
        took_ms = (time.perf_counter() - here.began.pop()) * 1e3
        asked = ", ".join(impl.plugin_name for impl in reversed(impls)) or "nobody"
        trace(f"{name} -> {asked} ({took_ms:.2f} ms)")

    manager.add_hookcall_monitoring(before, after)


_lock = new_rlock()
_registry: Registry | None = None
_loading: int | None = None  # the thread that loads plugins: a forked child has it no more


def registry() -> Registry:
    """The registry of this process, loaded by the first call. Raises PluginError in strict mode."""
    global _registry, _loading
    found = _registry
    if found is not None:
        return found
    with _lock:
        if _registry is None:
            if _loading == threading.get_ident():  # the lock is ours
                fail(
                    PluginError,
                    "a plugin asks for the registry while plugins are being loaded",
                    fix="call registry() inside the hook functions, not at import",
                )
            _loading = threading.get_ident()
            try:
                _registry = Registry()
            finally:
                _loading = None
        return _registry


def reset_registry() -> None:
    """Forget the registry; the next `registry()` looks again. For tests and new installs."""
    global _registry
    with _lock:
        _registry = None
