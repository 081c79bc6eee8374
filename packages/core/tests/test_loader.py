"""Each plugin is loaded on its own terms: a broken one is refused by name, all others work."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_dists import device_plugin, entry_points_in, install

from loopwright_core.errors import DeviceError, PluginError
from loopwright_core.plugin import loader
from loopwright_core.plugin.api import API
from loopwright_core.plugin.loader import PluginInfo, Registry, registry, reset_registry
from loopwright_core.plugin.selection import parse_device

Load = Callable[[], Registry]


@pytest.fixture(autouse=True)
def clean_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PLUGINS", "TRACE_PLUGINS", "STRICT_PLUGINS"):
        monkeypatch.delenv(f"LOOPWRIGHT_{name}", raising=False)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on sys.path to install into; what was imported from it is forgotten after."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def load(site: Path) -> Load:
    """The registry of what is installed in `site` and nothing else."""
    return lambda: Registry(entry_points_in(site))


def info(found: Registry, name: str) -> PluginInfo:
    (only,) = (p for p in found.plugins() if p.name == name)
    return only


def check_refused(site: Path, load: Load, name: str, *words: str) -> PluginInfo:
    """`name` is refused, its reason holds the words, and a healthy plugin beside it works."""
    install(site, "aa-healthy", device_plugin("first"))
    install(site, "zz-healthy", device_plugin("last"))
    found = load()
    refused = info(found, name)
    assert refused.state == "refused"
    for word in words:
        assert word in refused.reason
    assert set(found.devices()) == {"first", "last"}
    assert {p.name for p in found.plugins() if p.state == "loaded"} == {"aa-healthy", "zz-healthy"}
    for hook in ("loopwright_devices", "loopwright_lower", "loopwright_stage"):
        assert name not in found.implementers(hook)
    with pytest.raises(DeviceError) as error:
        found.device(name)
    assert refused.reason in str(error.value)
    assert "first, last" in str(error.value)
    return refused


def test_nothing_installed(load: Load) -> None:
    """Without plugins there are no devices, and asking for one says so and what to install."""
    found = load()
    assert (found.devices(), found.plugins()) == ({}, [])
    with pytest.raises(DeviceError, match=r"no device 'cpu'.*none.*loopwright\[clang\]"):
        found.device("cpu")


def test_healthy_plugin(site: Path, load: Load) -> None:
    """A plugin's devices and identity are listed."""
    install(site, "my-device", device_plugin("one", "two"), version="2.5", plugin="mine")
    found = load()
    assert list(found.devices()) == ["one", "two"]
    mine = info(found, "mine")
    assert (mine.dist, mine.version, mine.state) == ("my-device", "2.5", "loaded")
    assert (mine.devices, mine.reason) == (("one", "two"), "")
    assert found.implementers("loopwright_devices") == ["mine"]


def test_import_error(site: Path, load: Load) -> None:
    """An exception at import refuses that plugin, with the exception's text."""
    install(site, "broken", "raise ValueError('boom at import')")
    check_refused(site, load, "broken", "ValueError", "boom at import")


def test_exit_at_import(site: Path, load: Load) -> None:
    """A module that calls sys.exit does not end the user's program."""
    install(site, "broken", "import sys; sys.exit(3)")
    check_refused(site, load, "broken", "SystemExit")


def test_syntax_error(site: Path, load: Load) -> None:
    """A module that does not parse is refused."""
    install(site, "broken", "def f(:")
    check_refused(site, load, "broken", "SyntaxError")


def test_missing_dependency(site: Path, load: Load) -> None:
    """A missing module is named, and what the metadata requires with what is there."""
    requires = ["no-such-dist>=2", "numpy<1", "other; extra == 'gpu'"]
    install(site, "broken", "import no_such_module_anywhere", requires=requires)
    refused = check_refused(
        site,
        load,
        "broken",
        "no_such_module_anywhere",
        "no-such-dist>=2 (not installed)",
        "numpy<1",
    )
    assert "other" not in refused.reason
    assert refused.fix == "pip install --upgrade broken"


@pytest.mark.parametrize(("major", "fix"), [(0, "broken"), (2, "loopwright-core")])
def test_other_major(site: Path, load: Load, major: int, fix: str) -> None:
    """A plugin of another API major is never imported; metadata enriches the message."""
    source = "raise SystemError('must not be imported')"
    requires = [f"loopwright-core>={major}.7"]
    install(site, "broken", source, group=f"loopwright.api{major}", requires=requires)
    refused = check_refused(site, load, "broken", f"API {major}", f"loopwright-core>={major}.7")
    assert refused.fix == f"pip install --upgrade {fix}"
    assert "broken" not in sys.modules


