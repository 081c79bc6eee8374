"""How one stage runs: ask the plugins, blame whoever fails, verify, tell the listeners."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import pluggy

from loopwright_core.errors import LoopwrightError, PluginError, VerifyError, fail
from loopwright_core.kernel.kernel import Kernel
from loopwright_core.plugin.device import Device
from loopwright_core.plugin.loader import Registry, registry
from loopwright_core.plugin.target import Target

T = TypeVar("T")

# What to install where no plugin answers a stage.
_PACKAGES = {
    "index": "loopwright-lower",
    "schedule": "loopwright-opt",
    "lower": "loopwright-lower",
}


def run_stage(
    stage: str,
    before: Any,
    call: Callable[[pluggy.HookRelay], T | None],
    target: Target | None = None,
) -> T:
    """The first plugin's answer. Raises PluginError where none answers."""
    found = registry()
    after = _answer(found, stage, before, call)
    if after is None:
        _fail_unanswered(found, stage)
    return _finish(found, stage, before, after, target)


def run_optional_stage(
    stage: str, before: T, call: Callable[[pluggy.HookRelay], T | None], wanted: bool
) -> T:
    """The first plugin's answer, or what came in where none answers and none was asked for."""
    found = registry()
    after = _answer(found, stage, before, call)
    if after is None:
        if wanted:
            _fail_unanswered(found, stage)
        after = before
    return _finish(found, stage, before, after, None)


def run_device_stage(stage: str, before: Any, call: Callable[[], T], device: Device) -> T:
    """What the device makes of it."""
    try:
        after = call()
    except (LoopwrightError, MemoryError):
        raise
    except Exception as error:
        _fail_bug(stage, f"the device {device.name!r}", error)
    return _finish(registry(), stage, before, after, None)


def is_checking() -> bool:
    """Whether LOOPWRIGHT_CHECK=1 asks for the verifier between stages."""
    return os.environ.get("LOOPWRIGHT_CHECK") == "1"


def _answer(
    found: Registry, stage: str, before: Any, call: Callable[[pluggy.HookRelay], T | None]
) -> T | None:
    if stage == "index" and is_checking():
        _verify("fuse", before, None, "whoever made this kernel AST")
    try:
        return call(found.hook)
    except (LoopwrightError, MemoryError):
        raise
    except Exception as error:
        _fail_bug(stage, _suspects(found, stage), error)


def _finish(found: Registry, stage: str, before: Any, after: T, target: Target | None) -> T:
    if is_checking():
        if isinstance(before, Kernel) and isinstance(after, Kernel) and after.body != before.body:
            fail(
                VerifyError,
                f"stage schedule ({_suspects(found, stage)}) changed the body of {before.name}",
                fix="a scheduler returns kernel.with_schedule(...)",
            )
        _verify(stage, after, target, _suspects(found, stage))
    found.hook.loopwright_stage(stage=stage, before=before, after=after)
    return after


def _verify(stage: str, value: Any, target: Target | None, suspects: str) -> None:
    from loopwright_core.ir import spec

    try:
        if stage == "fuse":
            spec.verify_tensor(value)
        elif isinstance(value, Kernel):
            spec.verify_kernel(value)
        elif stage == "lower" and target is not None:
            spec.verify_program(value, target)
    except VerifyError as error:
        raise VerifyError(f"stage {stage} ({suspects}) broke the IR: {error}") from error


def _suspects(found: Registry, stage: str) -> str:
    names = found.implementers(f"loopwright_{stage}") if stage in _PACKAGES else []
    infos = {p.name: p for p in found.plugins() if p.state == "loaded"}
    owners = [f"{n} {infos[n].version}".strip() if n in infos else n for n in names]
    return ("plugin " if len(owners) == 1 else "plugins ") + ", ".join(owners) if owners else stage


def _fail_bug(stage: str, culprit: str, error: Exception) -> NoReturn:
    """An exception that is none of ours is a bug in a plugin, and is called that."""
    text = " ".join(str(error).split())
    raise PluginError(
        f"stage {stage} failed in {culprit} with {type(error).__name__}: {text}. "
        "This is a bug there; please report it."
    ) from error


def _fail_unanswered(found: Registry, stage: str) -> NoReturn:
    absent = [p for p in found.plugins() if p.state != "loaded"]
    loaded = ", ".join(p.name for p in found.plugins() if p.state == "loaded") or "none"
    what = f"no plugin can {stage} this kernel. Loaded plugins: {loaded}"
    if absent:
        what += ". Not loaded: " + "; ".join(map(str, absent))
    fix = next((p.fix for p in absent if p.fix and p.dist == _PACKAGES[stage]), "")
    fail(PluginError, what, fix=fix or f"pip install {_PACKAGES[stage]}")
