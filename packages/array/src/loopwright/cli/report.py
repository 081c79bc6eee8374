"""`devices`, `plugins`, `doctor` and `cache`: what is installed, in which state, and why."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any

from loopwright.cli.output import Output, size
from loopwright.devices import default_device, devices
from loopwright_core.cache import Cache
from loopwright_core.errors import LoopwrightError
from loopwright_core.plugin import API
from loopwright_core.plugin.loader import registry

_FIRST_RESULT = ("loopwright_fuse", "loopwright_index", "loopwright_schedule", "loopwright_lower")
# What a target's features may say about results that differ from the documented ones.
NUMERIC_EXCEPTIONS = frozenset({"flushes subnormals", "products of bfloat16 flush subnormals"})
_SWITCHES = (
    "LOOPWRIGHT_DEVICE",
    "LOOPWRIGHT_THREADS",
    "LOOPWRIGHT_CC",
    "LOOPWRIGHT_COMPILE_TIMEOUT",
    "LOOPWRIGHT_CACHE_DIR",
    "LOOPWRIGHT_CACHE_MIB",
    "LOOPWRIGHT_CHECK",
    "LOOPWRIGHT_PLUGINS",
    "LOOPWRIGHT_TRACE_PLUGINS",
    "LOOPWRIGHT_STRICT_PLUGINS",
)


def report_devices(out: Output) -> bool:
    """Every device with its state."""
    found = devices()
    out.table(["device", "state"], [[name, state] for name, state in found.items()])
    if not found:
        out.text('no device: pip install "loopwright[clang]"')
    out.document(found)
    return bool(found)


def report_plugins(out: Output) -> bool:
    """Every plugin with its state; False where one is refused or missing."""
    found = registry().plugins()
    out.table(
        ["plugin", "from", "state", "devices", "why not, and what to do"],
        [
            [
                p.name,
                f"{p.dist} {p.version}".strip(),
                p.state,
                ", ".join(p.devices),
                ". ".join(x for x in (p.reason, p.fix) if x),
            ]
            for p in found
        ],
    )
    out.document(
        [
            {
                "name": p.name,
                "distribution": p.dist,
                "version": p.version,
                "state": p.state,
                "devices": list(p.devices),
                "reason": p.reason,
                "fix": p.fix,
            }
            for p in found
        ]
    )
    return all(p.state in ("loaded", "disabled") for p in found)


def report_health(out: Output) -> bool:
    """Whether expressions can run here, and what stands in the way."""
    checks: list[dict[str, Any]] = []

    def check(is_good: bool, what: str) -> None:
        checks.append({"ok": is_good, "what": what})
        out.verdict(is_good, what)

    out.text(f"Python {platform.python_version()} on {platform.platform()}")
    out.text(f"plugin API {API[0]}.{API[1]}, interpreter {sys.executable}")
    for name in _SWITCHES:
        if name in os.environ:
            out.text(f"{name}={os.environ[name]}")
    for plugin in registry().plugins():
        if plugin.state != "disabled":
            text = f"plugin {plugin}" + (f". {plugin.fix}" if plugin.fix else "")
            check(plugin.state == "loaded", text)
    for hook in _FIRST_RESULT:
        asked = registry().implementers(hook)
        if len(asked) > 1:
            out.text(f"note: {hook} is answered by the first of {', '.join(asked)} that can")
        if hook != "loopwright_schedule":
            check(bool(asked), f"{hook}: {', '.join(asked) or 'no plugin answers'}")
    states = devices()
    for name, device in registry().devices().items():
        is_ready = device.state()[0] == "ready"
        check(is_ready, f"device {name}: {states[name]}")
        if is_ready:
            out.text(f"     {device.compile_key()}")
    check(bool(registry().devices()), f"devices: {', '.join(registry().devices()) or 'none'}")
    try:
        out.text(f"default device: {default_device()}")
    except LoopwrightError as error:
        check(False, str(error))
    cache = Cache()
    is_writable = cache.put("doctor", "probe", b"x") and cache.get("doctor", "probe") == b"x"
    # Without a cache everything still works, only slower.
    out.text(f"cache {cache.root}: {'writable' if is_writable else 'NOT writable: compiles again'}")
    for name, device in registry().devices().items():
        exceptions = ", ".join(sorted(device.target.features & NUMERIC_EXCEPTIONS)) or "none"
        out.text(f"numerics of {name}: exceptions to the documented results: {exceptions}")
    is_good = all(c["ok"] for c in checks)
    out.document({"ok": is_good, "checks": checks, "cache": str(cache.root)})
    return is_good


def report_cache(out: Output) -> bool:
    """The entries, those used last first."""
    cache = Cache()
    entries = sorted(cache.ls(), key=lambda e: -e.used_s)
    out.table(
        ["kind", "entry", "size", "last used"],
        [
            [
                e.kind,
                e.digest[:16],
                size(e.n_bytes),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used_s)),
            ]
            for e in entries
        ],
    )
    total = sum(e.n_bytes for e in entries)
    limit = size(cache.limit_bytes)
    out.text(f"{len(entries)} entries, {size(total)} of at most {limit} in {cache.root}")
    out.document(
        {
            "root": str(cache.root),
            "limit_bytes": cache.limit_bytes,
            "entries": [
                {"kind": e.kind, "digest": e.digest, "bytes": e.n_bytes, "used_s": e.used_s}
                for e in entries
            ],
        }
    )
    return True


def clear_cache(out: Output) -> bool:
    """Remove every entry."""
    cache = Cache()
    n = cache.clear()
    out.text(f"removed {n} entries from {cache.root}")
    out.document({"root": str(cache.root), "removed": n})
    return True


def verify_cache(out: Output) -> bool:
    """Check every entry; False where one was damaged."""
    cache = Cache()
    bad = cache.verify()
    for entry in bad:
        out.verdict(False, f"{entry.kind} {entry.digest[:16]} is damaged: {entry.path}")
    out.text(f"{len(bad)} damaged entries in {cache.root}")
    out.document({"root": str(cache.root), "damaged": [str(e.path) for e in bad]})
    return not bad