def test_newer_minor(site: Path, load: Load) -> None:
    """A plugin that needs a later minor is refused with both versions."""
    source = device_plugin("new").replace("(1, 0)", f"(1, {API[1] + 1})")
    install(site, "broken", source, requires=["loopwright-core>=9"])
    refused = check_refused(
        site, load, "broken", f"1.{API[1] + 1}", f"{API[0]}.{API[1]}", "loopwright-core>=9"
    )
    assert refused.fix == "pip install --upgrade loopwright-core"


@pytest.mark.parametrize("value", ["'1.0'", "(1,)", "(1, 'x')", "(True, 0)", "[1, 0]"])
def test_malformed_version(site: Path, load: Load, value: str) -> None:
    """A REQUIRES_API that is no pair of integers is refused, not guessed at."""
    install(site, "broken", device_plugin("new").replace("(1, 0)", value))
    check_refused(site, load, "broken", "REQUIRES_API")


def test_no_version_reads_as_first_minor(site: Path, load: Load) -> None:
    """The group states the major; without REQUIRES_API any minor will do."""
    install(site, "mine", device_plugin("new").replace("REQUIRES_API = (1, 0)", ""))
    assert info(load(), "mine").state == "loaded"


@pytest.mark.parametrize("mark", ["", "@hookimpl\n"])
def test_misspelt_hook(site: Path, load: Load, mark: str) -> None:
    """A hook that does not exist is refused, marked or not, with the likely one."""
    source = f"{device_plugin('new')}\n\n{mark}def loopwright_lowr(kernel, target): ...\n"
    install(site, "broken", source)
    check_refused(site, load, "broken", "loopwright_lowr", "loopwright_lower")


def test_unmarked_hook(site: Path, load: Load) -> None:
    """A hook function without its decorator would never be called: refused."""
    install(site, "broken", "def loopwright_lower(kernel, target): ...")
    check_refused(site, load, "broken", "loopwright_lower", "@hookimpl")


def test_wrong_argument(site: Path, load: Load) -> None:
    """A hook with an argument that it will not get leaves nothing registered."""
    source = f"{device_plugin('new')}\n\n@hookimpl\ndef loopwright_lower(kernel, tgt): ...\n"
    install(site, "broken", source)
    check_refused(site, load, "broken", "tgt")


def test_devices_raise(site: Path, load: Load) -> None:
    """An exception in loopwright_devices refuses the plugin, not the program."""
    source = device_plugin("new").replace("return [Fake", "raise OSError('no driver') or [Fake")
    install(site, "broken", source)
    check_refused(site, load, "broken", "loopwright_devices", "OSError", "no driver")


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("return [Fake", "return None or {} and [Fake", "not a list"),
        ("def state", "def stat", "state"),
        ("self.name = name", "self.name = 'a:b'", "a:b"),
        ("self.name = name", "self.name = 7", "7"),
        ("self.name = name", "self.name = ''", "''"),
    ],
)
def test_no_device(site: Path, load: Load, old: str, new: str, word: str) -> None:
    """What loopwright_devices returns is checked: a list, of devices, with usable names."""
    install(site, "broken", device_plugin("new").replace(old, new))
    check_refused(site, load, "broken", word)


def test_target_is_not_read_while_loading(site: Path, load: Load) -> None:
    """Loading never probes: a `target` that would raise is not looked at."""
    source = device_plugin("new").replace(
        "    target = None\n", "    @property\n    def target(self):\n        raise OSError\n"
    )
    install(site, "mine", source)
    assert info(load(), "mine").state == "loaded"


def test_taken_device_name(site: Path, load: Load) -> None:
    """The second owner of a device name is refused, and the message names both."""
    install(site, "broken", device_plugin("other", "first"))
    refused = check_refused(site, load, "broken", "'first'", "aa-healthy", "broken")
    assert "pip uninstall aa-healthy" in refused.fix


def test_device_name_twice(site: Path, load: Load) -> None:
    """One plugin that brings a name twice is refused."""
    install(site, "broken", device_plugin("new", "new"))
    check_refused(site, load, "broken", "'new' twice")


def test_taken_plugin_name(site: Path, load: Load) -> None:
    """Two distributions with one plugin name: the first by name stays, both are named."""
    install(site, "dist-a", device_plugin("a"), plugin="same")
    install(site, "dist-b", device_plugin("b"), plugin="same")
    found = load()
    states = {p.dist: p for p in found.plugins()}
    assert [states[d].state for d in ("dist-a", "dist-b")] == ["loaded", "refused"]
    assert "dist-a" in states["dist-b"].reason
    assert list(found.devices()) == ["a"]


def test_order_is_by_name(site: Path, load: Load) -> None:
    """Whatever order the disk lists distributions in, plugins load by name."""
    for name in ("m", "z", "a"):
        install(site, f"dist-{name}", device_plugin(name), plugin=name)
    points = entry_points_in(site)
    assert [p.name for p in Registry(points).plugins()] == ["a", "m", "z"]
    assert [p.name for p in Registry(points[::-1]).plugins()] == ["a", "m", "z"]


