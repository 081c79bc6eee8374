"""A broken plugin beside the real ones: it is refused with its reason, and kernels still run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_dists import device_plugin, install

# What a user's program sees, as one line of JSON.
PROGRAM = """
import json
import numpy as np
import loopwright as lw
from loopwright_core.errors import DeviceError
from loopwright_core.plugin.loader import registry

found = registry()
try:
    found.device("broken")
    said = ""
except DeviceError as error:
    said = str(error)
x = np.arange(6, dtype=np.float32)
total = float(lw.sum(lw.asarray(x) * 2.0).numpy())
plugins = {p.name: [p.state, p.reason, p.fix] for p in found.plugins()}
print(json.dumps({"plugins": plugins, "devices": list(found.devices()), "said": said,
                  "total": total}))
"""

OWN = {"array", "clang", "lower", "opt"}


def run(site: Path, **env: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": str(site), **env},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


BROKEN = {
    "another API major": (
        "raise SystemError('must not be imported')",
        {"group": "loopwright.api2", "requires": ["loopwright-core>=2"]},
        ["API 2", "loopwright-core>=2"],
    ),
    "a later minor": (device_plugin("broken").replace("(1, 0)", "(1, 99)"), {}, ["1.99"]),
    "a missing dependency": (
        "import no_such_module_anywhere",
        {"requires": ["no-such-dist>=3"]},
        ["no_such_module_anywhere", "no-such-dist>=3"],
    ),
    "an exception at import": ("raise ValueError('boom')", {}, ["ValueError", "boom"]),
    "a misspelt hook": (
        "from loopwright_core.plugin import hookimpl\n@hookimpl\ndef loopwright_device(): ...\n",
        {},
        ["loopwright_device", "loopwright_devices"],
    ),
    "a taken device name": (device_plugin("cpu"), {"plugin": "x-broken"}, ["'cpu'", "clang"]),
    "an exception in a hook": (
        device_plugin("broken").replace("return [Fake", "return 1 / 0 or [Fake"),
        {},
        ["loopwright_devices", "ZeroDivisionError"],
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_others_work(case: str, tmp_path: Path) -> None:
    """One plugin is refused, with its reason also in the device error; ours compute as ever."""
    source, how, words = BROKEN[case]
    install(tmp_path, "broken", source, **how)
    found = run(tmp_path)
    name = how.get("plugin", "broken")
    state, reason, fix = found["plugins"].pop(name)
    assert state == "refused"
    assert fix
    for word in words:
        assert word in reason
    assert reason in found["said"]
    assert {n: s for n, (s, _, _) in found["plugins"].items()} == dict.fromkeys(OWN, "loaded")
    assert "cpu" in found["devices"]
    assert found["total"] == 30.0


def test_third_party_device_is_listed(tmp_path: Path) -> None:
    """A healthy stranger loads beside ours."""
    install(tmp_path, "stranger", device_plugin("strange"))
    found = run(tmp_path)
    assert found["plugins"]["stranger"][0] == "loaded"
    assert set(found["devices"]) >= {"cpu", "strange"}


def test_limited_to_ours(tmp_path: Path) -> None:
    """LOOPWRIGHT_PLUGINS keeps a stranger out without importing it."""
    install(tmp_path, "stranger", "raise SystemError('must not be imported')")
    found = run(tmp_path, LOOPWRIGHT_PLUGINS=",".join(sorted(OWN)))
    assert found["plugins"]["stranger"][0] == "disabled"
    assert found["total"] == 30.0