def test_limit_switch(site: Path, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_PLUGINS loads only what it lists; what it lists in vain is reported."""
    install(site, "one", device_plugin("one"))
    install(site, "two", "raise SystemError('must not be imported')")
    monkeypatch.setenv("LOOPWRIGHT_PLUGINS", "one, three")
    found = load()
    assert {p.name: p.state for p in found.plugins()} == {
        "one": "loaded",
        "two": "disabled",
        "three": "missing",
    }
    with pytest.raises(DeviceError, match="LOOPWRIGHT_PLUGINS=one, three"):
        found.device("two")


def test_strict_switch(site: Path, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """LOOPWRIGHT_STRICT_PLUGINS=1 turns a refusal into an error."""
    install(site, "broken", "raise ValueError('boom')")
    monkeypatch.setenv("LOOPWRIGHT_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match=r"broken.*boom"):
        load()


def test_trace_switch(
    site: Path, load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """LOOPWRIGHT_TRACE_PLUGINS=1 says what loads and who is asked."""
    install(site, "mine", device_plugin("mine"))
    monkeypatch.setenv("LOOPWRIGHT_TRACE_PLUGINS", "1")
    found = load()
    found.hook.loopwright_devices()
    found.hook.loopwright_strategies()
    said = capsys.readouterr().err
    assert "plugin loaded" in said
    assert "loopwright_devices -> mine" in said
    assert "loopwright_strategies -> nobody" in said


def test_first_result_order(site: Path, load: Load) -> None:
    """A third party's tryfirst answers before a trylast; that two could answer is reported."""
    body = "from loopwright_core.plugin import hookimpl\n@hookimpl({when}=True)\n"
    body += "def loopwright_cost(kernel): return {value}\n"
    install(site, "ours", body.format(when="trylast", value=1.0))
    install(site, "theirs", body.format(when="tryfirst", value=2.0))
    found = load()
    assert found.hook.loopwright_cost(kernel=None, target=None) == 2.0
    assert found.implementers("loopwright_cost") == ["theirs", "ours"]
    assert found.contested() == {"loopwright_cost": ["theirs", "ours"]}


@pytest.mark.parametrize("text", ["", ":", "a:", ":1", "a:b:c:1", "a:b:c", " a", "a: b", "a::1"])
def test_bad_device_string(text: str) -> None:
    """A malformed device string is a DeviceError with the form to write."""
    with pytest.raises(DeviceError, match="name"):
        parse_device(text)


def test_device_string(site: Path, load: Load) -> None:
    """Index 0 is the device itself; variants and further indices need the device's support."""
    install(site, "mine", device_plugin("mine"))
    found = load()
    assert found.device("mine") is found.device("mine:0") is found.devices()["mine"]
    with pytest.raises(DeviceError, match="number 1"):
        found.device("mine:1")
    with pytest.raises(DeviceError, match="no variants"):
        found.device("mine:sm_90")
    with pytest.raises(DeviceError, match="say 'mine'"):
        found.device("MINE")


def test_variant_and_index(site: Path, load: Load) -> None:
    """`name:variant:index` asks the device; the same text gives the same object."""
    more = (
        "    def with_variant(self, variant):",
        "        return Fake(self.name + '/' + variant)\n",
        "    def with_index(self, index):",
        "        return Fake(self.name + '#' + str(index))\n",
        "    def state",
    )
    source = device_plugin("gpu").replace("count = 1", "count = 2")
    source = source.replace("    def state", "\n".join(more))
    install(site, "mine", source)
    found = load()
    assert found.device("gpu:sm_90:1").name == "gpu/sm_90#1"
    assert found.device("gpu:sm_90:1") is found.device("gpu:sm_90:1")
    with pytest.raises(DeviceError, match="this machine has 2"):
        found.device("gpu:2")


def test_process_registry_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that ask at once get one and the same registry, loaded once."""
    made: list[object] = []

    class Counting(Registry):
        def __init__(self) -> None:
            made.append(self)
            super().__init__([])

    monkeypatch.setattr(loader, "Registry", Counting)
    reset_registry()
    try:
        got: list[Registry] = []
        threads = [threading.Thread(target=lambda: got.append(registry())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 1
        assert set(map(id, got)) == {id(made[0])}
    finally:
        reset_registry()


def test_registry_during_import(site: Path) -> None:
    """A plugin that asks for the registry at import is refused instead of looping for ever."""
    source = "from loopwright_core.plugin.loader import registry\nregistry()"
    install(site, "broken", source)
    reset_registry()
    try:
        refused = info(registry(), "broken")
        assert refused.state == "refused"
        assert "being loaded" in refused.reason
    finally:
        reset_registry()
